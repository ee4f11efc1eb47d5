"""Windows: overlapping parts of texts that are longer than the model can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise, starmap

import torch
from torch import Tensor

from ..errors import InputError
from .devices import send
from .tokens import CONTEXT, EXPLAINED, SPECIAL, Batch, Row, pad


@dataclass(frozen=True)
class Windows:
    """Windows of the texts of a batch, those of a text one after the other.

    Attributes:
        batch: The windows, W of them with up to S tokens each.
        positions: Position of each token in its text, Tensor [W, S]; 0 in padding.
        rows: Row of each window's text, Tensor [W].
        counts: Number of windows of each text.
    """

    batch: Batch
    positions: Tensor
    rows: Tensor
    counts: list[int]

    def take(self, values: Tensor) -> Tensor:
        """Return the values [W, S, …] of the windows' tokens from those of the texts' tokens, [B, T, …]."""
        rows, positions = send(self.rows, values.device), send(self.positions, values.device)
        return values[rows[:, None], positions]

    def of_variants(self, rows: Tensor, where: Tensor) -> tuple[Tensor, Tensor, list[int]]:
        """Return the windows of masked variants of texts, each one's masked tokens, and counts by variant.

        `rows` [K] and `where` [K, T] are the variants' texts and masked tokens.
        """
        ends = torch.tensor(self.counts).cumsum(dim=0).tolist()
        groups = [*starmap(torch.arange, pairwise([0, *ends]))]  # windows of each text
        parts = torch.cat([*map(groups.__getitem__, rows.tolist())])  # [sum of counts]
        counts = [*map(self.counts.__getitem__, rows.tolist())]  # [K]
        masks = where.repeat_interleave(torch.tensor(counts), dim=0).gather(1, self.positions[parts])
        # padding has position 0, whose mask is another token's
        return parts, masks & self.batch.attention_mask[parts].bool(), counts


def average(values: Tensor, counts: list[int]) -> Tensor:
    """Return the mean of each of the groups of successive rows; a group of one row is unchanged."""
    return torch.stack([part.mean(dim=0) for part in torch.split(values, counts)])


def largest(values: Tensor, counts: list[int]) -> Tensor:
    """Return the maximum of each of the groups of successive rows."""
    return torch.stack([part.amax(dim=0) for part in torch.split(values, counts)])


def require_overlap(overlap: int, *, size: int, special: int) -> int:
    """Return the overlap of windows of `size` tokens, `special` of them special tokens.

    The shorter text of a pair takes at most half of the room, so that the windows of the longer one can move.

    Raises:
        InputError: The overlap is negative, or leaves no room to move.
    """
    most = max(0, (size - special) // 2 - 1)
    if not 0 <= overlap <= most:
        raise InputError(
            f"overlap is {overlap}, and the model reads {size} tokens at once; expected 0 (truncate longer "
            f"texts) to {most}"
        )
    return overlap


def split_windows(batch: Batch, *, size: int, overlap: int, pad_id: int) -> Windows:
    """Split texts of more than `size` tokens into windows; any other text is a window of its own.

    The windows of a text move over the longer of its two texts; special tokens and the other text are in each
    of them. They have the same length, are evenly spaced, and neighbors share at least `overlap` tokens.

    Raises:
        InputError: The tokens that every window holds leave too little room for the others.
    """
    batch = batch.to(torch.device("cpu"))
    kinds = torch.where(batch.covered, EXPLAINED, torch.where(batch.content, CONTEXT, SPECIAL))
    columns = {"input_ids": batch.input_ids, "kinds": kinds}
    if batch.token_type_ids is not None:
        columns["token_type_ids"] = batch.token_type_ids
    places = [[*_window_places(batch, kinds[row], row, size, overlap)] for row in range(len(batch))]
    counts = [*map(len, places)]
    rows = torch.arange(len(batch)).repeat_interleave(torch.tensor(counts))  # [W]
    positions = [*chain.from_iterable(places)]
    parts: list[Row] = []
    for row, at in zip(rows.tolist(), positions, strict=True):
        parts.append({name: column[row, at] for name, column in columns.items()})
    windows = Batch.from_rows(parts, pad_id=pad_id, index=batch.index[rows].tolist())
    return Windows(windows, pad(positions, 0), rows, counts)


def _window_places(batch: Batch, kinds: Tensor, row: int, size: int, overlap: int) -> Iterator[Tensor]:
    """Yield the positions of the tokens in each window of a text."""
    attended = batch.attention_mask[row].bool()
    length = int(attended.sum())
    if length <= size:
        yield attended.nonzero()[:, 0]
        return
    texts = [(kinds == kind).nonzero()[:, 0] for kind in (EXPLAINED, CONTEXT)]
    moving = max(texts, key=len)
    # special tokens and the other text are in every window: the model never saw a pair without them
    room = size - (length - len(moving))
    if room <= overlap:
        raise InputError(
            f"text {int(batch.index[row])}: {size - room} of its tokens are in each window of {size}, too "
            f"many for windows that share {overlap} others; expected a smaller overlap, or a shorter text"
        )
    for start in window_starts(len(moving), room, overlap):
        inside = attended.clone()
        inside[moving] = False
        inside[moving[start : start + room]] = True
        yield inside.nonzero()[:, 0]


def window_starts(length: int, room: int, overlap: int) -> list[int]:
    """Return the starts of evenly spaced windows of `room` tokens in a text of `length` > `room` tokens.

    Neighbors share at least `overlap` tokens, and no smaller number of windows would do.
    """
    # c windows reach to room + (c - 1) (room - overlap) ≥ length: c is (length - overlap) / (room - overlap)
    count = -((overlap - length) // (room - overlap))  # rounded up
    return (torch.arange(count) * (length - room) // (count - 1)).tolist()
