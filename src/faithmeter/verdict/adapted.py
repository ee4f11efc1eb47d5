"""Verdict on an adapted model, and that of an audit, which adapts a model where its check asks for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..config import ADAPTATION, SIGNIFICANCE_LEVEL
from ..stats.behavior import Behavior
from ..stats.pvalues import DatasetPValue
from .doubts import BAD, CAUTION
from .evidence import MAX_OUTSIDE_SHARE, Evidence, rejects
from .faithful import GOOD, judge_masks
from .formats import format_number, format_percent, join_names
from .sentences import Answer, Verdict

QUESTIONS = ("Is it still the same classifier?", "Is it measurable?", "For which model do explanations hold?")


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptEvidence(Evidence):
    """Facts of an adaptation.

    Attributes:
        agreement: Share of held-out whole texts on which both models predict the same class.
        required: Required agreement, as a fraction.
        texts: Number of these texts.
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
    method: str
    rank_agreement: tuple[float, float, float]
    constant: float = math.nan
    kappa: float = math.nan
    behavior: Behavior | None = None

    @property
    def stays(self) -> bool:
        """Whether the adapted model agrees with the original as often as required."""
        return self.agreement >= self.required


def largest_outside_share(steps: Mapping[int, DatasetPValue]) -> float:
    """Return the largest share of partly masked texts that are individually out of distribution."""
    return max(step.below[SIGNIFICANCE_LEVEL] for percent, step in steps.items() if 0 < percent < 100)


def is_measurable(steps: Mapping[int, DatasetPValue]) -> bool:
    """Return whether partly masked texts are in distribution at every percentage."""
    smallest = min(step.p for percent, step in steps.items() if 0 < percent < 100)
    return not rejects(smallest) and largest_outside_share(steps) <= MAX_OUTSIDE_SHARE


def judge_adaptation(evidence: AdaptEvidence) -> tuple[Answer, ...]:
    """Return the answers to the three questions about an adaptation."""
    share = f"{format_percent(evidence.agreement)}% of {evidence.texts} held-out texts"
    same = f"{'Yes' if evidence.stays else 'No'}: it predicts what the original does on {share}"
    required = f", and {format_percent(evidence.required)}% were required; try a lower rate or more texts"
    same = f"{same}{'' if evidence.stays else required}.{_describe_reference(evidence)}"
    mean, lower, upper = evidence.rank_agreement  # of few texts: without bounds, both equal the mean
    correlation = f"a mean correlation of {format_number(mean, 2)}"
    if lower < upper:
        correlation += f" [{format_number(lower, 2)}, {format_number(upper, 2)}]"
    # never "Yes": explanations of one model say nothing of another, however often both agree
    model = f"For the adapted model only; {evidence.method} ranks words in both models with {correlation}."
    return (
        Answer(QUESTIONS[0], GOOD if evidence.stays else BAD, same),
        Answer(QUESTIONS[1], *judge_masks(evidence.behavior)),
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


AUDIT_QUESTIONS = (
    "May you trust explanations of this model?",
    "Which method to use?",
    "What did it cost?",
)


def judge_audit(
    checked: Verdict, measured: Verdict, adaptation: AdaptEvidence | None, left_out: Sequence[str] = ()
) -> tuple[Answer, ...]:
    """Return the answers to the three questions of an audit.

    Args:
        checked: Verdict on the model as it is, of random masks only.
        measured: Verdict on the model whose explanations were measured.
        adaptation: Evidence of the adaptation; None if the model was measured as it is.
        left_out: The adaptation and the methods that were left out because the budget was spent.
    """
    model, method, _ = measured.answers
    mood, trust = model.mood, begin(model.text, 1)
    if adaptation is not None and mood == GOOD:
        trust = f"Yes, of the adapted model: {trust.partition(': ')[2]}"
        if not adaptation.stays:
            mood, trust = CAUTION, "Only of the adapted model, which decides otherwise too often."
    which = begin(measured.headline or method.text, 2)
    if left_out:
        which += f" The budget was spent before {join_names(left_out)}; the same command continues."
    return (
        Answer(AUDIT_QUESTIONS[0], mood, trust),
        Answer(AUDIT_QUESTIONS[1], method.mood, which),
        Answer(AUDIT_QUESTIONS[2], *_describe_price(adaptation, unfinished=ADAPTATION in left_out)),
    )


def explain_audit(checked: Verdict, measured: Verdict, adaptation: AdaptEvidence | None) -> dict[str, str]:
    """Return what the answers of an audit rest on, by subject."""
    model, method, _ = measured.answers
    reasons = {"The check.": model.text.removeprefix(begin(model.text, 1)).strip()}
    if adaptation is not None:
        reasons["As it is, the model was not accepted."] = _reason(checked.answers[0].text)
    reasons["The methods."] = method.text
    return {subject: reason for subject, reason in reasons.items() if reason}


def begin(text: str, sentences: int) -> str:
    """Return the first sentences of a text."""
    parts = text.split(". ")
    return ". ".join(parts[:sentences]).removesuffix(".") + "."


def _describe_price(adaptation: AdaptEvidence | None, *, unfinished: bool) -> tuple[str, str]:
    """Return the mood and text of what an adaptation changed: predictions and explanations."""
    if unfinished:
        return CAUTION, "Not known: the budget was spent before the adaptation was finished."
    if adaptation is None:
        return GOOD, "Nothing: the model is used as it is, and no prediction changes."
    share = f"{format_percent(adaptation.agreement)}% of {adaptation.texts} held-out texts"
    wanted = "" if adaptation.stays else f" ({format_percent(adaptation.required)}% were wanted)"
    same = f"The adapted model decides like the original on {share}{wanted}."
    mean, lower, upper = adaptation.rank_agreement
    likely = f" [{format_number(lower, 2)}, {format_number(upper, 2)}]" if lower < upper else ""
    ranks = f"{adaptation.method} ranks words in both with a correlation of {format_number(mean, 2)}{likely}."
    return GOOD if adaptation.stays else BAD, f"{same} {ranks}"


def _reason(answer: str) -> str:
    """Return an answer without its yes or no, as a sentence."""
    reason = answer.partition(": ")[2] or answer
    return reason[0].upper() + reason[1:]
