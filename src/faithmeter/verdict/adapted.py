"""Verdict on an adapted model: its agreement with the original, its check, and its explanations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ..config import SIGNIFICANCE_LEVEL
from ..stats.behavior import Behavior
from ..stats.pvalues import DatasetPValue
from .doubts import TEST_NAMES, explain_unchecked, explain_undecided
from .evidence import MAX_OUTSIDE_SHARE, Evidence, rejects
from .faithful import judge_masks
from .formats import format_number, format_percent, format_pvalue
from .sentences import GOOD, Answer
from .severity import BAD, CAUTION

QUESTIONS = ("Is it still the same classifier?", "Is it measurable?", "For which model do explanations hold?")


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptEvidence(Evidence):
    """Facts of an adaptation.

    Attributes:
        agreement: Share of held-out whole texts on which both models predict the same class.
        required: Required agreement, as a fraction.
        texts: Number of these texts.
        original: P-values of the original by percent masked; its tests are fitted on whole texts.
        adapted: P-values of the adapted model; its tests, and `floors`, are fitted on masked texts.
        outside_share: Largest share of partly masked texts that are individually out of distribution for
            the adapted model.
        outside_share_original: The share for the original; NaN if it was not recorded.
        method: Method that explained both models.
        rank_agreement: Mean rank correlation of its scores for the two models, with its 95 % bounds.
        constant: Agreement of always giving the original's most frequent class.
        kappa: Cohen's kappa of both models' predictions.
        behavior: Behavioral check of the adapted model, with the original's predictions as targets; None in
            older records.
    """

    agreement: float
    required: float
    texts: int
    original: Mapping[int, float]
    adapted: Mapping[int, float]
    outside_share: float
    outside_share_original: float = math.nan
    method: str
    rank_agreement: tuple[float, float, float]
    constant: float = math.nan
    kappa: float = math.nan
    behavior: Behavior | None = None

    @property
    def stays(self) -> bool:
        """Whether the adapted model agrees with the original as often as required."""
        return self.agreement >= self.required

    @property
    def measurable(self) -> bool:
        """Whether there is no sign that partly masked texts are out of distribution for the adapted model."""
        return not self.rejected and self.outside_share <= MAX_OUTSIDE_SHARE

    @property
    def rejected(self) -> bool:
        """Whether a p-value of partly masked texts is significant."""
        return rejects(min(masked_steps(self.adapted).values()))

    @property
    def undecided(self) -> bool:
        """Whether most texts are rejected individually, and nothing else speaks against the model."""
        # with few validation texts, single rejections also happen to good models
        return not (self.measurable or self.rejected or self.validated)


def masked_steps(p: Mapping[int, float]) -> dict[int, float]:
    """Return the p-values of partly masked texts, without those at 0 and 100 %."""
    # at 0 % both models are on ground that they know, and at 100 % only the length is left
    return {percent: value for percent, value in p.items() if 0 < percent < 100}


def largest_outside_share(steps: Mapping[int, DatasetPValue]) -> float:
    """Return the largest share of partly masked texts that are individually out of distribution."""
    return max(step.below[SIGNIFICANCE_LEVEL] for percent, step in steps.items() if 0 < percent < 100)


def is_measurable(steps: Mapping[int, DatasetPValue]) -> bool:
    """Return whether partly masked texts are in distribution at every percentage."""
    smallest = min(step.p for percent, step in steps.items() if 0 < percent < 100)
    return not rejects(smallest) and largest_outside_share(steps) <= MAX_OUTSIDE_SHARE


def describe_check(p: Mapping[int, float], outside_share: float) -> str:
    """Describe the check of a model by its smallest p-value and the share of texts that it rejects."""
    smallest = f"the smallest is {format_pvalue(min(masked_steps(p).values()))}"
    if math.isnan(outside_share):
        return smallest
    return f"{smallest}, and up to {format_percent(outside_share, 0)}% of the texts are rejected one by one"


def compare_checks(evidence: AdaptEvidence) -> str:
    """Describe the checks of both models by the deciding test."""
    after = describe_check(evidence.adapted, evidence.outside_share)
    before = describe_check(evidence.original, evidence.outside_share_original)
    test = f"of the {TEST_NAMES[str(evidence.test)]} p-values at 10 to 90 % masked"
    return f"{test}, {after}; for the original, {before}"


def judge_adaptation(evidence: AdaptEvidence) -> tuple[Answer, ...]:
    """Return the answers to the three questions about an adaptation."""
    share = f"{format_percent(evidence.agreement)}% of {evidence.texts} held-out texts"
    same = f"{'Yes' if evidence.stays else 'No'}: it predicts what the original does on {share}"
    required = f", and {format_percent(evidence.required)}% were required; try a lower rate or more texts"
    same = f"{same}{'' if evidence.stays else required}.{_describe_reference(evidence)}"
    # the behavioral check decides; the p-values below answer for records that were made without it
    if evidence.behavior is not None:
        measurable = judge_masks(evidence.behavior)
    elif not evidence.checked:
        measurable = CAUTION, f"Not known: {explain_unchecked(evidence)}."
    elif evidence.undecided:
        measurable = CAUTION, f"Not known: {explain_undecided(evidence.outside_share)}."
    elif evidence.measurable:
        measurable = GOOD, f"Yes: {compare_checks(evidence)}."
    else:
        measurable = BAD, f"No: {compare_checks(evidence)}; train longer."
    mean, lower, upper = evidence.rank_agreement  # of few texts: without bounds, both equal the mean
    correlation = f"a mean correlation of {format_number(mean, 2)}"
    if lower < upper:
        correlation += f" [{format_number(lower, 2)}, {format_number(upper, 2)}]"
    # never "Yes": explanations of one model say nothing of another, however often both agree
    model = f"For the adapted model only; {evidence.method} ranks words in both models with {correlation}."
    return (
        Answer(QUESTIONS[0], GOOD if evidence.stays else BAD, same),
        Answer(QUESTIONS[1], *measurable),
        Answer(QUESTIONS[2], CAUTION, model),
    )


def _describe_reference(evidence: AdaptEvidence) -> str:
    """Say what the agreement is to be compared with."""
    if math.isnan(evidence.constant):  # not in older records
        return ""
    constant = f"A constant would on {format_percent(evidence.constant)}%"
    if math.isnan(evidence.kappa):
        return f" {constant}."
    return f" {constant}; kappa, which allows for chance, is {format_number(evidence.kappa, 2)}."
