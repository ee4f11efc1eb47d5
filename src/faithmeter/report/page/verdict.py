"""Verdicts of a report, for each model of a store and for all models together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import verdict as trust
from ...config import BASELINE
from ...verdict import BAD, CAUTION, GOOD, NO_DOUBT, QUESTIONS, Answer
from ...verdict.formats import join_names
from ..seeds_evidence import check_pvalue, choose_tuning, gather_evidence, select_learned
from .answers import areas_on_shared_texts, compare_on_shared_texts, describe_performance, masking_cost

if TYPE_CHECKING:
    from ...stats.intervals import Interval
    from .answers import Frames, Published

MAX_NAMES = 3
"""Maximum number of models, or of leading methods in a table, that are named."""


@dataclass(frozen=True)
class Verdict:
    """Verdict on one model and task, or on all of a store.

    Attributes:
        task: Name of the task; empty for several.
        model: Name of the model; empty for several.
        sentences: Answers to the three questions of `QUESTIONS`.
        leaders: Methods that share the lead; empty if none leads.
        doubts: All reasons to doubt the measurement, as sentences.
        measurable: Whether the answer to the first question is yes.
        area: ACU of the first leader; None if no method leads.
        p: P-value of randomly masked texts, by the deciding test; NaN if nothing was checked.
    """

    task: str
    model: str
    sentences: tuple[Answer, ...]
    leaders: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    measurable: bool = False
    area: Interval | None = None
    p: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON-ready values."""
        return asdict(self) | {"area": self.area and self.area._asdict()}


def verdicts(frames: Frames, published: Published | None = None) -> list[Verdict]:
    """Return a verdict for each measured task and model, or for each trained one if none was measured.

    Args:
        frames: Frames of a store by kind, and the frame `shared` from `shared_texts.shared`.
        published: Published ACU in percent, by task, model and method.
    """
    frame = frames["areas"] if len(frames["areas"]) else frames["train"]
    pairs = frame[["task", "model"]].drop_duplicates().itertuples(index=False)
    return [_verdict(frames, task, model, published or {}) for task, model in pairs]


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """Return one verdict that summarizes several in three sentences; a single one is returned unchanged."""
    if len(verdicts) == 1:
        return verdicts[0]
    count = len(verdicts)
    bad = [_subject(verdict) for verdict in verdicts if verdict.sentences[0].mood == BAD]
    unknown = [_subject(v) for v in verdicts if not v.measurable and v.sentences[0].mood != BAD]
    doubtful = [_subject(verdict) for verdict in verdicts if verdict.sentences[2].mood != GOOD]
    noted = [_subject(verdict) for verdict in verdicts if verdict.doubts]
    wins = Counter(method for verdict in verdicts for method in verdict.leaders)
    leaders = [f"{method} ({won} of {count})" for method, won in wins.most_common(3)]
    measurable = f"{sum(verdict.measurable for verdict in verdicts)} of {count} models are measurable"
    others = {"not measurable": bad, "not known": unknown}
    named = [f"{answer}: {name_some(subjects)}" for answer, subjects in others.items() if subjects]
    sentences = (
        (BAD if bad else CAUTION if unknown else GOOD, f"{'; '.join([measurable, *named])}."),
        (GOOD, f"In the lead most often, alone or tied: {join_names(leaders)}.")
        if leaders
        else (CAUTION, "No method leads anywhere."),
        (CAUTION, f"There are reservations about {name_some(doubtful)}: see below.")
        if doubtful
        else (GOOD, f"{NO_DOUBT}{f'; read the notes on {name_some(noted)} below' if noted else ''}."),
    )
    answers = (Answer(question, *sentence) for question, sentence in zip(QUESTIONS, sentences, strict=True))
    return Verdict("", "", tuple(answers))


def _verdict(frames: Frames, task: str, model: str, published: Published) -> Verdict:
    own = {kind: frame[(frame["task"] == task) & (frame["model"] == model)] for kind, frame in frames.items()}
    names = Path(task).name, Path(model).name
    if not len(own["areas"]):
        return Verdict(*names, trust.describe_unmeasured(describe_performance(own["train"])))
    rows = choose_tuning(own["areas"])
    plain = own["areas"][own["areas"]["strategy"] == "none"]
    is_plain = rows["strategy"].iloc[0] == "none"
    evidence = gather_evidence(
        rows,
        cost=masking_cost(own["train"], rows),
        **({} if is_plain else {"p_plain": check_pvalue(plain)}),
    )
    verdict = trust.verdict(evidence)
    first, second, third = verdict.answers
    if verdict.leaders:
        best, learned = verdict.leaders[0], select_learned(rows)
        paper = published.get((*names, best))
        text = second.text if paper is None else f"{second.text} The paper reports {paper:.1f}%."
        others = areas_on_shared_texts(learned, evidence.rivals, own["shared"])
        comparison, ahead = compare_on_shared_texts(best, others)
        second = replace(second, text=text + comparison, mood=CAUTION if ahead else second.mood)
    doubts = tuple(doubt.text for doubt in verdict.doubts)
    area = evidence.methods[verdict.leaders[0]].area if verdict.leaders else None
    answers = (first, second, third)
    return Verdict(
        *names, answers, verdict.leaders, doubts, evidence.measurable, area=area, p=evidence.p(BASELINE)
    )


def name_some(subjects: Sequence[str]) -> str:
    """Join the first names as in a sentence, and tell how many more there are."""
    more = len(subjects) - MAX_NAMES
    return join_names([*subjects[:MAX_NAMES], f"{more} more"] if more > 0 else subjects)


def _subject(verdict: Verdict) -> str:
    return f"{verdict.task} ({verdict.model})"
