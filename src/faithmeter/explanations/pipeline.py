"""A pipeline as in transformers: text → label and score, its explanation, and whether that can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any

from ..config import BASELINE, MeasureConfig
from ..errors import InputError, unknown
from ..faithfulness.masf import MaSF
from ..faithfulness.single_text import FEWEST, doubts, judge, measure_text
from ..faithfulness.trajectory import Tests
from ..methods.registry import Method, parse
from ..models.evaluator import Evaluator, Model
from ..models.loading import load
from ..runs.run import fitted_tests, measured_task, trained_as
from .explanation import explain_text

LEAST = {"orders": FEWEST, "seed": 0, "top_k": 0}
"""Of each option that is a number."""
OPTIONS = ("method", "tests", *LEAST)
KEYS = ("text", "text_pair")
"""Of an input that is a dict, as in transformers; the pair is the context, which is not explained."""


@dataclass(frozen=True)
class Pipeline:
    """Called with a text, or with a dict of `text` and `text_pair`, it returns a dict:

    - `label` and `score`: the predicted class and its probability, as transformers gives them;
    - `explanation`: the words with `start`, `end` and `score`; where the method is signed, positive ones
      speak for the label and negative ones against it;
    - `acu`: how far erasing by these scores drives the probability below random orders (`orders` of them);
    - `p_value`: of the text at the steps of erasure together: small when these are out of distribution to
      the model, so that `acu` says nothing; None where no test is at hand;
    - `trusted`: there are no `doubts`, which are sentences of `onetext.doubts`;
    - `truncated`: the text was longer than the model can read.

    A list gives a list, anything else that can be iterated an iterator, which works on one text at a time.
    With `top_k` a text gives the list of its k likeliest classes, with None that of all, each explained.
    All options can be changed for a call: `pipe(text, method="beam")`.
    """

    # not a transformers.Pipeline: that calls the model without gradients, which half of the methods need
    clf: Evaluator
    tests: Tests | None = field(default=None, repr=False)
    method: str = "loo-sign"
    orders: int = 100
    seed: int = 0
    top_k: int | None = 0

    def __post_init__(self) -> None:
        explaining(self.method)
        tests = self.tests or {}
        if not isinstance(tests, Mapping) or not all(isinstance(test, MaSF) for test in tests.values()):
            raise InputError(f"tests is {tests!r:.80}; expected 'auto', None, or what fm.fit_tests returns")
        for name, least in LEAST.items():
            value = getattr(self, name)
            every_class = name == "top_k" and value is None
            if not every_class and not (isinstance(value, Integral) and int(value) >= least):
                raise InputError(f"{name} is {value!r}; expected a whole number of at least {least}")

    def __call__(self, inputs: Any, **options: Any) -> Any:
        for name in options:
            if name not in OPTIONS:
                raise unknown("option of a pipeline", name, OPTIONS)
        pipe = replace(self, **options)
        if isinstance(inputs, list):
            rows = [_row(item) for item in inputs]  # a mistake in the last one shows before the work begins
            if rows:
                self.clf.encode([text for text, _ in rows])  # as does one without a word
            return [pipe._found(*row) for row in rows]
        if isinstance(inputs, str | bytes | Mapping | tuple) or not _can_be_iterated(inputs):
            return pipe._found(*_row(inputs))
        return (pipe._found(*_row(item)) for item in inputs)

    def _found(self, text: str, pair: str | None) -> dict[str, Any] | list[dict[str, Any]]:
        if self.top_k == 0:
            return self._judged(text, pair, None)
        chances = explain_text(self.clf, text, pair=pair, methods=[]).probabilities
        likeliest = sorted(chances, key=chances.__getitem__, reverse=True)[: self.top_k]
        return [self._judged(text, pair, label) for label in likeliest]

    def _judged(self, text: str, pair: str | None, label: str | None) -> dict[str, Any]:
        """One class of one text; None is the predicted one."""
        explanation = explain_text(self.clf, text, pair=pair, methods=[self.method], label=label)
        measured = measure_text(
            self.clf,
            text,
            pair=pair,
            label=label,
            methods=[self.method],
            orders=self.orders,
            seed=self.seed,
            tests=self.tests,
        )
        [(name, erasure)] = measured.methods.items()
        found = [doubt.text for doubt in doubts(measured)]
        return {
            "label": explanation.label,
            "score": explanation.probabilities[explanation.label],
            "explanation": [
                {"word": word.text, "start": word.start, "end": word.end, "score": word.scores[name]}
                for word in explanation.words
            ],
            "acu": erasure.acu,
            "p_value": erasure.p[judge(erasure.p)] if erasure.p else None,
            "trusted": not found,
            "doubts": found,
            "truncated": explanation.truncated,
        }


def pipeline(
    model: str | Path | Model,
    *,
    method: str = "loo-sign",
    tests: Tests | str | None = "auto",
    orders: int = 100,
    seed: int = 0,
    top_k: int | None = 0,
) -> Pipeline:
    """A Pipeline for a checkpoint, a hub name, or a Classifier.

    "auto" takes the in-distribution tests beside a checkpoint of ours, or fits them now; other models have
    none, unless `fit_tests` made them.
    """
    clf: Any = load(model) if isinstance(model, str | Path) else model
    known: Any = tests
    if tests == "auto":
        known = _own_tests(clf, model, seed) if isinstance(model, str | Path) else None
    return Pipeline(Evaluator.of(clf), known, method, orders, seed, top_k)


def explaining(name: str | Method) -> Method:
    """The method of this name. The baseline is none: it explains nothing."""
    if not isinstance(name, str | Method):
        raise InputError(f"method is {name!r}; expected a name, such as 'loo-sign'")
    method = parse(name)
    if method.name == BASELINE:
        raise InputError(f"{BASELINE} explains nothing; every measurement has it as its baseline anyhow")
    return method


def _own_tests(clf: Any, checkpoint: str | Path, seed: int) -> Tests | None:
    if trained_as(checkpoint) is None:
        return None
    measured, config = measured_task(clf, checkpoint, MeasureConfig(seed=seed), None)
    return fitted_tests(clf, checkpoint, measured, config)


def _row(item: Any) -> tuple[str, str | None]:
    """Text and pair of one input."""
    row = {"text": item} if isinstance(item, str) else item
    if not isinstance(row, Mapping):
        raise InputError(
            f"got {item!r:.80}, a {type(item).__name__}; expected a text, "
            '{"text": …, "text_pair": …}, or a list or an iterator of these'
        )
    for name in row:
        if name not in KEYS:
            raise unknown("key of an input", str(name), KEYS)
    text, pair = row.get("text"), row.get("text_pair")
    if not isinstance(text, str) or not isinstance(pair, str | None):
        raise InputError(f"got {item!r:.80}; expected strings for `text` and, if there is one, `text_pair`")
    return text, pair


def _can_be_iterated(inputs: Any) -> bool:
    """True of map-style datasets as well, which have no `__iter__`."""
    try:
        iter(inputs)
    except TypeError:
        return False
    return True
