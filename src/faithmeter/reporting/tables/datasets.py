"""Datasets: their sizes, which column is masked, their metric and what guessing the majority class gives."""

from __future__ import annotations

from typing import Any

from pandas import DataFrame

from .cells import Cell, Column
from .estimates import Frames
from .published_columns import SPELLED, as_many, beside, compared, in_order, plain, quoted
from .table import Table

SPLITS = ("train", "validation", "test")
INPUTS = ("masked", "auxiliary")
METRICS = {"accuracy": "Accuracy", "macro_f1": "Macro F1", "micro_f1": "Micro F1", "matthews": "Matthew"}
TITLE = "Datasets"
MAJORITY = "The class-majority baseline is the metric of always choosing the most frequent class."
LARGE = "A difference is shown only for a test split as large as published."


def published() -> Table:
    columns = (
        *_columns("dataset", "Size"),
        Column(("metric",), ("Performance", "metric")),
        Column(("class_majority_percent",), ("Performance", "class-majority"), form="number", unit="%"),
    )
    rows = (
        (*_cells(row, row["dataset"]), Cell(row["metric"]), Cell(mean=row["class_majority_percent"]))
        for row in quoted("datasets")
    )
    return Table(f"{TITLE}, published", columns, tuple(rows), (), (MAJORITY,))


def beside_ours(frames: Frames) -> Table:
    """The tasks that were trained on, beside what is published."""
    train = frames["train"]
    test = train[train["split"] == "test"]
    known = {SPELLED.get(row["dataset"], row["dataset"]): row for row in quoted("datasets")}
    rows = []
    for (task,) in in_order(((task,) for task in test["task"].unique()), known):
        ours, theirs = test[test["task"] == task], known.get(plain(task), {})
        baseline = Cell(mean=round(100 * float(ours["majority"].mean()), 6))
        like = as_many(task, texts=ours["rows"].max())
        majority = compared(Cell(mean=theirs.get("class_majority_percent")), baseline, like=like)
        metric = str(ours["metric"].iloc[0])
        metrics = (Cell(theirs.get("metric")), Cell(METRICS.get(metric, metric)))
        rows.append((*_cells(theirs, task), *_sizes(train[train["task"] == task]), *metrics, *majority))
    columns = (
        *_columns("task", "Published size"),
        *(
            Column((f"{split}_ours",), ("Our size", split.capitalize()), form="number", side="ours")
            for split in SPLITS
        ),
        Column(("metric_published",), ("Metric", "published"), side="published"),
        Column(("metric_ours",), ("Metric", "ours"), side="ours"),
        *beside("class_majority_percent", "Class majority", decimals=(0, 0), unit="%", interval=False),
    )
    return Table(TITLE, columns, tuple(rows), (), (MAJORITY,), (LARGE,))


def _sizes(train: DataFrame) -> list[Cell]:
    """How many rows of train, validation and test the runs used, at most."""
    largest = {"train": train["train_rows"].max(), **train.groupby("split")["rows"].max()}
    return [Cell(mean=int(largest[split])) if split in largest else Cell() for split in SPLITS]


def _columns(name: str, size: str) -> list[Column]:
    return [
        Column(("type",), ("Type",), "group"),
        Column((name,), ("Dataset",), "label"),
        *(Column((split,), (size, split.capitalize()), form="number", side="published") for split in SPLITS),
        *(Column((column,), ("Inputs", column), form="code") for column in INPUTS),
    ]


def _cells(row: dict[str, Any], name: str) -> list[Cell]:
    sizes, inputs = (Cell(mean=row.get(split)) for split in SPLITS), (Cell(row.get(name)) for name in INPUTS)
    return [Cell(row.get("type")), Cell(name), *sizes, *inputs]
