"""Equality of results that may hold undefined numbers."""

from __future__ import annotations


class EqualByFields:
    """Base of dataclasses with `eq=False` that are equal if all their fields are.

    Fields are compared as in a dict, by identity first. So an undefined number (NaN) equals itself, which
    the equality that dataclasses generate does not grant since Python 3.13.
    """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]
