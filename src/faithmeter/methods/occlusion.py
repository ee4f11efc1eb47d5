"""Leave-one-out: the decrease of the explained value when a token is masked."""

from __future__ import annotations

import torch
from torch import Tensor

from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from .target import Target, target_values


def leave_one_out(clf: Evaluator, batch: Batch, labels: Tensor, *, of: Target = "logit") -> Tensor:
    """Return f(x) − f(x with the token masked) for each token, Tensor [B, T].

    A text of n tokens costs n + 1 evaluations. A token that is already masked scores 0 at no cost.
    """
    texts = torch.arange(len(batch))
    rows, tokens = batch.explained.nonzero(as_tuple=True)  # [K] each: one variant for every token
    where = torch.zeros(len(texts) + len(rows), batch.input_ids.shape[1], dtype=torch.bool)
    where[len(texts) + torch.arange(len(rows)), tokens] = True  # the unmasked texts come first
    logits = clf.variants(batch, torch.cat([texts, rows]), where)
    values = target_values(logits, torch.cat([labels, labels[rows]]), of)
    scores = torch.zeros(batch.input_ids.shape, dtype=torch.float64)
    scores[rows, tokens] = values[rows] - values[len(texts) :]
    return scores
