"""Ranks in sorted samples, combination of p-values (Simes, Fisher), and the test of their number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # imports its parts, which are slow, on their first use
from numpy.typing import ArrayLike, NDArray

from ..config import SIGNIFICANCE_LEVEL
from ..errors import InputError

NOTICED = 0.8
"""Probability with which the count test notices the share of texts that it names."""
LEVELS = (0.001, 0.005, 0.01, 0.05, 0.1)
"""Significance levels at which the share of significant rows is recorded."""
EPSILON = 1e-8  # keeps the logarithm of a p-value of zero finite, as in the released code


class DatasetPValue(NamedTuple):
    """P-value of a dataset (Simes over its rows), and the share of rows below each level in `LEVELS`."""

    p: float
    below: dict[float, float]


def ranks(columns: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return, for each value, how many entries of its sorted column are smaller, and smaller or equal.

    Columns [H, N] are sorted along N; values [H, M] may be in any order. Both results are [H, M].
    """
    smaller = np.empty(values.shape, np.int32)
    upto = np.empty(values.shape, np.int32)
    order = np.argsort(values, axis=1)  # searching in order is several times faster
    for h, column in enumerate(columns):
        ordered = values[h, order[h]]
        smaller[h, order[h]] = column.searchsorted(ordered, "left")
        upto[h, order[h]] = column.searchsorted(ordered, "right")
    return smaller, upto


def simes(p: ArrayLike, axis: int = -1) -> float | NDArray[np.float64]:
    """Combine p-values by Simes' method: the smallest of `p_(i) N / i` over the sorted values.

    Args:
        p: P-values from 0 to 1, any shape.
        axis: Axis to combine along.

    Returns:
        A float if `p` is one-dimensional, otherwise an array without the axis.

    Raises:
        InputError: There is no p-value, or one is not between 0 and 1.

    Example:
        >>> fm.simes([0.01, 0.5])
        0.02
    """
    combined = simes_counts(_probabilities(p), axis)
    return combined if combined.ndim else float(combined)


def simes_counts(p: NDArray[Any], axis: int = -1) -> NDArray[np.float64]:
    """Combine p-values by Simes' method; they and the result are counts out of a common total.

    Multiplying before dividing rounds only once, so that equal fractions give equal numbers and stay tied.
    """
    ordered = np.sort(np.moveaxis(p, axis, -1), axis=-1)
    n = ordered.shape[-1]
    result: NDArray[np.float64] = (ordered * float(n) / np.arange(1, n + 1)).min(axis=-1)
    return result


def fisher(p: ArrayLike, axis: int = -1) -> Any:
    """Return Fisher's statistic -2 Σ log(p + 1e-8) along an axis.

    The terms are rounded to 2^-40, which makes their sum exact: rows with the same p-values in another order
    have the same statistic.
    """
    terms = np.round(-2 * np.log(np.asarray(p, np.float64) + EPSILON) * 2.0**40) / 2.0**40
    return terms.sum(axis=axis)


def dataset_pvalue(p: ArrayLike) -> DatasetPValue:
    """Combine the p-values of a dataset's rows by Simes' method, and compute the share below each level."""
    p = _probabilities(p)
    return DatasetPValue(float(simes_counts(p)), {level: float((p < level).mean()) for level in LEVELS})


def join_pvalues(seeds: Sequence[DatasetPValue]) -> DatasetPValue:
    """Combine the p-values of several seeds by Simes' method; the shares are means over seeds."""
    pvalues, shares = zip(*seeds, strict=True)
    below = {}
    for level in shares[0]:
        below[level] = float(np.mean([share[level] for share in shares]))
    return DatasetPValue(float(simes(pvalues)), below)


def of_steps(p: Mapping[int, float]) -> float:
    """Combine the p-values of an erasure's steps below 100 % by Simes' method.

    At 100 % the text is the same for all methods, no area depends on it, and fine-tuning rarely saw it.
    """
    return float(simes([value for percent, value in p.items() if percent < 100]))


class CountTest(NamedTuple):
    """Test whether more texts are rejected one by one than chance rejects.

    Attributes:
        p: Probability of at least as many rejections by chance.
        share: Share of the texts that are rejected one by one.
        noticed: Smallest such share that the test would notice in 80 % of cases.
    """

    p: float
    share: float
    noticed: float


def rejected_ranks(references: int) -> int:
    """Return how many ranks among so many references reject a text, with a p-value below the level."""
    return math.ceil(SIGNIFICANCE_LEVEL * (references + 1)) - 1


def count_test(rejected: int, texts: int, references: int) -> CountTest:
    """Test the number of texts that are rejected one by one.

    A text is rejected if its p-value, the rank (1 + rank) / (1 + references) among the same references from
    the same distribution, is below the level. Given these, rejections are independent, with a probability
    that is an order statistic of uniform numbers. So their number is beta-binomial, exactly.

    Args:
        rejected: Number of rejected texts.
        texts: Number of all texts.
        references: Number of texts that they are ranked among.
    """
    n, smallest = texts, rejected_ranks(references)
    if smallest < 1:  # no text can be rejected
        return CountTest(1.0, 0.0, math.nan)
    # chance of at least so many rejections, [n + 1]; scipy.stats is slow to import for one law
    chances = _beta_binomial(n, smallest, references + 1 - smallest)[::-1].cumsum()[::-1]
    p, significant = float(min(1.0, chances[rejected])), np.flatnonzero(chances <= SIGNIFICANCE_LEVEL)
    if not len(significant):
        return CountTest(p, rejected / n, math.nan)
    critical = int(significant[0])
    # binomial: P(count ≥ critical) = NOTICED
    noticed = scipy.special.betaincinv(critical, n - critical + 1, NOTICED)
    return CountTest(p, rejected / n, float(noticed))


def _beta_binomial(n: int, a: int, b: int) -> NDArray[np.float64]:
    """Return the chance of each count from 0 to n, C(n, k) B(k + a, n - k + b) / B(a, b)."""
    k, log_beta = np.arange(n + 1), scipy.special.betaln
    logs = log_beta(k + a, n - k + b) - log_beta(n - k + 1, k + 1) - log_beta(a, b) - math.log(n + 1)
    chances: NDArray[np.float64] = np.exp(logs)
    return chances


def count_unusual(pvalues: NDArray[Any], limits: Sequence[float], references: int) -> CountTest:
    """Test the number of erased texts that look unusual beside references masked at the same rate.

    Args:
        pvalues: P-values [N, S] of the texts at each rate, by a test that was fitted on a mixture of rates.
        limits: For each rate, the p-value that one in twenty references is below.
        references: Number of references at each rate.

    Returns:
        The p-value by Simes over the rates, which share their texts, and the largest share.
    """
    rejected = (pvalues < np.asarray(limits)).sum(axis=0)
    return join_counts([count_test(int(count), len(pvalues), references) for count in rejected])


def join_counts(tests: Sequence[CountTest]) -> CountTest:
    """Combine the tests of several rates or seeds by Simes' method; the shares are the largest."""
    p, share, noticed = zip(*tests, strict=True)
    return CountTest(float(simes(p)), max(share), max(noticed))


def _probabilities(p: ArrayLike) -> NDArray[np.float64]:
    p = np.asarray(p, np.float64)
    if p.ndim == 0 or p.size == 0 or not ((p >= 0) & (p <= 1)).all():
        raise InputError(
            f"p-values of shape {p.shape} are not valid; expected one or more numbers from 0 to 1, no NaN"
        )
    return p
