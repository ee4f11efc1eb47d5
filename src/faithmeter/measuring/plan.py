"""Plan of a measurement, resolved once: task, methods, in-distribution tests and settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from ..config import BASELINE, OWN_AGREEMENT, Explained, Precision, TrainedWith, UnitName
from ..data import Task
from ..data.task import class_task, labeled_task
from ..errors import InputError, unknown
from ..methods.own_scores import Lookup, OwnScores, own_scores
from ..methods.registry import Method, parse, require_name
from ..models.classes import ClassMatch, match_classes, require_kind
from ..models.evaluator import Evaluator, Model
from ..models.masks import PERCENTS
from ..models.tokens import require_unit
from ..stats.behavior import Recalibration
from ..stats.curves import whole_percents
from ..stats.masf import MaSF
from .texts import read_slices

if TYPE_CHECKING:
    from datasets import Dataset
    from torch import Tensor

    from ..models.tokens import Batch

Tests = Mapping[str, MaSF]
"""In-distribution tests by name."""
Texts = Sequence[str | tuple[str, str]]
"""Texts without labels, or pairs of a text and its context."""
Names = str | Method | Sequence[str | Method] | Mapping[str, str | Method | OwnScores]
"""Methods by name or as values; in a mapping also scores that were computed elsewhere, by name."""


@dataclass(frozen=True)
class Settings:
    """Settings of a measurement that its traces depend on.

    Attributes:
        percents: Percentages of units to erase.
        unit: What is scored and erased as one piece.
        complement: Whether texts are also evaluated with only the erased units left.
        precision: Data type that the model is evaluated in.
        overlap: Tokens that neighboring windows of a long text share; 0 truncates it.
        explain: Class whose explanation is measured: the label, or the class that the model predicts.
    """

    percents: tuple[int, ...] = PERCENTS
    unit: UnitName = "token"
    complement: bool = False
    precision: Precision = "fp32"
    overlap: int = 0
    explain: Explained = "label"

    def __post_init__(self) -> None:
        require_unit(self.unit)
        if self.explain not in get_args(Explained):
            raise unknown("explain", self.explain, get_args(Explained))
        # frozen, so that a plan cannot change while traces are written under its digest
        object.__setattr__(self, "percents", whole_percents(self.percents))

    def of_model(self, clf: Model) -> Settings:
        """Return the settings with the precision and the overlap that a model was loaded with."""
        precision = cast(Precision, str(getattr(clf, "precision", "fp32")))
        return replace(self, precision=precision, overlap=int(getattr(clf, "overlap", 0)))


@dataclass(frozen=True)
class Plan:
    """Measurement to be made: everything that its traces and its result depend on.

    Attributes:
        evaluator: The model.
        task: The task as the model sees it, with the metric of curves and areas.
        rows: The split whose texts are measured.
        count: Number of texts: the first ones of the split.
        methods: Methods by name, the baseline first.
        tests: In-distribution tests.
        settings: Settings of the traces.
        own: Whether the model's own predictions are explained, for example of texts without labels.
    """

    evaluator: Evaluator
    task: Task
    rows: Dataset
    count: int
    methods: Mapping[str, Method]
    tests: Tests
    settings: Settings
    own: bool = False

    @cached_property
    def match(self) -> ClassMatch:
        """Classes of the task as those of the model."""
        return match_classes(getattr(self.evaluator, "labels", self.task.labels), self.task.labels)

    def targets(self, batch: Batch, labels: Tensor) -> Tensor:
        """Return the class of the model, [B], that is explained for each text of a batch."""
        if self.settings.explain == "predicted":
            return self.evaluator.logits(batch).argmax(dim=1).cpu()
        return self.match.to_model(labels)

    @cached_property
    def numbers(self) -> NDArray[np.float64] | None:
        """Numbers of all rows of a regression task, which are measured; None for classes."""
        return np.array(self.rows["value"][:]) if "value" in self.rows.column_names else None

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that the context of a result rests on, and that a manifest keeps (see `pool.KEPT`)."""
        task = self.task
        return {
            "metric": task.metric,
            "others": tuple(metric for metric in task.metrics if metric != task.metric),
            "threshold": task.threshold,
            "floors": floors_of(self.tests),
            "trained_with": trained_with_of(self.tests),
            "classes_by_number": bool(self.match.note),
            "precision": self.settings.precision,
            "agreement": agreement_of(self.evaluator),
            "scores": {name: method.scores for name, method in self.methods.items() if method.scores},
        }


class Extent(NamedTuple):
    """Texts that are measured, and the metric of their curves.

    Attributes:
        limit: Number of texts: the first ones of the split; 0 measures all.
        split: The split.
        metric: Name of the metric; None for that of the task.
    """

    limit: int = 0
    split: str = "test"
    metric: str | None = None


WHOLE_SPLIT = Extent()
"""All test texts, by the metric of the task."""


def plan_measurement(
    clf: Model,
    task: Task | Texts,
    methods: Names,
    tests: Tests,
    settings: Settings,
    extent: Extent = WHOLE_SPLIT,
) -> Plan:
    """Resolve a measurement, before any text is explained.

    Of texts without labels, those that the model predicts are explained.

    Raises:
        InputError: A value is not valid, or model, task and methods do not fit each other.
    """
    limit, split, metric = extent
    if limit < 0:
        raise InputError(f"limit is {limit}; expected how many texts to measure, or 0 for all")
    # a new evaluator: its cache holds what this measurement evaluates, and nothing of others
    evaluator, own = Evaluator(clf), not isinstance(task, Task)
    if not isinstance(task, Task):
        task = label_texts(evaluator, task)
    require_kind(task, number=evaluator.predicts_number)
    refuse_complement(evaluator, complement=settings.complement)
    task = class_task(task, getattr(evaluator, "labels", task.labels))
    if settings.explain == "predicted":
        task, own = _judged_by_the_model(task), True
    task = task if metric is None else task.with_metric(metric)
    rows = task.split(split)
    count = min(limit or len(rows), len(rows))
    named = with_baseline(parse_methods(methods))
    # precision and overlap are the loaded model's, whatever was asked for
    plan = Plan(evaluator, task, rows, count, named, tests, settings.of_model(clf), own)
    _require_variety(plan)
    require_own_scores(plan)
    return plan


def label_texts(clf: Evaluator, texts: Texts) -> Task:
    """Return a task of texts without labels, of which the model's own predictions are explained.

    Raises:
        InputError: There are no texts, some have no context, or the model predicts numbers.
    """
    from datasets import Dataset

    if clf.predicts_number:
        raise InputError(
            "the model predicts numbers, and texts alone have none; expected a task: fm.own_task"
        )
    with_context = [isinstance(text, tuple | list) and [*map(type, text)] == [str, str] for text in texts]
    alone = [isinstance(text, str) for text in texts]
    if not alone or not (all(with_context) or all(alone)):
        raise InputError(f"texts are {texts!r:.60}; expected a list of texts, or of pairs (text, context)")
    columns: dict[str, list[Any]] = {"text": [*texts], "label": [0] * len(texts)}
    if all(with_context):
        columns["text"], columns["context"] = map(list, zip(*texts, strict=True))
    # the labels are filled in below; reading needs some
    split, predicted = Dataset.from_dict(columns), []
    for batch, _ in read_slices(clf, split, len(split)):
        predicted += clf.logits(batch).argmax(dim=1).tolist()
    task = labeled_task({"test": split}, {"test": predicted}, name="texts", classes=clf.labels)
    return replace(task, metrics=(OWN_AGREEMENT,), metric=OWN_AGREEMENT)


def _judged_by_the_model(task: Task) -> Task:
    """Return a task whose performance is the agreement with what the model predicts for whole texts.

    Raises:
        InputError: The task has numbers, which are not predicted as a class.
    """
    if task.kind == "regression":
        raise InputError("explain is 'predicted', and the model predicts numbers; expected 'label'")
    return replace(task, metrics=(OWN_AGREEMENT,), metric=OWN_AGREEMENT, threshold=-1.0)


def with_baseline(methods: Iterable[Method]) -> dict[str, Method]:
    """Return methods by name, random erasure first: the baseline, of which `random(seed=1)` sets the seed."""
    named = {BASELINE: parse(BASELINE)}
    for method in methods:
        # the first baseline with options is the one; further orders at random are methods like any other
        if method.name != BASELINE or (method.options and named[BASELINE].options):
            named[str(method)] = method
        elif method.options:
            named[BASELINE] = method
    return named


def seeded(method: Method, seed: int) -> Method:
    """Return the baseline with this seed, unless it has one already; other methods are unchanged."""
    if method.name != BASELINE or "seed" in method.options:
        return method
    return replace(method, options={"seed": seed})


def floors_of(tests: Tests | None) -> dict[str, float]:
    """Return the smallest possible p-value of each test."""
    return {name: test.smallest_p() for name, test in (tests or {}).items()}


def trained_with_of(tests: Tests | None) -> TrainedWith:
    """Return the masking strategy that the tests assume for the model's training; unknown without tests."""
    return next(iter(tests.values())).trained_with if tests else "unknown"


def recalibration_of(tests: Tests | None, *, own: bool = False) -> Recalibration | None:
    """Return what the behavioral check is fitted on; None without tests, or if it was not fitted.

    With `own`, its targets are the model's own predictions, as for measured texts without labels.
    """
    test = next(iter((tests or {}).values()), None)
    if test is None:
        return None
    return test.own_recalibration if own else test.recalibration


def agreement_of(clf: Model) -> float:
    """Return the agreement of an adapted model with the original; NaN for any other model."""
    return float(getattr(clf, "agreement", math.nan))


def parse_methods(methods: Names) -> list[Method]:
    """Return the methods of these names; a single name gives a list of one."""
    if isinstance(methods, str | Method):
        return [parse(methods)]
    if not isinstance(methods, Mapping):
        return [*map(parse, methods)]
    for name in methods:
        require_name(name)
        if name == BASELINE:
            raise InputError(f"a method named {BASELINE!r}, which is the baseline; give yours another name")
    return [
        replace(parse(value), name=name) if isinstance(value, str | Method) else own_scores(name, value)
        for name, value in methods.items()
    ]


def require_tests(tests: object) -> None:
    """Raise an InputError unless these are in-distribution tests by name."""
    if not isinstance(tests, Mapping) or not all(isinstance(test, MaSF) for test in tests.values()):
        raise InputError(f"tests is {tests!r:.80}; expected 'auto', None, or what fit_tests returns")


def refuse_complement(clf: Model, *, complement: bool) -> None:
    """Raise an InputError if `complement` is asked for, and the model predicts numbers."""
    if complement and getattr(clf, "predicts_number", False):
        raise InputError("complement is about probabilities, and the model predicts numbers; leave it out")


def require_own_scores(plan: Plan) -> None:
    """Raise an InputError if scores that were computed elsewhere do not fit the texts, before any work."""
    given = [*filter(attrgetter("scores"), plan.methods.values())]
    rows = plan.rows
    for method in given:
        if isinstance(method.function, Lookup):
            contexts = rows["context"][:] if "context" in rows.column_names else [""] * len(rows)
            method.function.require_known(rows["text"][:], contexts)
    if given:  # whether the number of scores is that of the units only shows on the tokens
        for batch, labels in read_slices(plan.evaluator, rows, plan.count, plan.settings.unit):
            for method in given:
                method.function(plan.evaluator, batch, labels)


def _require_variety(plan: Plan) -> None:
    """Raise an InputError if all texts have the same label: no metric could tell right from guessed."""
    task, numbers = plan.task, plan.numbers
    if plan.settings.explain == "predicted":  # a constant model is told by its lead over guessing
        return
    labels = plan.rows["label"][: plan.count]
    same, expected = repr(task.labels[labels[0]]), "at least two classes"
    if numbers is not None:
        labels, same, expected = numbers[: plan.count].tolist(), f"{numbers[0]:g}", "different numbers"
    if len(set(labels)) < 2:
        raise InputError(
            f"all {len(labels)} texts of {task.name} to be measured have the label {same}; expected "
            f"{expected}: take more texts"
        )
