"""Beam search for the erasure order that lowers the explained value most, summed over all steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from .options import Bools, Floats, Ints, Positive, Target, TokenSets, target_values


@dataclass(frozen=True)
class Beam:
    """States of the search for one text of n open tokens: masked tokens, their order, and the area so far."""

    masks: Bools  # [W, n]
    orders: Ints  # [W, step] of 0 … n − 1
    areas: Floats  # [W]

    @classmethod
    def start(cls, n: int) -> Beam:
        """Return the initial beam of a text, in which no token is masked."""
        return cls(np.zeros((1, n), bool), np.zeros((1, 0), np.int64), np.zeros(1))

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
        # parents are sorted by area, and the first of equal sets is kept: the one with the greater area
        _, first = np.unique(np.packbits(masks, axis=1), axis=0, return_index=True)
        first.sort()
        orders = np.column_stack([self.orders[parents], added])[first]
        return Beam(masks[first], orders, self.areas[parents[first]])

    def best(self, falls: Floats, width: int) -> Beam:
        """Add `falls` to the areas, and return the `width` states with the greatest areas."""
        areas = self.areas + falls
        states = np.argsort(-areas, kind="stable")[:width]  # stable: equal areas keep the leftmost token
        return Beam(self.masks[states], self.orders[states], areas[states])


def count_states(tokens: int, width: int, **_: object) -> int:
    """Return the maximum number of evaluations for a text."""
    return width * tokens * (tokens + 1) // 2


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
    sets = TokenSets(clf, batch, labels)
    beams = {row: Beam.start(len(places)) for row, places in enumerate(sets.places)}
    whole = target_values(clf.logits(batch), labels, of).numpy()  # [B]
    while True:
        grown = {row: beam.expanded() for row, beam in beams.items() if not beam.done}
        if not grown:
            return sets.ranks({row: beam.orders[0] for row, beam in beams.items()})
        beams |= grown
        # a beam with a single state needs no evaluation
        rivals = {row: beam.masks for row, beam in grown.items() if len(beam.masks) > 1}
        for row, values in sets.values(rivals, of).items():
            falls = whole[row] - values
            beams[row] = grown[row].best(-falls if worst else falls, width)
