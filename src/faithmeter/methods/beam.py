"""Beam search for the erasure order that lowers the explained value most, summed over all steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from .options import Positive
from .target import Target, target_values

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Beam:
    """States of the search for one text: masked tokens, their order, and the area so far."""

    tokens: Ints  # [n] positions in the text
    masks: Bools  # [W, n]
    orders: Ints  # [W, step] of 0 … n − 1
    areas: NDArray[np.float64]  # [W]

    @classmethod
    def of(cls, tokens: Ints) -> Beam:
        """Return the initial beam of a text, in which no token is masked."""
        return cls(tokens, np.zeros((1, len(tokens)), bool), np.zeros((1, 0), np.int64), np.zeros(1))

    @property
    def done(self) -> bool:
        """True when all tokens are masked."""
        return bool(self.masks.all())

    def expanded(self) -> Beam:
        """Return all states that mask one more token, without duplicate sets of masked tokens.

        Of duplicates, the one with the greater area so far is kept.
        """
        parents, added = np.nonzero(~self.masks)
        masks = self.masks[parents]
        masks[np.arange(len(added)), added] = True
        _, first = np.unique(np.packbits(masks, axis=1), axis=0, return_index=True)
        first.sort()
        orders = np.column_stack([self.orders[parents], added])[first]
        return Beam(self.tokens, masks[first], orders, self.areas[parents[first]])

    def best(self, falls: NDArray[np.float64], width: int) -> Beam:
        """Add `falls` to the areas, and return the `width` states with the greatest areas."""
        areas = self.areas + falls
        states = np.argsort(-areas, kind="stable")[:width]
        return Beam(self.tokens, self.masks[states], self.orders[states], areas[states])


def beam_search(
    clf: Evaluator,
    batch: Batch,
    labels: Tensor,
    *,
    width: Positive = 10,
    of: Target = "logit",
    worst: bool = False,
    again: bool = False,
) -> Tensor:
    """Return the rank of each token in the erasure order that a beam search finds.

    The search maximizes the area Σ (f(x) − f(x masked so far)) over all steps. Of n tokens, the first to
    erase has rank n and the last has rank 1; tokens that are already masked have rank 0. All texts are
    searched together, to fill micro-batches. With `worst` the area is minimized.

    `again` is read where texts are erased: it searches again in the partly erased text at every step. The
    paper says that this gives the same order. That holds for a beam that is wide enough to be exact; a
    narrow one may find another order when it starts from what it has erased.
    """
    maskable = (batch.explained & (batch.input_ids != clf.mask_id)).numpy()
    beams = [Beam.of(np.flatnonzero(row)) for row in maskable]
    whole = target_values(clf.logits(batch), labels, of).numpy()  # [B]
    while expanded := {row: beam.expanded() for row, beam in enumerate(beams) if not beam.done}:
        beams = [expanded.get(row, beam) for row, beam in enumerate(beams)]
        # a beam with a single state needs no evaluation
        rivals = {row: beam for row, beam in expanded.items() if len(beam.masks) > 1}
        for row, values in _values(clf, batch, labels, rivals, of).items():
            falls = whole[row] - values
            beams[row] = rivals[row].best(-falls if worst else falls, width)
    scores = torch.zeros(batch.input_ids.shape, dtype=torch.float64)
    for row, beam in enumerate(beams):
        scores[row, beam.tokens[beam.orders[0]]] = torch.arange(len(beam.tokens), 0, -1).double()
    return scores


def _values(
    clf: Evaluator, batch: Batch, labels: Tensor, beams: dict[int, Beam], of: Target
) -> dict[int, NDArray[np.float64]]:
    """Return the explained values in all states of each beam, by row."""
    if not beams:
        return {}
    counts = [len(beam.masks) for beam in beams.values()]
    rows = torch.tensor(list(beams)).repeat_interleave(torch.tensor(counts))
    where = np.zeros((len(rows), batch.input_ids.shape[1]), bool)
    for beam, part in zip(beams.values(), np.split(where, np.cumsum(counts)[:-1]), strict=True):
        part[:, beam.tokens] = beam.masks
    values = target_values(clf.variants(batch, rows, torch.from_numpy(where)), labels[rows], of)
    return {row: part.numpy() for row, part in zip(beams, torch.split(values, counts), strict=True)}
