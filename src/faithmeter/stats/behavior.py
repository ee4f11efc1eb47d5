"""Behavioral check: are predictions on masked texts as good as the visible words allow?

At each masking rate, a temperature and a bias for each class are fitted on masked validation texts. On test
texts, the log-loss of the model minus that of its recalibrated self is the excess that it could have avoided.
A model that understands masks has an excess of about 0 at every rate. The masks are accepted only if the
quantities are shown to be small (equivalence), not if a test fails to reject.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, starmap
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .curves import Floats
from .intervals import Interval, widened_bca
from .predictions import resampling_weights

MAX_EXCESS = 0.05
"""Largest acceptable excess log-loss at a masking rate, in nats (docs/faithfulness.md tells why)."""
MAX_SHORTFALL = 0.15
"""Largest acceptable accuracy below the best guess that ignores the text, as a fraction."""
CONFIDENCE = 0.90
"""Confidence of the two-sided intervals; each bound alone then holds in 95 % of checks."""
RESAMPLES = 1999
PRIOR_TEXTS = 1.0
"""Weight of the prior, a temperature of 1 and no bias, in texts; it keeps fits to few texts finite."""
MAX_GROWTH = 100
"""More than this many times the texts are not named as a number that would decide."""

Outcome = Literal["accepted", "rejected", "undecided"]


class Recalibration(NamedTuple):
    """Facts about a model that masked validation texts tell.

    Temperatures and class biases make its masked predictions as good as they can be. Limits tell which hidden
    states are unusual at a rate, by the cross-fitted test, whose p-values hold for the mixture of rates.

    Attributes:
        percents: Masking rates in percent, [S].
        scales: Inverse temperature at each rate, S of them.
        biases: Logit added to each class at each rate, S rows of C.
        constant: The most frequent class of the validation texts.
        texts: Number of validation texts.
        limits: At each rate, the p-value that one in twenty of the references is below; empty without a test.
        references: Number of validation texts that these were found with.
    """

    percents: tuple[int, ...]
    scales: tuple[float, ...]
    biases: tuple[tuple[float, ...], ...]
    constant: int
    texts: int
    limits: tuple[float, ...] = ()
    references: int = 0

    def at(self, percents: Collection[int]) -> Recalibration:
        """Return the recalibration at those of its rates that are among these."""
        kept = [*map(percents.__contains__, self.percents)]
        return self._replace(
            percents=tuple(compress(self.percents, kept)),
            scales=tuple(compress(self.scales, kept)),
            biases=tuple(compress(self.biases, kept)),
            limits=tuple(compress(self.limits, kept)),
        )

    @classmethod
    def of(cls, *fields: Any) -> Recalibration:
        """Return the value whose fields were read from JSON, with lists for tuples."""
        values: list[Any] = [tuple(field) if isinstance(field, list) else field for field in fields]
        known = cls(*values)
        return known._replace(biases=tuple(map(tuple, known.biases)))


class Finding(NamedTuple):
    """Quantity of a check at a masking rate, with the largest value that is accepted."""

    percent: int
    quantity: Literal["excess", "shortfall"]
    interval: Interval
    margin: float

    @property
    def outcome(self) -> Outcome:
        """Whether the quantity is below its margin, above it, or neither can be told."""
        if self.interval.upper < self.margin:
            return "accepted"
        return "rejected" if self.interval.lower > self.margin else "undecided"

    @property
    def growth(self) -> float:
        """By how much more texts would narrow the interval enough to leave out the margin."""
        mean, lower, upper, _ = self.interval
        distance = abs(self.margin - mean)
        return (max(upper - mean, mean - lower) / distance) ** 2 if distance else math.inf


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

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values."""
        return {
            "percents": [*self.percents],
            "excess": [*map(list, self.excess)],
            "shortfall": [*map(list, self.shortfall)],
            "texts": self.texts,
            "validation_texts": self.validation_texts,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Behavior:
        """Return the check with these values."""
        return cls(
            tuple(values["percents"]),
            tuple(starmap(Interval, values["excess"])),
            tuple(starmap(Interval, values["shortfall"])),
            values["texts"],
            values["validation_texts"],
        )

    @property
    def outcome(self) -> Outcome:
        """Whether the masks are accepted at all rates, rejected at one of them, or neither can be told."""
        outcomes = {each.outcome for each in self._judged}
        if "rejected" in outcomes:
            return "rejected"
        return "accepted" if outcomes == {"accepted"} else "undecided"

    @property
    def worst(self) -> Finding:
        """Part that decides the check: the clearest rejection or, without one, what is least sure."""
        rejected = self.outcome == "rejected"
        return max(self._judged, key=lambda each: each.interval[1 if rejected else 2] - each.margin)

    @property
    def texts_needed(self) -> int | None:
        """About how many texts would decide, of each kind; None if it is decided or no number is near.

        The width of an interval shrinks with the root of the number of texts.
        """
        if self.outcome != "undecided":
            return None
        factor = max(each.growth for each in self._judged if each.outcome == "undecided")
        texts = min(self.texts, self.validation_texts)
        return math.ceil(factor * texts) if factor <= MAX_GROWTH else None

    @property
    def _judged(self) -> list[Finding]:
        """Every quantity with its margin, the excesses first."""
        findings = []
        for percent, excess in zip(self.percents, self.excess, strict=True):
            findings.append(Finding(percent, "excess", excess, MAX_EXCESS))
        for percent, shortfall in zip(self.percents, self.shortfall, strict=True):
            findings.append(Finding(percent, "shortfall", shortfall, MAX_SHORTFALL))
        return findings


def most_doubtful(checks: Sequence[Behavior]) -> Behavior:
    """Return the check of several trainings that speaks most against the masks."""
    order = ("rejected", "undecided", "accepted")
    return min(checks, key=lambda check: (order.index(check.outcome), -max(e.upper for e in check.excess)))


def recalibrate(
    logits: NDArray[np.floating[Any]], labels: NDArray[np.int64], percents: Sequence[int]
) -> Recalibration:
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
    return Recalibration(tuple(percents), scales, biases, constant, len(labels))


def check_behavior(
    recalibration: Recalibration,
    logits: NDArray[np.floating[Any]],
    labels: NDArray[np.int64],
    *,
    seed: int = 0,
) -> Behavior:
    """Compare a model on masked test texts with its recalibrated self, and with guessing one class.

    Args:
        recalibration: What `recalibrate` fitted on validation texts.
        logits: Logits of the test texts at the same masking rates, [N, S, C].
        labels: Classes of these texts, or the original's predictions, [N].
        seed: Seed of the bootstrap.
    """
    own = logits.astype(np.float64)
    texts, _, classes = own.shape
    excess = _losses(own, labels) - _losses(apply(recalibration, own), labels)  # [N, S]
    # fitting k parameters costs k / 2N nats on new texts, which the excess over the best fit contains
    excess = excess + classes / (2 * recalibration.texts)
    right = own.argmax(axis=2) == labels[:, None]
    shortfall = (labels == recalibration.constant)[:, None] - right.astype(np.float64)
    weights = np.concatenate([*resampling_weights(texts, RESAMPLES, np.random.default_rng(seed))])
    return Behavior(
        recalibration.percents,
        intervals_of_means(excess, weights),
        intervals_of_means(shortfall, weights),
        texts,
        recalibration.texts,
    )


def apply(recalibration: Recalibration, logits: Floats) -> Floats:
    """Return the recalibrated logits [N, S, C]."""
    scales, biases = np.array(recalibration.scales), np.array(recalibration.biases)
    return np.asarray(logits * scales[:, None] + biases)


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


def _fit(logits: Floats, labels: NDArray[np.int64]) -> tuple[float, tuple[float, ...]]:
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
    return math.exp(best[0]), tuple(best[1:].tolist())
