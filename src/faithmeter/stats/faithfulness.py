"""Faithfulness: share of the label's removable probability that a method removes early.

Let r(x) and m(x) be the label's mean probability with the fraction x erased, in random order and by a method.
Both end at the level w = r(1) of wholly masked texts. A method that removes at once all that can be removed
falls to w at the first step, and the area between it and r is the *removable* area A. Then

    faithfulness = ∫ (r - max(m, w)) / A ≤ 1        beyond = ∫ max(w - m, 0) / A

The part beyond w is not evidence that the label lost: there the erased text speaks for another label. The
accuracy's area counts both parts as one, so that it rewards turning a model that knows nothing any more.
"""

from __future__ import annotations

import numpy as np

from .curves import Floats, absolute_area

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
