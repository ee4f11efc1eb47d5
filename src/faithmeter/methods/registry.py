"""Registry of the methods, and the functions that register, parse and run a method.

A method is a function `(clf, batch, labels, *, options) -> Tensor [B, T]`. `clf` is an `Evaluator`: a
Classifier with the additional method `variants`, which evaluates masked variants and caches their logits.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial, wraps
from importlib.metadata import entry_points
from typing import Any, Literal

import torch
from torch import Tensor

from ..errors import InputError, unknown
from ..models.evaluator import Evaluator, Model
from ..models.tokens import Batch
from ..source import digest_source, find_place
from .beam import beam_search, count_states
from .gradients import gradient_l1, gradient_l2, input_x_gradient, integrated_gradient, integrated_gradient_l2
from .occlusion import count_occlusions, leave_one_out
from .options import TARGET_UNITS, Function, default_options, read_option
from .random import random_order
from .regression import count_sets, ridge, shapley
from .search import count_evaluations, evaluations_allowed, exhaustive, search

Cost = Callable[..., int]
"""Function `(tokens, **options) -> int`, see `Method.cost`."""
OWN_METHOD_HINT = "(your own method must be imported first; on the command line: faithmeter --import FILE …)"


@dataclass(frozen=True)
class Method:
    """Importance measure with its options; `str(method)` is its full name, such as `beam(width=20)`."""

    name: str
    function: Function
    options: Mapping[str, Any] = field(default_factory=dict)
    recursive: bool = True
    """True if the masked text is explained again at every step of erasure; False if only once.

    The option `again=true` of `beam` makes it True.
    """
    signed: bool = True
    """True if a negative score is evidence against the label; False if scores only rank importance."""
    directed: bool = True
    """True if the order aims at lowering the label's score, so that curves may fall below full erasure."""
    about: str = ""
    """One-line description, shown to users."""
    unit: str = ""
    """Unit of the scores if the logit is explained, empty if they have none."""
    source: object = ""
    """What the scores depend on: the user's function, or a digest; empty for built-in methods."""
    version: str = ""
    """The user's word for the state of what `source` depends on and no digest can cover."""
    cost: Cost | None = None
    """Function that returns an upper bound on the evaluations for a text of `tokens` tokens; None means 1."""
    by_default: bool = True
    """True if the method, one of your own, is measured when no methods are named."""
    scores: str = ""
    """Origin of scores that were computed elsewhere: a file, or Python; empty if the function computes."""

    @cached_property
    def code(self) -> str:
        """Digest of the source, of all that it depends on and of the flags; empty for built-in methods.

        It is taken when a result is kept, not when the method is registered: what the function calls may be
        defined below it.
        """
        if isinstance(self.source, str):
            return self.source
        flags = {"recursive": self.recursive, "signed": self.signed, "directed": self.directed}
        return digest_source(self.source, flags, name=f"method {self.name!r}", version=self.version)

    @property
    def defaults(self) -> dict[str, Any]:
        """Options that the function declares, with their default values."""
        return default_options(self.function)

    @property
    def options_with_defaults(self) -> dict[str, Any]:
        """Values of all options, given or default, with which the function is called."""
        return {**self.defaults, **self.options}

    @property
    def score_unit(self) -> str:
        """Unit of the scores of the value that the option `of` chooses."""
        of = self.options_with_defaults.get("of", "logit")
        return self.unit.replace(TARGET_UNITS["logit"], TARGET_UNITS[of])

    @property
    def searches(self) -> Literal["best", "worst", ""]:
        """Whether the method searches for the best or the worst erasure order; empty if it does neither.

        A search returns ranks, which have no sign, and aims at the label's score.
        """
        if self.signed or not self.directed:
            return ""
        return "worst" if self.options_with_defaults.get("worst") else "best"

    def evaluations(self, tokens: int) -> int:
        """Return an upper bound on the evaluations needed to explain `tokens` tokens of one text."""
        return 1 if self.cost is None else max(1, self.cost(tokens, **self.options_with_defaults))

    def explanations(self, steps: int) -> int:
        """Return how often a text is explained to erase it in `steps` steps, including 0 % and 100 %.

        The step to 100 % needs no explanation, because it erases all tokens.
        """
        return max(1, steps - 1) if self.recursive else 1

    def __str__(self) -> str:
        options = []
        for name, value in sorted(self.options.items()):
            options.append(f"{name}={str(value).lower() if isinstance(value, bool) else value}")
        return f"{self.name}({','.join(options)})" if options else self.name


def require_name(name: str) -> None:
    """Raise an InputError for a name that `parse` could not read."""
    if not re.fullmatch(r"[\w.+-]+", name):
        raise InputError(f"a method named {name!r}; expected letters, digits, '-', '.', '+' or '_'")


def absolute(function: Function) -> Function:
    """Return a method function whose scores are the absolute values of those of `function`."""

    @wraps(function)
    def scores(clf: Evaluator, batch: Batch, labels: Tensor, **options: Any) -> Tensor:
        return batch.unit_sums(function(clf, batch, labels, **options)).abs()

    vars(scores)["signed"] = False  # `method` reads it when the function is registered
    return scores


def _built_in() -> Iterator[Method]:
    """Yield the methods of the package, in the order of every list and table."""
    order: dict[str, Any] = {"recursive": False, "signed": False, "unit": "ranks, the highest first"}
    size: dict[str, Any] = {"signed": False, "directed": False}
    points: dict[str, Any] = {"unit": "logit points"}
    slope: dict[str, Any] = {"unit": "logit points per unit of embedding", **size}
    yield Method(
        "random", random_order, recursive=False, about="a random order, the baseline of all methods", **size
    )
    for name, function in (("grad-l1", gradient_l1), ("grad-l2", gradient_l2)):
        about = f"how much the model reacts to small changes of a word (gradient, {name[-2:].upper()} norm)"
        yield Method(name, function, about=about, **slope)
    gradients = "estimated from many gradients (integrated gradients)"
    masking = "by masking it and asking the model again (leave one out)"
    pairs: tuple[tuple[str, Function, str, Cost | None], ...] = (
        ("inp-grad", input_x_gradient, "estimated from one gradient (input × gradient)", None),
        ("int-grad", integrated_gradient, gradients, _steps),
        ("loo", leave_one_out, masking, count_occlusions),
    )
    adds = "what a word adds or takes away"
    for short, function, how, cost in pairs:
        about = f"how much a word matters, {how}"
        yield Method(f"{short}-sign", function, about=f"{adds}, {how}", cost=cost, **points)
        yield Method(f"{short}-abs", absolute(function), about=about, cost=cost, **points, **size)
    about = "the order of masking words that harms the prediction most (beam search)"
    yield Method("beam", beam_search, about=about, cost=count_states, **order)
    about = "an order of masking words that changes the prediction early (search within a budget)"
    yield Method("search", search, about=about, cost=evaluations_allowed, **order)
    about = "the best of all orders of masking words of short texts, and that of search of longer ones"
    yield Method("exhaustive", exhaustive, about=about, cost=count_evaluations, **order)
    about = f"{adds}, by a linear model of randomly masked texts (as LIME does)"
    once: dict[str, Any] = {"recursive": False, **points}
    yield Method("ridge", ridge, about=about, cost=lambda tokens, samples, **_: samples, **once)
    about = f"{adds} on average over sets of other words (Shapley values)"
    yield Method("shapley", shapley, about=about, cost=count_sets, **once)
    about = "how much the model reacts to small changes of a word, on average from nothing to the text"
    yield Method("int-grad-l2", integrated_gradient_l2, about=about, cost=_steps, **slope)


def _steps(tokens: int, *, steps: int, **_: Any) -> int:
    return steps


# built-in methods are measured as part of a group
METHODS: dict[str, Method] = {known.name: replace(known, by_default=False) for known in _built_in()}
"""Registered methods by name."""
CHEAP = (
    *("random", "grad-l2", "int-grad-sign(baseline=mask,steps=10)"),
    *("loo-sign(candidates=12)", "search(most=150)"),
)
"""Methods that tell most for their cost: 25 evaluations to explain a text, and a ceiling of 150 once."""
PAPER = (
    *("random", "grad-l1", "grad-l2", "inp-grad-sign", "inp-grad-abs", "int-grad-sign", "int-grad-abs"),
    *("loo-sign", "loo-abs", "beam"),
)
"""Methods of the paper."""
GROUPS = {"paper": PAPER}
"""Methods that one word stands for."""


def default_methods(group: Iterable[str] = CHEAP) -> list[str]:
    """Return the methods that are measured when none is named: those of a group, and your own."""
    return [*group, *(name for name, method in METHODS.items() if method.by_default)]


def expand(names: Iterable[str]) -> list[str]:
    """Return names of methods, each group replaced by its methods."""
    expanded: list[str] = []
    for name in names:
        expanded += GROUPS.get(name, (name,))
    return expanded


def method(
    name: str,
    *,
    recursive: bool = True,
    signed: bool = True,
    directed: bool | None = None,
    about: str = "",
    unit: str = "",
    cost: Cost | None = None,
    by_default: bool = True,
    version: str = "",
) -> Callable[[Function], Function]:
    """Return a decorator that registers a function as a method.

    Args:
        name: Name of the method in every command and function of the package.
        recursive: True if the masked text is explained again at every step of erasure.
        signed: True if a negative score is evidence against the label.
        directed: True if the order aims at lowering the label's score, as that of a search does; default:
            `signed`.
        about: Description in one line; by default the first line of the function's docstring.
        unit: Unit of the scores, such as logit points.
        cost: Function `cost(tokens, **options)` that returns an upper bound on the evaluations needed to
            explain a text of `tokens` tokens; None means one evaluation.
        by_default: True if the method is measured when no methods are named.
        version: Results are computed again when the function changes, or a helper, constant or object that
            it uses. What cannot be compared, such as a file, needs a version that you change with it.

    Returns:
        A decorator that returns the function itself.

    Raises:
        InputError: The name contains characters other than letters, digits and `-.+_`, or is taken.

    Example:
        >>> @fm.method("first-words", recursive=False, signed=False)
        ... def first_words(clf, batch, labels):
        ...     return -torch.arange(batch.input_ids.shape[1]).expand(batch.input_ids.shape)
        >>> fm.explain(clf, batch, labels, "first-words").argmax().item()
        0
    """
    require_name(name)
    make = partial(Method, name, recursive=recursive, unit=unit, cost=cost, by_default=by_default)

    def register(function: Function) -> Function:
        if name in METHODS and find_place(METHODS[name].function) != find_place(function):
            where = ".".join(find_place(METHODS[name].function))
            raise InputError(f"method {name!r} exists already, in {where}; give yours another name")
        has_signs = getattr(function, "signed", signed)
        flags: dict[str, Any] = {"signed": has_signs, "directed": has_signs if directed is None else directed}
        own: dict[str, Any] = {"about": about or first_line(function), "source": function, "version": version}
        METHODS[name] = make(function=function, **flags, **own)
        return function

    return register


def first_line(function: Callable[..., object]) -> str:
    """Return the first line of a function's docstring."""
    return (inspect.getdoc(function) or "").partition("\n")[0]


@cache
def load_plugins() -> None:
    """Import the methods of installed packages, listed in their entry points `faithmeter.methods`."""
    for entry in entry_points(group="faithmeter.methods"):
        entry.load()


def parse(text: str | Method) -> Method:
    """Return the method with its options for a name such as `beam(width=20)`.

    Raises:
        InputError: The name or an option is unknown, or the value of an option is invalid.
    """
    if isinstance(text, Method):
        return text
    match = re.fullmatch(r"\s*([^()\s]+)\s*(?:\((.*)\))?\s*", text)
    if not match:
        raise InputError(f"method {text!r} cannot be read; expected a name, or with options: beam(width=20)")
    name, inside = match.groups()
    if name not in METHODS:
        load_plugins()
    if name not in METHODS:
        raise unknown("method", name, METHODS, OWN_METHOD_HINT)
    known = METHODS[name]
    options: dict[str, Any] = {}
    for part in filter(str.strip, (inside or "").split(",")):
        key, _, value = map(str.strip, part.partition("="))
        options[key] = read_option(name, known.function, key, value)
    # a beam that searches again at every step explains again at every step
    return replace(known, options=options, recursive=known.recursive or options.get("again") is True)


def find_method(name: str) -> Method | None:
    """Return a method by name; None if it is unknown, such as your own method that is not imported."""
    try:
        return parse(name)
    except InputError:
        return None


def search_of(name: str) -> str:
    """Return which erasure order a method searches for, best or worst; empty if it is no search or unknown.

    Searches are the ceiling of the other methods, not their rivals.
    """
    known = find_method(name)
    return known.searches if known else ""


def explain(clf: Model, batch: Batch, labels: Tensor | Iterable[int], method: str | Method) -> Tensor:
    """Return the importance of each token, as scored by a method.

    Args:
        clf: A Classifier, or an `Evaluator`, which several calls can share to evaluate equal inputs once.
        batch: B texts of up to T tokens.
        labels: Class number for which each text is explained, [B].
        method: Name of a method, with options in brackets: `"beam(width=20)"`.

    Returns:
        Scores, float64 Tensor [B, T], in the unit of the method: mostly logit points, or ranks if the method
        searches for an order. Tokens that are not explained score 0. Most methods have an option `of`, which
        chooses the explained value: `logit` (the default), `logprob` or `margin`.

    Raises:
        InputError: The method or an option is unknown, a label is not a class, or scores are not finite.

    Example:
        >>> scores = fm.explain(clf, batch, labels, "loo-sign")
        >>> scores.shape == batch.input_ids.shape
        True
    """
    if not isinstance(batch, Batch):
        raise InputError(
            f"batch is {batch!r:.60}; expected a Batch, clf.encode(texts); for the words of one text: "
            'fm.explain_text(clf, "a text")'
        )
    # a batch stays on the host, where it is cut into micro-batches; these go to the device
    parsed, batch = parse(method), batch.to(torch.device("cpu"))
    labels = as_labels(labels, batch)
    try:
        scores = parsed.function(Evaluator.of(clf), batch, labels, **parsed.options)
    except Exception as error:
        error.add_note(f"in method {parsed}")  # a user's own function may raise anything
        raise
    if not isinstance(scores, Tensor) or scores.shape != batch.input_ids.shape:
        result = f"a tensor of {tuple(scores.shape)}" if isinstance(scores, Tensor) else type(scores).__name__
        raise InputError(
            f"method {parsed} gave {result}; expected a tensor of {tuple(batch.input_ids.shape)}: a score "
            "for each token"
        )
    scores = batch.unit_sums(scores.detach().cpu().double())
    if not scores.isfinite().all():
        broken = int(batch.index[~scores.isfinite().all(dim=1)][0])
        raise InputError(
            f"method {parsed} gave scores for text {broken} that are not finite; the model or it is broken"
        )
    return scores


def as_labels(labels: Tensor | Iterable[int], batch: Batch) -> Tensor:
    """Return labels as a Tensor [B] of class numbers.

    Raises:
        InputError: The labels are not whole numbers, or not one for each text of the batch.
    """
    tensor = torch.as_tensor(labels if isinstance(labels, Tensor) else list(labels)).cpu()
    if tensor.is_floating_point():
        raise InputError(f"labels of type {tensor.dtype}; expected whole numbers: those of the classes")
    if tensor.shape != (len(batch),):
        given = tuple(tensor.shape)
        raise InputError(f"labels of shape {given} for {len(batch)} texts; expected one for each text")
    return tensor.long()
