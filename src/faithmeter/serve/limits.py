"""How much one request may ask for, known before any work is done."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..methods.registry import Method

WORD_CHARACTERS = 20
"""A text may have this many for each word that it may have: some scripts put no blanks between words."""


@dataclass(frozen=True)
class Limits:
    """What the owner of the machine allows to each request and to all of them together."""

    words: int = 1000
    evaluations: int = 50_000  # of the model
    waiting: int = 128  # requests in a lane, the one that is worked on included
    quick: int = 256  # evaluations; what needs no more may go before long work

    @property
    def characters(self) -> int:
        return self.words * WORD_CHARACTERS

    @property
    def body(self) -> int:
        """Bytes of a request: text and context, every character escaped, and all the rest."""
        return 2 * 12 * self.characters + 2**16


def require_short(name: str, text: str, limits: Limits) -> None:
    words = len(text.split())
    if words > limits.words:
        raise InputError(f"{name} has {words} words; expected at most {limits.words}: shorten it")
    if len(text) > limits.characters:
        raise InputError(f"{name} has {len(text)} characters; expected at most {limits.characters}")


def require_cheap(evaluations: int, limits: Limits) -> None:
    if evaluations > limits.evaluations:
        raise InputError(
            f"this could take {evaluations} evaluations of the model; expected at most {limits.evaluations}: "
            "take a shorter text, fewer methods, a narrower beam or fewer orders"
        )


COSTS: dict[str, Callable[[int, dict[str, Any]], int]] = {
    "int-grad-sign": lambda tokens, options: options["steps"],
    "int-grad-abs": lambda tokens, options: options["steps"],
    "loo-sign": lambda tokens, options: tokens + 1,
    "loo-abs": lambda tokens, options: tokens + 1,
    "beam": lambda tokens, options: options["width"] * tokens * (tokens + 1) // 2,
}
"""Evaluations that explain a text once, at most; a method that is not here needs one."""


def explain_cost(methods: Sequence[Method], tokens: int) -> int:
    """At most, as what another method asked for already costs nothing."""
    return 1 + sum(_cost(method, tokens) for method in methods)


def measure_cost(methods: Sequence[Method], tokens: int, *, orders: int, steps: int) -> int:
    """At most, too. Steps that mask nothing new cost nothing."""
    steps = min(steps, tokens + 1)
    explained = sum(_cost(method, tokens) * (steps if method.recursive else 1) for method in methods)
    return 1 + explained + steps * (orders + len(methods))


def _cost(method: Method, tokens: int) -> int:
    parameters = inspect.signature(method.function).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    known = COSTS.get(method.name)
    return max(1, known(tokens, {**defaults, **method.options})) if known else 1
