"""Table of datasets: sizes, masked column, metric and class-majority baseline."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from pandas import DataFrame

from ...report.aggregate import Frames
from ...report.blocks import Cell, Column, Table
from ...report.tables.cells import column
from ...verdict.formats import format_metric
from . import comparison

SPLITS = ("train", "validation", "test")
INPUT_COLUMNS = ("masked", "auxiliary")
TITLE = "Datasets"
MAJORITY_NOTE = "The class-majority baseline is the metric of always choosing the most frequent class."
SIZE_NOTE = "A difference is shown only for a test split as large as published."


def published_table() -> Table:
    """Return the table of datasets as published."""
    columns = (
        *chain(*_columns("dataset", "Size")),
        column(("metric",), ("Performance", "metric")),
        column(("class_majority_percent",), ("Performance", "class-majority"), form="number", unit="%"),
    )
    rows = (
        (*chain(*_cells(row, row["dataset"])), Cell(row["metric"]), Cell(row["class_majority_percent"]))
        for row in comparison.published_rows("datasets")
    )
    return Table(f"{TITLE}, published", columns, tuple(rows), (MAJORITY_NOTE,))


def comparison_table(frames: Frames) -> Table:
    """Return a table of the tasks with training runs, beside the published datasets."""
    train = frames["train"]
    test = train[train["split"] == "test"]
    paper = {
        comparison.SPELLINGS.get(row["dataset"], row["dataset"]): row
        for row in comparison.published_rows("datasets")
    }
    rows = []
    for (task,) in comparison.sort_keys(((task,) for task in test["task"].unique()), paper):
        ours, theirs = test[test["task"] == task], paper.get(comparison.strip_options(task), {})
        majority = comparison.compare_cells(
            Cell(theirs.get("class_majority_percent")),
            Cell(round(100 * float(ours["majority"].mean()), 6)),
            comparable=comparison.has_published_counts(task, texts=ours["rows"].max()),
        )
        metric = format_metric(str(ours["metric"].iloc[0]))
        metrics = (Cell(metric[:1].upper() + metric[1:]), Cell(theirs.get("metric")))
        labels, published_sizes, inputs = _cells(theirs, task)
        sizes = _sizes(train[train["task"] == task])
        rows.append((*labels, *sizes, *published_sizes, *inputs, *metrics, *majority))
    label_columns, size_columns, input_columns = _columns("task", "Published size")
    columns = (
        *label_columns,
        *(
            column((f"{split}_ours",), ("Our size", split.capitalize()), form="number", side="ours")
            for split in SPLITS
        ),
        *size_columns,
        *input_columns,
        column(("metric_ours",), ("Metric", "ours"), side="ours"),
        column(("metric_published",), ("Metric", "published"), side="published"),
        *comparison.comparison_columns(
            "class_majority_percent", "Class majority", decimals=(0, 0), unit="%", interval=False
        ),
    )
    return Table(TITLE, columns, tuple(rows), (MAJORITY_NOTE,), comparison_notes=(SIZE_NOTE,))


def _sizes(train: DataFrame) -> list[Cell]:
    """Return the cells of the largest train, validation and test split in any run."""
    largest = {"train": train["train_rows"].max(), **train.groupby("split")["rows"].max()}
    return [Cell(int(largest[split])) if split in largest else Cell() for split in SPLITS]


def _columns(name: str, size: str) -> tuple[list[Column], list[Column], list[Column]]:
    """Return the label, size and input columns of a dataset; `size` is the heading of the sizes."""
    return (
        [column(("type",), ("Type",), "group"), column((name,), ("Dataset",), "label")],
        [column((split,), (size, split.capitalize()), form="number", side="published") for split in SPLITS],
        [column((name,), ("Inputs", name), form="code") for name in INPUT_COLUMNS],
    )


def _cells(row: Mapping[str, Any], name: str) -> tuple[list[Cell], list[Cell], list[Cell]]:
    """Return the cells of a published row for the columns of `_columns`."""
    return (
        [Cell(row.get("type")), Cell(name)],
        [Cell(row.get(split)) for split in SPLITS],
        [Cell(row.get(name)) for name in INPUT_COLUMNS],
    )
