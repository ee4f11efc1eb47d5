"""Soft normalized comprehensiveness and sufficiency (https://aclanthology.org/2023.acl-long.261).

Each number of a word's embedding is kept with a probability: the word's importance for sufficiency, one
minus it for comprehensiveness. With p the label's probability, x the text and x' the perturbed one,

    S = 1 - max(0, p(x) - p(x'))     Soft-NS = (S - S₀) / (1 - S₀), with S₀ for empty embeddings
    C = max(0, p(x) - p(x'))         Soft-NC = C / (1 - S₀)

Importances are ranks here, from 1 down to 0, so all explanations keep one half of a text in expectation.
π-Soft-NC and π-Soft-NS (https://arxiv.org/abs/2601.03089) compare explanations at the same expected share,
too; what could be read of that paper does not say how it maps scores to probabilities.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from faithmeter.models.classifier import Classifier
from faithmeter.models.tokens import Batch

Floats = NDArray[np.float64]
MIN_FALL = 0.01
"""Texts whose label loses less than this with empty embeddings are left out: they have no share to tell."""
ROWS_AT_ONCE = 400


def soft_scores(
    clf: Classifier,
    batch: Batch,
    labels: Tensor,
    ranks: NDArray[np.int64],
    draws: int,
    rng: np.random.Generator,
) -> dict[str, Floats]:
    """Return Soft-NC and Soft-NS of K orders, arrays [K, N], as means over draws.

    All orders share the draws of a text. Tokens that are not explained are kept.
    """
    others = ~batch.explained.unsqueeze(2)  # [N, T, 1]
    sums = {name: np.zeros(ranks.shape[:2]) for name in ("NC", "NS")}
    with torch.inference_mode():
        embeddings = clf.embed(batch.input_ids)  # [N, T, E]
        whole = _probability(clf, embeddings, batch, labels)
        fall = np.maximum(whole - _probability(clf, embeddings * others, batch, labels), 0)  # 1 - S₀
        for _ in range(draws):
            uniform = torch.from_numpy(rng.random(embeddings.shape, dtype=np.float32))
            for number, own in enumerate(importance(ranks, batch.explained.sum(dim=1).numpy())):
                drawn = uniform < torch.from_numpy(own)[:, :, None]
                for name, kept in (("NS", drawn), ("NC", ~drawn)):
                    probability = _probability(clf, embeddings * (kept | others), batch, labels)
                    sums[name][number] += np.maximum(whole - probability, 0)
    return normalize(sums["NC"] / draws, sums["NS"] / draws, fall)


def importance(ranks: NDArray[np.int64], counts: NDArray[np.int64]) -> Floats:
    """Return the importance of each token by its rank among `counts` [N] tokens, with a mean of one half."""
    return (counts[:, None] - ranks - 0.5) / counts[:, None]


def normalize(fall_without: Floats, fall_with: Floats, fall: Floats) -> dict[str, Floats]:
    """Return both scores [K, N] from the falls of p without and with the important words, and of all [N].

    S - S₀ is the fall with empty embeddings minus the fall with the important words.
    """
    known = np.where(fall >= MIN_FALL, fall, np.nan)
    return {"NC": fall_without / known, "NS": (known - fall_with) / known}


def _probability(clf: Classifier, embeddings: Tensor, batch: Batch, labels: Tensor) -> Floats:
    parts = torch.arange(len(batch)).split(ROWS_AT_ONCE)
    logits = torch.cat([clf.logits_at(embeddings[part], batch[part]) for part in parts]).double()
    values: Floats = logits.softmax(dim=1).gather(1, labels[:, None])[:, 0].numpy()
    return values
