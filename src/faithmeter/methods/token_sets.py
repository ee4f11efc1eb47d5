"""Sets of a text's tokens: what the model says with them masked, and orders of erasure as scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from .options import Target, target_values

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TokenSets:
    """Texts whose open tokens, explained and not yet masked, have the numbers 0 … n − 1.

    Sets of a text's open tokens are the rows of an array [K, n]; sets of several texts, by the text's row
    in the batch, are evaluated together, to fill micro-batches.
    """

    clf: Evaluator
    batch: Batch
    labels: Tensor  # [B]

    @cached_property
    def places(self) -> list[Ints]:
        """Positions [n] of each text's open tokens."""
        is_open = (self.batch.explained & (self.batch.input_ids != self.clf.mask_id)).numpy()  # [B, T]
        return [*map(np.flatnonzero, is_open)]

    def masked(self, sets: Mapping[int, Bools]) -> tuple[Tensor, Tensor]:
        """Return the row [K] of each set's text, and which tokens to mask, bool [K, T]."""
        rows = np.repeat([*sets], [*map(len, sets.values())])
        where, start = np.zeros((len(rows), self.batch.input_ids.shape[1]), bool), 0
        for row, masks in sets.items():
            where[start : start + len(masks), self.places[row]] = masks
            start += len(masks)
        return torch.from_numpy(rows), torch.from_numpy(where)

    def values(self, sets: Mapping[int, Bools], of: Target) -> dict[int, Floats]:
        """Return the explained value [K] of each text with each set of its tokens masked."""
        if not sets:
            return {}
        rows, where = self.masked(sets)
        values = target_values(self.clf.variants(self.batch, rows, where), self.labels[rows], of)
        parts = torch.split(values, [*map(len, sets.values())])
        return {row: part.numpy() for row, part in zip(sets, parts, strict=True)}

    def ranks(self, orders: Mapping[int, Ints]) -> Tensor:
        """Return orders of erasure as scores, float64 Tensor [B, T].

        The first of n open tokens to erase has n, the last one 1. All other tokens have 0.
        """
        ranks = torch.zeros(self.batch.input_ids.shape, dtype=torch.float64)
        for row, order in orders.items():
            ranks[row, self.places[row][order]] = torch.arange(len(order), 0, -1).double()
        return ranks
