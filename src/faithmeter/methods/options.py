"""Options of a method, parsed from names such as `beam(width=20)`, and the sets of tokens that it masks."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import InputError, unknown
from ..models.devices import send
from ..models.evaluator import Evaluator, pick
from ..models.tokens import Batch

Function = Callable[..., Tensor]
"""Function of a method: `(clf, batch, labels, **options) -> Tensor [B, T]`."""
Option = int | float | bool | str
Target = Literal["logit", "logprob", "margin"]
"""Value to explain: the label's logit (as in the paper), its log-probability, or its margin.

The margin is the label's logit minus the highest other logit.
"""
TARGET_UNITS: dict[str, str] = {
    "logit": "logit points",
    "logprob": "nats of log-probability",
    "margin": "logit points of margin",
}
"""Unit of each value that can be explained."""


class Range(NamedTuple):
    """Smallest and largest value of an option; annotate the option with it: `Annotated[int, Range(1)]`."""

    least: float
    most: float = math.inf

    def holds(self, value: Any) -> bool:
        return bool(self.least <= value <= self.most)  # not for NaN

    def __str__(self) -> str:
        return f"at least {self.least}" if math.isinf(self.most) else f"{self.least} to {self.most}"


Positive = Annotated[int, Range(1)]
NotNegative = Annotated[int, Range(0)]
TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


def default_options(function: Function) -> dict[str, Any]:
    """Return the default values of a function's options, which are its keyword-only parameters."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def read_option(method: str, function: Function, name: str, text: str) -> Option:
    """Parse the value of an option, which must have the type of its default.

    Raises:
        InputError: The function has no such option, or the value has the wrong type, is not one of the words
            of a Literal, or lies outside of the annotated range.
    """
    defaults, value = default_options(function), _read(text)
    if name in defaults:
        default, hint = defaults[name], _hint(function, name)
        words = get_args(hint) if get_origin(hint) is Literal else ()
        if words and value not in words:
            raise unknown(f"{name} of {method}", text, words)
        fits = type(value) is type(default) or (type(default) is float and type(value) is int)
        if default is not None and not fits:
            expected = TYPE_NAMES.get(type(default), type(default).__name__)
            raise InputError(f"{method}({name}={text}): expected {expected}, such as {name}={default}")
        for each in getattr(hint, "__metadata__", ()):
            if isinstance(each, Range) and not each.holds(value):
                raise InputError(f"{method}({name}={text}): expected {each}, such as {name}={default}")
    elif not any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values()):
        listed = ", ".join(f"{option}={default}" for option, default in defaults.items()) or "none"
        raise InputError(f"method {method} has no option {name!r}; its options and defaults: {listed}")
    return value


def _hint(function: Function, option: str) -> Any:
    try:
        return get_type_hints(function, include_extras=True).get(option)
    except NameError:  # an annotation uses a name that only type checkers import
        return None


def _read(text: str) -> Option:
    """Parse a text as a number or a Boolean; return the text itself if it is neither."""
    for read in (int, float, {"true": True, "false": False}.__getitem__):
        with suppress(ValueError, KeyError):
            return read(text)
    return text


def target_values(logits: Tensor, labels: Tensor, of: Target) -> Tensor:
    """Return the explained value of each row, Tensor [B].

    A logit can fall although the label gains on other classes, if their logits fall further. The other two
    values fall only if the label loses against other classes. A margin below 0 means that another class is
    predicted.

    Raises:
        InputError: A label is not a class, or the margin of a single class is asked for.
    """
    values = pick(logits, labels)
    if of == "logprob":
        return values - logits.logsumexp(dim=1)
    if of == "margin":
        if logits.shape[1] == 1:
            raise InputError("the model has one class; expected two or more: a margin is to another class")
        others = logits.scatter(1, send(labels, logits.device)[:, None], float("-inf"))
        return values - others.amax(dim=1)
    return values


Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TokenSets:
    """Texts whose open tokens, explained and not yet masked, have the numbers 0 … n − 1.

    Sets of a text's open tokens are the rows of an array [K, n]; sets of several texts, by the text's row
    in the batch, are evaluated together, to fill micro-batches.
    """

    clf: Evaluator
    batch: Batch
    labels: Tensor  # [B]

    @cached_property
    def places(self) -> list[Ints]:
        """Positions [n] of each text's open tokens."""
        is_open = (self.batch.explained & (self.batch.input_ids != self.clf.mask_id)).numpy()  # [B, T]
        return [*map(np.flatnonzero, is_open)]

    def masked(self, sets: Mapping[int, Bools]) -> tuple[Tensor, Tensor]:
        """Return the row [K] of each set's text, and which tokens to mask, bool [K, T]."""
        rows = np.repeat([*sets], [*map(len, sets.values())])
        where, start = np.zeros((len(rows), self.batch.input_ids.shape[1]), bool), 0
        for row, masks in sets.items():
            where[start : start + len(masks), self.places[row]] = masks
            start += len(masks)
        return torch.from_numpy(rows), torch.from_numpy(where)

    def values(self, sets: Mapping[int, Bools], of: Target) -> dict[int, Floats]:
        """Return the explained value [K] of each text with each set of its tokens masked."""
        if not sets:
            return {}
        rows, where = self.masked(sets)
        values = target_values(self.clf.variants(self.batch, rows, where), self.labels[rows], of)
        parts = torch.split(values, [*map(len, sets.values())])
        return {row: part.numpy() for row, part in zip(sets, parts, strict=True)}

    def ranks(self, orders: Mapping[int, Ints]) -> Tensor:
        """Return orders of erasure as scores, float64 Tensor [B, T].

        The first of n open tokens to erase has n, the last one 1. All other tokens have 0.
        """
        ranks = torch.zeros(self.batch.input_ids.shape, dtype=torch.float64)
        for row, order in orders.items():
            ranks[row, self.places[row][order]] = torch.arange(len(order), 0, -1).double()
        return ranks
