"""Bounds on the evaluations of a measurement, which are told before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datasets import Dataset

    from ..measuring.plan import Plan, Settings
    from ..methods.registry import Method
    from ..models.evaluator import Evaluator


class Bounds(NamedTuple):
    """Evaluations that a measurement makes at most.

    Attributes:
        texts: Number of texts that are missing, of the method that lacks most.
        evaluations: By method; equal ones of several methods are made once.
    """

    texts: int
    evaluations: Mapping[str, int]


def bound_measurement(plan: Plan, missing: Mapping[str, int], fitting: int = 0) -> Bounds:
    """Bound the evaluations of a measurement by those of its first slice, as if all slices were like it.

    Args:
        plan: The measurement.
        missing: Number of texts that each method has not erased yet, of methods that lack any.
        fitting: Number of validation texts on which the in-distribution tests must be fitted first.
    """
    from ..measuring.fitting import CHECK

    methods = {name: plan.methods[name] for name in missing}
    texts, bounds = bound_slice(plan.evaluator, plan.rows, methods, plan.settings)
    evaluations = {CHECK: fitting} if fitting else {}
    for name, bound in bounds.items():
        evaluations[name] = round(missing[name] / texts * bound)
    return Bounds(max(missing.values()), evaluations)


def bound_slice(
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
