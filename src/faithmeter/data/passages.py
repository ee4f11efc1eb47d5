"""Passages of a text that people call the reason for its label, as spans of characters."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from ..errors import InputError

Spans = tuple[tuple[int, int], ...]
"""Start and end of each passage, in characters."""
EXPECTED = "expected [[start, end], …] in characters, or a 0 or 1 for each word"


def read_passages(value: Any, text: str, place: str) -> Spans:
    """Return the spans of a rationale in a text; an empty value has none.

    Args:
        value: Spans `[[start, end], …]` in characters, or a 0 or 1 for each word between blanks; files that
            cannot hold lists have them as JSON.
        text: The text that the rationale belongs to.
        place: Place of the value, for error messages.

    Raises:
        InputError: The value is neither, or does not fit the text.
    """
    items = _as_list(value, place)
    if all(isinstance(item, int) and item in (0, 1) for item in items):  # truth values, too
        words = [match.span() for match in re.finditer(r"\S+", text)]
        if items and len(items) != len(words):
            raise InputError(f"{place}: {len(items)} marks for {len(words)} words; {EXPECTED}")
        return tuple(span for span, mark in zip(words, items, strict=False) if mark)
    return tuple(sorted(_as_span(item, text, place) for item in items))


def _as_list(value: Any, place: str) -> list[Any]:
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise InputError(f"{place}: {value!r:.60} is not JSON; {EXPECTED}") from None
    value = getattr(value, "tolist", lambda: value)()
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return []
    if not isinstance(value, list):
        raise InputError(f"{place}: {value!r:.60}; {EXPECTED}")
    return [getattr(item, "tolist", lambda item=item: item)() for item in value]


def _as_span(value: object, text: str, place: str) -> tuple[int, int]:
    if not isinstance(value, Sequence) or len(value) != 2 or any(type(end) is not int for end in value):
        raise InputError(f"{place}: {value!r:.60} in a rationale; {EXPECTED}")
    start, end = value
    if not 0 <= start < end <= len(text):
        raise InputError(f"{place}: span {start} to {end}; expected a part of its {len(text)} characters")
    return start, end


def join_tokens(tokens: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Return tokens joined by blanks, and their spans."""
    spans, at = [], 0
    for token in tokens:
        spans.append((at, at + len(token)))
        at += len(token) + 1
    return " ".join(tokens), spans
