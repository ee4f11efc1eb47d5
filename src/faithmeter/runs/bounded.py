"""Bounds on the evaluations of a checkpoint's measurement, and which methods are too expensive by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..config import BASELINE, MeasureConfig

if TYPE_CHECKING:
    from datasets import Dataset

    from ..data import Task
    from ..measuring.plan import Plan, Settings
    from ..methods.registry import Method
    from ..models.classifier import Classifier
    from ..models.evaluator import Evaluator


class Bounds(NamedTuple):
    """Evaluations that a measurement makes at most.

    Attributes:
        texts: Number of texts that are missing, of the method that lacks most.
        evaluations: By method; equal ones of several methods are made once.
        left_out: By method that is not measured because of its cost.
    """

    texts: int
    evaluations: Mapping[str, int]
    left_out: Mapping[str, int]


def expensive_methods(clf: Classifier, task: Task, config: MeasureConfig) -> dict[str, int]:
    """Return the default methods that are not measured unless named, with their bounds on the first slice.

    A method is left out if it needs more evaluations than all others together. Methods of your own are
    measured in any case. The first slice decides whatever the limit, so that a larger one continues it.
    """
    from ..measuring.costs import too_expensive
    from ..measuring.plan import Settings
    from ..methods.registry import default_methods, parse
    from ..models.evaluator import Evaluator

    names = (BASELINE, *(config.methods or default_methods()))
    methods = {str(method): method for method in map(parse, names)}
    settings = Settings(config.percents, config.unit)
    _, bounds = _bound_slice(Evaluator(clf), task.load()["test"], methods, settings)
    return {name: bound for name, bound in too_expensive(bounds).items() if not methods[name].code}


def bound_measurement(
    plan: Plan, missing: Mapping[str, int], left_out: Mapping[str, int], fitting: int = 0
) -> Bounds:
    """Bound the evaluations of a measurement by those of its first slice, as if all slices were like it.

    Args:
        plan: The measurement.
        missing: Number of texts that each method has not erased yet, of methods that lack any.
        left_out: Bounds on the first slice of methods that are not measured.
        fitting: Number of validation texts on which the in-distribution tests must be fitted first.
    """
    from ..measuring.fitting import CHECK

    methods = {name: plan.methods[name] for name in missing}
    texts, bounds = _bound_slice(plan.evaluator, plan.rows, methods, plan.settings)
    evaluations = {CHECK: fitting} if fitting else {}
    for name, bound in bounds.items():
        evaluations[name] = round(missing[name] / texts * bound)
    most = max(missing.values())
    return Bounds(most, evaluations, {name: round(most / texts * bound) for name, bound in left_out.items()})


def _bound_slice(
    evaluator: Evaluator, rows: Dataset, methods: Mapping[str, Method], settings: Settings
) -> tuple[int, dict[str, int]]:
    """Return the number of texts in the first slice, and by method the evaluations of these at most."""
    from ..measuring.costs import bound_evaluations, count_tokens
    from ..measuring.texts import SLICE, read_slices

    batch, _ = next(read_slices(evaluator, rows, min(SLICE, len(rows)), settings.unit))
    tokens, windows = count_tokens(batch), evaluator.count_windows(batch)
    bounds = {
        name: bound_evaluations(method, tokens, settings.percents, windows)
        for name, method in methods.items()
    }
    return len(batch), bounds
