"""Erasure: masking more and more of the most important tokens of texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from ..errors import InputError
from ..methods.registry import Method, as_labels, explain, parse
from ..models.evaluator import Evaluator, Model
from ..models.masks import PERCENTS, top_mask
from ..models.tokens import Batch


def erase(
    clf: Model,
    batch: Batch,
    labels: Tensor | Iterable[int],
    method: str | Method,
    *,
    percents: Sequence[int] = PERCENTS,
    scores: Tensor | None = None,
) -> Iterator[tuple[int, Batch]]:
    """Mask the most important tokens of texts, step by step.

    A recursive method explains the partly masked text again at every step; other methods explain the whole
    text once. Masked tokens stay masked. Texts that lose no token at a step, and all texts at 100 %, need no
    explanation.

    Args:
        clf: A classifier, or an `Evaluator` that shares its evaluations.
        batch: Texts, B of them with T tokens.
        labels: Class to explain for each text, [B].
        method: Name of a method, or a method.
        percents: Percentages of tokens to erase: increasing numbers between 0 and 100.
        scores: Tensor [B, T] of the method's scores for the whole texts, if they are known already.

    Returns:
        An iterator over (percent, batch), with `n * percent // 100` of a text's n explained tokens masked.

    Raises:
        InputError: Percents, labels, method or scores are not valid.

    Example:
        >>> steps = dict(fm.erase(clf, batch, labels, "loo-sign", percents=(0, 50, 100)))
        >>> list(steps)
        [0, 50, 100]
    """
    if list(percents) != sorted(set(percents)) or not all(0 <= percent <= 100 for percent in percents):
        raise InputError(f"percents are {tuple(percents)}; expected increasing numbers from 0 to 100")
    batch = batch.to(torch.device("cpu"))
    known = None if scores is None else _as_scores(scores, batch)
    return _steps(Evaluator.of(clf), batch, as_labels(labels, batch), parse(method), percents, known)


def _as_scores(scores: Tensor, batch: Batch) -> Tensor:
    """Return scores as float64 on the CPU; raise an InputError unless each token has a finite score."""
    shape = tuple(batch.input_ids.shape)
    if tuple(scores.shape) != shape or not scores.isfinite().all():
        raise InputError(
            f"scores of shape {tuple(scores.shape)}; expected a finite score for each token, shape {shape}"
        )
    return scores.detach().cpu().double()


def _steps(
    clf: Evaluator,
    batch: Batch,
    labels: Tensor,
    method: Method,
    percents: Sequence[int],
    known: Tensor | None,
) -> Iterator[tuple[int, Batch]]:
    explained, sizes = batch.explained, batch.explained.sum(dim=1)  # [B, T], [B]
    scores = torch.zeros(explained.shape, dtype=torch.float64) if known is None else known.clone()
    masked, unchanged = batch, torch.ones(len(batch), dtype=torch.bool)
    for percent in percents:
        already = explained & (masked.input_ids == clf.mask_id)
        growing = sizes * percent // 100 > already.sum(dim=1)
        stale = torch.where(unchanged, known is None, method.recursive)
        rows = (growing & stale & (percent < 100)).nonzero()[:, 0]
        if len(rows):
            scores[rows] = explain(clf, masked[rows], labels[rows], method)
        unchanged &= ~growing
        masked = batch.masked(top_mask(scores, explained, percent, already=already), clf.mask_id)
        yield percent, masked
