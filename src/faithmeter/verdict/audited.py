"""Verdict of an audit in three sentences: may explanations be trusted, which to use, and at what price."""

from __future__ import annotations

from collections.abc import Sequence

from .adapted import AdaptEvidence
from .formats import format_number, format_percent, join_names
from .sentences import GOOD, Answer, Verdict
from .severity import BAD, CAUTION

QUESTIONS = (
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
        left_out: Methods that were not begun because the budget was spent.
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
        Answer(QUESTIONS[0], mood, trust),
        Answer(QUESTIONS[1], method.mood, which),
        Answer(QUESTIONS[2], *_describe_price(adaptation)),
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


def _describe_price(adaptation: AdaptEvidence | None) -> tuple[str, str]:
    """Return the mood and text of what an adaptation changed: predictions and explanations."""
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
