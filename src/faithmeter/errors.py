"""Errors that a user can act on, each in one line: what was given, what is expected, what to do next."""

from __future__ import annotations

import difflib
import json
import re
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


MIN_SIMILARITY = 0.6
"""Similarity (0 to 1) from which a known name is suggested for an unknown one."""


class InputError(ValueError):
    """Mistake in the input, told in one line: what was given, what is expected, what to do next.

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
