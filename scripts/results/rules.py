"""Rules by which an effect decides a claim; all thresholds are here."""

from __future__ import annotations

from evidence import Effect

from faithmeter.config import SIGNIFICANCE_LEVEL

MARGIN = 2.0
"""Points of performance or area that count as no difference."""
CORRELATION = 0.5
"""Rank correlation from which on two orders of methods count as alike."""
REJECTED = 200 * SIGNIFICANCE_LEVEL
"""Percent of the texts that may be rejected one by one: twice the level, which chance alone rejects."""
MOST = 5
"""Of the paper's eight measures that were run everywhere, how many are most."""


def judge(effect: Effect, threshold: float = 0.0) -> str:
    """Return holds or fails if the whole interval is above the threshold or not, else unclear.

    An interval that is exactly the threshold, as when all seeds give the same, is not above it.
    """
    if effect.lower > threshold:
        return "holds"
    return "fails" if effect.upper <= threshold else "unclear"


def judge_gain(effect: Effect, margin: float = MARGIN) -> str:
    """Return holds if the whole interval is above zero, fails if it is below the margin, else unclear."""
    if effect.lower > 0:
        return "holds"
    return "fails" if effect.upper < margin else "unclear"


def judge_equivalence(effect: Effect, margin: float = MARGIN) -> str:
    """Return holds if the whole interval is within the margin, fails if it is beyond, else unclear."""
    if -margin < effect.lower and effect.upper < margin:
        return "holds"
    return "fails" if effect.lower > margin or effect.upper < -margin else "unclear"


def judge_difference(effect: Effect, margin: float = MARGIN) -> str:
    """Return holds if the interval excludes zero, fails if it is within the margin, else unclear."""
    if effect.lower > 0 or effect.upper < 0:
        return "holds"
    return "fails" if judge_equivalence(effect, margin) == "holds" else "unclear"


def judge_rejection(p: float) -> str:
    """Return holds if a test rejects; a test that does not reject proves nothing."""
    return "holds" if p < SIGNIFICANCE_LEVEL else "unclear"


def judge_no_rejection(p: float, share: Effect) -> str:
    """Return fails if a test rejects, and holds only if so few texts are rejected one by one, too."""
    if p < SIGNIFICANCE_LEVEL or share.lower > REJECTED:
        return "fails"
    return "holds" if share.upper < REJECTED else "unclear"
