"""Units: tokens, words or sentences that are scored and erased as one piece."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import get_args

import torch

from ..config import UnitName
from ..errors import InputError, unknown
from .tokens import Batch, Layout

SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|[。！？]+[”’」』）]*|\n\s*")
"""End of a sentence with the blanks behind it; abbreviations are not recognized."""


def in_units(batch: Batch, unit: UnitName) -> Batch:
    """Return the batch with its tokens joined into words or sentences.

    `explained` marks the first token of each unit: it stands for the unit wherever tokens are counted, scored
    or masked. A unit's score is the sum of its tokens' scores, and all its tokens are masked together.

    Args:
        batch: Texts from `Classifier.encode`.
        unit: `token`, `word` (as the tokenizer splits the text into words) or `sentence`.

    Raises:
        InputError: The unit is unknown, or the places of the tokens are not.
    """
    require_unit(unit)
    if unit == "token":
        return batch
    if not batch.layouts:
        raise InputError(f"unit={unit}, but these rows were tokenized elsewhere; use encode, or unit=token")
    numbers = [number_units(NUMBERS[unit](layout)) for layout in batch.layouts]
    units = torch.full(batch.input_ids.shape, -1)  # [B, T]
    for row, of_row in enumerate(numbers):
        positions = batch.explained[row].nonzero()[:, 0]  # [n]
        unit_of = torch.tensor(of_row, dtype=torch.long)  # [n]
        begins = unit_of.diff(prepend=torch.tensor([-1])) > 0
        units[row, positions] = positions[begins][unit_of]
    explained = units == torch.arange(units.shape[1])  # the first token of a unit names itself
    pairs = zip(batch.layouts, numbers, strict=True)
    layouts = tuple(replace(layout, units=of_row) for layout, of_row in pairs)
    return replace(batch, explained=explained, layouts=layouts, units=units)


def require_unit(unit: str) -> None:
    """Raise an InputError if a unit is unknown."""
    if unit not in get_args(UnitName):
        raise unknown("unit", unit, get_args(UnitName))


def number_units(keys: Sequence[int | None]) -> tuple[int, ...]:
    """Return 0, 1, … for runs of equal keys, as `(0, 0, 1)` for `(4, 4, None)`."""
    numbers: list[int] = []
    for number, (_, run) in enumerate(groupby(keys)):
        numbers += [number for _ in run]
    return tuple(numbers)


def _sentences(layout: Layout) -> list[int]:
    """Return the number of the sentence that each token begins in."""
    ends = [match.end() for match in SENTENCE_END.finditer(layout.text)]
    return [bisect_right(ends, start) for start, _ in layout.spans]


NUMBERS: dict[str, Callable[[Layout], Sequence[int | None]]] = {
    "word": lambda layout: layout.words,
    "sentence": _sentences,
}
"""Functions that return a number for each explained token; neighbors with equal numbers are one unit."""
