"""Costs of methods before they run: upper bounds on their evaluations, which no machine changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import InputError
from ..methods.registry import Method
from ..models.evaluator import Evaluator
from ..models.tokens import Batch

MAX_EVALUATIONS = 20_000
"""Evaluations up to which a text is measured without being asked to; a text of 512 tokens needs fewer."""


def bound_evaluations(
    method: Method, tokens: Sequence[int], percents: Sequence[int], windows: Sequence[int] = ()
) -> int:
    """Return an upper bound on the evaluations of erasing texts with these numbers of explained tokens.

    A recursive method explains the tokens that are left at each step. Every step is evaluated once more. Each
    window of a text is an evaluation; by default, a text has one.
    """
    explained = percents[:-1] if method.recursive else percents[:1]
    each = (sum(method.evaluations(n - n * percent // 100) for percent in explained) for n in tokens)
    counts = windows or [1] * len(tokens)
    return sum(count * (own + len(percents)) for count, own in zip(counts, each, strict=True))


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
    """Return an upper bound on the number of evaluations in `explain_text`.

    The actual number can be lower because methods share evaluations.
    """
    return 1 + sum(method.evaluations(tokens) for method in methods)


def measure_cost(methods: Sequence[Method], tokens: int, *, orders: int, steps: int) -> int:
    """Return an upper bound on the number of evaluations in `measure_text`.

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
    """Return an upper bound on the evaluations in `measure_text`, for a batch of one text in units."""
    [tokens], [windows] = count_tokens(batch), evaluator.count_windows(batch)
    return windows * measure_cost(methods, tokens, orders=orders, steps=steps)
