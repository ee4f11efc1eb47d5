"""Costs of methods before they run: upper bounds on their evaluations, which no machine changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..errors import InputError
from ..methods.registry import Method
from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from .plan import Plan, Settings
from .texts import SLICE, read_slices
from .trace import subset

if TYPE_CHECKING:
    from datasets import Dataset

MAX_EVALUATIONS = 20_000
"""Evaluations up to which a text is measured without being asked to; a text of 512 tokens needs fewer."""


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
    from .fitting import CHECK

    methods = subset(plan.methods, missing)
    texts, bounds = bound_slice(plan.evaluator, plan.rows, methods, plan.settings)
    evaluations = {CHECK: fitting} if fitting else {}
    for name, bound in bounds.items():
        evaluations[name] = round(missing[name] / texts * bound)
    return Bounds(max(missing.values()), evaluations)


def bound_slice(
    evaluator: Evaluator, rows: Dataset, methods: Mapping[str, Method], settings: Settings
) -> tuple[int, dict[str, int]]:
    """Return the number of texts in the first slice, and by method the evaluations of these at most."""
    batch, _ = next(read_slices(evaluator, rows, min(SLICE, len(rows)), settings.unit))
    tokens, windows = count_tokens(batch), evaluator.count_windows(batch)
    bounds = {}
    for name, method in methods.items():
        bounds[name] = bound_evaluations(method, tokens, settings.percents, windows)
    return len(batch), bounds


def bound_evaluations(
    method: Method, tokens: Sequence[int], percents: Sequence[int], windows: Sequence[int] = ()
) -> int:
    """Return an upper bound on the evaluations of erasing texts with these numbers of explained tokens.

    A recursive method explains the tokens that are left at each step. Every step is evaluated once more. Each
    window of a text is an evaluation; by default, a text has one.
    """
    # nothing is explained at 100 %, and only once by a method that is not recursive
    explained = percents[:-1] if method.recursive else percents[:1]
    bound = 0
    for n, count in zip(tokens, windows or [1] * len(tokens), strict=True):
        own = len(percents)
        for percent in explained:
            own += method.evaluations(n - n * percent // 100)
        bound += count * own
    return bound


def sort_by_cost(
    methods: Mapping[str, Method], batch: Batch, percents: Sequence[int]
) -> list[tuple[str, Method]]:
    """Return the methods from cheap to dear by their bounds on a batch."""
    tokens = count_tokens(batch)
    return sorted(methods.items(), key=lambda item: bound_evaluations(item[1], tokens, percents))


def count_tokens(batch: Batch) -> list[int]:
    """Return the number of explained tokens of each text."""
    counts: list[int] = batch.explained.sum(dim=1).tolist()
    return counts


def explain_cost(methods: Sequence[Method], tokens: int) -> int:
    """Return an upper bound on the number of evaluations in `explain_texts`.

    The actual number can be lower because methods share evaluations.
    """
    return 1 + sum(method.evaluations(tokens) for method in methods)


def measure_cost(methods: Sequence[Method], tokens: int, *, orders: int, steps: int) -> int:
    """Return an upper bound on the number of evaluations in `verify_text`.

    A text has at most `tokens + 1` distinct steps; a step that masks no further token is not evaluated.
    """
    steps = min(steps, tokens + 1)
    explained = sum(method.evaluations(tokens) * method.explanations(steps) for method in methods)
    return 1 + explained + steps * (orders + len(methods))


def require_affordable(bound: int, most: int) -> None:
    """Raise an InputError if a text could need more evaluations than are allowed."""
    if bound > most:
        raise InputError(
            f"this text could take {bound:,} evaluations of the model; expected at most {most:,}: shorten "
            "it, choose a cheaper method or fewer orders, or allow more (max_evaluations)"
        )


def bound_text(
    evaluator: Evaluator, batch: Batch, methods: Sequence[Method], *, orders: int, steps: int
) -> int:
    """Return an upper bound on the evaluations in `verify_text`, for a batch of one text in units."""
    [tokens], [windows] = count_tokens(batch), evaluator.count_windows(batch)
    return windows * measure_cost(methods, tokens, orders=orders, steps=steps)
