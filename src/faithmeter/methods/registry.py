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
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from ..errors import InputError, unknown
from ..models.evaluator import Evaluator, Model
from ..models.tokens import Batch
from .beam import beam_search
from .gradients import gradient_l1, gradient_l2, input_x_gradient
from .integrated import integrated_gradient
from .occlusion import leave_one_out
from .random import random_order

Function = Callable[..., Tensor]
Cost = Callable[..., int]
"""`(tokens, **options) -> int`, see `Method.cost`."""
OWN = "(one of your own must be imported before; on the command line: faithmeter --import FILE …)"
KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


@dataclass(frozen=True)
class Method:
    """An importance measure with its options; `str` gives the name that `parse` reads."""

    name: str
    function: Function
    options: Mapping[str, Any] = field(default_factory=dict)
    recursive: bool = True
    """Whether erasure asks again on the masked text at every step; if not, the first answer is the order."""
    signed: bool = True
    """Whether a negative score speaks against the label; if not, scores say only how important a token is."""
    about: str = ""
    """One line for those who do not know the method."""
    code: str = ""
    """Digest of the function's source, so that an edited method is another one; of our own methods: none."""
    cost: Cost | None = None
    """Upper bound on the evaluations that explain one text of `tokens` tokens; None means one."""

    @property
    def defaults(self) -> dict[str, Any]:
        """Options that the function declares, with their default values."""
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    @property
    def options_with_defaults(self) -> dict[str, Any]:
        """All options that the function is called with, chosen or default."""
        return {**self.defaults, **self.options}

    @property
    def takes_any_option(self) -> bool:
        parameters = inspect.signature(self.function).parameters.values()
        return any(p.kind is p.VAR_KEYWORD for p in parameters)

    def evaluations(self, tokens: int) -> int:
        """Upper bound on the model evaluations that explain one text of `tokens` explained tokens."""
        return 1 if self.cost is None else max(1, self.cost(tokens, **self.options_with_defaults))

    def explanations(self, steps: int) -> int:
        """Number of explanations that erasing one text in `steps` steps needs, 0 and 100 % included.

        The last step, at 100 %, leaves nothing to choose, so nothing is explained for it.
        """
        return max(1, steps - 1) if self.recursive else 1

    def __str__(self) -> str:
        inside = ",".join(f"{name}={value}" for name, value in sorted(self.options.items()))
        return f"{self.name}({inside})" if inside else self.name


METHODS: dict[str, Method] = {}


def method(
    name: str, *, recursive: bool = True, signed: bool = True, about: str = "", cost: Cost | None = None
) -> Callable[[Function], Function]:
    """Register a function as a method, known by `name` to every command and function of the package.

    Without `about` the first line of its docstring says what it does. `cost(tokens, **options)` bounds the
    model evaluations that explain one text; without it the live page assumes one.
    """
    if not re.fullmatch(r"[\w.+-]+", name):
        raise InputError(f"a method named {name!r}; expected letters, digits, '-', '.', '+' or '_'")

    def register(function: Function) -> Function:
        if name in METHODS and _place(METHODS[name].function) != _place(function):
            where = ".".join(_place(METHODS[name].function))
            raise InputError(f"method {name!r} exists already, in {where}; give yours another name")
        METHODS[name] = Method(
            name,
            function,
            recursive=recursive,
            signed=getattr(function, "signed", signed),
            about=about or (inspect.getdoc(function) or "").partition("\n")[0],
            code=_code(function),
            cost=cost,
        )
        return function

    return register


def _place(function: Function) -> tuple[str, str]:
    """Module and name: of a function that is registered again, as in a notebook, the same."""
    name = getattr(function, "__qualname__", type(function).__name__)
    return str(getattr(function, "__module__", None)), name


def _code(function: Function) -> str:
    """Digest of a function's source, or of its bytecode where no file holds the source; "" for our own."""
    function = inspect.unwrap(getattr(function, "func", function))  # unwrap functools.partial
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if code is None or _place(function)[0].partition(".")[0] == __name__.partition(".")[0]:
        return ""
    # Without a file, inspect may answer with the source of something else (Python 3.13).
    if Path(code.co_filename).is_file():
        source = inspect.getsource(code)
    else:
        defaults = getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None)
        source = repr((_bytecode(code), defaults))
    return sha256(source.encode()).hexdigest()[:12]


def _bytecode(code: CodeType) -> tuple[object, ...]:
    """Instructions, names and constants of a code object, nested code objects included."""
    constants = [_bytecode(const) if isinstance(const, CodeType) else repr(const) for const in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, constants


def absolute(function: Function) -> Function:
    """The method whose scores are the sizes of another's."""

    @wraps(function)
    def scores(clf: Evaluator, batch: Batch, labels: Tensor, **options: Any) -> Tensor:
        return function(clf, batch, labels, **options).abs()

    vars(scores)["signed"] = False  # for whoever registers it
    return scores


method("random", recursive=False, signed=False, about="a random order, which any other has to beat")(
    random_order
)
for norm, function in (("L1", gradient_l1), ("L2", gradient_l2)):
    reacts = f"how much the model reacts to small changes of a word (gradient, {norm} norm)"
    method(f"grad-{norm.lower()}", signed=False, about=reacts)(function)

gradients = "estimated from many gradients (integrated gradients)"
masking = "by masking it and asking the model again (leave one out)"
signed_methods: tuple[tuple[str, Function, str, Cost | None], ...] = (
    ("inp-grad", input_x_gradient, "estimated from one gradient (input × gradient)", None),
    ("int-grad", integrated_gradient, gradients, lambda tokens, steps, **_: steps),
    ("loo", leave_one_out, masking, lambda tokens, **_: tokens + 1),
)
for short, function, how, cost in signed_methods:
    method(f"{short}-sign", about=f"what a word adds or takes away, {how}", cost=cost)(function)
    method(f"{short}-abs", about=f"how much a word matters, {how}", cost=cost)(absolute(function))
method(
    "beam",
    recursive=False,
    signed=False,
    about="which word to mask first, which next, so that it harms most (beam search)",
    cost=lambda tokens, width, **_: width * tokens * (tokens + 1) // 2,
)(beam_search)


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
        raise unknown("method", name, METHODS, OWN)
    known = METHODS[name]
    given = [part.partition("=") for part in (inside or "").split(",") if part.strip()]
    options = {key.strip(): _value(known, key.strip(), value.strip()) for key, _, value in given}
    return replace(known, options=options)


def explain(clf: Model, batch: Batch, labels: Tensor | Iterable[int], method: str | Method) -> Tensor:
    """[B, T] float64: how much each token speaks for its text's label; 0 where a token is not explained.

    Give the same `Evaluator` instead of the classifier to several calls, and they share their evaluations.
    """
    parsed, batch = parse(method), batch.to(torch.device("cpu"))
    labels = as_labels(labels, batch)
    try:
        scores = parsed.function(Evaluator.of(clf), batch, labels, **parsed.options)
    except Exception as error:
        error.add_note(f"in method {parsed}")
        raise
    if not isinstance(scores, Tensor) or scores.shape != batch.input_ids.shape:
        given = f"a tensor of {tuple(scores.shape)}" if isinstance(scores, Tensor) else type(scores).__name__
        raise InputError(
            f"method {parsed} gave {given}; expected a tensor of {tuple(batch.input_ids.shape)}: a score for "
            "each token"
        )
    scores = scores.detach().cpu().double().masked_fill(~batch.explained, 0)
    if not scores.isfinite().all():
        broken = int(batch.index[~scores.isfinite().all(dim=1)][0])
        raise InputError(
            f"method {parsed} gave scores for text {broken} that are not finite; the model or it is broken"
        )
    return scores


def as_labels(labels: Tensor | Iterable[int], batch: Batch) -> Tensor:
    """[B]: one label for each text of the batch."""
    tensor = torch.as_tensor(labels if isinstance(labels, Tensor) else list(labels)).cpu()
    if tensor.is_floating_point():
        raise InputError(f"labels of type {tensor.dtype}; expected whole numbers: those of the classes")
    if tensor.shape != (len(batch),):
        given = tuple(tensor.shape)
        raise InputError(f"labels of shape {given} for {len(batch)} texts; expected one for each text")
    return tensor.long()


def _value(known: Method, name: str, text: str) -> Any:
    """An option's value: of its default's type and, where it is annotated as a Literal, one of the words."""
    options, value = known.defaults, _read(text)
    if name in options:
        default, words = options[name], _words(known.function, name)
        if words and value not in words:
            raise unknown(f"{name} of {known.name}", text, words)
        fits = type(value) is type(default) or (type(default) is float and type(value) is int)
        if default is not None and not fits:
            expected = KINDS.get(type(default), type(default).__name__)
            raise InputError(f"{known.name}({name}={text}): expected {expected}, such as {name}={default}")
    elif not known.takes_any_option:
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
