"""Methods compared on the same texts: p-values, the group that leads, and the texts still needed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from ..config import BASELINE, SIGNIFICANCE_LEVEL
from .bounds import ROUNDING
from .curves import absolute_area
from .intervals import RESAMPLES
from .predictions import Floats, Predictions, blocks

SAME = 1e-9
"""Relative difference below which two sums of contributions are equal but for rounding."""
POWER = 0.8
"""Probability of telling two methods apart that `texts_needed` plans for."""


@dataclass(frozen=True)
class Comparison:
    """ACU of one method minus that of another, and the evidence that it is not 0."""

    first: str
    second: str
    difference: float
    p: float  # of this pair alone
    adjusted_p: float  # after Holm's correction for all pairs
    texts_needed: int | None  # to tell them apart; None if the difference is 0

    @property
    def apart(self) -> bool:
        """True if the two methods are told apart."""
        return self.adjusted_p <= SIGNIFICANCE_LEVEL


@dataclass(frozen=True)
class Ranking:
    """Methods from the highest ACU to the lowest, `random` left out, and every pair of them compared."""

    areas: Mapping[str, float]
    comparisons: tuple[Comparison, ...]  # the first of each pair is the one ranked higher

    @property
    def leaders(self) -> tuple[str, ...]:
        """Methods that cannot be told apart from the one with the highest ACU, that one first."""
        return (*[*self.areas][:1], *(pair.second for pair in self._with_best if not pair.apart))

    @property
    def texts_needed(self) -> int | None:
        """Texts that would tell the two best methods apart; None if they are, or if no number would."""
        needed = [None if pair.apart else pair.texts_needed for pair in self._with_best[:1]]
        return needed[0] if needed else None

    @property
    def _with_best(self) -> list[Comparison]:
        return [pair for pair in self.comparisons if pair.first == next(iter(self.areas))]


def rank_methods(predictions: Predictions, *, swaps: int = RESAMPLES, seed: int = 0) -> Ranking:
    """Return the methods ranked by ACU, with a test of every pair.

    A pair is tested by swapping the two methods' predictions at random texts: if the methods are equal,
    each swap is as probable as what was observed. The p-values are corrected for the number of pairs by
    Holm's method, so that equal methods, however many, are told apart in at most 5 % of measurements.
    With several seeds a pair must also differ by more than its variation over seeds and texts.

    Args:
        predictions: Predicted classes of the methods, `random` among them, on the same texts.
        swaps: Number of random swaps.
        seed: Seed of the swaps; the same seed gives the same digits.
    """
    areas = _ranked_areas(predictions)
    pairs = list(combinations(areas, 2))
    if not pairs:
        return Ranking(areas, ())
    influences = [_influences(predictions, *pair) for pair in pairs]
    pvalues = _swap_pvalues(np.stack([part.mean(axis=0) for part in influences]), swaps, seed)
    if predictions.seeds > 1:
        pvalues = np.maximum(pvalues, [_two_way_pvalue(part) for part in influences])
    adjusted = _holm(pvalues)
    comparisons = []
    for pair, influence, p, adjusted_p in zip(pairs, influences, pvalues, adjusted, strict=True):
        difference, contributions = areas[pair[0]] - areas[pair[1]], influence.mean(axis=0)
        deviation = float(contributions.std(ddof=1)) if predictions.texts > 1 else math.inf
        needed = texts_needed(difference, deviation, pairs=len(pairs))
        if needed is not None and adjusted_p > SIGNIFICANCE_LEVEL:
            needed = max(needed, predictions.texts + 1)  # these were not enough
        comparisons.append(Comparison(*pair, difference, float(p), float(adjusted_p), needed))
    return Ranking(areas, tuple(comparisons))


def texts_needed(difference: float, deviation: float, *, pairs: int = 1) -> int | None:
    """Return about how many texts tell two methods apart with a probability of 80 %, or None.

    Args:
        difference: Difference of their ACU.
        deviation: Standard deviation over texts of what a text contributes to the difference.
        pairs: Number of pairs that are tested, each at its share of the significance level.
    """
    if abs(difference) < ROUNDING or math.isinf(deviation):
        return None
    quantiles = stats.norm.isf(SIGNIFICANCE_LEVEL / (2 * pairs)) + stats.norm.ppf(POWER)
    return math.ceil((quantiles * deviation / difference) ** 2)


def _ranked_areas(predictions: Predictions) -> dict[str, float]:
    """Return the mean ACU over seeds of each method, the highest first."""
    curves = predictions.weighted_curves([np.ones((1, predictions.texts), np.int64)])
    areas = {
        name: float(absolute_area(values, curves[BASELINE], predictions.ratios).mean())
        for name, values in curves.items()
        if name != BASELINE
    }
    return dict(sorted(areas.items(), key=lambda item: -item[1]))


def _influences(predictions: Predictions, first: str, second: str) -> Floats:
    """Return what each text contributes [G, N] to the difference of two methods' ACU.

    A contribution is what the area under the curve of both methods together loses without the text as erased
    by one, minus without it as erased by the other. Swapping the two therefore only changes its sign,
    whatever the metric, and the test is exact. For accuracy the mean of contributions is the difference.
    """
    both = predictions.pooled(first, second)
    curves = both.left_out_curves(BASELINE)
    areas = (both.texts - 1) * absolute_area(np.zeros_like(curves), curves, both.ratios).T
    return areas[:, : predictions.texts] - areas[:, predictions.texts :]


def _swap_pvalues(influences: Floats, swaps: int, seed: int) -> Floats:
    """Return two-sided p-values [P] of contributions [P, N]: how often random signs give a sum as large."""
    rng = np.random.default_rng(seed)
    observed = np.abs(influences.sum(axis=1))
    exceeding = np.zeros(len(influences))
    for block in blocks(swaps, influences.shape[1]):
        signs = 2.0 * rng.integers(2, size=(block, influences.shape[1])) - 1
        exceeding += (np.abs(signs @ influences.T) >= observed * (1 - SAME)).sum(axis=0)
    return (1 + exceeding) / (1 + swaps)


def _two_way_pvalue(influences: Floats) -> float:
    """Return the p-value of a t-test of contributions [G, N], with variances over seeds and texts added."""
    parts = [influences.mean(axis=1), influences.mean(axis=0)]
    variances = np.array([part.var(ddof=1) / len(part) for part in parts])
    if variances.sum() < ROUNDING**2:
        return 1.0 if abs(influences.mean()) < ROUNDING else 0.0
    freedom = variances.sum() ** 2 / sum(
        v**2 / (len(part) - 1) for v, part in zip(variances, parts, strict=True)
    )
    return float(2 * stats.t.sf(abs(influences.mean()) / math.sqrt(variances.sum()), freedom))


def _holm(pvalues: Floats) -> Floats:
    """Return p-values adjusted by Holm's step-down method."""
    order = np.argsort(pvalues)
    steps = np.maximum.accumulate(pvalues[order] * np.arange(len(pvalues), 0, -1))
    adjusted = np.empty_like(pvalues)
    adjusted[order] = np.minimum(steps, 1)
    return adjusted
