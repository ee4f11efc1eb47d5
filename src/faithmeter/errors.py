"""Errors that a user can act on, each in one line: what was given, what is expected, what to do next."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "finite_number": "a finite number",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "value_error": "{error}",
}
"""Types of pydantic's errors, and the expectation that each one violates."""


class InputError(ValueError):
    """A mistake in the input, not in the program: the CLI prints its one line and exits with 2."""


class DamageWarning(UserWarning):
    """A file on disk differs from what was written; it was put aside or is computed again."""


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> InputError:
    """Return the error for a name that is not among the known ones, with the nearest of them."""
    names = sorted(known)
    lowered = {n.lower(): n for n in names}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)
    guess = f"; did you mean {lowered[close[0]]!r}?" if close else f"; expected one of {', '.join(names)}"
    return InputError(f"unknown {kind} {name!r}{guess}{' ' + hint if hint else ''}")


def input_error(error: ValidationError, kind: str, known: Iterable[str]) -> InputError:
    """Return the first of pydantic's errors as ours; `kind` is what the `known` names are names of."""
    first = error.errors(include_url=False)[0]
    path, value, context = first["loc"], first["input"], first.get("ctx", {})
    if first["type"] == "extra_forbidden":
        return unknown(kind, str(path[-1]), known)
    name = str(path[0]) + "".join(f"[{step}]" for step in path[1:])
    if first["type"] == "literal_error":
        return unknown(name, str(value), re.findall(r"'(\w[^']*)'", context["expected"]))
    expected = EXPECTED.get(first["type"], "{msg}").format(msg=first["msg"], **context)
    return InputError(f"{name} is {value!r:.200}; expected {expected}")
