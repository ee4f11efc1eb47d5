"""Confidence intervals of a mean over seeds, and the seeds that failed to converge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ..errors import InputError


class Interval(NamedTuple):
    """A mean of n values with its confidence bounds."""

    mean: float
    lower: float
    upper: float
    n: int

    @classmethod
    def undefined(cls, n: int) -> Interval:
        """Return an interval whose mean and bounds are nan."""
        return cls(math.nan, math.nan, math.nan, n)


def bootstrap_interval(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = 9999, seed: int = 0
) -> Interval:
    """Bias-corrected and accelerated (BCa) bootstrap of the mean; the same values give the same digits.

    A single value, or values that are all equal, give a point. A nan among them (an undefined RACU) makes
    mean and bounds nan.
    """
    sample = np.asarray(values, np.float64)
    if sample.ndim != 1 or len(sample) == 0 or np.isinf(sample).any():
        raise InputError(f"values {values!r}; expected one row of at least one finite number")
    if not 0 < confidence < 1 or resamples < 1:
        raise InputError(f"confidence {confidence} of {resamples} resamples; expected such as 0.95 of 9999")
    n = len(sample)
    if np.isnan(sample).any():
        return Interval.undefined(n)
    mean = float(sample.mean())
    if np.allclose(sample, sample[0], rtol=1e-12, atol=1e-12):  # what is left is rounding
        return Interval(mean, mean, mean, n)
    interval = stats.bootstrap(
        (sample,),
        np.mean,
        vectorized=True,
        confidence_level=confidence,
        n_resamples=resamples,
        method="BCa",
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(mean, float(interval.low), float(interval.high), n)


def converged(
    values: Sequence[float], threshold: float, *, performance: Sequence[float] | None = None
) -> tuple[NDArray[np.float64], int]:
    """The values of seeds that learned the task, and the number of those that did not.

    A seed is kept if its `performance` on unmasked texts, by default the value itself, exceeds the threshold.
    """
    sample = np.asarray(values, np.float64)
    judged = sample if performance is None else np.asarray(performance, np.float64)
    if judged.shape != sample.shape:
        raise InputError(f"{sample.shape} values with {judged.shape} performances; give one for each seed")
    keep = judged > threshold
    return sample[keep], int((~keep).sum())
