"""Confidence intervals of means over seeds, and of curves, areas and their differences over texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # imports its parts, which are slow, on their first use
from numpy.typing import ArrayLike

from ..config import BASELINE
from ..errors import InputError
from .curves import KINDS, Floats
from .predictions import COUNTS, SHARES, Predictions, resampling_weights

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
    sizes = np.maximum(list(map(len, left_out)), 2)
    squares, cubes = np.zeros(len(sizes)), 0.0
    for number, (values, size) in enumerate(zip(left_out, sizes, strict=True)):
        part = np.nan_to_num(np.nanmean(values) - values) * (size - 1) / size
        squares[number] = (part**2).sum()
        cubes += (part**3).sum()
    if squares.sum() < ROUNDING**2:
        return None
    variances = squares * sizes / (sizes - 1)
    acceleration = cubes / (6 * squares.sum() ** 1.5)
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


RESAMPLES = 9999
"""Default number of bootstrap resamples, and of random swaps in a test."""
FEW_RESAMPLES = 999
"""Number of bootstrap resamples for a metric that has to be computed anew for each of them."""


class Interval(NamedTuple):
    """Mean of n values with its confidence bounds; n is 0 where it does not matter."""

    mean: float
    lower: float
    upper: float
    n: int = 0

    @property
    def wide(self) -> bool:
        """Whether the bounds are known and differ."""
        return self.lower < self.upper

    def or_mean(self) -> Interval:
        """Return the interval with the mean as both bounds if one is NaN."""
        unknown = math.isnan(self.lower) or math.isnan(self.upper)
        return self._replace(lower=self.mean, upper=self.mean) if unknown else self

    @classmethod
    def undefined(cls, n: int) -> Interval:
        """Return an interval whose mean and bounds are NaN."""
        return cls(math.nan, math.nan, math.nan, n)


def bootstrap_interval(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Return the mean of the values with its bootstrap confidence interval (BCa).

    Args:
        values: Numbers [n], such as one for each seed. If all are equal, or there is only one, the bounds
            equal the mean; if one is NaN (such as an undefined RACU), the mean and bounds are NaN.
        confidence: Confidence level, between 0 and 1.
        resamples: Number of resamples.
        seed: Seed of the resampling; the same values and seed give the same result.

    Returns:
        The mean, the lower and upper bound, and n.

    Raises:
        InputError: There is no value or an infinite one, or an option is not valid.

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
    from scipy import stats  # as slow to import as an explanation, which needs no interval

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
"""Function of the methods' curves [..., G, S] that returns a number [..., G] for each seed."""
Bounds = Callable[[float, Floats, Sequence[Floats], float], tuple[float, float]]
"""Function of a value, its resamples, its jackknife values and the confidence that returns two bounds."""


@dataclass(frozen=True)
class TextIntervals:
    """Confidence intervals over texts, computed from the same resampled texts for all methods.

    `resample_texts` creates it. With several seeds, a value is the mean over seeds, and the intervals cover
    seeds and texts. With a single text, the bounds are NaN.
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
        """Return the interval of each point of a method's curve.

        If all texts are right, or all are wrong, the resamples do not vary. The bounds are then exact for
        accuracy and micro F1, and NaN for other metrics.
        """
        self.predictions.require(method)
        return tuple(self._point(method, step) for step in range(len(self.predictions.percents)))

    def area(self, method: str, kind: str) -> Interval:
        """Return the interval of a method's area of a kind (see `areas.KINDS`).

        An area that is divided by what random erasure loses, such as RACU, has no bounds if the texts are too
        few to show such a loss, and is NaN if there is none.
        """
        interval = self._interval(self._area(method, kind), widened_bca)
        lowest, highest = KINDS[kind].lowest, KINDS[kind].highest
        if not lowest <= interval.mean <= highest:  # such as the ACU of a loss without limits, or NaN
            return interval
        lower, upper = max(interval.lower, lowest), min(interval.upper, highest)
        return interval._replace(lower=lower, upper=upper) if interval.wide else interval

    def acu(self, method: str) -> Interval:
        """Return the interval of a method's ACU."""
        return self.area(method, "acu")

    def racu(self, method: str) -> Interval:
        """Return the interval of a method's RACU."""
        return self.area(method, "racu")

    def difference(self, first: str, second: str, kind: str = "acu") -> Interval:
        """Return the interval of the first method's area minus that of the second, on the same texts."""
        one, other = self._area(first, kind), self._area(second, kind)
        return self._interval(lambda curves: one(curves) - other(curves), widened_bca)

    def _area(self, method: str, kind: str) -> Statistic:
        self.predictions.require(method)
        ratios = self.predictions.ratios
        return lambda curves: KINDS[kind].area(curves[method], curves[BASELINE], ratios)

    def _point(self, method: str, step: int) -> Interval:
        mean, lower, upper, n = self._interval(lambda curves: curves[method][..., step], bca)
        if lower < upper:
            return Interval(mean, lower, upper, n)
        if self.predictions.metric not in SHARES:
            return Interval(mean, math.nan, math.nan, n)
        unseen = 1 - ((1 - self.confidence) / 2) ** (1 / n)  # a share this small may not show in n texts
        return Interval(mean, max(mean - unseen, 0), min(mean + unseen, 1), n)

    def _interval(self, statistic: Statistic, bounds: Bounds) -> Interval:
        of_seeds, n = statistic(self._observed), self.predictions.texts
        value = float(of_seeds.mean())
        drawn = np.where(self._seed_weights > 0, statistic(self._resampled), 0)
        resampled = (self._seed_weights * drawn).sum(axis=1)
        left_out = [statistic(self._left_out).mean(axis=1)]
        if len(of_seeds) > 1:
            left_out.append((of_seeds.sum() - of_seeds) / (len(of_seeds) - 1))
        if math.isnan(value):
            return Interval.undefined(n)
        undefined = np.isnan(resampled)
        if n < 2 or undefined.mean() > (1 - self.confidence) / 2:
            return Interval(value, math.nan, math.nan, n)
        lower, upper = bounds(value, resampled[~undefined], left_out, self.confidence)
        return Interval(value, lower, upper, n)


def resample_texts(
    predictions: Predictions, *, confidence: float = 0.95, resamples: int | None = None, seed: int = 0
) -> TextIntervals:
    """Return confidence intervals from a paired bootstrap over texts; all methods share the resamples.

    Args:
        predictions: Predicted classes of the methods, including `random`, on the same texts.
        confidence: Confidence level, between 0 and 1.
        resamples: Number of resamples; by default 9,999, or 999 for a metric that is computed anew for each.
        seed: Seed of the resampling; the same seed gives the same result.

    Returns:
        Intervals of curve points, ACU, RACU and differences in ACU.

    Raises:
        InputError: `confidence` is not between 0 and 1, or `resamples` is below 1.
    """
    if resamples is None:
        resamples = RESAMPLES if predictions.metric in COUNTS else FEW_RESAMPLES
    _require_resampling(confidence, resamples)
    rng = np.random.default_rng(seed)
    seeds, texts = predictions.seeds, predictions.texts
    # Drawing one seed fewer than there are avoids underestimating the variance over few seeds.
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
        raise InputError(
            f"confidence is {confidence} and resamples is {resamples}; expected a confidence between 0 and 1 "
            "(such as 0.95) and at least 1 resample"
        )
