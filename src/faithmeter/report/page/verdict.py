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
from ...store.results import group_tunings
from ...verdict import BAD, CAUTION, GOOD, NO_DOUBT, QUESTIONS, Answer
from ...verdict.formats import join_names
from .trained import describe_performance, masking_cost

if TYPE_CHECKING:
    from pandas import DataFrame

    from ...measuring.result import Result
    from ...stats.intervals import Interval
    from ...store.results import Pooled
    from ...verdict import TaskEvidence
    from .trained import Published

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


def verdicts(
    measured: Sequence[Pooled], train: DataFrame, published: Published | None = None
) -> list[Verdict]:
    """Return a verdict for each measured task and model, or for each trained one if none was measured.

    Args:
        measured: Results of a store, by fine-tuning; the preferred one of each task and model is judged.
        train: Frame of the trainings.
        published: Published ACU in percent, by task, model and method.
    """
    if measured:
        return [
            _verdict(tunings, train[(train["task"] == task) & (train["model"] == model)], published or {})
            for (task, model), tunings in group_tunings(measured).items()
        ]
    unmeasured = []
    for (task, model), own in train.groupby(["task", "model"], sort=False):
        answers = trust.describe_unmeasured(describe_performance(own))
        unmeasured.append(Verdict(Path(str(task)).name, Path(str(model)).name, answers))
    return unmeasured


def choose_results(measured: Sequence[Pooled]) -> list[Result]:
    """Return the result of the preferred fine-tuning of each task and model, in the order of `verdicts`."""
    groups = group_tunings(measured).values()
    return [min(tunings, key=lambda pooled: pooled.rank).result for tunings in groups]


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


def _verdict(tunings: Sequence[Pooled], train: DataFrame, published: Published) -> Verdict:
    best = min(tunings, key=lambda pooled: pooled.rank)
    facts = {"cost": masking_cost(train, best.training)}
    plain = [pooled for pooled in tunings if pooled.training["strategy"] == "none"]
    if plain and best not in plain:
        facts["p_plain"] = _check_pvalue(plain[0].result)
    evidence = best.result.in_context(**facts).evidence
    return judge(Path(best.task).name, Path(best.model).name, evidence, published)


def _check_pvalue(result: Result) -> float:
    """Return the p-value of texts masked at random by the cross-fitted test; NaN if it cannot reject."""
    evidence = result.evidence
    return evidence.p(BASELINE) if evidence.test == "crossfit" else math.nan


def judge(task: str, model: str, evidence: TaskEvidence, published: Published) -> Verdict:
    """Return the verdict on a measurement, with the published area beside that of the leader."""
    verdict = trust.verdict(evidence)
    first, second, third = verdict.answers
    paper = published.get((task, model, verdict.leaders[0])) if verdict.leaders else None
    if paper is not None:
        second = replace(second, text=f"{second.text} The paper reports {paper:.1f}%.")
    doubts = tuple(doubt.text for doubt in verdict.doubts)
    area = evidence.methods[verdict.leaders[0]].area if verdict.leaders else None
    return Verdict(
        *(task, model, (first, second, third), verdict.leaders, doubts, evidence.measurable),
        area=area,
        p=evidence.p(BASELINE),
    )


def name_some(subjects: Sequence[str]) -> str:
    """Join the first names as in a sentence, and tell how many more there are."""
    more = len(subjects) - MAX_NAMES
    return join_names([*subjects[:MAX_NAMES], f"{more} more"] if more > 0 else subjects)


def _subject(verdict: Verdict) -> str:
    return f"{verdict.task} ({verdict.model})"
