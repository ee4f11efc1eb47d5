"""MaSF against the pairwise formulation, which compares every row with every fitted row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from faithmeter.stats.masf import MaSF
from faithmeter.stats.pvalues import fisher, simes_counts

from .race import OURS, Contender, Work
from .setting import Setting

MAX_COMPARISONS = 2e9
"""Comparisons that are timed; of larger sizes only a share of the dimensions is."""
BLOCK = 256
"""Rows that are compared at a time, which keeps the comparisons in the cache."""


def works(setting: Setting) -> list[Work]:
    """Return the work of fitting and scoring at each size, with as many rows to score as to fit."""
    return [_work(size, *setting.sizes.masf_shape) for size in setting.sizes.masf]


def masf_run(size: int, layers: int, dimensions: int) -> Callable[[], object]:
    """Return a function that fits MaSF on random rows and scores as many others."""
    fitted, scored = _rows(size, layers, dimensions)
    return lambda: MaSF("published").fit(fitted).pvalues(scored)


def _rows(size: int, layers: int, dimensions: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    shape = (size, layers, dimensions)
    return rng.standard_normal(shape, dtype=np.float32), rng.standard_normal(shape, dtype=np.float32)


def _work(size: int, layers: int, dimensions: int) -> Work:
    fitted, scored = _rows(size, layers, dimensions)
    share = max(1, int(2 * size * size * layers * dimensions // MAX_COMPARISONS))
    some = slice(0, max(1, dimensions // share))
    scale = dimensions / len(range(dimensions)[some])
    name = "pairwise" if scale == 1 else f"pairwise (timed on 1/{scale:.0f} of the dimensions)"
    contenders = [
        Contender(OURS, masf_run(size, layers, dimensions)),
        Contender(name, lambda: pairwise_pvalues(fitted[:, :, some], scored[:, :, some]), scale=scale),
    ]
    return Work(f"MaSF, fit and score {size:,} rows, {layers} × {dimensions}", contenders)


def pairwise_pvalues(fitted: NDArray[np.float32], scored: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the published p-values of rows [M, L, H], by comparing all pairs of rows."""
    sample = torch.from_numpy(np.ascontiguousarray(fitted))
    layers = _layers(sample, sample)  # [N, L]
    statistics = _statistics(layers, layers)
    rows = torch.from_numpy(np.ascontiguousarray(scored))
    below = _smaller(
        torch.from_numpy(statistics), torch.from_numpy(_statistics(layers, _layers(sample, rows)))
    )
    return 1 - below.numpy() / len(fitted)


def _layers(sample: Tensor, rows: Tensor) -> NDArray[np.float64]:
    """Return the Simes-combined counts of each layer, [M, L]."""
    return simes_counts(_two_sided(sample, rows))


def _statistics(sample: NDArray[np.float64], layers: NDArray[np.float64]) -> NDArray[np.float64]:
    counts = _two_sided(torch.from_numpy(sample), torch.from_numpy(layers))
    result: NDArray[np.float64] = fisher(counts / len(sample), axis=-1)
    return result


def _two_sided(sample: Tensor, rows: Tensor) -> NDArray[Any]:
    smaller = _smaller(sample, rows)
    return torch.minimum(smaller, len(sample) - smaller).numpy()


def _smaller(sample: Tensor, rows: Tensor) -> Tensor:
    """Return how many entries of the sample [N, …] are smaller than each entry of the rows [M, …]."""
    columns, values = (one.reshape(len(one), -1).T.contiguous() for one in (sample, rows))
    counts = torch.empty(values.shape, dtype=torch.int64)
    for column, value, count in zip(columns, values, counts, strict=True):
        for start in range(0, len(value), BLOCK):
            part = slice(start, start + BLOCK)
            count[part] = (column < value[part, None]).sum(dim=1)
    return counts.T.reshape(rows.shape)
