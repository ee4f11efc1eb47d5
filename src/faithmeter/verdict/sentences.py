"""Verdict: the conclusions that a measurement allows in view of its doubts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

from ..config import BASELINE
from .doubts import BAD, CAUTION, NOTE, UNFAITHFUL, Doubt, doubts
from .evidence import ROUNDING, ProbeEvidence, TaskEvidence, TextEvidence
from .faithful import GOOD, headline, judge_model, name_best
from .formats import format_percent

NO_DOUBT = "Nothing measured here speaks against the numbers"
QUESTIONS = ("Is the model measurable?", "Which method is most faithful?", "What must not be trusted?")
LIMITS = (
    "the order of methods that are close holds for this training and its seed only",
    "texts unlike these may give other results: measure each, and read its doubts",
    "a faithful explanation shows what the model used, not that the model is right or fair",
)
"""Limits of every measurement, whatever its numbers."""


@dataclass(frozen=True)
class Answer:
    """Answer to a question, with its mood: good, caution or bad. For one text, `question` is a method.

    `points` are the sentences of an answer that lists several reasons; `text` joins them.
    """

    question: str
    mood: str
    text: str
    points: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """Conclusions that a measurement allows.

    Attributes:
        trusted: Methods whose areas may be trusted.
        faithful: Trusted methods that beat random orders.
        leaders: Leading methods, which cannot be told apart; empty if none leads.
        answers: For a task, the answers to the three questions; for one text, an answer for each method;
            for a masked text, whether it is in distribution.
        doubts: All reasons to doubt the measurement.
        headline: For a task, what to use, what it achieves and whether to rely on it; for one text, whether
            its explanation is faithful. A first sentence has at most twelve words.
    """

    trusted: tuple[str, ...]
    faithful: tuple[str, ...]
    leaders: tuple[str, ...]
    answers: tuple[Answer, ...]
    doubts: tuple[Doubt, ...]
    headline: str = ""

    def __str__(self) -> str:
        lines = [self.headline] if self.headline else []
        for answer in self.answers:
            lines.append(f"{answer.question} {answer.text}")
        for doubt in self.doubts:
            lines.append(f"{doubt.text}.")
        return "\n".join(lines)

    @property
    def summary(self) -> Answer:
        """Headline of a measured text, with its mood."""
        doubted = any(doubt.severity != NOTE for doubt in self.doubts)
        return Answer("", CAUTION if doubted else GOOD, self.headline)

    def reason(self, method: str) -> str:
        """Return the first reason not to trust a method's areas; empty if there is none."""
        return next((doubt.text for doubt in self.doubts if _forbids(doubt, method)), "")

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values."""
        return asdict(self)


def verdict(evidence: TaskEvidence | TextEvidence | ProbeEvidence) -> Verdict:
    """Return the conclusions that a measurement allows.

    Args:
        evidence: The facts of a measurement on a task or on one text, or of one masked text.

    Returns:
        The trusted and the leading methods, the answers to the questions, and all doubts.
    """
    reasons = doubts(evidence)
    if isinstance(evidence, ProbeEvidence):
        return Verdict((), (), (), (_judge_probe(reasons),), tuple(reasons))
    trusted = []
    for name in evidence.methods:
        if not any(_forbids(doubt, name) for doubt in reasons):
            trusted.append(name)
    weak = {BASELINE}
    for doubt in reasons:
        if doubt.kind == UNFAITHFUL:
            weak.update(doubt.methods)
    faithful = [name for name in trusted if name not in weak]
    leaders: tuple[str, ...] = ()
    if isinstance(evidence, TextEvidence):
        answers = tuple(_judge_text(evidence, reasons))
        top = _summarize_text(answers, reasons)
    else:
        second, leaders = name_best(evidence)
        second = _compare_on_shared_texts(evidence, second, leaders)
        answers = (
            Answer(QUESTIONS[0], *judge_model(evidence)),
            Answer(QUESTIONS[1], *second),
            Answer(QUESTIONS[2], *_list_doubts(evidence, reasons), tuple(map(_as_sentence, reasons))),
        )
        top = headline(evidence)
    return Verdict(tuple(trusted), tuple(faithful), leaders, answers, tuple(reasons), top)


class Measured(ABC):
    """Base class of measurements, which derives doubts and verdict from the evidence."""

    @property
    @abstractmethod
    def evidence(self) -> TaskEvidence | TextEvidence | ProbeEvidence:
        """Facts from which doubts and verdict are derived."""

    @property
    def doubts(self) -> list[Doubt]:
        """Reasons to doubt the measurement, the most severe first."""
        return doubts(self.evidence)

    @property
    def verdict(self) -> Verdict:
        """Conclusions that the measurement allows in view of its doubts."""
        return verdict(self.evidence)


def describe_unmeasured(performance: str) -> tuple[Answer, ...]:
    """Return the answers about a model that was trained but not measured."""
    texts = (
        f"Not known yet: it was trained but not measured; whole texts: {performance}.",
        "Not known yet: no explanation has been measured.",
        "Do not trust any explanation of it before `faithmeter measure` has been run.",
    )
    return tuple(Answer(question, CAUTION, text) for question, text in zip(QUESTIONS, texts, strict=True))


def _forbids(doubt: Doubt, method: str) -> bool:
    return doubt.severity == BAD and doubt.concerns(method)


def _compare_on_shared_texts(
    evidence: TaskEvidence, answer: tuple[str, str], leaders: tuple[str, ...]
) -> tuple[str, str]:
    """Return the answer with the leader compared to methods that were measured on other texts.

    A method that is ahead of it on the texts that they share makes the answer less sure.
    """
    mood, text = answer
    for method, (texts, areas) in evidence.shared.items() if leaders else ():
        if not {method, leaders[0]} <= areas.keys():  # they share no text
            text += f" {method} was not measured on the same texts."
            continue
        text += f" On the {texts} texts that both were measured on, {method} has"
        text += f" {format_percent(areas[method])}% and {leaders[0]} {format_percent(areas[leaders[0]])}%."
        # the leader leads among its rivals only
        mood = CAUTION if areas[method] > areas[leaders[0]] else mood
    return mood, text


def _list_doubts(evidence: TaskEvidence, reasons: list[Doubt]) -> tuple[str, str]:
    """Return the answer to the question of what not to trust: the doubts or, without any, the limits."""
    if reasons:
        mood = reasons[0].severity
        first = _as_sentence(reasons[0]).removesuffix(".")
        text = "; ".join([first, *map(attrgetter("text"), reasons[1:])])
        return mood if mood in (BAD, CAUTION) else GOOD, f"{text}."
    # "nothing speaks against it" is no proof: without doubts, the limits are named
    texts = max(method.texts for method in evidence.methods.values())
    limits = f"these {texts} texts and {evidence.seeds} seed{'s' * (evidence.seeds > 1)}"
    return GOOD, f"{NO_DOUBT}; they hold for {limits}, not beyond."


def _as_sentence(doubt: Doubt) -> str:
    """Return a doubt as a sentence; one that begins with the name of a method keeps its first letter."""
    text = doubt.text
    return f"{text if text.startswith(doubt.methods) else text[0].upper() + text[1:]}."


def _judge_probe(reasons: list[Doubt]) -> Answer:
    """Return the answer to whether the model knows texts like a masked one."""
    texts = {doubt.kind: doubt.text for doubt in reasons}  # each rule of a probe gives one doubt at most
    question = "Does the model know such texts?"
    if "outside" in texts:
        return Answer(question, BAD, f"No: {texts['outside']}.")
    if "unchecked" in texts:
        return Answer(question, CAUTION, f"Not known: {texts['unchecked']}.")
    return Answer(question, GOOD, "Yes, as far as the test can tell.")


def _judge_text(evidence: TextEvidence, reasons: list[Doubt]) -> Iterator[Answer]:
    """Yield an answer for each method to whether it is faithful for this text."""
    for name, method in evidence.methods.items():
        # the gravest first: what is out of distribution needs no word on chance
        kinds = {doubt.kind for doubt in reasons if doubt.concerns(name)}
        beaten = f"it beats {format_percent(1 - method.chance, 0)}% of random orders"
        if "unread" in kinds:
            yield Answer(name, BAD, "the model does not know these words: its curve proves nothing")
        elif "outside" in kinds:
            yield Answer(name, BAD, "out of distribution: its curve proves nothing")
        elif UNFAITHFUL in kinds:
            yield Answer(name, BAD, "could be chance" if method.acu > ROUNDING else "not faithful")
        elif "unchecked" in kinds:
            yield Answer(name, CAUTION, f"beats chance, but was not checked: {beaten}")
        else:
            yield Answer(name, GOOD, f"faithful for this text: {beaten}")


def _summarize_text(answers: Sequence[Answer], reasons: Sequence[Doubt]) -> str:
    """Return the first sentence about a single text: whether its explanations are faithful."""
    moods = {answer.mood for answer in answers}
    subject = "the explanation is" if len(answers) == 1 else "each explanation is"
    if moods == {GOOD}:
        doubted = any(doubt.severity != NOTE for doubt in reasons)
        return f"Yes: {subject} faithful for this text{', with doubts' if doubted else ''}."
    if GOOD in moods:
        return "Partly: only some of these explanations are faithful for this text."
    if CAUTION in moods:
        return "Not known: the model was not checked on masked texts."
    if len(answers) > 1:
        return "No: no explanation here can be trusted."
    return f"No: {answers[0].text.partition(':')[0]}."
