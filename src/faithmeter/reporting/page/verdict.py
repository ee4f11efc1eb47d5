"""Frames of a store → three sentences: is the model measurable, what is most faithful, what not to trust?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .answers import (
    BAD,
    CAUTION,
    GOOD,
    Answer,
    best,
    distrust,
    judged,
    listed,
    measurable,
    on_other_texts,
    out_of_distribution,
    ranking,
    untested,
)

if TYPE_CHECKING:
    from .answers import Frames, Published

QUESTIONS = ("Is the model measurable?", "Which method is most faithful?", "What must not be trusted?")
SOME = 3
"""So many models are named in one sentence."""


@dataclass(frozen=True)
class Sentence:
    question: str
    mood: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """What was judged, the three sentences, and the methods that share the lead (none if nothing leads)."""

    task: str
    model: str
    sentences: tuple[Sentence, ...]
    leaders: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        sentences = [vars(sentence) for sentence in self.sentences]
        return {**vars(self), "leaders": list(self.leaders), "sentences": sentences}


def verdicts(frames: Frames, published: Published | None = None) -> list[Verdict]:
    """One for each task and model that was measured or, before any measurement, trained.

    `published` has the paper's ACU, in percent, by task, model and method.
    """
    judgeable = frames["areas"] if len(frames["areas"]) else frames["train"]
    pairs = judgeable[["task", "model"]].drop_duplicates().itertuples(index=False)
    return [_verdict(frames, task, model, published or {}) for task, model in pairs]


def together(found: Sequence[Verdict]) -> Verdict:
    """Several verdicts in three sentences; a single one stays as it is."""
    if len(found) == 1:
        return found[0]
    count = len(found)
    bad = [_subject(one) for one in found if one.sentences[0].mood == BAD]
    doubtful = [_subject(one) for one in found if one.sentences[2].mood != GOOD]
    wins = Counter(method for one in found for method in one.leaders)
    named = [f"{method} ({won} of {count})" for method, won in wins.most_common(3)]
    measurable = f"{count - len(bad)} of {count} models are measurable"
    return Verdict(
        "",
        "",
        _sentences(
            (BAD if bad else GOOD, f"{measurable}; not so: {_some(bad)}." if bad else f"{measurable}."),
            (GOOD, f"In the lead most often, alone or tied: {listed(named)}.")
            if named
            else (CAUTION, "No method leads anywhere."),
            (CAUTION, f"There are reservations about {_some(doubtful)}: see below.")
            if doubtful
            else (GOOD, "Nothing measured here speaks against the numbers."),
        ),
    )


def _verdict(frames: Frames, task: str, model: str, published: Published) -> Verdict:
    own = {kind: frame[(frame["task"] == task) & (frame["model"] == model)] for kind, frame in frames.items()}
    names = Path(task).name, Path(model).name
    if not len(own["areas"]):
        return Verdict(*names, _sentences(*untested(own["train"])))
    rows = judged(own["areas"])
    learned = rows[rows["converged"].astype(bool) & (rows["whole"] > rows["majority"])]
    areas = ranking(learned)
    others = on_other_texts(learned, areas, own["shared"])
    first = measurable(own, rows, learned)
    values = {method: published.get((*names, method)) for method in areas}
    strange = out_of_distribution(learned, areas)
    second, leaders = best(areas, others, strange, values, trusted=first[0] != BAD)
    third = distrust(own["areas"], rows, learned, areas)
    return Verdict(*names, _sentences(first, second, third), leaders)


def _sentences(*answers: Answer) -> tuple[Sentence, ...]:
    return tuple(Sentence(question, *answer) for question, answer in zip(QUESTIONS, answers, strict=True))


def _some(subjects: Sequence[str]) -> str:
    more = len(subjects) - SOME
    return listed([*subjects[:SOME], f"{more} more"] if more > 0 else subjects)


def _subject(verdict: Verdict) -> str:
    return f"{verdict.task} ({verdict.model})"
