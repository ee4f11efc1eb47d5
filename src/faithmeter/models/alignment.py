"""Scores of tokens, words or character spans of a text → scores of its explained tokens or units."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..data.rows import unboxed
from ..errors import InputError
from .tokens import Batch, Layout, Span, number_units

TextScores = Sequence[float] | Sequence[tuple[int, int, float]]
"""Scores of one text: one for each token or word, or (start, end, score) of character spans."""


def align(batch: Batch, scores: Sequence[TextScores]) -> Tensor:
    """Convert scores of words or character spans of texts to scores of their tokens.

    Args:
        batch: Texts from `Classifier.encode`, B of them with up to T tokens.
        scores: For each text a list of numbers, or of spans `(start, end, score)`. Numbers belong to its
            tokens, to the words of the tokenizer, or to the words between blanks: their count decides. A
            token in no span gets 0.

    Returns:
        Float64 Tensor [B, T]: each token has the score of its word or span, and each larger unit the sum of
        the scores in it.

    Raises:
        InputError: The number of scores fits neither, one is not finite, or a span cuts a token.

    Example:
        >>> align(clf.encode(["Mary left"]), [[(0, 4, 1.0), (5, 9, 0.5)]])[0, 1:3].tolist()
        [1.0, 0.5]
    """
    if len(scores) != len(batch):
        raise InputError(f"scores of {len(scores)} texts for {len(batch)}; expected a list for each text")
    batch.texts  # noqa: B018 refuses rows that were tokenized elsewhere
    result = torch.zeros(batch.input_ids.shape, dtype=torch.float64)
    for row, (layout, values) in enumerate(zip(batch.layouts, scores, strict=True)):
        result[row, batch.explained[row]] = torch.tensor(align_text(layout, values), dtype=torch.float64)
    return result


def align_text(layout: Layout, values: TextScores) -> list[float]:
    """Return the score of each explained token or unit of one text."""
    name, items = f"text {layout.text!r:.40}", _as_list(values)
    pieces = [_as_span(item, name) for item in items if isinstance(item, Sequence)]
    owners: Sequence[int | None]
    if pieces and len(pieces) < len(items):
        raise InputError(f"{name}: numbers and spans are mixed; expected only one of them")
    if pieces:
        starts, ends, numbers = zip(*pieces, strict=True)
        owners = _owners(layout, [*zip(starts, ends, strict=True)], name)
    else:
        numbers = tuple(_as_number(item, name) for item in items)
        owners = _owners_by_count(layout, len(numbers), name)
    # a word's score counts once in a unit, though each of its tokens has it
    parts: dict[int, dict[int, float]] = {}  # unit → the pieces in it, each once
    for unit, owner in zip(layout.units or range(len(owners)), owners, strict=True):
        parts.setdefault(unit, {}).update({} if owner is None else {owner: numbers[owner]})
    return [math.fsum(part.values()) for part in parts.values()]  # exact: the order of pieces is no matter


def _owners_by_count(layout: Layout, count: int, name: str) -> Sequence[int | None]:
    """Return the number of the score that belongs to each token, if there are as many scores as pieces."""
    words = number_units(layout.words)
    between_blanks = [match.span() for match in re.finditer(r"\S+", layout.text)]
    if count == len(layout.spans):
        return range(count)
    if words and count == words[-1] + 1:
        return words
    if count == len(between_blanks):
        return _owners(layout, between_blanks, name)
    raise InputError(
        f"{name} has {count} scores; expected {len(layout.spans)} (one for each token), {words[-1] + 1} "
        f"(words of the tokenizer), {len(between_blanks)} (words between blanks), or spans: [start, end, "
        "score]"
    )


def _owners(layout: Layout, spans: Sequence[Span], name: str) -> list[int | None]:
    """Return the number of the span that each token lies in; None for a token in no span."""
    text = layout.text
    of_character = np.full(len(text), -1)  # number of the span that each character lies in
    for number, (start, end) in enumerate(spans):
        if not 0 <= start < end <= len(text):
            raise InputError(f"{name}: span {start} to {end}; expected a part of its {len(text)} characters")
        other = of_character[start:end].max()
        if other >= 0:
            raise InputError(f"{name}: spans {spans[other]} and {start, end} overlap; expected separate ones")
        of_character[start:end] = number
    owners: list[int | None] = []
    for start, end in layout.spans:
        inside = {*of_character[start : max(end, start + 1)].tolist()}  # 1: a token may have no characters
        if len(inside) > 1:
            cut = spans[max(inside)]
            raise InputError(
                f"{name}: span {cut[0]} to {cut[1]} cuts the token {text[start:end]!r} ({start} to {end}); "
                "expected spans of whole tokens"
            )
        owner = max(inside, default=-1)
        owners.append(None if owner < 0 else owner)
    return owners


def _as_list(values: object) -> list[object]:
    """Return arrays and tensors as lists, also those in a list."""
    values = unboxed(values)
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise InputError(f"scores of a text are {values!r:.60}; expected a list of numbers or spans")
    return [*map(unboxed, values)]


def _as_span(value: object, name: str) -> tuple[int, int, float]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 3:
        raise InputError(f"{name}: {value!r:.60} among its scores; expected numbers, or [start, end, score]")
    start, end, score = (_as_number(part, name) for part in value)
    if start % 1 or end % 1:
        raise InputError(f"{name}: span {start} to {end}; expected whole numbers of characters")
    return int(start), int(end), score


def _as_number(value: object, name: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name}: {value!r:.60} among its scores; expected finite numbers")
    return number
