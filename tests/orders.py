"""Models whose margin is looked up by the set of masked tokens, and the objective of erasure orders."""

from __future__ import annotations

import itertools

import numpy as np
import torch

from faithmeter.methods import explain
from toy import MASK, LookupClassifier, rows_batch

Margins = dict[frozenset[int], float]
STEPS = range(10, 100, 10)


def lookup(margins: Margins) -> LookupClassifier:
    """A classifier of two classes, by the positions that are masked; the first class has the margin."""
    return LookupClassifier(
        lambda ids: (margins[frozenset(i for i, token in enumerate(ids[1:-1]) if token == MASK)], 0.0)
    )


def random_margins(n: int, seed: int) -> Margins:
    """Margins that fall with the number of masked tokens, and a lot of noise."""
    rng = np.random.default_rng(seed)
    sets = [frozenset(s) for k in range(n + 1) for s in itertools.combinations(range(n), k)]
    return {s: float(2 - 3 * len(s) / n + rng.standard_normal()) for s in sets}


def pairwise_margins(n: int, seed: int, strength: float = 0.3) -> Margins:
    """Margins to which each masked token and each pair of masked tokens contributes."""
    rng = np.random.default_rng(seed)
    alone, pairs = rng.normal(-3 / n, 1, n), np.triu(rng.normal(0, strength, (n, n)), 1)
    masks = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(float)
    margins = 2 + masks @ alone + ((masks @ pairs) * masks).sum(axis=1)
    return {
        frozenset(np.flatnonzero(mask).tolist()): float(m) for mask, m in zip(masks, margins, strict=True)
    }


def objective(ranks: torch.Tensor, margins: Margins) -> tuple[int, float]:
    """The number of steps at which the label is predicted, and the sum of tanh(margin)."""
    order = np.argsort(-ranks.numpy(), kind="stable").tolist()
    n = len(order)
    sizes = [n * percent // 100 for percent in STEPS]
    values = [margins[frozenset(order[:size])] for size in sizes if size]
    return sum(value >= 0 for value in values), float(np.tanh(values).sum())


def ranks_of(margins: Margins, n: int, method: str) -> torch.Tensor:
    return explain(lookup(margins), rows_batch(range(5, 5 + n)), [0], method)[0, 1 : n + 1]
