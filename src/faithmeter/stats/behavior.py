"""Behavioral check: are predictions on masked texts as good as the visible words allow?

At each masking rate, a temperature and a bias for each class are fitted on masked validation texts. On test
texts, the log-loss of the model minus that of its recalibrated self is the excess that it could have avoided
without knowing more. A model that understands masks has an excess of about 0 at every rate. The masks are
accepted only if the excess is shown to be small (equivalence), not if a test fails to reject.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .bounds import widened_bca
from .intervals import Interval
from .predictions import resampling_weights

MAX_EXCESS = 0.05
"""Largest acceptable excess log-loss at a masking rate, in nats; results/validation/ladder.csv tells why."""
MAX_SHORTFALL = 0.05
"""Largest acceptable accuracy below the best guess that ignores the text, as a fraction."""
CONFIDENCE = 0.90
"""Confidence of the two-sided intervals; each bound alone then holds in 95 % of checks."""
RESAMPLES = 1999
PRIOR_TEXTS = 1.0
"""Weight of the prior, a temperature of 1 and no bias, in texts; it keeps fits to few texts finite."""
MAX_GROWTH = 100
"""More than this many times the texts are not named as a number that would decide."""

Floats = NDArray[np.float64]
Outcome = Literal["accepted", "rejected", "undecided"]


class Recalibration(NamedTuple):
    """Temperatures and class biases that make a model's masked predictions as good as they can be.

    Attributes:
        percents: Masking rates in percent, [S].
        scales: Inverse temperature at each rate, [S].
        biases: Logit added to each class at each rate, [S, C].
        constant: The most frequent class of the validation texts.
        texts: Number of validation texts.
    """

    percents: tuple[int, ...]
    scales: Floats
    biases: Floats
    constant: int
    texts: int

    def apply(self, logits: Floats) -> Floats:
        """Return the recalibrated logits [N, S, C]."""
        return logits * self.scales[:, None] + self.biases


@dataclass(frozen=True)
class Behavior:
    """Result of the check, with an interval for each masking rate.

    Attributes:
        percents: Masking rates in percent.
        excess: Log-loss of the model minus that of its recalibrated self, in nats.
        shortfall: Accuracy of the best guess that ignores the text, minus that of the model.
        texts: Number of test texts.
        validation_texts: Number of texts that the recalibration was fitted on.
    """

    percents: tuple[int, ...]
    excess: tuple[Interval, ...]
    shortfall: tuple[Interval, ...]
    texts: int
    validation_texts: int

    @property
    def outcome(self) -> Outcome:
        """Whether the masks are accepted at all rates, rejected at one of them, or neither can be told."""
        outcomes = [judge(*pair) for pair in self._judged]
        if "rejected" in outcomes:
            return "rejected"
        return "accepted" if set(outcomes) == {"accepted"} else "undecided"

    @property
    def worst(self) -> int:
        """Masking rate at which the check comes closest to rejecting, or rejects most clearly."""
        margins = [interval.lower - margin for interval, margin in self._judged]
        return self.percents[int(np.argmax(margins)) % len(self.percents)]

    @property
    def texts_needed(self) -> int | None:
        """About how many texts would decide, of each kind; None if it is decided or no number is near.

        The width of an interval shrinks with the root of the number of texts.
        """
        if self.outcome != "undecided":
            return None
        factor = max(_growth(*pair) for pair in self._judged if judge(*pair) == "undecided")
        texts = min(self.texts, self.validation_texts)
        return math.ceil(factor * texts) if factor <= MAX_GROWTH else None

    @property
    def _judged(self) -> list[tuple[Interval, float]]:
        """Each interval with its margin; the shortfalls follow the excesses."""
        pairs = [(each, MAX_EXCESS) for each in self.excess]
        pairs += [(each, MAX_SHORTFALL) for each in self.shortfall]
        return pairs


def judge(interval: Interval, margin: float) -> Outcome:
    """Return whether a quantity is below its margin, above it, or neither can be told."""
    if interval.upper < margin:
        return "accepted"
    return "rejected" if interval.lower > margin else "undecided"


def _growth(interval: Interval, margin: float) -> float:
    """Return by how much more texts would narrow an interval enough to leave out the margin."""
    distance = abs(margin - interval.mean)
    width = max(interval.upper - interval.mean, interval.mean - interval.lower)
    return (width / distance) ** 2 if distance else math.inf


def recalibrate(logits: Floats, labels: NDArray[np.int64], percents: Sequence[int]) -> Recalibration:
    """Fit temperatures and class biases on validation texts, masked at random at each rate.

    Args:
        logits: Logits of the validation texts, [N, S, C].
        labels: Classes of these texts, [N]; for a model without labels, the original's predictions.
        percents: Masking rates in percent, [S].

    Raises:
        InputError: There are fewer than two texts, or the arrays do not fit each other.
    """
    if logits.ndim != 3 or len(logits) < 2 or logits.shape[:2] != (len(labels), len(percents)):
        raise InputError(
            f"logits of shape {logits.shape} for {len(labels)} labels at {len(percents)} rates; expected "
            "[texts, rates, classes] of at least two texts"
        )
    fits = [_fit(logits[:, step].astype(np.float64), labels) for step in range(len(percents))]
    constant = int(np.bincount(labels, minlength=logits.shape[2]).argmax())
    scales, biases = zip(*fits, strict=True)
    return Recalibration(tuple(percents), np.array(scales), np.stack(biases), constant, len(labels))


def check_behavior(
    recalibration: Recalibration, logits: Floats, labels: NDArray[np.int64], *, seed: int = 0
) -> Behavior:
    """Compare a model on masked test texts with its recalibrated self, and with guessing one class.

    Args:
        recalibration: What `recalibrate` fitted on validation texts.
        logits: Logits of the test texts at the same masking rates, [N, S, C].
        labels: Classes of these texts, or the original's predictions, [N].
        seed: Seed of the bootstrap.
    """
    logits = logits.astype(np.float64)
    texts, _, classes = logits.shape
    excess = _losses(logits, labels) - _losses(recalibration.apply(logits), labels)  # [N, S]
    # fitting k parameters costs k / 2N nats on new texts, which the excess over the best fit contains
    excess = excess + classes / (2 * recalibration.texts)
    right = logits.argmax(axis=2) == labels[:, None]
    shortfall = (labels == recalibration.constant)[:, None] - right.astype(np.float64)
    weights = np.concatenate([*resampling_weights(texts, RESAMPLES, np.random.default_rng(seed))])
    return Behavior(
        recalibration.percents,
        intervals_of_means(excess, weights),
        intervals_of_means(shortfall, weights),
        texts,
        recalibration.texts,
    )


def intervals_of_means(values: Floats, weights: NDArray[np.int64]) -> tuple[Interval, ...]:
    """Return the mean of each column of values [N, S] with its interval; unknown for a single text."""
    n = len(values)
    resampled = weights @ values / n  # [R, S]
    intervals = []
    for column, drawn in zip(values.T, resampled.T, strict=True):
        mean = float(column.mean())
        bounds = (-math.inf, math.inf)
        if n > 1:
            bounds = widened_bca(mean, drawn, [(column.sum() - column) / (n - 1)], CONFIDENCE)
        intervals.append(Interval(mean, *bounds, n))
    return tuple(intervals)


def _losses(logits: Floats, labels: NDArray[np.int64]) -> Floats:
    """Return the log-loss [N, S] of logits [N, S, C]."""
    own = np.take_along_axis(logits, labels[:, None, None], axis=2)[:, :, 0]
    losses: Floats = np.logaddexp.reduce(logits, axis=2) - own
    return losses


def _fit(logits: Floats, labels: NDArray[np.int64]) -> tuple[float, Floats]:
    """Return the inverse temperature and the class biases with the smallest log-loss on logits [N, C]."""
    from scipy.optimize import minimize  # slow to import

    own = np.eye(logits.shape[1])[labels]  # [N, C]

    def loss(parameters: Floats) -> tuple[float, Floats]:
        scale, biases = math.exp(parameters[0]), parameters[1:]
        scaled = logits * scale + biases
        logs = scaled - np.logaddexp.reduce(scaled, axis=1, keepdims=True)
        error = np.exp(logs) - own  # [N, C]
        value = -float((logs * own).sum()) + PRIOR_TEXTS * float((parameters**2).sum()) / 2
        slope = np.array([scale * (error * logits).sum(), *error.sum(axis=0)])
        return value, slope + PRIOR_TEXTS * parameters

    best = minimize(loss, np.zeros(1 + logits.shape[1]), jac=True, method="L-BFGS-B").x
    return math.exp(best[0]), best[1:]
