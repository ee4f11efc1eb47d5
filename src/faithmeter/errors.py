"""Errors that a user can act on, each in one line: what was given, what is expected, what to do next."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
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
"""Expectation that each type of pydantic's errors violates."""


UNSAFE_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories of control characters, lone surrogates, and line and paragraph separators."""
BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that reorder a line."""
MIN_SIMILARITY = 0.6
"""Similarity (0 to 1) from which a known name is suggested for an unknown one."""


class InputError(ValueError):
    """Mistake in the input, described in one line: what was given, what is expected, what to do next.

    The command line prints that line and exits with code 2.

    Example:
        >>> fm.task("babi-2")
        Traceback (most recent call last):
        ...
        faithmeter.errors.InputError: unknown task 'babi-2'; did you mean 'bAbI-2'? ...
    """


class DamageWarning(UserWarning):
    """A file on disk differs from what was written; it was put aside or is computed again."""


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> InputError:
    """Return the error for an unknown name, with the nearest known one or all of them."""
    names = sorted(known)
    lowered = {n.lower(): n for n in names}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=MIN_SIMILARITY)
    guess = f"; did you mean {lowered[close[0]]!r}?" if close else f"; expected one of {', '.join(names)}"
    return InputError(f"unknown {kind} {name!r}{guess}{' ' + hint if hint else ''}")


def input_error(error: ValidationError, kind: str, known: Iterable[str]) -> InputError:
    """Return the first of pydantic's errors as an InputError; `known` are the names of that `kind`."""
    # a misspelled name explains why another one is missing
    first = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
    path, value, context = first["loc"], first["input"], first.get("ctx", {})
    if first["type"] == "extra_forbidden":
        return unknown(kind, str(path[-1]), known)
    name = str(path[0]) + "".join(f"[{step}]" for step in path[1:])
    if isinstance(context.get("error"), InputError):  # of a table inside, which names its own options
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
    """Return the text with characters escaped that could control a terminal or cannot be encoded.

    Args:
        text: any text that a user or a file supplied.
        keep: control characters that stay as they are.
    """
    return "".join(
        character.encode("unicode_escape").decode()
        if character not in keep and _is_unsafe(character)
        else character
        for character in text
    )


def _is_unsafe(character: str) -> bool:
    return unicodedata.category(character) in UNSAFE_CATEGORIES or character in BIDI_CONTROLS
