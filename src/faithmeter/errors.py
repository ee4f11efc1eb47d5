"""Exceptions and warnings for problems that a user can fix, and the functions that word their messages."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "too_short": "a list of {min_length} or more",
    "dict_type": "a table",
    "model_type": "a table",
    "finite_number": "a finite number",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "value_error": "{error}",
}
"""Wording of what was expected, by pydantic error type."""

UNSAFE_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories of control characters, lone surrogates, and line and paragraph separators."""
BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Bidirectional controls, which change the order in which characters are displayed."""
MIN_SIMILARITY = 0.6
"""Minimum similarity (0 to 1) at which a known name is suggested for an unknown one."""


EXTRAS = {
    "accelerate": "train",
    "sklearn": "train",
    "altair": "report",
    "vl_convert": "report",
    "peft": "peft",
    "ray": "ray",
    "fastapi": "serve",
    "uvicorn": "serve",
}
"""Extra of faithmeter that installs a library, by the name under which it is imported."""


class InputError(ValueError):
    """Invalid input; the message states what was given, what is expected and what to do next.

    The message is a single line. The command line prints it and exits with code 2.

    Example:
        >>> fm.task("babi-2")
        Traceback (most recent call last):
        ...
        faithmeter.errors.InputError: unknown task 'babi-2'; did you mean 'bAbI-2'? ...
    """


@contextmanager
def located(place: object) -> Iterator[None]:
    """Prefix the message of any InputError raised in the block with its place, unless that is empty."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}" if place else str(error)) from error


@contextmanager
def optional() -> Iterator[None]:
    """Convert a missing library of an extra into an InputError that names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        # a missing library of the core is an incomplete installation, whose traceback helps
        if library not in EXTRAS:
            raise
        raise InputError(
            f"this needs {library}, which is not installed: pip install 'faithmeter[{EXTRAS[library]}]', or "
            "'faithmeter[all]' for everything"
        ) from error


class DamageWarning(UserWarning):
    """Warning that a file has changed since it was written; the message states what is done about it."""


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> InputError:
    """Return an InputError for an unknown name.

    The message suggests the most similar known name or, if none is similar, lists them all.
    """
    names = sorted(known)
    lowered = {n.lower(): n for n in names}
    # lower case on both sides: RTE and rte are alike
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=MIN_SIMILARITY)
    guess = f"; did you mean {lowered[close[0]]!r}?" if close else f"; expected one of {', '.join(names)}"
    return InputError(f"unknown {kind} {name!r}{guess}{' ' + hint if hint else ''}")


def input_error(error: ValidationError, kind: str, known: Iterable[str]) -> InputError:
    """Convert the first problem in a pydantic ValidationError to an InputError.

    Args:
        error: The pydantic error.
        kind: Description of the validated names, such as `train option`.
        known: Valid names; if it maps them to pydantic fields, examples are taken from those.
    """
    # unknown names come first: a misspelled name explains why another one is missing
    first = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
    path, value, context = first["loc"], first["input"], first.get("ctx", {})
    if first["type"] == "extra_forbidden":
        return unknown(kind, str(path[-1]), known)
    name = str(path[0]) + "".join(f"[{step}]" for step in path[1:])
    if isinstance(context.get("error"), InputError):  # raised by a nested table, which names its own options
        return InputError(f"[{'.'.join(map(str, path))}]: {context['error']}")
    if first["type"] == "missing":
        examples = known[name].examples if isinstance(known, Mapping) else None
        example = f", such as {name} = {json.dumps(examples[0])}" if examples else ""
        return InputError(f"no {kind} {name!r}; add it{example}")
    if first["type"] == "literal_error":
        return unknown(name, str(value), re.findall(r"'(\w[^']*)'", context["expected"]))
    expected = EXPECTED.get(first["type"], "{msg}").format(msg=first["msg"], **context)
    return InputError(f"{name} is {value!r:.200}; expected {expected}")


def escape_controls(text: str, *, keep: str = "\n\t") -> str:
    """Escape the characters of a text that could control a terminal or cannot be encoded.

    Args:
        text: Text supplied by a user or a file.
        keep: Control characters to leave unescaped.
    """
    return "".join(
        character.encode("unicode_escape").decode()
        if character not in keep and _is_unsafe(character)
        else character
        for character in text
    )


def _is_unsafe(character: str) -> bool:
    return unicodedata.category(character) in UNSAFE_CATEGORIES or character in BIDI_CONTROLS
