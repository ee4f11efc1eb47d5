"""Bounds on the evaluations of a checkpoint's measurement, and which methods are too expensive by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..config import BASELINE, MeasureConfig

if TYPE_CHECKING:
    from ..data import Task
    from ..methods.registry import Method
    from ..models.classifier import Classifier

CHECK = "check"
"""Name of the in-distribution tests among the methods of a measurement, if they must be fitted."""


class Bounds(NamedTuple):
    """Evaluations that a measurement makes at most.

    Attributes:
        texts: Number of texts.
        evaluations: By method; equal ones of several methods are made once.
        left_out: By method that is not measured because of its cost.
    """

    texts: int
    evaluations: Mapping[str, int]
    left_out: Mapping[str, int]


def expensive_methods(clf: Classifier, task: Task, config: MeasureConfig) -> dict[str, int]:
    """Return the default methods that are not measured unless named, with their bounds on the first chunk.

    A method is left out if it needs more evaluations than all others together. Methods of your own are
    measured in any case. The first chunk decides whatever the limit, so that a larger one continues it.
    """
    from ..measuring.costs import too_expensive

    methods, (_, bounds) = _methods(config), _bound_chunk(clf, task, config)
    return {name: bound for name, bound in too_expensive(bounds).items() if not methods[name].code}


def bound_measurement(
    clf: Classifier, task: Task, config: MeasureConfig, left_out: Mapping[str, int], fitting: int = 0
) -> Bounds:
    """Bound the evaluations of a measurement by those of its first chunk, as if all chunks were like it.

    Args:
        clf: The classifier.
        task: The task whose test texts are measured.
        config: Methods and limit.
        left_out: Bounds on the first chunk of methods that are not measured.
        fitting: Number of validation texts on which the in-distribution tests must be fitted first.
    """
    chunk, bounds = _bound_chunk(clf, task, config)
    rows = len(task.load()["test"])
    texts = min(config.limit or rows, rows)

    def scale(counts: Mapping[str, int]) -> dict[str, int]:
        return {name: round(texts / chunk * count) for name, count in counts.items()}

    fitted = {CHECK: fitting} if fitting else {}
    return Bounds(texts, {**fitted, **scale(bounds)}, scale(left_out))


def _methods(config: MeasureConfig) -> dict[str, Method]:
    """Return the measured methods by name, the baseline first."""
    from ..methods.registry import default_methods, parse

    names = (BASELINE, *(config.methods or default_methods()))
    return {str(method): method for method in map(parse, names)}


def _bound_chunk(clf: Classifier, task: Task, config: MeasureConfig) -> tuple[int, dict[str, int]]:
    """Return the number of texts in the first chunk, and by method the evaluations of these at most."""
    from ..measuring.chunks import CHUNK, read_chunks
    from ..measuring.costs import bound_evaluations, count_tokens
    from ..models.evaluator import Evaluator

    split, evaluator = task.load()["test"], Evaluator(clf)
    batch, _ = next(read_chunks(evaluator, split, min(CHUNK, len(split)), config.unit))
    tokens, windows = count_tokens(batch), evaluator.count_windows(batch)
    bounds = {
        name: bound_evaluations(method, tokens, config.percents, windows)
        for name, method in _methods(config).items()
    }
    return len(batch), bounds
