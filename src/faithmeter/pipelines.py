"""A pipeline as in transformers: text → label and score, its explanation, and whether that can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .config import MeasureConfig
from .errors import InputError, unknown
from .evaluator import Evaluator, Model
from .explanation import explain_text
from .methods import parse
from .model import load
from .onetext import TextMeasurement, doubts, measure_text
from .pvalues import simes
from .runs import fitted_tests, measured_task, trained_as
from .steps import Tests

KEYS = ("text", "text_pair")
"""Of an input that is a dict, as in transformers; the pair is the context, which is not explained."""


@dataclass(frozen=True)
class Pipeline:
    """Called with a text, or with a dict of `text` and `text_pair`, it returns a dict:

    - `label` and `score`: the predicted class and its probability, as transformers gives them;
    - `explanation`: the words with `start`, `end` and `score`, positive where they speak for the label;
    - `acu`: how far erasing by these scores drives the probability below random orders (`orders` of them);
    - `p_value`: of the text at all steps of erasure below 100 %, by Simes: small when these are out of
      distribution to the model, so that `acu` says nothing; None where no test is at hand;
    - `trusted`: there are no `doubts`, which are sentences of `onetext.doubts`;
    - `truncated`: the text was longer than the model can read.

    A list gives a list, anything else that can be iterated an iterator, which works on one text at a time.
    With `top_k` a text gives the list of its k likeliest classes, with None that of all, each explained.
    All options can be changed for a call: `pipe(text, method="beam")`.
    """

    # not a transformers.Pipeline: that calls the model without gradients, which half of the methods need
    clf: Evaluator
    tests: Tests = field(repr=False)
    method: str = "loo-sign"
    orders: int = 100
    seed: int = 0
    top_k: int | None = 0

    def __post_init__(self) -> None:
        parse(self.method)
        for name, least in (("orders", 1), ("seed", 0), ("top_k", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name} is {value}; expected at least {least}")

    def __call__(self, inputs: Any, **options: Any) -> Any:
        pipe = replace(self, **options)
        if isinstance(inputs, list):
            rows = [_row(item) for item in inputs]  # a mistake in the last one shows before the work begins
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
            "p_value": _pvalue(measured, name),
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
    if tests == "auto":
        tests = _own_tests(clf, model, seed) if isinstance(model, str | Path) else None
    if isinstance(tests, str):
        raise InputError(f"tests is {tests!r}; expected 'auto', None, or what fm.fit_tests returns")
    return Pipeline(Evaluator.of(clf), tests or {}, method, orders, seed, top_k)


def _own_tests(clf: Any, checkpoint: str | Path, seed: int) -> Tests | None:
    if trained_as(checkpoint) is None:
        return None
    measured, config = measured_task(clf, checkpoint, MeasureConfig(seed=seed), None)
    return fitted_tests(clf, checkpoint, measured, config)


def _pvalue(measured: TextMeasurement, method: str) -> float | None:
    """The p-value by which `doubts` judges."""
    pvalues = measured.methods[method].pvalues
    if not pvalues:
        return None
    values = pvalues.get("crossfit", next(iter(pvalues.values())))
    return float(simes([p for percent, p in zip(measured.percents, values, strict=True) if percent < 100]))


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
