"""Scores from the gradient of the explained value with respect to the one-hot encoded tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from ..errors import InputError
from ..models.devices import send, wide_type
from ..models.evaluator import VOCABULARY_BLOCK, Evaluator
from ..models.tokens import Batch
from .options import Positive, Target, target_values


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


def integrated_gradient(
    clf: Evaluator,
    batch: Batch,
    labels: Tensor,
    *,
    steps: Positive = 20,
    baseline: Literal["zero", "pad", "mask"] = "zero",
    variant: Literal["paper", "released"] = "paper",
    of: Target = "logit",
) -> Tensor:
    """Return integrated gradients, (x − b) · 1/k Σ ∇f(b + i/k (x − b)) for i = 1 … k, Tensor [B, T].

    x are the word embeddings, b the baseline and k the number of steps. With many steps, the scores of all
    tokens, including special and context tokens, sum to f(x) − f(b). With `baseline=pad`, `variant=released`
    is the authors' released code, which weights each gradient by i/k and multiplies it by x, not x − b.
    """
    start = _baseline(clf, baseline)  # [E]
    rows = torch.arange(len(batch)).repeat_interleave(steps)  # [B * k]: one item for each text and step
    parts = (torch.arange(len(rows)) % steps + 1).double() / steps

    def work(micro: Batch, items: Tensor) -> Tensor:
        words: Tensor = clf.embed(micro.input_ids).detach()  # [B, T, E]
        part = send(parts[items].to(words.dtype), words.device)[:, None, None]
        point = start + part * (words - start)
        gradient = target_gradient(clf, point, micro, labels[rows[items]], of)  # [B, T, E]
        weighted = gradient * (words - start) if variant == "paper" else part * gradient * words
        return weighted.sum(dim=-1)

    return collect(clf, work, batch, rows).reshape(len(batch), steps, -1).mean(dim=1)


def integrated_gradient_l2(
    clf: Evaluator,
    batch: Batch,
    labels: Tensor,
    *,
    steps: Positive = 20,
    baseline: Literal["zero", "pad", "mask"] = "zero",
    of: Target = "logit",
) -> Tensor:
    """Return the L2 norm over the vocabulary of 1/k Σ ∇f(b + i/k (x − b)), Tensor [B, T].

    These are integrated gradients without the factor x − b, which the paper's appendix A suggests to try.
    Nothing then picks out the element of the token, so the vocabulary is reduced by the norm of `grad-l2`.
    """
    start, width = _baseline(clf, baseline), batch.input_ids.shape[1]
    total = torch.zeros((), dtype=torch.float64)
    for step in range(1, steps + 1):  # one step at a time, as all vectors [B * k, T, E] would fill the memory

        def work(micro: Batch, items: Tensor, part: float = step / steps) -> tuple[Tensor]:
            words: Tensor = clf.embed(micro.input_ids).detach()  # [B, T, E]
            gradient = target_gradient(clf, start + part * (words - start), micro, labels[items], of)
            wide = gradient.to(wide_type(gradient.device))
            return (torch.nn.functional.pad(wide, (0, 0, 0, width - wide.shape[1])),)

        total = total + clf.gather(work, batch, torch.arange(len(batch)))[0].double()
    mean, gram = total / steps, clf.gram.double().cpu()  # [B, T, E], [E, E]
    return ((mean @ gram) * mean).sum(dim=-1).clamp(min=0).sqrt()


def masking_effects(clf: Evaluator, batch: Batch, labels: Tensor, *, steps: int) -> Tensor:
    """Return integrated gradients of the margin, with the completely masked text as baseline, Tensor [B, T].

    They estimate how much masking a token lowers the margin; special and context tokens are not masked and
    score 0. The gradients are taken at the midpoints of `steps` equal parts of the line.
    """
    rows = torch.arange(len(batch)).repeat_interleave(steps)
    parts = (torch.arange(len(rows)) % steps + 0.5) / steps
    mask = _baseline(clf, "mask")  # [E]

    def work(micro: Batch, items: Tensor) -> Tensor:
        words: Tensor = clf.embed(micro.input_ids).detach()  # [B, T, E]
        line = (words - mask) * send(micro.covered, words.device)[:, :, None]
        point = words - send((1 - parts[items]).to(words.dtype), words.device)[:, None, None] * line
        return (target_gradient(clf, point, micro, labels[rows[items]], "margin") * line).sum(dim=-1)

    return batch.unit_sums(collect(clf, work, batch, rows).reshape(len(batch), steps, -1).mean(dim=1))


def _baseline(clf: Evaluator, name: str) -> Tensor:
    matrix: Tensor = clf.embedding_matrix().detach()
    if name == "zero":
        return torch.zeros_like(matrix[0])
    token = clf.mask_id if name == "mask" else clf.model.config.pad_token_id
    if token is None:
        raise InputError("baseline=pad, but the model has no pad token; expected baseline=zero or =mask")
    embedding: Tensor = matrix[token]
    return embedding
