"""Verdicts of a report: on each model and task of a store, and on all of them together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...config import BASELINE
from ...store.results import group_tunings
from ...verdict import sentences as trust
from ...verdict.doubts import BAD, CAUTION
from ...verdict.evidence import TaskEvidence
from ...verdict.faithful import GOOD
from ...verdict.formats import UNDEFINED, format_metric, format_percent, format_pvalue, join_names
from ...verdict.sentences import NO_DOUBT, QUESTIONS, Answer, Verdict
from ..blocks import Block, Cell, Column, Sentence, Table, number_columns, plain_row
from ..values import short_names
from ..view import lead

if TYPE_CHECKING:
    from pandas import DataFrame

    from ...measuring.result import Result
    from ...store.results import Pooled

TRAINING_PHRASES = {
    "half": "with half of every mini-batch masked",
    "all": "with every text masked",
    "none": "without masks",
}
MAX_NAMES = 3
"""Maximum number of models, or of leading methods in a table, that are named."""
MARKS = {GOOD: "✓", CAUTION: "!", BAD: "✕"}


@dataclass(frozen=True)
class Judged:
    """Verdict on a task and model of a store; a model that was only trained has no evidence."""

    task: str
    model: str
    verdict: Verdict
    evidence: TaskEvidence | None = None

    @property
    def subject(self) -> str:
        return f"{self.task} ({self.model})"

    @property
    def measurable(self) -> bool:
        """Whether the answer to the first question is yes."""
        return self.evidence is not None and self.evidence.measurable

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON-ready values."""
        names = {"task": self.task, "model": self.model, "measurable": self.measurable}
        return names | self.verdict.to_dict()


def judge(measured: Sequence[Pooled], train: DataFrame) -> list[Judged]:
    """Return the verdict on each measured task and model, or on each trained one if none was measured.

    Args:
        measured: Results of a store, by fine-tuning; the preferred one of each task and model is judged.
        train: Frame of the trainings.
    """
    judged = []
    for tunings in group_tunings(measured).values():
        best = min(tunings, key=attrgetter("rank"))
        own = train[(train["task"] == best.task) & (train["model"] == best.model)]
        facts = {"cost": masking_cost(own, best.training)}
        plain = next((pooled for pooled in tunings if pooled.training["strategy"] == "none"), None)
        if plain is not None and best.training["strategy"] != "none":
            check = plain.result.evidence
            if check.test == "crossfit":  # the only one that is valid for a model trained without masks
                facts["p_plain"] = check.p(BASELINE)
        evidence = best.result.in_context(**facts).evidence
        judged.append(Judged(Path(best.task).name, Path(best.model).name, trust.verdict(evidence), evidence))
    if judged:
        return judged
    for (task, model), own in train.groupby(["task", "model"], sort=False):
        verdict = Verdict((), (), (), trust.describe_unmeasured(describe_performance(own)), ())
        judged.append(Judged(Path(str(task)).name, Path(str(model)).name, verdict))
    return judged


def together(judged: Sequence[Judged]) -> tuple[Answer, ...]:
    """Return the answers to the three questions for all models; those on a single one are unchanged."""
    if len(judged) == 1:
        return judged[0].verdict.answers
    bad, unknown, doubtful, noted = [], [], [], []
    wins: Counter[str] = Counter()
    for one in judged:
        first, _, last = one.verdict.answers
        # "not known" is no "no": models that were not checked are counted apart from those that failed
        if first.mood == BAD:
            bad.append(one.subject)
        elif not one.measurable:
            unknown.append(one.subject)
        if last.mood != GOOD:
            doubtful.append(one.subject)
        if one.verdict.doubts:
            noted.append(one.subject)
        wins.update(one.verdict.leaders)
    count = len(judged)
    counted = [f"{count - len(bad) - len(unknown)} of {count} models are measurable"]
    for answer, subjects in {"not measurable": bad, "not known": unknown}.items():
        if subjects:
            counted.append(f"{answer}: {name_some(subjects)}")
    leaders = [f"{method} ({won} of {count})" for method, won in wins.most_common(3)]
    second, third = (CAUTION, "No method leads anywhere."), (GOOD, f"{NO_DOUBT}.")
    if leaders:
        second = GOOD, f"In the lead most often, alone or tied: {join_names(leaders)}."
    if doubtful:
        third = CAUTION, f"There are reservations about {name_some(doubtful)}: see below."
    elif noted:
        third = GOOD, f"{NO_DOUBT}; read the notes on {name_some(noted)} below."
    moods = BAD if bad else CAUTION if unknown else GOOD, second[0], third[0]
    return tuple(map(Answer, QUESTIONS, moods, (f"{'; '.join(counted)}.", second[1], third[1])))


def view_top(results: Sequence[Result], judged: Sequence[Judged]) -> list[Block]:
    """Return the blocks that a reader with ten seconds sees.

    Args:
        results: Results that the verdicts are on; empty if nothing was measured.
        judged: Verdict on each task and model.
    """
    if len(results) == 1:
        return lead(results[0], costs=False)  # they have a section of their own
    answer = together(judged)[1 if results else 0]
    top = Sentence(answer.text, answer.mood, "top")
    return [top, models_table(judged)] if results else [top]


def models_table(judged: Sequence[Judged], links: Sequence[Cell] = ()) -> Table:
    """Return a row for each task and model: whether it can be measured, and which method leads.

    `links` are cells with the report on each, if there are several.
    """
    columns = (
        Column(("Task",), "label"),
        Column(("Model",), "label"),
        Column(("Measurable",)),
        Column(("Leads",)),
        *number_columns(["Area"]),
        Column(("Check",)),
        Column(("Report",), form="link"),
    )
    rows = []
    for number, one in enumerate(judged):
        answer, leaders, area, check = one.verdict.answers[0], one.verdict.leaders, Cell(), UNDEFINED
        word = answer.text.partition(":")[0]  # an answer begins with yes, no, perhaps or not known
        if one.evidence is not None and leaders:
            mean, low, high, _ = one.evidence.methods[leaders[0]].area.or_mean()
            area = Cell(100 * mean, 100 * low, 100 * high)
        if one.evidence is not None and not math.isnan(one.evidence.p(BASELINE)):
            check = format_pvalue(one.evidence.p(BASELINE))
        names = (one.task, one.model, f"{MARKS[answer.mood]} {word}")
        link = links[number] if links else Cell()
        rows.append(
            (*plain_row(*names, name_some(leaders) or UNDEFINED, mark="name"), area, Cell(check), link)
        )
    title = "Area: of the leading method, in % [95 % interval]; Check: p-value of texts masked at random"
    return Table(title, columns, tuple(rows))


def name_some(subjects: Sequence[str]) -> str:
    """Join the first names as in a sentence, and tell how many more there are; "" without any."""
    more = len(subjects) - MAX_NAMES
    names = [*subjects[:MAX_NAMES], *([f"{more} more"] if more > 0 else [])]
    return join_names(names) if names else ""


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


def performance_sentences(train: DataFrame) -> Iterator[Sentence]:
    """Yield a sentence on test performance for each task and model with exactly one fine-tuning run.

    Args:
        train: The frame `train` of a store.
    """
    test = train[(train["split"] == "test") & train["best"].astype(bool)]
    tasks, models = short_names(test["task"]), short_names(test["model"])
    for (task, model), rows in test.groupby(["task", "model"]):
        if rows["digest"].nunique() > 1:  # a chart shows them
            continue
        values = rows.set_index("masking")["value"].map(format_percent)
        metric, training = format_metric(rows["metric"].iloc[0]), TRAINING_PHRASES[rows["strategy"].iloc[0]]
        masked, which = "100", "ones with the explained column masked"
        if "all" in values:  # with a context column, only this leaves nothing to read
            masked, which = "all", "wholly masked ones"
        yield Sentence(
            f"{models[str(model)]}, fine-tuned on {tasks[str(task)]} {training}: {values['0']}% {metric} on "
            f"whole test texts, {values[masked]}% on {which}; always the most frequent class of the training "
            f"texts: {format_percent(rows['majority'].iloc[0])}%."
        )
