"""Verdict on an adapted model: its agreement with the original, its check, and its explanations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..formats import format_number, format_percent, format_pvalue
from .evidence import rejects
from .rules import BAD, CAUTION
from .verdict import GOOD, Answer

QUESTIONS = ("Is it still the same classifier?", "Is it measurable?", "For which model do explanations hold?")


@dataclass(frozen=True)
class AdaptEvidence:
    """Facts of an adaptation.

    Attributes:
        agreement: Share of held-out whole texts on which both models predict the same class.
        required: Required agreement, as a fraction.
        texts: Number of these texts.
        original: P-values of the original by percent masked; its tests are fitted on whole texts.
        adapted: P-values of the adapted model; its tests are fitted on masked texts.
        method: Method that explained both models.
        rank_agreement: Mean rank correlation of its scores for the two models.
    """

    agreement: float
    required: float
    texts: int
    original: Mapping[int, float]
    adapted: Mapping[int, float]
    method: str
    rank_agreement: float

    @property
    def stays(self) -> bool:
        """Whether the adapted model agrees with the original as often as required."""
        return self.agreement >= self.required

    @property
    def measurable(self) -> bool:
        """Whether texts masked by 10 to 90 % are in distribution for the adapted model."""
        return is_measurable(self.adapted)


def masked_steps(p: Mapping[int, float]) -> dict[int, float]:
    """Return the p-values of partly masked texts, without those at 0 and 100 %."""
    return {percent: value for percent, value in p.items() if 0 < percent < 100}


def is_measurable(p: Mapping[int, float]) -> bool:
    """Return whether partly masked texts are in distribution at every percentage."""
    return not any(map(rejects, masked_steps(p).values()))


def judge_adaptation(evidence: AdaptEvidence) -> tuple[Answer, ...]:
    """Return the answers to the three questions about an adaptation."""
    share = f"{format_percent(evidence.agreement)}% of {evidence.texts} held-out texts"
    same = f"{'Yes' if evidence.stays else 'No'}: it predicts what the original does on {share}"
    same = f"{same}{'' if evidence.stays else f', and {format_percent(evidence.required)}% were required'}."
    before = format_pvalue(min(masked_steps(evidence.original).values()))
    after = format_pvalue(min(masked_steps(evidence.adapted).values()))
    pvalues = f"at 10 to 90 % masked the smallest p-value is {after}; for the original it was {before}"
    measurable = f"Yes: {pvalues}." if evidence.measurable else f"No: {pvalues}; train longer."
    correlation = f"a mean correlation of {format_number(evidence.rank_agreement, 2)}"
    rank = f"{evidence.method} ranks the words of both with {correlation}"
    model = f"For the adapted model only; {rank}, which is how near they come to the original."
    return (
        Answer(QUESTIONS[0], GOOD if evidence.stays else BAD, same),
        Answer(QUESTIONS[1], GOOD if evidence.measurable else BAD, measurable),
        Answer(QUESTIONS[2], CAUTION, model),
    )
