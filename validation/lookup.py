"""A classifier without weights: its outputs for every set of masked words are read from a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from faithmeter.models.evaluator import Evaluator
from faithmeter.models.tokens import EXPLAINED, SPECIAL, Batch

Floats = NDArray[np.float64]
MASK, PAD, WORD, FIRST_TEXT = 0, 1, 2, 3
"""Token ids. All words share one id; the first token of text t is FIRST_TEXT + t and names its table."""

TOKENS_AT_ONCE = 2**22
"""Number of tokens that are looked up together; small batches would cost more than the lookup."""


class LookupClassifier:
    """Classifier of texts of few words that answers for every set of masked words.

    Args:
        tables: Outputs of each text, arrays [2ⁿ, C] for n words. Row number s holds the outputs with word i
            masked wherever bit i of s is set.

    The outputs may be logits, or probabilities: a search that maximizes the area of the "logit" then
    maximizes the area of the probability.
    """

    mask_id = MASK
    device = torch.device("cpu")

    def __init__(self, tables: Sequence[Floats]) -> None:
        self.words = [len(table).bit_length() - 1 for table in tables]
        self.table = torch.zeros(len(tables), 2 ** max(self.words), tables[0].shape[1], dtype=torch.float64)
        for row, table in enumerate(tables):
            self.table[row, : len(table)] = torch.from_numpy(np.array(table, order="C"))

    def batch(self) -> Batch:
        """Return all texts, in the order of their tables."""
        rows = [
            {"input_ids": [FIRST_TEXT + row, *[WORD] * n], "kinds": [SPECIAL, *[EXPLAINED] * n]}
            for row, n in enumerate(self.words)
        ]
        return Batch.from_rows(rows, pad_id=PAD)

    def logits(self, batch: Batch) -> Tensor:
        """Return the outputs of each text with its present masks, float64 Tensor [B, C]."""
        masked = batch.input_ids[:, 1:] == MASK
        sets = (masked * 2 ** torch.arange(masked.shape[1])).sum(dim=1)
        return self.table[batch.input_ids[:, 0] - FIRST_TEXT, sets]

    def evaluator(self) -> Evaluator:
        """Return a new evaluator, which counts evaluations, with batches that suit reading from a table."""
        return Evaluator(self, budget=TOKENS_AT_ONCE, streams=1)
