"""Comparisons of methods on the same texts: p-values, the leading group, and the number of texts needed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
import scipy  # imports its parts, which are slow, on their first use

from ..config import BASELINE, SIGNIFICANCE_LEVEL
from .curves import KINDS, Floats, Kind, absolute_area
from .intervals import RESAMPLES, ROUNDING, combined_quantile
from .predictions import Predictions, blocks

SAME = 1e-9
"""Relative difference below which two sums of contributions count as equal."""
SMALLEST = 0.0005
"""Smallest difference of areas that tells methods apart: half of the last digit that a verdict prints."""
POWER = 0.8
"""Statistical power that `texts_needed` plans for."""


@dataclass(frozen=True)
class Comparison:
    """Difference in ACU between two methods, with the evidence that it is not 0."""

    first: str
    second: str
    difference: float
    p: float  # of this pair alone
    adjusted_p: float  # after Holm's correction for all pairs
    texts_needed: int | None  # to tell them apart; None if the difference is too small

    @property
    def apart(self) -> bool:
        """Whether the difference is significant after correction, and large enough to be told."""
        # many texts make any difference significant: nobody may read "0.0 points ahead"
        return self.adjusted_p <= SIGNIFICANCE_LEVEL and abs(self.difference) >= SMALLEST


@dataclass(frozen=True)
class Ranking:
    """Methods except `random`, ranked from the largest area to the smallest, and compared in pairs."""

    areas: Mapping[str, float]
    comparisons: tuple[Comparison, ...]  # the first of each pair is the one ranked higher

    @property
    def leaders(self) -> tuple[str, ...]:
        """Method with the largest area, followed by those that cannot be told apart from it.

        Empty if the areas are not defined, as there is nothing to remove.
        """
        if any(map(math.isnan, self.areas.values())):
            return ()
        return (*[*self.areas][:1], *(pair.second for pair in self._with_best if not pair.apart))

    @property
    def texts_needed(self) -> int | None:
        """Number of texts needed to tell the two best methods apart.

        None if they can be told apart already, or if no number of texts would suffice.
        """
        pair = next(iter(self._with_best), None)
        return None if pair is None or pair.apart else pair.texts_needed

    @property
    def _with_best(self) -> list[Comparison]:
        return [pair for pair in self.comparisons if pair.first == next(iter(self.areas))]


def rank_methods(
    predictions: Predictions, kind: str = "acu", *, swaps: int = RESAMPLES, seed: int = 0
) -> Ranking:
    """Rank the methods by their areas of a kind, and test the difference between each pair.

    A pair is tested by swapping the two methods' predictions on random texts: if the methods are equal,
    every swap is as probable as the observed assignment. Methods may also be equal only on average, one far
    better on few texts and a little worse on the others; so the p-value is at least that of a t-test that
    corrects for skewness. With several seeds, a pair must also differ by more than its variation over seeds
    and texts. Holm's method corrects the p-values for the number of pairs, so that equal methods, however
    many, are told apart in at most 5 % of measurements.

    Args:
        predictions: Predictions of the methods, including `random`, on the same texts.
        kind: Kind of area (see `areas.KINDS`). Without a defined area there is no comparison.
        swaps: Number of random swaps.
        seed: Seed of the swaps; the same seed gives the same result.
    """
    areas = _ranked_areas(predictions, kind)
    pairs = list(combinations(areas, 2))
    if not pairs or any(map(math.isnan, areas.values())):
        return Ranking(areas, ())
    influence = _pooled_influences if kind == "acu" else partial(_own_influences, KINDS[kind])
    influences = [influence(predictions, *pair) for pair in pairs]
    contributions = np.stack([part.mean(axis=0) for part in influences])  # [P, N]
    pvalues = np.maximum(_swap_pvalues(contributions, swaps, seed), _skew_pvalues(contributions))
    if predictions.seeds > 1:
        pvalues = np.maximum(pvalues, [*map(_two_way_pvalue, influences)])
    adjusted = _holm(pvalues)
    comparisons = []
    for pair, of_texts, p, adjusted_p in zip(pairs, contributions, pvalues, adjusted, strict=True):
        difference = areas[pair[0]] - areas[pair[1]]
        deviation = float(of_texts.std(ddof=1)) if predictions.texts > 1 else math.inf
        needed = texts_needed(difference, deviation, pairs=len(pairs))
        if needed is not None and adjusted_p > SIGNIFICANCE_LEVEL:
            needed = max(needed, predictions.texts + 1)  # the measured texts were not enough
        comparisons.append(Comparison(*pair, difference, float(p), float(adjusted_p), needed))
    return Ranking(areas, tuple(comparisons))


def texts_needed(difference: float, deviation: float, *, pairs: int = 1) -> int | None:
    """Return the approximate number of texts that tells two methods apart with a power of 80 %.

    The result is None if the difference is too small to be told, or the deviation is infinite.

    Args:
        difference: Difference between the methods' ACU.
        deviation: Standard deviation over texts of their contributions to the difference.
        pairs: Number of pairs tested, which share the significance level.
    """
    if abs(difference) < SMALLEST or math.isinf(deviation):
        return None
    quantiles = scipy.special.ndtri(POWER) - scipy.special.ndtri(SIGNIFICANCE_LEVEL / (2 * pairs))
    return math.ceil((quantiles * deviation / difference) ** 2)


def _ranked_areas(predictions: Predictions, kind: str) -> dict[str, float]:
    """Return the area of each method, averaged over seeds, largest first."""
    curves = predictions.weighted_curves([np.ones((1, predictions.texts), np.int64)])
    random, areas = curves.pop(BASELINE), {}
    for name, values in curves.items():
        areas[name] = float(KINDS[kind].area(values, random, predictions.ratios).mean())
    return dict(sorted(areas.items(), key=lambda item: -item[1]))


def _pooled_influences(predictions: Predictions, first: str, second: str) -> Floats:
    """Return the contribution of each text to the difference between two methods' ACU, [G seeds, N texts].

    The predictions of both methods are pooled. A contribution is the scaled area under the pooled curve
    without the text as erased by `first`, minus that without the text as erased by `second`. Swapping the
    methods only changes its sign, for any metric, so the test is exact. For accuracy, the mean contribution
    equals the difference in ACU.
    """
    both = predictions.pooled(first, second)
    curves = both.left_out_curves(BASELINE)
    areas = (both.texts - 1) * absolute_area(np.zeros_like(curves), curves, both.ratios).T
    return areas[:, : predictions.texts] - areas[:, predictions.texts :]


def _own_influences(kind: Kind, predictions: Predictions, first: str, second: str) -> Floats:
    """Return the contribution of each text to the difference of two areas, [G seeds, N texts].

    It is the jackknife's pseudo-value: N times the difference, minus N - 1 times that without the text. Their
    mean is the difference, but for the bias of a quotient, which falls with 1/N.
    """
    n, parts = predictions.texts, []
    everything = predictions.weighted_curves([np.ones((1, n), np.int64)])
    for name in (first, second):
        whole = kind.area(everything[name][0], everything[BASELINE][0], predictions.ratios)  # [G]
        without = kind.area(
            predictions.left_out_curves(name), predictions.left_out_curves(BASELINE), predictions.ratios
        )  # [N, G]
        without = np.where(np.isnan(without), whole, without)  # the last text with something to remove
        parts.append((n * whole - (n - 1) * without).T)
    return parts[0] - parts[1]


def _swap_pvalues(influences: Floats, swaps: int, seed: int) -> Floats:
    """Return two-sided p-values [P] of contributions [P, N], by flipping their signs at random."""
    rng = np.random.default_rng(seed)
    observed = np.abs(influences.sum(axis=1))
    exceeding = np.zeros(len(influences))
    for block in blocks(swaps, influences.shape[1]):
        signs = 2.0 * rng.integers(2, size=(block, influences.shape[1])) - 1
        exceeding += (np.abs(signs @ influences.T) >= observed * (1 - SAME)).sum(axis=0)
    return (1 + exceeding) / (1 + swaps)


def _skew_pvalues(contributions: Floats) -> Floats:
    """Return two-sided p-values [P] of t-tests of contributions [P, N], corrected for their skewness.

    The correction is Hall's cubic transformation of t, which is monotonic. Without it, methods that differ
    on few texts are told apart too often: the samples that miss these texts vary too little.
    """
    n = contributions.shape[1]
    means, deviations = contributions.mean(axis=1), contributions.std(axis=1)
    constant = deviations < ROUNDING
    scale = np.where(constant, 1, deviations)
    skewness = ((contributions - means[:, None]) ** 3).mean(axis=1) / scale**3 / math.sqrt(n)
    t = means / scale * math.sqrt(max(n - 1, 1))
    corrected = t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6
    pvalues = 2 * scipy.special.stdtr(max(n - 1, 1), -np.abs(corrected))
    return np.where(constant, np.where(np.abs(means) < ROUNDING, 1.0, 0.0), pvalues)


def _two_way_pvalue(influences: Floats) -> float:
    """Return the p-value of contributions [G, N] that vary over seeds and over texts.

    It is the level at which the mean lies at the end of its interval (see `combined_quantile`).
    """
    parts = [influences.mean(axis=1), influences.mean(axis=0)]
    variances = np.array([part.var(ddof=1) / max(len(part), 1) for part in parts])
    freedom = np.maximum(np.array(influences.shape) - 1, 1)  # of G seeds and of N texts
    mean, error = abs(float(influences.mean())), math.sqrt(variances.sum())
    if error < ROUNDING:
        return 1.0 if mean < ROUNDING else 0.0

    def excess(level: float) -> float:
        return mean / error - combined_quantile(variances, freedom, level / 2)

    smallest = 1e-12
    return smallest if excess(smallest) >= 0 else float(scipy.optimize.brentq(excess, smallest, 1))


def _holm(pvalues: Floats) -> Floats:
    """Return p-values adjusted by Holm's step-down method."""
    order = np.argsort(pvalues)
    steps = np.maximum.accumulate(pvalues[order] * np.arange(len(pvalues), 0, -1))
    adjusted = np.empty_like(pvalues)
    adjusted[order] = np.minimum(steps, 1)
    return adjusted
