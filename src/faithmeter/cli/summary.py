"""Summaries of tasks: one line for each task of the paper, and the details of a single task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data import task as task_named
from ..data.splits import digest
from ..data.task import Source, Task
from ..paper.published import read_counts
from ..stats.metrics import majority

QUANTILES = (0, 25, 50, 75, 95, 100)
"""Percentiles at which text lengths are reported."""


@dataclass(frozen=True)
class Line:
    """Task with its published split sizes, majority baseline on the test split, and source."""

    task: Task
    sizes: dict[str, int]
    majority: float
    source: Source


@dataclass(frozen=True)
class Detail:
    """Statistics and examples of a task's rows."""

    task: Task
    source: Source
    class_counts: dict[str, list[int]]  # split → number of rows of each label
    majority: dict[str, float]  # metric → test value of always predicting the most frequent training label
    lengths: dict[str, list[int]]  # text, context → number of words at the QUANTILES
    examples: list[dict[str, Any]]  # first three training rows, with label names
    digests: dict[str, str]  # split → sha256 of its rows
    as_published: bool  # True if the class counts equal those of the paper
    numbers: tuple[float, float, float] | None = None  # of a regression task: minimum, mean, maximum


def overview(data_dir: str | Path | None = None) -> list[Line]:
    """Return a line for each task of the paper, without loading any rows."""
    lines = []
    for name, numbers in read_counts().items():
        task = task_named(name, data_dir)
        sizes = {split: sum(counts) for split, counts in numbers["class_counts"].items()}
        lines.append(Line(task, sizes, numbers["majority"]["test"][task.metric], task.source))
    return lines


def detail(task: Task) -> Detail:
    """Load a task and return its statistics."""
    splits = task.load()
    rows = {name: split[:] for name, split in splits.items()}
    test = rows["test"]
    train = rows.get("train", test)
    texts = [name for name in ("text", "context") if name in train]
    counts = {name: _counts(split["label"], len(task.labels)) for name, split in rows.items()}
    numbers = read_counts().get(task.name.partition("(")[0])
    return Detail(
        task,
        task.source,
        counts,
        majority(task.metrics, train["label"], test["label"], len(task.labels)),
        {name: _quantiles([text for split in rows.values() for text in split[name]]) for name in texts},
        [
            {name: train[name][row] for name in texts} | {"label": _label_names(task, train["label"][row])}
            for row in range(min(3, len(train["label"])))
        ],
        {name: digest(split) for name, split in splits.items()},
        as_published=task.own is None and numbers is not None and counts == numbers["class_counts"],
        numbers=_range(train["label"]) if task.kind == "regression" else None,
    )


def _range(numbers: Sequence[float]) -> tuple[float, float, float]:
    return min(numbers), sum(numbers) / len(numbers), max(numbers)


def _label_names(task: Task, label: float | list[int]) -> str:
    """Return the name of a label, the names of several, or a number."""
    if isinstance(label, list):
        return ", ".join(name for name, chosen in zip(task.labels, label, strict=True) if chosen)
    return task.labels[label] if isinstance(label, int) else f"{label:g}"


def _counts(labels: Sequence[Any], classes: int) -> list[int]:
    if isinstance(labels[0], float):
        return [len(labels)]
    if isinstance(labels[0], list):  # several labels at once
        return [sum(column) for column in zip(*labels, strict=True)]
    return [labels.count(label) for label in range(classes)]


def _quantiles(texts: Sequence[str]) -> list[int]:
    lengths = sorted(len(text.split()) for text in texts)
    return [lengths[(len(lengths) - 1) * percent // 100] for percent in QUANTILES]
