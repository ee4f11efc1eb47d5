"""Which definition of faithfulness is right: each candidate on models whose truth is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from faithmeter.config import BASELINE
from faithmeter.stats.curves import MIN_REMOVABLE, absolute_area, removable_area

from .cache import TRUTH, Control, read

RESAMPLES = 2000
TRUTH_TOLERANCE = 0.01
"""The truth counts as tied with a method that is ahead of it by less, as a share of what can be removed."""
Floats = NDArray[np.float64]


class Definition(NamedTuple):
    """Candidate: what the curves show, and whether they are clipped at the wholly masked level."""

    of_logits: Callable[[Floats, NDArray[np.int64]], Floats]
    """Function of logits [N, S, C] and labels [N]; returns the values [N, S] whose mean is the curve."""
    clipped: str = ""
    """`mean`: the curve is clipped; `text`: the values of each text are."""


def _log_probability(logits: Floats, labels: NDArray[np.int64]) -> Floats:
    own = np.take_along_axis(logits, labels[:, None, None], axis=2)[:, :, 0]
    return np.asarray(own - np.logaddexp.reduce(logits, axis=2))


def _probability(logits: Floats, labels: NDArray[np.int64]) -> Floats:
    return np.exp(_log_probability(logits, labels))


def _right(logits: Floats, labels: NDArray[np.int64]) -> Floats:
    return (logits.argmax(axis=2) == labels[:, None]).astype(np.float64)


DEFINITIONS = {
    "accuracy": Definition(_right),
    "accuracy, clipped": Definition(_right, "mean"),
    "probability": Definition(_probability),
    "probability, clipped": Definition(_probability, "mean"),
    "probability, each text clipped": Definition(_probability, "text"),
    "log-loss": Definition(_log_probability),
    "log-loss, clipped": Definition(_log_probability, "mean"),
}
"""Candidates by name."""


class Areas(NamedTuple):
    """Areas of all methods under the bootstrap: the observed values come first, [1 + R]."""

    points: Mapping[str, Floats]
    """Area below random erasure."""
    removable: Floats
    """Area of falling at once to the wholly masked level."""

    def share(self, method: str) -> Floats:
        return self.points[method] / self.removable


def measure(control: Control, definition: Definition, *, window: int = 0, seed: int = 0) -> Areas:
    """Return the areas of all methods of a control by a definition, on all texts or a random window."""
    erasures = read(control)
    rng, everything = np.random.default_rng(seed), len(erasures.methods[BASELINE])
    rows = rng.permutation(everything)[:window] if window else np.arange(everything)
    count, labels = len(rows), erasures.test_labels[rows]
    ratios = np.asarray(erasures.percents) / 100
    weights = rng.multinomial(count, np.full(count, 1 / count), RESAMPLES) / count
    weights = np.concatenate([np.full((1, count), 1 / count), weights])
    values = {
        name: definition.of_logits(logits[rows].astype(np.float64), labels)
        for name, logits in erasures.methods.items()
    }
    random = weights @ values[BASELINE]
    points = {}
    for name, own in values.items():
        if name == BASELINE:
            continue
        own = np.maximum(own, own[:, -1:]) if definition.clipped == "text" else own
        curve = weights @ own
        curve = np.maximum(curve, random[:, -1:]) if definition.clipped == "mean" else curve
        points[name] = absolute_area(curve, random, ratios)
    return Areas(points, removable_area(random, ratios))


def bounds(values: Floats, confidence: float = 0.95) -> tuple[float, float]:
    """Return the percentile bounds of resampled values, whose first is the observed one."""
    lower, upper = np.quantile(values[1:], [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(lower), float(upper)


def tell_apart(areas: Areas) -> tuple[int, int]:
    """Return how many pairs of methods differ significantly, after Bonferroni's correction, and all pairs."""
    pairs = list(combinations([name for name in areas.points if name != TRUTH], 2))
    apart = 0
    for first, second in pairs:
        lower, upper = bounds(areas.share(first) - areas.share(second), 1 - 0.05 / len(pairs))
        apart += lower > 0 or upper < 0
    return apart, len(pairs)


def compare(control: Control) -> pd.DataFrame:
    """Return a row for each definition and method: points and share with intervals, and the truth's rank."""
    rows = []
    for name, definition in DEFINITIONS.items():
        areas = measure(control, definition)
        apart, pairs = tell_apart(areas)
        for method, points in areas.points.items():
            share = areas.share(method)
            rows.append(
                {
                    "control": control.name,
                    "definition": name,
                    "method": method,
                    "points": 100 * points[0],
                    "share": 100 * share[0],
                    "lower": 100 * bounds(share)[0],
                    "upper": 100 * bounds(share)[1],
                    "truth_ahead_by": 100 * (areas.share(TRUTH) - share)[0]
                    if TRUTH in areas.points
                    else np.nan,
                    "truth_first_or_tied": not _is_behind(areas, method) if TRUTH in areas.points else None,
                    "removable_points": 100 * areas.removable[0],
                    "pairs_apart": apart,
                    "pairs": pairs,
                }
            )
    return pd.DataFrame(rows)


def _texts_needed(frame: pd.DataFrame, name: str) -> float:
    """Return the median share of the texts that gives the relative width of an interval of the accuracy.

    The median is over the methods of trained controls but the truth; a width shrinks with the root of texts.
    """
    trained = frame[frame.control.str.contains("-masked-") & ~frame.control.str.contains("shuffled")]
    widths = {}
    for definition in ("accuracy", name):
        part = trained[(trained.definition == definition) & (trained.method != TRUTH)]
        keyed = part.set_index(["control", "method"])
        widths[definition] = (keyed.upper - keyed.lower) / keyed.share.abs()
    ratios = (widths[name] / widths["accuracy"]) ** 2
    return float(ratios[np.isfinite(ratios)].median())


def _is_behind(areas: Areas, method: str) -> bool:
    """Return whether the truth is clearly behind a method: by more than the tolerance and than chance."""
    ahead = areas.share(method) - areas.share(TRUTH)
    return bool(ahead[0] > TRUTH_TOLERANCE and bounds(ahead)[0] > 0)


def measure_false_praise(
    control: Control, definition: Definition, *, texts: int = 64, windows: int = 100
) -> float:
    """Return the share of windows of texts in which a method seems to beat random erasure.

    The texts of a window are drawn from those of the control. A share of what can be removed is told only if
    that area is at least `MIN_REMOVABLE` and surely positive, as the package demands.
    """
    praised = 0
    for seed in range(windows):
        areas = measure(control, definition, window=texts, seed=seed)
        removable = areas.removable
        told = not definition.clipped or (removable[0] >= MIN_REMOVABLE and bounds(removable)[0] > 0)
        praised += told and any(bounds(points)[0] > 0 for points in areas.points.values())
    return praised / windows


def decide(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each definition: how often it is right on planted, empty and real models."""
    rows = []
    for name, part in frame.groupby("definition", sort=False):
        planted = part[part.truth_ahead_by.notna() & part.control.str.contains("-masked-")]
        empty = part[part.control.str.contains("shuffled|random")]
        real = part[part.control.str.contains("sst2")].drop_duplicates("control")
        rows.append(
            {
                "definition": name,
                "planted_models": planted.control.nunique(),
                "truth_first_or_tied": int(planted.groupby("control").truth_first_or_tied.all().sum()),
                "truth_behind_at_most": -planted.truth_ahead_by.min(),
                "points_on_empty_models": empty.points.max(),
                "texts_for_the_same_width": _texts_needed(frame, name),
                "pairs_apart": int(real.pairs_apart.sum()),
                "pairs": int(real.pairs.sum()),
            }
        )
    return pd.DataFrame(rows)
