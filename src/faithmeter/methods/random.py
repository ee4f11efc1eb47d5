"""Random order of the tokens, the baseline of all methods."""

from __future__ import annotations

from torch import Tensor

from ..models.evaluator import Evaluator
from ..models.masks import random_scores, row_generators
from ..models.tokens import Batch
from .options import NotNegative


def random_order(clf: Evaluator, batch: Batch, labels: Tensor, *, seed: NotNegative = 0) -> Tensor:
    """Return random scores from U(0, 1), Tensor [B, T].

    They depend only on the seed and the row number, so masked copies of a text have equal scores.
    """
    return random_scores(batch.explained, row_generators(seed, "method", batch.index))
