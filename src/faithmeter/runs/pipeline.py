"""Explanation of single texts with a verdict: a function, and a pipeline in the style of transformers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

from ..config import BASELINE, MeasureConfig, Precision, UnitName
from ..errors import InputError, unknown
from ..measuring.costs import MAX_EVALUATIONS, bound_text, require_affordable
from ..measuring.explanation import Explanation
from ..measuring.one_text import ORDERS, Trial, explain_texts, verify_text
from ..measuring.plan import Names, Tests, parse_methods, require_tests
from ..methods.registry import Method, parse
from ..models.encoding import encode
from ..models.evaluator import Evaluator, Model
from ..models.loading import load
from ..models.masks import PERCENTS
from ..models.tokens import in_units, require_unit
from ..phases import Progress, start_phase
from ..verdict.evidence import MIN_ORDERS, choose_test
from .choices import Choice, choose_method, read_budget
from .fitted_tests import load_tests, tests_beside

SMALLEST = {"orders": MIN_ORDERS, "seed": 0, "top_k": 0, "max_evaluations": 1}
"""Smallest valid value of each integer option."""
OPTIONS = ("method", "tests", "progress", "unit", *SMALLEST)
KEYS = ("text", "text_pair")
"""Keys of a dict input, as in transformers; `text_pair` is the context, which is not explained."""


def explain_text(
    clf: Model,
    text: str,
    *,
    pair: str | None = None,
    label: str | int | None = None,
    method: Names = "loo-sign",
    verify: bool = True,
    tests: Tests | Literal["auto"] | None = "auto",
    orders: int = ORDERS,
    seed: int = 0,
    percents: Sequence[int] = PERCENTS,
    unit: UnitName = "token",
    progress: Progress | None = None,
) -> Explanation:
    """Explain the prediction of one text, and say whether the explanation is faithful.

    The text is erased in the order of the explanation and in random orders. A faithful explanation makes the
    label's probability fall faster than nearly all of these.

    Args:
        clf: The classifier, or an `Evaluator` that shares its evaluations.
        text: The text to explain.
        pair: The context, for a model that reads two texts.
        label: Name or number of the class to explain; None explains the predicted class. A model that
            predicts a number has the classes `lower value` and `higher value`, and None explains the side of
            0 on which the number lies.
        method: Name of a method, with options in brackets, such as `"beam(width=20)"`, or a method. Several
            of them in a list, or a mapping as for `measure`, are compared on the same random orders.
        verify: Whether to erase the text for the verdict; without it, only the scores are computed.
        tests: In-distribution tests, from `fit_tests`; `auto` uses those that were saved with the
            classifier's checkpoint. Without tests nothing is trusted.
        orders: Random orders to compare with, at least 19.
        seed: Seed of the random orders.
        percents: Percentages of tokens to erase: increasing whole numbers, the first 0 and the last 100.
        unit: What is scored and erased as one piece: token, word or sentence.
        progress: Called after each method with its name, the number of methods finished, and the total.

    Returns:
        The score of each word and token by each method, and the verdict.

    Raises:
        InputError: The text is empty, or a method, the label or an option is not valid.

    Example:
        >>> explanation = fm.explain_text(clf, text, pair=pair, method=["loo-sign", "grad-l2"], orders=19)
        >>> explanation.methods
        ('loo-sign', 'grad-l2')
        >>> print(explanation.verdict.headline)  # of a model without a check
        Not known: the model was not checked on masked texts.
    """
    if not text.strip():
        raise InputError("the text is empty; expected at least one word to explain")
    evaluator, methods = Evaluator.of(clf), parse_methods(method)
    trial = Trial(orders, seed, percents, tests_beside(evaluator) if tests == "auto" else tests or {}, unit)
    tokens = evaluator.encode([text], None if pair is None else [pair])
    [explanation] = explain_texts(evaluator, tokens, methods, [label], unit)
    return verify_text(evaluator, tokens, explanation, methods, trial, progress) if verify else explanation


@dataclass(frozen=True)
class Pipeline:
    """Classifier that explains each prediction and says whether the explanation can be trusted.

    Call it with a text, or with a dict of `text` and `text_pair`. It returns a dict:

    - `label` and `score`: the predicted class and its probability, as in transformers; for a model that
      predicts a number, `lower value` or `higher value` (what is explained) and the number;
    - `explanation`: the words with `start`, `end` and `score`; if the method is signed, positive scores speak
      for the label and negative ones against it;
    - `acu`: area between the label's probability, or the number, under this erasure and under random orders;
    - `p_value`: combined p-value of the erasure steps; if it is small, the erased text is out of distribution
      for the model, and `acu` proves nothing; None without a test;
    - `trusted`: whether the explanation is faithful for this text, and no doubt rules out trusting its area;
    - `doubts`: reasons not to trust the explanation, as sentences;
    - `truncated`: whether the text was longer than the model can read.

    A list returns a list; any other iterable returns an iterator, which processes one text at a time. If
    `top_k` is not 0, each text returns a list of its k most probable classes, each explained. Options can be
    changed for one call: `pipe(text, method="beam")`.

    Attributes:
        clf: The classifier.
        tests: In-distribution tests, from `fit_tests`.
        method: Name of the method that explains.
        orders: Number of random orders to compare with.
        seed: Seed of the random orders.
        top_k: Number of classes to explain; 0 explains the predicted class only, None explains all.
        progress: Called with a phase, the amount done so far and the total: `evaluations` of each text (their
            bound is the total), and `explain` for the texts of a list.
        choice: Why `auto` chose the method; None if it was named.
        unit: What is scored and erased as one piece: token, word or sentence.
        max_evaluations: Evaluations of the model that a text may take; one that could take more is an error.

    Example:
        >>> pipe = fm.pipeline(clf, orders=19)
        >>> pipe(text)["trusted"]  # nothing is trusted without a check
        False
    """

    # not a transformers.Pipeline, which disables the gradients that half of the methods need
    clf: Evaluator
    tests: Tests | None = field(default=None, repr=False)
    method: str = "loo-sign"
    orders: int = 100
    seed: int = 0
    top_k: int | None = 0
    progress: Progress | None = field(default=None, repr=False)
    choice: Choice | None = field(default=None, repr=False)
    unit: UnitName = "token"
    max_evaluations: int = MAX_EVALUATIONS

    def __post_init__(self) -> None:
        require_explaining(self.method)
        require_unit(self.unit)
        require_tests(self.tests or {})
        for name, smallest in SMALLEST.items():
            value = getattr(self, name)
            every_class = name == "top_k" and value is None
            if not every_class and not (isinstance(value, Integral) and int(value) >= smallest):
                raise InputError(f"{name} is {value!r}; expected a whole number of at least {smallest}")

    def __call__(self, inputs: Any, **options: Any) -> Any:
        for name in options:
            if name not in OPTIONS:
                raise unknown("option of a pipeline", name, OPTIONS)
        pipe = replace(self, **options)
        if isinstance(inputs, list):
            rows = list(map(parse_row, inputs))
            for _, pair in rows:  # refuse invalid inputs before the work begins
                self.clf.require_pairs(None if pair is None else [pair])
            if rows:
                # a text that cannot be read ends the call before the first is explained
                encode(self.clf.tokenizer, [text for text, _ in rows], max_length=self.clf.max_length)
            for row in rows:
                # likewise one that could take too many evaluations
                pipe._bound(*row)
            results, done = [], start_phase(pipe.progress, "explain", len(rows))
            for row in rows:
                results.append(pipe._explain(*row))
                done(1)
            return results
        # these can be iterated, but are one input each, or none
        if isinstance(inputs, str | bytes | Mapping | tuple) or not _can_be_iterated(inputs):
            return pipe._explain(*parse_row(inputs))
        # lazily: the source may be endless
        return (pipe._explain(*parse_row(item)) for item in inputs)

    def _explain(self, text: str, pair: str | None) -> dict[str, Any] | list[dict[str, Any]]:
        if self.top_k == 0:
            return self._measure(text, pair, None)
        # one evaluation; the cache of the evaluator keeps it for the measurement
        predicted = explain_text(self.clf, text, pair=pair, method=[], verify=False)
        if predicted.value is not None:
            raise InputError(
                f"top_k is {self.top_k}, and the model predicts a number; leave it out: it is for classes"
            )
        probabilities = predicted.probabilities
        likeliest = sorted(probabilities, key=probabilities.__getitem__, reverse=True)[: self.top_k]
        return [self._measure(text, pair, label) for label in likeliest]

    def _bound(self, text: str, pair: str | None) -> int:
        """Return how many evaluations a text can take; raise an InputError if they are too many."""
        batch = in_units(self.clf.encode([text], None if pair is None else [pair]), self.unit)
        method = parse(self.method)
        bound = bound_text(self.clf, batch, [method], orders=self.orders, steps=len(PERCENTS))
        require_affordable(bound, self.max_evaluations)
        return bound

    @contextmanager
    def _counting(self, bound: int) -> Iterator[None]:
        """Report the evaluations in the block, which the evaluator counts."""
        # evaluators are shared, and others may be counting, too
        before = self.clf.progress
        self.clf.progress = start_phase(self.progress, "evaluations", bound)
        try:
            yield
        finally:
            self.clf.progress = before

    def _measure(self, text: str, pair: str | None, label: str | None) -> dict[str, Any]:
        """Explain one class of a text (the predicted one if None), and measure the explanation."""
        with self._counting(self._bound(text, pair)):
            explanation = explain_text(
                self.clf,
                text,
                pair=pair,
                label=label,
                method=self.method,
                tests=self.tests,
                orders=self.orders,
                seed=self.seed,
                unit=self.unit,
            )
        [(name, erasure)] = explanation.erasures.items()
        verdict = explanation.verdict
        return {
            "label": explanation.label,
            "score": explanation.probabilities.get(explanation.label, explanation.value),
            "explanation": [
                {"word": word.text, "start": word.start, "end": word.end, "score": word.scores[name]}
                for word in explanation.words
            ],
            "acu": erasure.acu,
            "p_value": erasure.p[choose_test(erasure.p)] if erasure.p else None,
            # not the area alone: a doubt or a chance result rules trust out
            "trusted": name in verdict.faithful,
            "doubts": [doubt.text for doubt in verdict.doubts],
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
    progress: Progress | None = None,
    device: str = "auto",
    precision: Precision = "auto",
    unit: UnitName = "token",
    max_evaluations: int = MAX_EVALUATIONS,
) -> Pipeline:
    """Create a pipeline that explains each prediction and measures the explanation.

    Args:
        model: Folder of a checkpoint, hub name, or classifier.
        method: Name of the method that explains. `"auto"`, or `"auto(budget=200)"` evaluations per text,
            takes the most faithful one on validation texts; for checkpoints that faithmeter trained.
        tests: In-distribution tests, from `fit_tests`, or None for none. "auto" loads or fits the tests of
            a checkpoint that faithmeter trained; of a loaded classifier, it uses those that were saved.
        orders: Number of random orders to compare with, at least 19.
        seed: Seed of the random orders.
        top_k: Number of classes to explain; 0 explains the predicted class only, None explains all.
        progress: Called with a phase, the amount done so far and the total: `evaluations` of each text (their
            bound is the total), and `explain` for the texts of a list.
        device: Device to load the model to, as in `load`; a classifier stays where it is.
        precision: Data type to evaluate in, as in `load`.
        unit: What is scored and erased as one piece: token, word or sentence.
        max_evaluations: Evaluations of the model that a text may take; one that could take more is an error.

    Returns:
        The pipeline.

    Raises:
        InputError: The model cannot be loaded, or an option is not valid.

    Example:
        >>> pipe = fm.pipeline(clf, orders=19)
        >>> sorted(pipe(text))[:2]
        ['acu', 'doubts']
    """
    clf: Any = model
    fitted: Any = tests
    budget, choice = read_budget(method) if isinstance(method, str) else None, None
    if isinstance(model, str | Path):
        clf = load(model, device=device, precision=precision)
        fitted = own_tests(clf, model, seed) if tests == "auto" else tests
        if budget is not None:
            choice = choose_method(clf, model, budget, seed=seed, unit=unit)
            method = choice.method
    # silently ignored options would be worse than an error
    elif (device, precision) != ("auto", "auto"):
        raise InputError(
            f"device={device!r}, precision={precision!r}, but the model is loaded already; expected the name "
            "of a checkpoint: give these options to fm.load instead"
        )
    elif budget is not None:
        raise InputError(
            "method='auto', but the model is loaded already; expected the folder of a checkpoint"
        )
    elif tests == "auto":
        fitted = tests_beside(clf)
    return Pipeline(
        clf=Evaluator.of(clf),
        tests=fitted,
        method=method,
        orders=orders,
        seed=seed,
        top_k=top_k,
        progress=progress,
        choice=choice,
        unit=unit,
        max_evaluations=max_evaluations,
    )


def require_explaining(name: str | Method) -> Method:
    """Return the method of this name; raise an InputError for the baseline, which explains nothing."""
    if not isinstance(name, str | Method):
        raise InputError(f"method is {name!r}; expected a name, such as 'loo-sign'")
    method = parse(name)
    if method.name == BASELINE:
        raise InputError(f"{BASELINE} explains nothing; every measurement includes it as the baseline")
    return method


def own_tests(clf: Any, checkpoint: str | Path, seed: int) -> Tests | None:
    return load_tests(clf, checkpoint, MeasureConfig(seed=seed, precision=clf.precision, overlap=clf.overlap))


def parse_row(item: Any) -> tuple[str, str | None]:
    """Return the text and the context (or None) of one input; raise an InputError if it is not valid."""
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
    """Return whether `iter` accepts the inputs, which may have `__getitem__` but no `__iter__`."""
    try:
        iter(inputs)
    except TypeError:
        return False
    return True
