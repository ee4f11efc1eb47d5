"""Scores [B, T] of a text's tokens: the table of methods, and how one is named, parsed and run.

A method is a function `(clf, batch, labels, *, options) -> Tensor [B, T]`, one algorithm in one module. `clf`
is an `Evaluator`: all that a Classifier has, and `variants`, which evaluates masked variants and remembers.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from importlib.metadata import entry_points
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from ..errors import InputError, unknown
from ..evaluator import Evaluator, Model
from ..tokens import Batch
from .beam import beam_search
from .gradients import gradient_l1, gradient_l2, input_x_gradient
from .integrated import integrated_gradient
from .occlusion import leave_one_out
from .random import random_order

Function = Callable[..., Tensor]
KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


@dataclass(frozen=True)
class Method:
    """An importance measure with its options; `str` gives the name that `parse` reads."""

    name: str
    function: Function
    options: Mapping[str, Any] = field(default_factory=dict)
    recursive: bool = True
    """Whether erasure asks again on the masked text at every step; if not, the first answer is the order."""

    def __str__(self) -> str:
        inside = ",".join(f"{name}={value}" for name, value in sorted(self.options.items()))
        return f"{self.name}({inside})" if inside else self.name


METHODS: dict[str, Method] = {}


def method(name: str, *, recursive: bool = True) -> Callable[[Function], Function]:
    """Register a function as a method, known by `name` to every command and function of the package."""
    if not re.fullmatch(r"[\w.+-]+", name):
        raise InputError(f"a method named {name!r}; expected letters, digits, '-', '.', '+' or '_'")

    def register(function: Function) -> Function:
        METHODS[name] = Method(name, function, recursive=recursive)
        return function

    return register


def absolute(function: Function) -> Function:
    """The method whose scores are the sizes of another's."""

    @wraps(function)
    def scores(clf: Evaluator, batch: Batch, labels: Tensor, **options: Any) -> Tensor:
        return function(clf, batch, labels, **options).abs()

    return scores


method("random", recursive=False)(random_order)
method("grad-l1")(gradient_l1)
method("grad-l2")(gradient_l2)
method("inp-grad-sign")(input_x_gradient)
method("inp-grad-abs")(absolute(input_x_gradient))
method("int-grad-sign")(integrated_gradient)
method("int-grad-abs")(absolute(integrated_gradient))
method("loo-sign")(leave_one_out)
method("loo-abs")(absolute(leave_one_out))
method("beam", recursive=False)(beam_search)


@cache
def load_plugins() -> None:
    """Import what installed packages announce as `faithmeter.methods`, so that it registers its methods."""
    for entry in entry_points(group="faithmeter.methods"):
        entry.load()


def parse(text: str | Method) -> Method:
    """The method that a name such as `beam(width=20)` stands for."""
    if isinstance(text, Method):
        return text
    found = re.fullmatch(r"\s*([^()\s]+)\s*(?:\((.*)\))?\s*", text)
    if not found:
        raise InputError(
            f"method {text!r} cannot be read; expected a name, or one with options: beam(width=20)"
        )
    name, inside = found.groups()
    if name not in METHODS:
        load_plugins()
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    known = METHODS[name]
    given = [part.partition("=") for part in (inside or "").split(",") if part.strip()]
    options = {key.strip(): _value(known, key.strip(), value.strip()) for key, _, value in given}
    return replace(known, options=options)


def explain(clf: Model, batch: Batch, labels: Tensor | Iterable[int], method: str | Method) -> Tensor:
    """[B, T] float64: how much each token speaks for its text's label; 0 where a token is not explained.

    Give the same `Evaluator` instead of the classifier to several calls, and they share their evaluations.
    """
    parsed, batch = parse(method), batch.to(torch.device("cpu"))
    scores = parsed.function(Evaluator.of(clf), batch, as_labels(labels, batch), **parsed.options)
    if scores.shape != batch.input_ids.shape:
        raise InputError(
            f"method {parsed} gave scores of shape {tuple(scores.shape)}; expected one for each token, "
            f"{tuple(batch.input_ids.shape)}"
        )
    scores = scores.detach().cpu().double().masked_fill(~batch.explained, 0)
    if not scores.isfinite().all():
        broken = int(batch.index[~scores.isfinite().all(dim=1)][0])
        raise InputError(
            f"method {parsed} gave scores for text {broken} that are not finite; the model is broken"
        )
    return scores


def as_labels(labels: Tensor | Iterable[int], batch: Batch) -> Tensor:
    """[B]: one label for each text of the batch."""
    tensor = torch.as_tensor(labels if isinstance(labels, Tensor) else list(labels), dtype=torch.long).cpu()
    if tensor.shape != (len(batch),):
        given = tuple(tensor.shape)
        raise InputError(f"labels of shape {given} for {len(batch)} texts; expected one for each text")
    return tensor


def _value(known: Method, name: str, text: str) -> Any:
    """An option's value: of its default's type and, where it is annotated as a Literal, one of the words."""
    parameters = inspect.signature(known.function).parameters.values()
    options = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    value = _read(text)
    if name in options:
        default, words = options[name], _words(known.function, name)
        if words and value not in words:
            raise unknown(f"{name} of {known.name}", text, words)
        fits = type(value) is type(default) or (type(default) is float and type(value) is int)
        if default is not None and not fits:
            expected = KINDS.get(type(default), type(default).__name__)
            raise InputError(f"{known.name}({name}={text}): expected {expected}, such as {name}={default}")
    elif not any(p.kind is p.VAR_KEYWORD for p in parameters):
        listed = ", ".join(f"{option}={default}" for option, default in options.items()) or "none"
        raise InputError(f"method {known.name} has no option {name!r}; its options and defaults: {listed}")
    return value


def _words(function: Function, option: str) -> tuple[Any, ...]:
    try:
        hint = get_type_hints(function).get(option)
    except NameError:  # of a name that its author imports for type checkers only
        return ()
    return get_args(hint) if get_origin(hint) is Literal else ()


def _read(text: str) -> int | float | bool | str:
    """A number or a truth value if it looks like one, else the word itself."""
    for read in (int, float, {"true": True, "false": False}.__getitem__):
        with suppress(ValueError, KeyError):
            return read(text)
    return text
