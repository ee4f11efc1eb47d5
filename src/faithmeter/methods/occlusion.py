"""Leave-one-out: the decrease of the explained value when a token is masked."""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import InputError
from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from .gradients import integrated_gradient
from .options import Target, target_values


def count_occlusions(tokens: int, candidates: int = 0, **_: object) -> int:
    """Return the evaluations of a text: itself, each masked token and, to find candidates, a gradient."""
    return min(tokens, candidates) + 2 if candidates else tokens + 1


def leave_one_out(
    clf: Evaluator, batch: Batch, labels: Tensor, *, candidates: int = 0, of: Target = "logit"
) -> Tensor:
    """Return f(x) − f(x with the token masked) for each token, Tensor [B, T].

    A text of n tokens costs n + 1 evaluations. A token that is already masked scores 0 at no cost.

    With `candidates`, at most so many tokens of a text are masked: those to which the gradient at x gives the
    largest effects, (x − mask) · ∇f(x), one evaluation more. The others score that estimate, scaled by what
    masking the candidates showed.
    """
    if candidates < 0:
        raise InputError(f"loo(candidates={candidates}); expected at least 1, or 0 for all tokens")
    if not candidates:
        return _occlude(clf, batch, labels, batch.explained, of)
    rough = integrated_gradient(clf, batch, labels, steps=1, baseline="mask", of=of)
    rough = batch.unit_sums(rough).masked_fill(~batch.explained | (batch.input_ids == clf.mask_id), 0.0)
    first = rough.abs().argsort(dim=1, descending=True, stable=True)[:, :candidates]
    chosen = torch.zeros_like(batch.explained).scatter(1, first, value=True) & batch.explained
    scores = _occlude(clf, batch, labels, chosen, of)
    # slope of the line through 0 from estimates to effects; an estimate of the wrong sign says nothing
    slope = (rough * scores).sum(dim=1) / (rough * chosen).square().sum(dim=1).clamp(min=1e-30)
    return torch.where(chosen, scores, slope.clamp(min=0)[:, None] * rough)


def _occlude(clf: Evaluator, batch: Batch, labels: Tensor, chosen: Tensor, of: Target) -> Tensor:
    """Return the fall of the explained value when each of the `chosen` tokens is masked alone."""
    texts = torch.arange(len(batch))
    rows, tokens = chosen.nonzero(as_tuple=True)  # [K] each: one variant for every token
    where = torch.zeros(len(texts) + len(rows), batch.input_ids.shape[1], dtype=torch.bool)
    where[len(texts) + torch.arange(len(rows)), tokens] = True  # the unmasked texts come first
    logits = clf.variants(batch, torch.cat([texts, rows]), where)
    values = target_values(logits, torch.cat([labels, labels[rows]]), of)
    scores = torch.zeros(batch.input_ids.shape, dtype=torch.float64)
    scores[rows, tokens] = values[rows] - values[len(texts) :]
    return scores
