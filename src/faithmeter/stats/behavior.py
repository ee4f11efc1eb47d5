"""Judgment of a behavioral check: are predictions on masked texts as good as the visible words allow?

The masks are accepted only if the quantities of `recalibration.check_behavior` are shown to be small
(equivalence), not if a test fails to reject. Importing this module loads nothing heavy.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, starmap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from .intervals import Interval

MAX_EXCESS = 0.05
"""Largest acceptable excess log-loss at a masking rate, in nats (docs/faithfulness.md tells why)."""
MAX_SHORTFALL = 0.15
"""Largest acceptable accuracy below the best guess that ignores the text, as a fraction."""
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
        from .intervals import Interval  # slow to import

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
