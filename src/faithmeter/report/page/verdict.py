"""Verdicts of a report, for each model of a store and for all models together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ... import verdict as trust
from ...config import BASELINE
from ...store.results import group_tunings
from ...verdict import BAD, CAUTION, GOOD, NO_DOUBT, QUESTIONS, Answer
from ...verdict.formats import format_metric, format_percent, join_names
from ..labels import short_names

if TYPE_CHECKING:
    from pandas import DataFrame

    from ...stats.intervals import Interval
    from ...store.results import Pooled
    from ...verdict import TaskEvidence

    Published: TypeAlias = Mapping[tuple[str, str, str], float]

TRAINING_PHRASES = {
    "half": "with half of every mini-batch masked",
    "all": "with every text masked",
    "none": "without masks",
}
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

    @property
    def subject(self) -> str:
        return f"{self.task} ({self.model})"

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
        groups = group_tunings(measured)
        return [_verdict(tunings, train, published or {}) for tunings in groups.values()]
    unmeasured = []
    for (task, model), own in train.groupby(["task", "model"], sort=False):
        answers = trust.describe_unmeasured(describe_performance(own))
        unmeasured.append(Verdict(Path(str(task)).name, Path(str(model)).name, answers))
    return unmeasured


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """Return one verdict that summarizes several in three sentences; a single one is returned unchanged."""
    if len(verdicts) == 1:
        return verdicts[0]
    # "not known" is no "no": models that were not checked are counted apart from those that failed
    count, bad, unknown = len(verdicts), [], []
    for verdict in verdicts:
        if verdict.sentences[0].mood == BAD:
            bad.append(verdict.subject)
        elif not verdict.measurable:
            unknown.append(verdict.subject)
    doubtful = [verdict.subject for verdict in verdicts if verdict.sentences[2].mood != GOOD]
    noted = [verdict.subject for verdict in verdicts if verdict.doubts]
    first = [f"{sum(verdict.measurable for verdict in verdicts)} of {count} models are measurable"]
    for answer, subjects in {"not measurable": bad, "not known": unknown}.items():
        if subjects:
            first.append(f"{answer}: {name_some(subjects)}")
    wins = Counter(chain.from_iterable(verdict.leaders for verdict in verdicts))
    leaders = [f"{method} ({won} of {count})" for method, won in wins.most_common(3)]
    second, third = (CAUTION, "No method leads anywhere."), (GOOD, f"{NO_DOUBT}.")
    if leaders:
        second = GOOD, f"In the lead most often, alone or tied: {join_names(leaders)}."
    if doubtful:
        third = CAUTION, f"There are reservations about {name_some(doubtful)}: see below."
    elif noted:
        third = GOOD, f"{NO_DOUBT}; read the notes on {name_some(noted)} below."
    sentences = ((BAD if bad else CAUTION if unknown else GOOD, f"{'; '.join(first)}."), second, third)
    answers = (Answer(question, *sentence) for question, sentence in zip(QUESTIONS, sentences, strict=True))
    return Verdict("", "", tuple(answers))


def _verdict(tunings: Sequence[Pooled], train: DataFrame, published: Published) -> Verdict:
    best = min(tunings, key=attrgetter("rank"))
    own = train[(train["task"] == best.task) & (train["model"] == best.model)]
    facts = {"cost": masking_cost(own, best.training)}
    plain = next((pooled for pooled in tunings if pooled.training["strategy"] == "none"), None)
    if plain is not None and best.training["strategy"] != "none":
        check = plain.result.evidence
        if check.test == "crossfit":  # the only one that is valid for a model trained without masks
            facts["p_plain"] = check.p(BASELINE)
    evidence = best.result.in_context(**facts).evidence
    return judge(Path(best.task).name, Path(best.model).name, evidence, published)


def judge(task: str, model: str, evidence: TaskEvidence, published: Published) -> Verdict:
    """Return the verdict on a measurement, with the published area beside that of the leader."""
    verdict = trust.verdict(evidence)
    first, second, third = verdict.answers
    paper = published.get((task, model, verdict.leaders[0])) if verdict.leaders else None
    if paper is not None:
        second = replace(second, text=f"{second.text} The paper reports {paper:.1f}%.")
    doubts = tuple(doubt.text for doubt in verdict.doubts)
    area = evidence.methods[verdict.leaders[0]].area if verdict.leaders else None
    judged = Verdict(task, model, (first, second, third), verdict.leaders, doubts)
    return replace(judged, measurable=evidence.measurable, area=area, p=evidence.p(BASELINE))


def name_some(subjects: Sequence[str]) -> str:
    """Join the first names as in a sentence, and tell how many more there are."""
    more = len(subjects) - MAX_NAMES
    return join_names([*subjects[:MAX_NAMES], f"{more} more"] if more > 0 else subjects)


def masking_cost(train: DataFrame, training: Mapping[str, Any]) -> float:
    """Return the performance on whole texts lost by masked fine-tuning, as a fraction.

    The result is NaN if the fine-tuning is plain or unknown, or if there is no plain one to compare with.
    """
    strategy, validation = training["strategy"], training["validation"]
    if strategy in ("none", "unknown"):
        return math.nan
    test = train[(train["split"] == "test") & (train["masking"] == "0") & train["converged"].astype(bool)]
    plain = test[test["strategy"] == "none"]["value"].mean()  # NaN without such a run
    masked = test[(test["strategy"] == strategy) & (test["validation"] == validation)]
    return float(plain - masked["value"].mean())


def describe_performance(train: DataFrame) -> str:
    """Return a phrase on the test performance on whole texts by strategy, and on guessing."""
    test = train[(train["split"] == "test") & (train["masking"] == "0")]
    means = test.groupby("strategy", sort=False)["value"].mean()
    values = [f"{format_percent(value)}% with strategy {name}" for name, value in means.items()]
    return ", ".join([*values, f"{format_percent(test['majority'].mean())}% by guessing"])


def performance_sentences(train: DataFrame) -> Iterator[str]:
    """Yield a sentence on test performance for each task and model with exactly one fine-tuning run.

    Args:
        train: The frame `train` of a store.
    """
    test = train[(train["split"] == "test") & train["best"].astype(bool)]
    tasks, models = (short_names(test[column]) for column in ("task", "model"))
    for (task, model), rows in test.groupby(["task", "model"]):
        if rows["digest"].nunique() > 1:  # a chart shows them
            continue
        values = rows.set_index("masking")["value"].map(format_percent)
        metric, training = format_metric(rows["metric"].iloc[0]), TRAINING_PHRASES[rows["strategy"].iloc[0]]
        masked, which = "100", "ones with the explained column masked"
        if "all" in values:  # with a context column, only this leaves nothing to read
            masked, which = "all", "wholly masked ones"
        yield (
            f"{models[str(model)]}, fine-tuned on {tasks[str(task)]} {training}: {values['0']}% {metric} on "
            f"whole test texts, {values[masked]}% on {which}; always the most frequent class of the training "
            f"texts: {format_percent(rows['majority'].iloc[0])}%."
        )
