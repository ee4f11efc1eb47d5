"""Confidence intervals: of a mean over seeds; of curves, areas and their differences over texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from ..config import BASELINE
from ..errors import InputError
from ..metrics import SHARES
from .bounds import ROUNDING, bca, widened_bca
from .curves import absolute_area, relative_area
from .predictions import Floats, Predictions, resampling_weights

RESAMPLES = 9999
"""Resamples of every bootstrap, and random swaps of every test."""


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
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Return the mean of values, such as one for each seed, with its bootstrap interval (BCa).

    Args:
        values: Numbers [n]. A single one, or equal ones, give a point; a nan (such as an undefined RACU)
            makes mean and bounds nan.
        confidence: Share of samples in which the interval is to contain the true mean.
        resamples: Number of resamples.
        seed: Seed of the resampling; the same values and seed give the same digits.

    Returns:
        The mean, the lower and upper bound, and n.

    Raises:
        InputError: If there is no value or an infinite one, or confidence is not between 0 and 1.

    Example:
        >>> interval = fm.bootstrap_interval([0.41, 0.44, 0.39, 0.45, 0.43])
        >>> f"{interval.mean:.3f} [{interval.lower:.3f}, {interval.upper:.3f}]"
        '0.424 [0.402, 0.442]'
    """
    sample = np.asarray(values, np.float64)
    if sample.ndim != 1 or len(sample) == 0 or np.isinf(sample).any():
        raise InputError(f"values {values!r}; expected one row of at least one finite number")
    _require_resampling(confidence, resamples)
    n = len(sample)
    if np.isnan(sample).any():
        return Interval.undefined(n)
    mean = float(sample.mean())
    if np.allclose(sample, sample[0], rtol=ROUNDING, atol=ROUNDING):
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


Statistic = Callable[[Mapping[str, Floats]], Floats]
"""Curves [..., G, S] of each method → a number [..., G] for each seed."""
Bounds = Callable[[float, Floats, Sequence[Floats], float], tuple[float, float]]
"""Value, its resamples, its jackknife over texts (and over seeds), confidence → lower and upper bound."""


@dataclass(frozen=True)
class TextIntervals:
    """Confidence intervals over texts, from the same resampled texts for every method.

    Made by `resample_texts`. With several seeds a value is the mean over seeds, and the intervals are over
    seeds and texts. A single text has no bounds (nan).
    """

    predictions: Predictions
    confidence: float
    resamples: int
    seed: int
    _observed: Mapping[str, Floats]  # [G, S]
    _resampled: Mapping[str, Floats]  # [R, G, S]
    _left_out: Mapping[str, Floats]  # [N, G, S]
    _seed_weights: Floats  # [R, G]

    def curve(self, method: str) -> tuple[Interval, ...]:
        """Return the intervals of a curve's points, one for each percent.

        Where all texts are right, or all wrong, resamples do not vary: bounds are exact for accuracy and
        micro F1, and nan for other metrics.
        """
        self.predictions.require(method)
        return tuple(self._point(method, step) for step in range(len(self.predictions.percents)))

    def acu(self, method: str) -> Interval:
        """Return the interval of a method's ACU."""
        return self._interval(self._acu(method), widened_bca)

    def racu(self, method: str) -> Interval:
        """Return the interval of a method's RACU.

        Bounds are nan where so few texts cannot show that random erasure lowers the performance: RACU is
        divided by that fall. The RACU itself is nan where the random curve does not fall at all.
        """
        self.predictions.require(method)
        ratios = self.predictions.ratios
        return self._interval(
            lambda curves: relative_area(curves[method], curves[BASELINE], ratios), widened_bca
        )

    def difference(self, first: str, second: str) -> Interval:
        """Return the interval of the first method's ACU minus the second's, on the same texts."""
        one, other = self._acu(first), self._acu(second)
        return self._interval(lambda curves: one(curves) - other(curves), widened_bca)

    def _acu(self, method: str) -> Statistic:
        self.predictions.require(method)
        ratios = self.predictions.ratios
        return lambda curves: absolute_area(curves[method], curves[BASELINE], ratios)

    def _point(self, method: str, step: int) -> Interval:
        mean, lower, upper, n = self._interval(lambda curves: curves[method][..., step], bca)
        if lower < upper:
            return Interval(mean, lower, upper, n)
        if self.predictions.metric not in SHARES:
            return Interval(mean, math.nan, math.nan, n)
        unseen = 1 - ((1 - self.confidence) / 2) ** (1 / n)  # a share that n texts may well not show
        return Interval(mean, max(mean - unseen, 0), min(mean + unseen, 1), n)

    def _interval(self, statistic: Statistic, bounds: Bounds) -> Interval:
        of_seeds, n = statistic(self._observed), self.predictions.texts
        value = float(of_seeds.mean())
        drawn = np.where(self._seed_weights > 0, statistic(self._resampled), 0)
        resampled = (self._seed_weights * drawn).sum(axis=1)
        left_out = [statistic(self._left_out).mean(axis=1)]
        if len(of_seeds) > 1:
            left_out.append((of_seeds.sum() - of_seeds) / (len(of_seeds) - 1))
        undefined = np.isnan(resampled)
        if n < 2 or math.isnan(value) or undefined.mean() > (1 - self.confidence) / 2:
            return Interval(value, math.nan, math.nan, n)
        lower, upper = bounds(value, resampled[~undefined], left_out, self.confidence)
        return Interval(value, lower, upper, n)


def resample_texts(
    predictions: Predictions, *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> TextIntervals:
    """Return intervals by a paired bootstrap over texts: each resample serves all methods.

    Args:
        predictions: Predicted classes of the methods, `random` among them, on the same texts.
        confidence: Share of samples in which an interval is to contain the true value.
        resamples: Number of resamples.
        seed: Seed of the resampling; the same seed gives the same digits.

    Returns:
        Intervals of curve points, ACU, RACU and differences of ACU.

    Raises:
        InputError: If `confidence` is not between 0 and 1, or there is no resample.
    """
    _require_resampling(confidence, resamples)
    rng = np.random.default_rng(seed)
    seeds, texts = predictions.seeds, predictions.texts
    # One seed less is drawn than there are: so the variance over few seeds is not underestimated.
    weights = rng.multinomial(max(seeds - 1, 1), [1 / seeds] * seeds, size=resamples) / max(seeds - 1, 1)
    everything = predictions.weighted_curves([np.ones((1, texts), np.int64)])
    return TextIntervals(
        predictions,
        confidence,
        resamples,
        seed,
        {name: curves[0] for name, curves in everything.items()},
        predictions.weighted_curves(resampling_weights(texts, resamples, rng)),
        {name: predictions.left_out_curves(name) for name in predictions.methods},
        weights,
    )


def _require_resampling(confidence: float, resamples: int) -> None:
    if not 0 < confidence < 1 or resamples < 1:
        raise InputError(f"confidence {confidence} of {resamples} resamples; expected such as 0.95 of 9999")
