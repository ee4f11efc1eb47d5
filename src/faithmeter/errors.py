"""What a user did wrong, said in one line: got, expected, what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """A mistake in what was given, not in the program: the CLI prints its one line and exits with 2."""


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> InputError:
    """The error for a name that is not among the known ones, with the nearest of them."""
    names = sorted(known)
    lowered = {n.lower(): n for n in names}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)
    guess = f"; did you mean {lowered[close[0]]!r}?" if close else f"; expected one of {', '.join(names)}"
    return InputError(f"unknown {kind} {name!r}{guess}{' ' + hint if hint else ''}")


class DamageWarning(UserWarning):
    """Something on disk is not as it was written; it was put aside or is made anew."""
