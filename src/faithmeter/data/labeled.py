"""Tasks for unlabeled texts, and tasks whose labels are the predictions of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import AGREEMENT, SIDES
from ..errors import InputError, unknown
from ..files import read_parquet, write_parquet
from .task import ROLES, Columns, Own, Source, Task

if TYPE_CHECKING:
    from datasets import Dataset

LABELED = "labeled.parquet"
"""Texts of an adaptation with the predictions of the original, beside the checkpoint."""


@dataclass(frozen=True)
class LabeledTask(Task):
    """Task whose rows are in memory, labeled by a model."""

    splits: Mapping[str, Dataset] = field(default_factory=dict, repr=False, compare=False)
    place: str = ""

    def load(self) -> dict[str, Dataset]:
        return dict(self.splits)

    @property
    def source(self) -> Source:
        return Source("labeled", self.place, available=True, published=False, note="labeled by a model")


def unlabeled_task(own: Own, columns: Columns, labels: Sequence[str]) -> Task:
    """Return a task for your own unlabeled texts; every row gets the first of `labels` as a placeholder."""
    return Task(
        own.main.name.partition(".")[0],
        columns.text,
        tuple(labels),
        columns.context,
        label=None,
        official=ROLES,
        own=own,
        rationale=columns.rationale,
    )


def class_task(task: Task, classes: Sequence[str]) -> Task:
    """Return the task as a classifier with these classes sees it.

    Of several labels, the task is about the last of `classes`; of numbers, about their two sides.
    """
    if task.kind == "multi-label":
        return label_task(task, classes[-1])
    return side_task(task) if task.kind == "regression" and task.labels != SIDES else task


def side_task(task: Task) -> LabeledTask:
    """Return a regression task whose labels tell on which side of the test rows' mean a number lies.

    Signed methods need a direction: for a text with a low number, they explain what lowers it. The column
    `value` holds the numbers, by which performance is measured.
    """
    splits = task.load()
    mean = sum(splits["test"]["label"][:]) / len(splits["test"])
    numbers = {role: rows["label"][:] for role, rows in splits.items()}
    labels = {role: [int(number >= mean) for number in part] for role, part in numbers.items()}
    sides = labeled_task(splits, labels, name=task.name, classes=SIDES)
    rows = {role: part.add_column("value", numbers[role]) for role, part in sides.splits.items()}
    # performance is that of the numbers, in the task's own metric and columns
    measured: dict[str, Any] = {"metrics": task.metrics, "metric": task.metric, "threshold": task.threshold}
    measured |= {"explained": task.explained, "context": task.context, "place": task.source.place}
    return replace(sides, splits=rows, kind="regression", **measured)


def label_task(task: Task, label: str) -> LabeledTask:
    """Return the task of predicting one label of a multi-label task, measured by macro F1.

    Raises:
        InputError: The task has no such label.
    """
    if label not in task.labels:
        raise unknown("label", label, task.labels)
    number, splits = task.labels.index(label), task.load()
    labels: dict[str, list[int]] = {}
    for role, rows in splits.items():
        labels[role] = [chosen[number] for chosen in rows["label"][:]]
    name, classes = f"{task.name}: {label}", (f"not {label}", label)
    chosen = labeled_task(splits, labels, name=name, classes=classes)
    return replace(chosen, metrics=("accuracy", "macro_f1"), metric="macro_f1", place=task.source.place)


def labeled_task(
    splits: Mapping[str, Dataset], labels: Mapping[str, Sequence[int]], *, name: str, classes: Sequence[str]
) -> LabeledTask:
    """Return a task with the texts of `splits` and labels by a model; its metric is the agreement with it."""
    rows = {role: _relabeled(split, labels[role], classes) for role, split in splits.items()}
    context = "context" if "context" in next(iter(rows.values())).column_names else None
    metric = AGREEMENT
    return LabeledTask(name, "text", tuple(classes), context, metrics=(metric,), metric=metric, splits=rows)


def _relabeled(split: Dataset, labels: Sequence[int], classes: Sequence[str]) -> Dataset:
    from datasets import ClassLabel, Dataset, Features, List, Value

    # types are given, as those of an empty column, or of a file, are guessed otherwise
    kinds = {"text": Value("string"), "context": Value("string"), "supporting": List(List(Value("int32")))}
    names = [name for name in kinds if name in split.column_names]
    features = {name: kinds[name] for name in names} | {"label": ClassLabel(names=[*classes])}
    columns = split.select_columns(names).to_dict() | {"label": [*labels]}
    return Dataset.from_dict(columns, features=Features(features))


def write_labeled(path: Path, task: LabeledTask) -> None:
    """Write the rows of a task to one file."""
    import pandas as pd

    write_parquet(path, pd.concat(rows.to_pandas().assign(split=role) for role, rows in task.splits.items()))


def read_labeled(path: Path, *, name: str, classes: Sequence[str]) -> LabeledTask:
    """Return the task whose rows `write_labeled` wrote."""
    from datasets import Dataset

    frame = read_parquet(path)
    if frame is None:
        raise InputError(f"{path} is missing or damaged; adapt the model again, or name a task with --task")
    parts = {role: Dataset.from_pandas(frame[frame["split"] == role], preserve_index=False) for role in ROLES}
    labels = {role: rows["label"][:] for role, rows in parts.items()}
    return labeled_task(parts, labels, name=name, classes=classes)
