"""Confidence bounds of a statistic, from its resampled and its jackknife values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # imports its parts, which are slow, on their first use

from .curves import Floats

ROUNDING = 1e-12
"""Differences below this are attributed to rounding."""


@dataclass(frozen=True)
class Jackknife:
    """Jackknife moments of a statistic, over texts and, if there are several, over seeds."""

    error: float  # standard error
    acceleration: float
    tail: float  # quantile at the lower end of the interval, see `combined_quantile`


def jackknife(left_out: Sequence[Floats], confidence: float) -> Jackknife | None:
    """Return the jackknife moments of a statistic; None if it does not vary.

    `left_out` holds its values without each text and, with several seeds, without each seed.
    """
    sizes = np.array([max(len(values), 2) for values in left_out])
    parts = [np.nan_to_num(np.nanmean(values) - values) for values in left_out]
    parts = [part * (size - 1) / size for part, size in zip(parts, sizes, strict=True)]
    squares = np.array([(part**2).sum() for part in parts])
    if squares.sum() < ROUNDING**2:
        return None
    variances = squares * sizes / (sizes - 1)
    acceleration = sum((part**3).sum() for part in parts) / (6 * squares.sum() ** 1.5)
    tail = -combined_quantile(variances, sizes - 1, (1 - confidence) / 2)
    return Jackknife(math.sqrt(variances.sum()), float(acceleration), tail)


def combined_quantile(variances: Floats, freedom: Floats, level: float) -> float:
    """Return the upper quantile of a mean whose variance is a sum of estimates, such as over seeds and texts.

    Each variance is multiplied by the square of its own quantile of Student's t. A t distribution with
    Satterthwaite's degrees of freedom holds too seldom for few seeds: it fails if their variance is
    underestimated, as it then also has too many degrees of freedom.
    """
    quantiles = scipy.special.stdtrit(freedom, 1 - level)
    return math.sqrt((variances * quantiles**2).sum() / variances.sum())


def bca(
    value: float, resampled: Floats, left_out: Sequence[Floats], confidence: float
) -> tuple[float, float]:
    """Return BCa bootstrap bounds that use quantiles of Student's t instead of the normal distribution.

    Both bounds equal `value` if the statistic does not vary.
    """
    moments = jackknife(left_out, confidence)
    if moments is None or np.ptp(resampled) < ROUNDING:
        return value, value
    ties = np.abs(resampled - value) <= ROUNDING
    below = ((resampled < value) & ~ties).mean() + ties.mean() / 2
    least = 1 / (len(resampled) + 1)
    bias = scipy.special.ndtri(np.clip(below, least, 1 - least))
    shifted = bias + np.array([moments.tail, -moments.tail])
    levels = scipy.special.ndtr(bias + shifted / (1 - moments.acceleration * shifted))
    lower, upper = np.quantile(resampled, levels)
    return float(lower), float(upper)


def widened_bca(
    value: float, resampled: Floats, left_out: Sequence[Floats], confidence: float
) -> tuple[float, float]:
    """Return BCa bounds, widened where necessary to contain the jackknife t interval.

    BCa alone is too narrow if a few texts account for the whole difference; the t interval alone is too
    narrow if contributions are skewed.
    """
    lower, upper = bca(value, resampled, left_out, confidence)
    moments = jackknife(left_out, confidence)
    margin = 0.0 if moments is None else -moments.tail * moments.error
    return min(lower, value - margin), max(upper, value + margin)
