"""Facts of a model card, from the folder of a checkpoint and its measurements in a store."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...config import BASELINE
from ...data import TASKS
from ...errors import InputError
from ...models.loading import choose_label, load
from ...stats.curves import KINDS
from ...store.records import RECORD, Manifest, Record, TrainRecord, read_record
from ...store.results import Pooled, preferred
from ...store.run_store import RunStore
from ...verdict.sentences import LIMITS
from ..provenance import reproduce
from ..view import scores_by_masking

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

    from ...measuring.result import Result

OWNER = "faithmeter"
"""Argument of our metrics in a model-index with the run that they come from, by which they are recognized."""
PAPER = "https://arxiv.org/abs/2310.07819"
HUB_METRICS = {"macro_f1": "f1", "micro_f1": "f1", "matthews": "matthews_correlation"}
"""Names of metrics on the hub that differ from ours."""
NUMBERS = {
    "faithfulness": ("faithfulness", "faithfulness (fraction)"),
    "acu": ("acu", "ACU (fraction)"),
    "racu": ("racu", "RACU (fraction)"),
    "p_crossfit": ("p_value", "in-distribution p-value (0 to 1)"),
}
"""Type, name and unit of our results in a model-index, by kind of area or test."""
UNITS = {"pearson": "-1 to 1", "spearman": "-1 to 1", "matthews": "-1 to 1", "r2": "at most 1"}
"""Ranges of the metrics that are no fractions."""
DATASETS = "https://huggingface.co/datasets/"
DEFAULT_STORE = "runs"
"""Folder of runs in the commands on a card; it is the default of the command line."""


@dataclass(frozen=True)
class Measured:
    """Measurements on one task: their result, the run of each method, and the performance to state."""

    task: str
    result: Result
    runs: Mapping[str, str]
    performance: dict[str, float]

    @property
    def name(self) -> str:
        return Path(self.task).name  # the task name of your own data is a path


@dataclass(frozen=True)
class Facts:
    """Facts about a checkpoint that its model card states."""

    name: str
    labels: Sequence[str]
    fingerprint: str
    train: TrainRecord | None  # None if faithmeter did not train it
    records: list[Manifest]
    tasks: list[Measured]


def gather(folder: Path, store: RunStore) -> Facts:
    """Return the facts about a checkpoint, with its measurements found by fingerprint.

    Raises:
        InputError: The folder does not exist, or the store holds no measurement of the checkpoint.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; expected that of a checkpoint, with its README.md")
    clf = load(folder, label=choose_label(folder, "0"))  # weights and names are those of all labels
    runs: list[tuple[Path, Manifest]] = []
    for where, record in store.records():
        # by the weights, not by the path, which may hold another model by now
        if isinstance(record, Manifest) and record.config.checkpoint == clf.fingerprint:
            runs.append((where, record))
    if not runs:
        raise InputError(
            f"{store.root} holds no measurement of {folder}; run `faithmeter measure {folder}` first"
        )
    train = _training(folder)
    return Facts(
        name=folder.resolve().name,
        labels=list(map(str, clf.model.config.id2label.values())),
        fingerprint=clf.fingerprint,
        train=train,
        records=sorted(map(itemgetter(1), runs), key=lambda record: record.finished),
        tasks=list(_measured(store.results(runs), train)),
    )


def _training(folder: Path) -> TrainRecord | None:
    """Return the training record of a checkpoint; None if faithmeter did not train it."""
    record = read_record(folder / RECORD) if (folder / RECORD).exists() else None
    return record if isinstance(record, TrainRecord) else None


def _measured(measured: Sequence[Pooled], train: TrainRecord | None) -> Iterator[Measured]:
    for (task, _), best in sorted(preferred(measured).items()):
        runs = {name: f"measurement {source.digest}" for name, source in best.runs[0].sources.items()}
        yield Measured(task, best.result, runs, performance(train, task, best.result))


def performance(train: TrainRecord | None, task: str, result: Result) -> dict[str, float]:
    """Return the test performance if the model was trained on the task, else that on the measured texts."""
    if train is None or task != train.config.task_or_data:
        unmasked, *_, masked = result.curve(BASELINE).values
        return {"unmasked": unmasked, "fully masked": masked}
    values = scores_by_masking(train.test, train.metric)
    guess = "class majority" if len(train.labels) > 1 else "always the mean"
    majority = train.majority["test"][train.metric]
    # only with all columns masked must the model fall to guessing; records of 0.2 lack this
    masked = values.get("all", values[100])
    return {"unmasked": values[0], "fully masked": masked, guess: majority}


def results(facts: Facts) -> Iterator[EvalResult]:
    """Yield the defined numbers of the section as results for a model-index.

    Each names its unit and the run that it comes from.
    """
    from huggingface_hub import EvalResult

    for measured in facts.tasks:
        hub = getattr(TASKS.get(measured.task), "hub", None)
        for kind, name, value, run in _numbers(facts, measured):
            yield EvalResult(
                task_type="text-classification",
                dataset_type=hub.repo if hub else re.sub(r"[^\w.-]+", "-", measured.name),
                dataset_config=hub.config if hub else None,
                dataset_name=measured.name,
                dataset_split="test",
                metric_type=kind,
                metric_name=name,
                metric_value=float(value),
                metric_args={OWNER: run},
                source_name=hub and f"{OWNER} on {hub.repo}",  # shared by all results on these data
                source_url=hub and DATASETS + hub.repo,
            )


def _numbers(facts: Facts, measured: Measured) -> Iterator[tuple[str, str, float, str]]:
    """Yield the type, the name with its unit, the value and the run of each number."""
    result = measured.result
    trained = facts.train is not None and measured.task == facts.train.config.task_or_data
    run = f"training {facts.train.digest}" if facts.train and trained else measured.runs[BASELINE]
    metric, unit = result.metric, UNITS.get(result.metric, "fraction")
    for how in ("unmasked", "fully masked"):
        name = f"{metric} ({unit}), {how}"
        yield HUB_METRICS.get(metric, metric), name, measured.performance[how], run
    for method in result.ranked:
        values = dict(zip(KINDS, map(partial(result.area, method), KINDS), strict=True))
        values |= zip(
            map("p_{}".format, result.tests), map(partial(result.p, method), result.tests), strict=True
        )
        for name, (kind, what) in NUMBERS.items():
            value = values.get(name, math.nan)
            # a model-index must hold numbers; the areas of random erasure are 0 by definition
            if method != BASELINE and not math.isnan(value):
                yield kind, f"{what} of {method}", value, measured.runs[method]


def hub_results(facts: Facts) -> list[dict[str, Any]]:
    """Return the results on datasets of the hub in the format of its `.eval_results` folder."""
    entries = []
    for result in results(facts):
        if result.source_url:  # on data of your own there is no page that could list them
            run = (result.metric_args or {})[OWNER]
            dataset = {"id": result.dataset_type, "task_id": result.dataset_config or "default"}
            source = {"url": result.source_url, "name": f"{OWNER} {run}"}
            notes = result.metric_name
            entries.append(
                {"dataset": dataset, "value": result.metric_value, "source": source, "notes": notes}
            )
    return entries


def doubts(facts: Facts) -> Iterator[str]:
    """Yield the doubts about the measurements, then the limits that always apply."""
    for measured in facts.tasks:
        where = f"{measured.name}: " if len(facts.tasks) > 1 else ""
        for doubt in measured.result.verdict.doubts:
            yield f"{where}{doubt.text}."
    yield from map("{}.".format, LIMITS)


def commands(facts: Facts) -> Iterator[str]:
    """Yield the command lines that reproduce the numbers and the card."""
    store, train = RunStore(DEFAULT_STORE), facts.train
    records: list[Record] = [*([train] if train else []), *facts.records]
    yield from reproduce(records, store.root, {facts.fingerprint: facts.name})
    checkpoint = facts.name if train is None else str(store.folder(train.config))
    yield shlex.join(["faithmeter", "report", str(store.root), "--model-card", checkpoint])


def digests(facts: Facts) -> Iterator[tuple[str, str]]:
    yield "weights", facts.fingerprint
    if facts.train is not None:
        yield "training", facts.train.digest
        for split, digest in facts.train.splits.items():
            yield f"{split} split", digest[:16]
    for record in facts.records:
        yield "measurement", record.digest
