"""Measurement of several methods on the test texts of a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ..config import BASELINE, UnitName
from ..data import TASKS, Task
from ..data.labeled import class_task
from ..errors import InputError
from ..methods.own_scores import Lookup
from ..methods.registry import Method, default_methods, parse
from ..models.classes import ClassMatch, match_classes, require_kind
from ..models.classifier import Classifier
from ..models.evaluator import Evaluator, Model
from ..models.masks import PERCENTS
from ..models.tokens import Batch
from ..stats.curves import whole_percents
from ..stats.metrics import MetricFunction, name_metric
from .chunks import ChunkWork, erase_chunk, locate_tokens, read_chunks
from .measurement import Measurement
from .one_text import TextMeasurement, measure_text
from .plan import Names, Tests, agreement_of, floors_of, parse_methods, trained_with_of
from .plausibility import measure_plausibility
from .trace import PHASES

if TYPE_CHECKING:
    from datasets import Dataset

DEFAULT_METHODS: Names = tuple(default_methods())
"""Methods that are measured by default."""
Progress = Callable[[str, int, int], object]


@overload
def measure(
    clf: Model,
    task: Task,
    methods: Names = ...,
    *,
    seed: int = ...,
    limit: int = ...,
    percents: Sequence[int] = ...,
    tests: Tests | None = ...,
    unit: UnitName = ...,
    complement: bool = ...,
    split: Literal["validation", "test"] = ...,
    metric: str | MetricFunction | None = ...,
    keep: Path | None = ...,
    progress: Progress | None = ...,
) -> Measurement: ...


@overload
def measure(
    clf: Model,
    task: str,
    methods: Names = ...,
    *,
    pair: str | None = ...,
    label: str | int | None = ...,
    orders: int = ...,
    seed: int = ...,
    percents: Sequence[int] = ...,
    tests: Tests | None = ...,
    unit: UnitName = ...,
    progress: Progress | None = ...,
) -> TextMeasurement: ...


def measure(
    clf: Model,
    task: Task | str,
    methods: Names = DEFAULT_METHODS,
    *,
    pair: str | None = None,
    label: str | int | None = None,
    orders: int | None = None,
    seed: int = 0,
    limit: int = 0,
    percents: Sequence[int] = PERCENTS,
    tests: Tests | None = None,
    unit: UnitName = "token",
    complement: bool = False,
    split: Literal["validation", "test"] = "test",
    metric: str | MetricFunction | None = None,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> Measurement | TextMeasurement:
    """Measure explanations on the texts of a task, or on one text.

    Args:
        clf: A classifier, or an `Evaluator` that shares its evaluations.
        task: A task, or one text to measure alone (see `measure_text`).
        methods: Names of methods, or methods; or a mapping from names to methods and to scores that were
            computed elsewhere (see `own_scores`). Random erasure, the baseline, is always measured.
        pair: For one text: its context.
        label: For one text: name or number of the class; by default the predicted one.
        orders: For one text: the number of random orders, by default 100.
        seed: Seed of the random orders.
        limit: For a task: measure only the first `limit` texts; 0 measures all.
        percents: Percentages of tokens to erase: increasing whole numbers, the first 0 and the last 100.
        tests: In-distribution tests, from `fit_tests`; without them no area is trusted.
        unit: What is scored and erased as one piece: token, word or sentence.
        complement: For a task: also evaluate texts with only the erased part left, which sufficiency and
            insertion need (see `Measurement.metrics`).
        split: For a task: the split whose texts are measured. Choose methods and their options on
            validation texts, and measure the chosen one on test texts.
        metric: For a task: name of the metric of curves and areas, or a function `(labels, predictions) ->
            float`, see `metric`; the default is that of the task.
        keep: For a task: folder of finished chunks; a stopped measurement continues from them.
        progress: Called with a method's name and two counts: for a task, the texts just finished (0 while
            the method is at work) and all texts; for one text, the methods finished and all methods.

    Returns:
        A `Measurement` of the task, or a `TextMeasurement` of the text.

    Raises:
        InputError: An option is not valid, or does not apply to a task or to one text.

    Example:
        >>> result = fm.measure(clf, task, ["loo-sign"], limit=20)
        >>> result.acu("loo-sign") <= 1
        True
    """
    if isinstance(task, str):
        if task in TASKS:
            raise InputError(f"{task!r} would be measured as a text; for the task give fm.task({task!r})")
        others = {"split": split} if split != "test" else {}
        _refuse_options("one text", limit=limit, keep=keep, complement=complement, metric=metric, **others)
        return measure_text(
            clf,
            task,
            pair=pair,
            label=label,
            methods=methods,
            orders=100 if orders is None else orders,
            seed=seed,
            percents=percents,
            tests=tests,
            unit=unit,
            progress=progress,
        )
    _refuse_options("a task", pair=pair, label=label, orders=orders)
    if limit < 0:
        raise InputError(f"limit is {limit}; expected how many texts to measure, or 0 for all")
    work = chunk_work(
        clf, methods, seed=seed, percents=percents, tests=tests, unit=unit, complement=complement
    )
    named_metric = None if metric is None else name_metric(metric)
    return _measure_task(work, task, split, limit, keep, progress, named_metric)


def chunk_work(
    clf: Model,
    methods: Names,
    *,
    seed: int = 0,
    percents: Sequence[int] = PERCENTS,
    tests: Tests | None = None,
    unit: UnitName = "token",
    complement: bool = False,
) -> ChunkWork:
    """Return the settings that all chunks of a measurement share; the arguments are those of `measure`."""
    named = {str(method): seeded(method, seed) for method in (parse(BASELINE), *parse_methods(methods))}
    return ChunkWork(Evaluator(clf), named, whole_percents(percents), tests or {}, unit, complement)


def _refuse_options(measured: str, **options: object) -> None:
    for name, value in options.items():
        if value is not None and value != 0:
            raise InputError(f"{name}={value!r} does not go with {measured}; leave it out")


def _measure_task(
    work: ChunkWork,
    task: Task,
    role: str,
    limit: int,
    keep: Path | None,
    progress: Progress | None,
    metric: str | None,
) -> Measurement:
    """Measure the methods on the first `limit` texts of a split (0: on all), chunk by chunk."""
    import pandas as pd

    task, split, count = _measured_split(work, task, limit, role)
    task = task if metric is None else task.with_metric(metric)
    numbers = _numbers(split, count)
    named = work.methods

    def advance(name: str, texts: int) -> None:
        if progress is not None:
            progress(name, texts, count)

    parts, inputs, truncated = [], [], 0
    match = _match(work, task)
    for batch, labels in _model_chunks(work, task, split, count):
        parts.append(erase_chunk(work, batch, labels, folder=keep, done=advance))
        inputs.append(locate_tokens(batch, labels))
        truncated += sum(layout.truncated for layout in batch.layouts)
    costs = [part.attrs["costs"] for part in parts]
    frame = pd.concat(parts, ignore_index=True)
    frame.attrs = {}  # drop the costs of the first chunk
    texts = pd.concat(inputs, ignore_index=True)
    if numbers is not None:  # the sides were explained, the numbers are measured
        texts["side"] = texts["label"]
        for part in (frame, texts):
            part["label"] = numbers[part["row"]]
    rationales = dict(enumerate(split["supporting"][:count])) if "supporting" in split.column_names else {}
    return Measurement(
        frame=frame,
        classes=len(task.labels),
        metric=task.metric,
        others=tuple(metric for metric in task.metrics if metric != task.metric),
        evaluations={name: sum(cost[name]["evaluations"] for cost in costs) for name in named},
        evaluations_alone={name: sum(cost[name].get("alone", 0) for cost in costs) for name in named},
        seconds={
            name: {phase: sum(cost[name]["seconds"][phase] for cost in costs) for phase in PHASES}
            for name in named
        },
        floors=floors_of(work.tests),
        inputs=texts,
        trained_with=trained_with_of(work.tests),
        threshold=task.threshold,
        truncated=truncated / count,
        classes_by_number=bool(match.note),
        device=", ".join(dict.fromkeys(part.attrs.get("device", "cpu") for part in parts)),
        precision=work.evaluator.precision,
        agreement=agreement_of(work.evaluator),
        scores={name: method.scores for name, method in named.items() if method.scores},
        unit=work.unit,
        plausibility=measure_plausibility(frame, texts, rationales),
    )


def measured_chunks(work: ChunkWork, task: Task, limit: int) -> Iterator[tuple[Batch, Tensor]]:
    """Yield the texts that a measurement of a task erases, with the model's labels, one chunk at a time."""
    task, split, count = _measured_split(work, task, limit)
    return _model_chunks(work, task, split, count)


def _measured_split(work: ChunkWork, task: Task, limit: int, role: str = "test") -> tuple[Task, Dataset, int]:
    """Return the task as the model sees it, a split, and how many texts are measured; verify them."""
    require_kind(task, number=work.evaluator.predicts_number)
    refuse_complement(work.evaluator, complement=work.complement)
    task = class_task(task, getattr(work.evaluator, "labels", task.labels))
    split = task.split(role)
    count = min(limit or len(split), len(split))
    _require_variety(split["label"][:count], _numbers(split, count), task)
    require_own_scores(work.evaluator, split, work.methods.values(), limit, work.unit)
    return task, split, count


def _model_chunks(work: ChunkWork, task: Task, split: Dataset, count: int) -> Iterator[tuple[Batch, Tensor]]:
    match = _match(work, task)
    for batch, labels in read_chunks(work.evaluator, split, count, work.unit):
        yield batch, match.to_model(labels)


def _match(work: ChunkWork, task: Task) -> ClassMatch:
    return match_classes(getattr(work.evaluator, "labels", task.labels), task.labels)


def _numbers(split: Dataset, count: int) -> NDArray[np.float64] | None:
    """Return the first numbers of a regression task; None for classes."""
    return np.array(split["value"][:count]) if "value" in split.column_names else None


def refuse_complement(clf: Evaluator | Classifier, *, complement: bool) -> None:
    """Raise an InputError if `complement` is asked for, and the model predicts numbers."""
    if complement and clf.predicts_number:
        raise InputError("complement is about probabilities, and the model predicts numbers; leave it out")


def seeded(method: Method, seed: int) -> Method:
    """Return the baseline with this seed, unless it has one already; other methods are unchanged."""
    if method.name != BASELINE or "seed" in method.options:
        return method
    return replace(method, options={"seed": seed})


def require_own_scores(
    clf: Model, split: Dataset, methods: Iterable[Method], limit: int, unit: UnitName
) -> None:
    """Raise an InputError if scores that were computed elsewhere do not fit the texts, before any work."""
    given, evaluator = [method for method in methods if method.scores], Evaluator.of(clf)
    count = min(limit or len(split), len(split))
    contexts = split["context"][:] if "context" in split.column_names else [""] * len(split)
    for method in given:
        if isinstance(method.function, Lookup):
            method.function.require_known(split["text"][:], contexts)
    for batch, labels in read_chunks(evaluator, split, count, unit) if given else ():
        for method in given:
            method.function(evaluator, batch, labels)


def _require_variety(labels: Sequence[int], numbers: NDArray[np.float64] | None, task: Task) -> None:
    same, expected = repr(task.labels[labels[0]]), "at least two classes"
    if numbers is not None:
        labels, same, expected = numbers.tolist(), f"{numbers[0]:g}", "different numbers"
    if len(set(labels)) < 2:
        raise InputError(
            f"all {len(labels)} texts of {task.name} to be measured have the label {same}; expected "
            f"{expected}: take more texts"
        )
