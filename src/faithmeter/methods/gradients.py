"""Scores from the gradient of the explained value with respect to the one-hot encoded tokens."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..models.devices import send, wide_type
from ..models.evaluator import VOCABULARY_BLOCK, Evaluator
from ..models.tokens import Batch
from .target import Target, target_values


def gradient_l1(clf: Evaluator, batch: Batch, labels: Tensor, *, of: Target = "logit") -> Tensor:
    """Return the L1 norm of the gradient g Eᵀ over the vocabulary, Tensor [B, T].

    g is the gradient with respect to a token's embedding, and E the embedding matrix.
    """
    blocks = clf.embedding_matrix().detach().split(VOCABULARY_BLOCK)

    def norm(gradients: Tensor, _: Tensor) -> Tensor:
        sums = [(gradients @ block.to(gradients.dtype).T).abs().sum(dim=-1) for block in blocks]
        return torch.stack(sums).sum(dim=0)

    return _scores(clf, batch, labels, norm, of)


def gradient_l2(clf: Evaluator, batch: Batch, labels: Tensor, *, of: Target = "logit") -> Tensor:
    """Return the L2 norm of the gradient g Eᵀ over the vocabulary, Tensor [B, T].

    It is computed as |g Eᵀ|² = g EᵀE gᵀ, which needs no tensor of the vocabulary's size.
    """
    gram = clf.gram

    def norm(gradients: Tensor, _: Tensor) -> Tensor:
        wide = gradients.to(gram.dtype)
        return _dot(wide @ gram, wide).clamp(min=0).sqrt()

    return _scores(clf, batch, labels, norm, of)


def input_x_gradient(clf: Evaluator, batch: Batch, labels: Tensor, *, of: Target = "logit") -> Tensor:
    """Return the dot product of each token's embedding and its gradient, Tensor [B, T]."""
    return _scores(clf, batch, labels, _dot, of)


def target_gradient(clf: Evaluator, embeddings: Tensor, batch: Batch, labels: Tensor, of: Target) -> Tensor:
    """Return the gradient of each row's explained value with respect to its word embeddings, [B, T, E]."""
    embeddings = embeddings.detach().requires_grad_()
    with torch.enable_grad(), clf.classified_only():
        logits = clf.logits_at(embeddings, batch)
        return torch.autograd.grad(target_values(logits, labels, of).sum(), embeddings)[0]


def collect(
    clf: Evaluator,
    work: Callable[[Batch, Tensor], Tensor],
    batch: Batch,
    rows: Tensor,
) -> Tensor:
    """Return the results of `work` for all `rows`, float64 Tensor [K, T], padded with 0."""
    width = batch.input_ids.shape[1]
    _ = clf.classified_only  # hooks are set by one thread

    def padded(micro: Batch, items: Tensor) -> tuple[Tensor]:
        scores = work(micro, items)
        return (torch.nn.functional.pad(scores, (0, width - scores.shape[1])),)

    return clf.gather(padded, batch, rows)[0].double()


def _scores(
    clf: Evaluator,
    batch: Batch,
    labels: Tensor,
    reduce: Callable[[Tensor, Tensor], Tensor],
    of: Target,
) -> Tensor:
    """Return the scores [B, T] that `reduce` computes from gradients and embeddings, both [N, E].

    N is the number of tokens of explained units; other tokens score 0.
    """

    def work(micro: Batch, items: Tensor) -> Tensor:
        embeddings = clf.embed(micro.input_ids).detach()  # [B, T, E]
        gradient = target_gradient(clf, embeddings, micro, labels[items], of)  # [B, T, E]
        # places are computed on the host, as a mask on the device would make the host wait for its count
        places = tuple(send(index, gradient.device) for index in micro.covered.nonzero(as_tuple=True))
        values = reduce(_full(gradient[places]), _full(embeddings[places])).to(wide_type(gradient.device))
        scores = values.new_zeros(micro.covered.shape)
        return scores.index_put(places, values)

    return collect(clf, work, batch, torch.arange(len(batch)))


def _full(values: Tensor) -> Tensor:
    """Convert low-precision numbers to float32, so that sums of them are not rounded to low precision."""
    return values.float() if values.element_size() < 4 else values


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(dim=-1)
