"""`Batch`: token ids of texts, and for each token whether it is special, explained or context."""

from __future__ import annotations

import operator
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, get_args

import torch
from torch import Tensor

from ..config import Scope, UnitName
from ..errors import InputError, unknown
from .devices import send

PADDING, SPECIAL, EXPLAINED, CONTEXT = -2, -1, 0, 1
"""Kinds of tokens. Explained tokens are scored and erased; context is the other text of a pair."""

Span = tuple[int, int]
"""Start and end of a passage in a text, in characters."""
Row = Mapping[str, Any]
"""Tokenized text: `input_ids`, `kinds` (one for each token) and further inputs of the model."""
SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|[。！？]+[”’」』）]*|\n\s*")
"""End of a sentence with the blanks behind it; abbreviations are not recognized."""


@dataclass(frozen=True)
class Layout:
    """Text with the positions of its explained tokens.

    A pure-Python tokenizer reports no positions; `text` is then its tokens, joined by spaces.
    """

    text: str
    pair: str | None
    spans: tuple[Span, ...]
    """Start and end of each explained token in `text`, without surrounding whitespace."""
    words: tuple[int, ...]
    """Number of the word that each explained token belongs to."""
    truncated: bool
    """True if the input was truncated because it is too long for the model."""
    units: tuple[int, ...] = ()
    """Number of the unit that each explained token belongs to; empty if every token is a unit."""

    @property
    def of_units(self) -> Layout:
        """Layout in which each unit is one token and one word."""
        if not self.units:
            return self
        spans: dict[int, Span] = {}  # unit → from the start of its first token to the end of its last
        for (start, end), unit in zip(self.spans, self.units, strict=True):
            first, last = spans.get(unit, (start, end))
            spans[unit] = min(first, start), max(last, end)
        words = tuple(range(len(spans)))
        return Layout(self.text, self.pair, tuple(spans.values()), words, self.truncated)


@dataclass(frozen=True)
class Batch:
    """Tokenized texts, padded on the right.

    Args:
        input_ids: Token ids, Tensor [B, T].
        attention_mask: 1 for tokens, 0 for padding, Tensor [B, T].
        content: Tokens that are explained or context, bool Tensor [B, T].
        explained: Tokens that are scored and erased, bool Tensor [B, T]; the first token of each unit.
        index: Row numbers in the split, which seed random orders, Tensor [B].
        token_type_ids: Segment of each token, Tensor [B, T]; None if the model does not use it.
        layouts: Positions of the tokens in each text; empty if the texts were tokenized elsewhere.
        units: Position of the first token of each token's unit, -1 outside of units, Tensor [B, T]; None if
            every token is a unit. See `faithmeter.models.tokens.in_units`.

    Example:
        >>> batch = clf.encode([text], [pair])
        >>> batch.layouts[0].text == text
        True
    """

    input_ids: Tensor
    attention_mask: Tensor
    content: Tensor
    explained: Tensor
    index: Tensor
    token_type_ids: Tensor | None = None
    layouts: tuple[Layout, ...] = ()
    units: Tensor | None = None

    def __len__(self) -> int:
        return len(self.input_ids)

    def masked(self, where: Tensor, mask_id: int) -> Batch:
        """Return a copy with the mask token wherever `where`, bool Tensor [B, T], is True.

        A unit is masked as a whole, if its first token is.
        """
        where = whole_units(where, self.units)
        return replace(self, input_ids=self.input_ids.masked_fill(where, mask_id))  # the length stays

    @property
    def texts(self) -> list[str]:
        """The explained texts, as they were before any masking."""
        if not self.layouts:
            raise InputError("these rows were tokenized elsewhere, so their texts are not known; use encode")
        return [layout.text for layout in self.layouts]

    @property
    def covered(self) -> Tensor:
        """Explained tokens with all further tokens of their units, bool Tensor [B, T]."""
        return self.explained if self.units is None else self.units >= 0

    def unit_sums(self, scores: Tensor) -> Tensor:
        """Return each unit's sum of scores [B, T] at its first token, and 0 at all other tokens."""
        if self.units is None:
            return scores.masked_fill(~self.explained, 0)
        parts = scores.masked_fill(~self.covered, 0)  # tokens outside of units add 0 to the first position
        return torch.zeros_like(parts).scatter_add_(1, self.units.clamp(min=0), parts)

    def maskable(self, scope: Scope) -> Tensor:
        """Return which tokens fine-tuning with this scope may mask, bool Tensor [B, T]."""
        return self.explained if scope == "explained" else self.content

    def __getitem__(self, rows: slice | Tensor | Sequence[int]) -> Batch:
        """Return the selected texts as a batch of unchanged width."""
        rows = rows if isinstance(rows, slice | Tensor) else torch.as_tensor(rows, dtype=torch.long)
        numbers = torch.arange(len(self))[rows.cpu() if isinstance(rows, Tensor) else rows].tolist()
        layouts = tuple(map(self.layouts.__getitem__, numbers)) if self.layouts else ()
        return replace(self._with(lambda tensor: tensor[rows]), layouts=layouts)

    def narrowed(self, width: int) -> Batch:
        """Return the batch cut to its first `width` columns."""
        return self._with(lambda tensor: tensor[:, :width] if tensor.ndim == 2 else tensor)

    def to(self, device: torch.device) -> Batch:
        """Return a copy of the batch with all tensors on `device`."""
        return self._with(lambda tensor: tensor.to(device))

    def _with(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """Return a copy of the batch with each of its tensors changed."""
        tensors = {name: change(value) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **tensors)  # type: ignore[arg-type]

    @property
    def inputs(self) -> dict[str, Tensor]:
        """Keyword arguments for a Hugging Face model."""
        inputs = {"input_ids": self.input_ids, "attention_mask": self.attention_mask}
        return inputs if self.token_type_ids is None else {**inputs, "token_type_ids": self.token_type_ids}

    def inputs_on(self, device: torch.device) -> dict[str, Tensor]:
        """Return the keyword arguments for a Hugging Face model, as tensors on `device`."""
        return {name: send(tensor, device) for name, tensor in self.inputs.items()}

    @classmethod
    def from_rows(cls, rows: Sequence[Row], *, pad_id: int, index: Sequence[int] | None = None) -> Batch:
        """Return tokenized rows as a padded batch; without `index`, they are numbered from 0."""

        def padded(name: str, value: int) -> Tensor:
            return pad([row[name] for row in rows], value)

        kinds = padded("kinds", PADDING)
        return cls(
            input_ids=padded("input_ids", pad_id),
            attention_mask=(kinds != PADDING).long(),  # by place: the pad id may occur in a text
            content=(kinds == EXPLAINED) | (kinds == CONTEXT),
            explained=kinds == EXPLAINED,
            index=torch.as_tensor(range(len(rows)) if index is None else index),
            token_type_ids=padded("token_type_ids", 0) if "token_type_ids" in rows[0] else None,
            layouts=tuple(row["layout"] for row in rows if "layout" in row),
        )

    @classmethod
    def from_ids(cls, rows: Sequence[Sequence[int]], *, special_ids: Iterable[int], pad_id: int) -> Batch:
        """Return a batch of rows that were tokenized elsewhere, such as `<s> a </s></s> b </s>`.

        The first text of a row is explained. The texts are separated by their special ids alone, so a special
        id inside a text ends it. `Classifier.encode` does not have this limitation.

        Args:
            rows: Token ids of each text; padding at the end of a row is removed first.
            special_ids: Ids of the special tokens.
            pad_id: Id of the padding token.

        Raises:
            InputError: A row has no token to explain.

        Example:
            >>> len(fm.Batch.from_ids([[0, 5, 6, 2]], special_ids=(0, 1, 2), pad_id=1))
            1
        """
        special = {*special_ids, pad_id}
        typed: list[Row] = []
        for row in rows:
            ids = [*map(int, row)]
            while ids and ids[-1] == pad_id:
                ids.pop()
            typed.append({"input_ids": ids, "kinds": kinds_from_ids(ids, special)})
        require_explained([row["kinds"] for row in typed])
        return cls.from_rows(typed, pad_id=pad_id)


def kinds_from_ids(row: Sequence[int], special: set[int]) -> list[int]:
    """Return the kind of each token; tokens between the first special ids are explained, others context.

    If a row begins with more than one special token, its first text is empty.
    """
    kinds, text, leading = [], EXPLAINED, 0
    for position, token in enumerate(row):
        if token in special:
            ends_text = position > 0 and row[position - 1] not in special
            leading += 1  # `<s> </s> …` begins with an empty text
            text = CONTEXT if ends_text or leading > 1 else text
            kinds.append(SPECIAL)
        else:
            kinds.append(text)
    return kinds


def require_unicode(texts: Sequence[str]) -> None:
    """Raise an InputError if a text contains a lone surrogate, which tokenizers cannot read."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"a text has a lone surrogate ({text[error.start]!r}) at position {error.start}; expected "
                "valid Unicode: repair or remove it"
            ) from None


def require_explained(kinds: Sequence[Sequence[int]], texts: Sequence[str] | None = None) -> None:
    """Raise an InputError if a row has no token to explain; the message quotes its text if given."""
    for number, row in enumerate(kinds):
        if EXPLAINED not in row:
            excerpt = f" ({texts[number]!r:.60})" if texts is not None else ""
            raise InputError(
                f"text {number}{excerpt} is empty after tokenizing; expected at least one token to explain: "
                "remove the row or fill in its text"
            )


def pad(rows: Iterable[Sequence[int] | Tensor], value: int) -> Tensor:
    """Return rows of different lengths as one Tensor [B, T], padded with `value` on the right."""
    tensors = [torch.as_tensor(row, dtype=torch.long) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=value)


def whole_units(where: Tensor, units: Tensor | None) -> Tensor:
    """Return `where`, bool Tensor [B, T], with the value of its first token at every token of a unit."""
    if units is None:
        return where
    # gather looks up each token's first token; outside of units (-1) it looks up any, and is not used
    return torch.where(units >= 0, where.gather(1, units.clamp(min=0)), where)


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
    numbers = [*map(number_units, map(NUMBERS[unit], batch.layouts))]
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
    changes = map(operator.ne, keys[1:], keys)
    return tuple(accumulate(changes, initial=0)) if keys else ()


def _sentences(layout: Layout) -> list[int]:
    """Return the number of the sentence that each token begins in."""
    ends = [match.end() for match in SENTENCE_END.finditer(layout.text)]
    return [bisect_right(ends, start) for start, _ in layout.spans]


NUMBERS: dict[str, Callable[[Layout], Sequence[int | None]]] = {
    "word": lambda layout: layout.words,
    "sentence": _sentences,
}
"""Functions that return a number for each explained token; neighbors with equal numbers are one unit."""
