"""Facts of a model card: from the checkpoint's folder, and from the measurements of it in a store."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...config import BASELINE
from ...errors import InputError
from ...faithfulness.trust import LIMITS, Verdict, verdict
from ...models.loading import load
from ...runs.frames import frame
from ...runs.record import RECORD, MeasureRecord, Record, TrainRecord, read_record
from ...runs.store import RunStore
from ...tasks import TASKS
from ..evidence import choose_tuning, gather_evidence
from ..reproduce import reproduce

if TYPE_CHECKING:
    from huggingface_hub import EvalResult
    from pandas import DataFrame

SOURCE = "faithmeter"
"""Names the source of our results in a model-index."""
PAPER = "https://arxiv.org/abs/2310.07819"
HUB_METRICS = {"macro_f1": "f1", "micro_f1": "f1", "matthews": "matthews_correlation"}
"""Names of our metrics on the hub, where they differ."""
NUMBERS = {
    "acu": ("acu", "ACU"),
    "racu": ("racu", "RACU"),
    "p_crossfit": ("p_value", "in-distribution p-value"),
}
"""Columns of a method's results, and their type and name in a model-index."""
DEFAULT_STORE = "runs"
"""Store that the commands on a card use: the default of the command line."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """Measurements on one task; rows are those of the store's frames."""

    task: str
    metric: str
    performance: dict[str, float]
    methods: list[Row]  # the most faithful first, the baseline last
    steps: list[Row]  # of the baseline
    verdict: Verdict

    @property
    def name(self) -> str:
        return Path(self.task).name  # one's own data are named by their path


@dataclass(frozen=True)
class Facts:
    """Facts that a card states about a checkpoint."""

    name: str
    labels: Sequence[str]
    fingerprint: str
    train: TrainRecord | None  # None if it is not ours
    records: list[MeasureRecord]
    tasks: list[Measured]


def gather(folder: Path, store: RunStore) -> Facts:
    """Return the facts about a checkpoint; its fingerprint selects the measurements of it."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; expected that of a checkpoint, with its README.md")
    clf = load(folder)
    runs = [
        (where, record)
        for where, record in store.records()
        if isinstance(record, MeasureRecord) and record.config.checkpoint == clf.fingerprint
    ]
    if not runs:
        raise InputError(
            f"{store.root} holds no measurement of {folder}; run `faithmeter measure {folder}` first"
        )
    train = _training(folder)
    return Facts(
        name=folder.resolve().name,
        labels=clf.labels,
        fingerprint=clf.fingerprint,
        train=train,
        records=sorted((record for _, record in runs), key=lambda record: record.finished),
        tasks=list(_measured(frame("areas", runs), frame("measure", runs), train)),
    )


def _training(folder: Path) -> TrainRecord | None:
    """Return the record of a checkpoint's training; None if it is not ours."""
    record = read_record(folder / RECORD) if (folder / RECORD).exists() else None
    return record if isinstance(record, TrainRecord) else None


def _measured(areas: DataFrame, steps: DataFrame, train: TrainRecord | None) -> Iterator[Measured]:
    for task in sorted(areas["task"].unique()):
        own = choose_tuning(areas[areas["task"] == task])
        ranked = own.assign(baseline=own["method"] == BASELINE).sort_values(
            ["baseline", "texts", "acu"], ascending=[True, False, False], kind="stable"
        )  # areas on other texts are not comparable
        rows = steps[(steps["task"] == task) & (steps["method"] == BASELINE)]
        random = _rows(rows[rows["strategy"] == own["strategy"].iloc[0]])
        yield Measured(
            task,
            own["metric"].iloc[0],
            performance(train, task, random),
            _rows(ranked),
            random,
            verdict(gather_evidence(own)),
        )


def _rows(frame: DataFrame) -> list[Row]:
    return [dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False)]


def performance(train: TrainRecord | None, task: str, steps: list[Row]) -> dict[str, float]:
    """Return the performance on the test split if we trained on the task, else on the measured texts."""
    if train is None or task != train.config.task_or_data:
        return {"unmasked": steps[0]["value"], "fully masked": steps[-1]["value"]}
    values = {str(line.masking): line.score(train.metric) for line in train.test}
    majority = train.majority["test"][train.metric]
    return {"unmasked": values["0"], "fully masked": values["100"], "class majority": majority}


def results(facts: Facts) -> Iterator[EvalResult]:
    """Return the numbers of the section in machine-readable form, as fractions, without undefined ones."""
    from huggingface_hub import EvalResult

    for measured in facts.tasks:
        hub = getattr(TASKS.get(measured.task), "hub", None)
        metric = HUB_METRICS.get(measured.metric, measured.metric)
        numbers = [
            (metric, f"{measured.metric}, {how}", measured.performance[how])
            for how in ("unmasked", "fully masked")
        ]
        for row in measured.methods:
            numbers += [
                (kind, f"{what} of {row['method']}", row[column])
                for column, (kind, what) in NUMBERS.items()
                if row["method"] != BASELINE and defined(row[column])
            ]
        for kind, name, value in numbers:
            yield EvalResult(
                task_type="text-classification",
                dataset_type=hub.repo if hub else re.sub(r"[^\w.-]+", "-", measured.name),
                dataset_config=hub.config if hub else None,
                dataset_name=measured.name,
                dataset_split="test",
                metric_type=kind,
                metric_name=name,
                metric_value=float(value),
                source_name=SOURCE,
                source_url=PAPER,
            )


def doubts(facts: Facts) -> Iterator[str]:
    """Yield the reasons to doubt the measurements, then the limits that always hold."""
    for measured in facts.tasks:
        where = f"{measured.name}: " if len(facts.tasks) > 1 else ""
        yield from (f"{where}{doubt.text}." for doubt in measured.verdict.doubts)
    yield from (f"{limit}." for limit in LIMITS)


def commands(facts: Facts) -> Iterator[str]:
    """Yield the command lines that reproduce the numbers and this card."""
    store, train = RunStore(DEFAULT_STORE), facts.train
    records: list[Record] = [*([train] if train else []), *facts.records]
    yield from reproduce(records, store.root, {facts.fingerprint: facts.name})
    checkpoint = facts.name if train is None else str(store.folder(train.config))
    yield shlex.join(["faithmeter", "report", str(store.root), "--model-card", checkpoint])


def digests(facts: Facts) -> Iterator[tuple[str, str]]:
    yield "weights", facts.fingerprint
    if facts.train is not None:
        yield "training", facts.train.digest
        yield from ((f"{split} split", digest[:16]) for split, digest in facts.train.splits.items())
    yield from (("measurement", record.digest) for record in facts.records)


def defined(value: float | None) -> bool:
    return value is not None and value == value  # nan is not equal to itself
