"""Ranks against sorted samples, and many p-values made into one (Simes, Fisher)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError

LEVELS = (0.001, 0.005, 0.01, 0.05, 0.1)
EPSILON = 1e-8  # keeps the logarithm of a p-value of zero finite, as in the released code


class DatasetPValue(NamedTuple):
    """Simes over the rows, and the share of rows below each of LEVELS."""

    p: float
    below: dict[float, float]


def ranks(columns: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """How many of each sorted column are smaller, and how many smaller or equal.

    Columns [H, N] sorted along N, values [H, M] in any order; both results are [H, M].
    """
    smaller = np.empty(values.shape, np.int32)
    upto = np.empty(values.shape, np.int32)
    order = np.argsort(values, axis=1)  # searching in order is several times faster
    for h, column in enumerate(columns):
        ordered = values[h, order[h]]
        smaller[h, order[h]] = column.searchsorted(ordered, "left")
        upto[h, order[h]] = column.searchsorted(ordered, "right")
    return smaller, upto


def simes(p: ArrayLike, axis: int = -1) -> Any:
    """min_i p_(i) N / i along an axis: a float for one row of p-values, else an array."""
    return simes_counts(_probabilities(p), axis)[()]


def simes_counts(p: NDArray[Any], axis: int = -1) -> NDArray[np.float64]:
    """Simes of p-values given as counts, in units of one count.

    Multiplying before dividing rounds once, so equal fractions give equal numbers and ties stay ties.
    """
    ordered = np.sort(np.moveaxis(p, axis, -1), axis=-1)
    n = ordered.shape[-1]
    result: NDArray[np.float64] = (ordered * float(n) / np.arange(1, n + 1)).min(axis=-1)
    return result


def fisher(p: ArrayLike, axis: int = -1) -> Any:
    """Fisher's statistic -2 Σ log(p + 1e-8) along an axis.

    The terms are rounded to 2^-40, which makes their float sum exact: rows holding the same p-values in
    another order tie, as they should.
    """
    terms = np.round(-2 * np.log(np.asarray(p, np.float64) + EPSILON) * 2.0**40) / 2.0**40
    return terms.sum(axis=axis)


def dataset_pvalue(p: ArrayLike) -> DatasetPValue:
    """One p-value for a whole dataset, from those of its rows; nothing rejects when it is large."""
    p = _probabilities(p)
    return DatasetPValue(float(simes(p)), {level: float((p < level).mean()) for level in LEVELS})


def of_steps(p: Mapping[int, float]) -> float:
    """One p-value of an erasure, from those at its percents: Simes over the steps below 100 %.

    At 100 % all methods have the same text, on which no area depends, and which fine-tuning hardly ever saw.
    """
    return float(simes([value for percent, value in p.items() if percent < 100]))


def format_pvalue(p: float) -> str:
    """Format a p-value the way all outputs show it, e.g. `p = 0.030`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2f}" if p >= 0.1 else f"p = {p:.3f}"


def _probabilities(p: ArrayLike) -> NDArray[np.float64]:
    p = np.asarray(p, np.float64)
    if p.ndim == 0 or p.size == 0 or not ((p >= 0) & (p <= 1)).all():
        raise InputError(
            f"p-values of shape {p.shape} or range are wrong; expected some numbers from 0 to 1, no nan"
        )
    return p
