"""Kinds of areas that a result reports: what is plotted, and how curves become a number.

Faithfulness is the share of the label's removable probability that a method removes early. Let r(x) and m(x)
be the label's mean probability with the fraction x erased, in random order and by a method. Both end at the
level w = r(1) of wholly masked texts. A method that removes at once all that can be removed falls to w at the
first step, and the area between it and r is the *removable* area A. Then

    faithfulness = ∫ (r - max(m, w)) / A ≤ 1        beyond = ∫ max(w - m, 0) / A

The part beyond w is not evidence that the label lost: there the erased text speaks for another label. The
accuracy's area counts both parts as one, so that it rewards turning a model that knows nothing any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .curves import Floats, absolute_area, relative_area
from .metrics import MEAN

MIN_REMOVABLE = 0.02
"""Removable area, in probability, below which there is nothing whose share could be told."""


def removable_area(random: Floats, ratios: Floats) -> Floats:
    """Return the area [...] below random erasure [..., S] of falling at once to the wholly masked level."""
    at_once = np.broadcast_to(random[..., -1:], random.shape).copy()
    at_once[..., 0] = random[..., 0]  # before the first step nothing is erased
    return absolute_area(at_once, random, ratios)


def removed_share(values: Floats, random: Floats, ratios: Floats) -> Floats:
    """Return the faithfulness [...] of curves [..., S], at most 1; NaN where there is nothing to remove."""
    clipped = np.maximum(values, random[..., -1:])
    return _share(absolute_area(clipped, random, ratios), random, ratios)


def share_beyond(values: Floats, random: Floats, ratios: Floats) -> Floats:
    """Return the area [...] of curves [..., S] below the wholly masked level, over the removable area."""
    level = random[..., -1:]
    below = absolute_area(np.minimum(values, level), np.broadcast_to(level, values.shape), ratios)
    return _share(below, random, ratios)


def _share(area: Floats, random: Floats, ratios: Floats) -> Floats:
    removable = removable_area(random, ratios)
    return np.divide(area, removable, out=np.full_like(area, np.nan), where=removable >= MIN_REMOVABLE)


METRIC = ""
"""Quantity that stands for the metric of the task, whatever it is."""


class Kind(NamedTuple):
    """Kind of area between the curve of a method and that of random erasure."""

    title: str
    quantity: str
    """What the curves show: `METRIC`, or `MEAN` for the mean probability of the label."""
    area: Callable[[Floats, Floats, Floats], Floats]
    """Function of curves [..., S], random curves [..., S] and fractions erased [S]; returns areas [...]."""
    lowest: float = -math.inf
    highest: float = math.inf
    """Limits of the area, whatever the curves; bounds of intervals respect them."""

    def of_metric(self, metric: str) -> str:
        """Return what the curves show if the task has this metric."""
        return metric if self.quantity == METRIC else self.quantity


KINDS: dict[str, Kind] = {
    "faithfulness": Kind("faithfulness", MEAN, removed_share, highest=1.0),
    "beyond": Kind("beyond", MEAN, share_beyond, lowest=0.0),
    "acu": Kind("ACU", METRIC, absolute_area, -1.0, 1.0),  # of metrics that lose at most 1
    "racu": Kind("RACU", METRIC, relative_area),
}
"""Kinds by name."""
PROBABILITY = MEAN
"""Quantity of the label's probability, whose curve is its mean over texts."""
