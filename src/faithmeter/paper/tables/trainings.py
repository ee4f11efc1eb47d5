"""Tables of trainings: the datasets, and the performance of plainly fine-tuned models."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from pandas import DataFrame

from ...report.aggregate import Frames
from ...report.blocks import Cell, Column, Table
from ...report.labels import short_names
from ...report.tables.cells import SEED_COLUMNS, column, interval_notes, mean_cells
from ...verdict.formats import format_metric
from . import comparison
from .layouts import Layout, number

MODELS = "Unmasked test performance after plain fine-tuning"
SPLITS = ("train", "validation", "test")
INPUT_COLUMNS = ("masked", "auxiliary")
DATASETS = "Datasets"
MAJORITY_NOTE = "The class-majority baseline is the metric of always choosing the most frequent class."
SIZE_NOTE = "A difference is shown only for a test split as large as published."


def _columns(name: str, size: str) -> tuple[list[Column], list[Column], list[Column]]:
    """Return the label, size and input columns of a dataset; `size` is the heading of the sizes."""
    return (
        [column(("type",), ("Type",), "group"), column((name,), ("Dataset",), "label")],
        [number(split, (size, split.capitalize()), side="published") for split in SPLITS],
        [column((name,), ("Inputs", name), form="code") for name in INPUT_COLUMNS],
    )


PUBLISHED_DATASETS = Layout(
    DATASETS,
    "datasets",
    (
        *chain(*_columns("dataset", "Size")),
        column(("metric",), ("Performance", "metric")),
        number("class_majority_percent", ("Performance", "class-majority"), unit="%"),
    ),
    (MAJORITY_NOTE,),
)


def datasets_table(frames: Frames) -> Table:
    """Return a table of the tasks with training runs, beside the published datasets."""
    train = frames["train"]
    test = train[train["split"] == "test"]
    paper = {comparison.task_of(row): row for row in comparison.published_rows("datasets")}
    rows = []
    for (task,) in comparison.sort_keys(((task,) for task in test["task"].unique()), paper):
        # a task with options, such as another number of classes, is compared with the plain one
        ours, theirs = test[test["task"] == task], paper.get(comparison.strip_options(task), {})
        majority = comparison.compare_cells(
            Cell(theirs.get("class_majority_percent")),
            Cell(round(100 * float(ours["majority"].mean()), 6)),
            # of fewer texts the most frequent class has another share
            comparable=comparison.has_published_counts(task, texts=ours["rows"].max()),
        )
        metric = format_metric(str(ours["metric"].iloc[0]))
        metrics = (Cell(metric[:1].upper() + metric[1:]), Cell(theirs.get("metric")))
        labels, published_sizes, inputs = _cells(theirs, task)
        sizes = _sizes(train[train["task"] == task])
        rows.append((*labels, *sizes, *published_sizes, *inputs, *metrics, *majority))
    label_columns, size_columns, input_columns = _columns("task", "Published size")
    our_sizes = []
    for split in SPLITS:
        heading = ("Our size", split.capitalize())
        our_sizes.append(column((f"{split}_ours",), heading, form="number", side="ours"))
    columns = (
        *label_columns,
        *our_sizes,
        *size_columns,
        *input_columns,
        column(("metric_ours",), ("Metric", "ours"), side="ours"),
        column(("metric_published",), ("Metric", "published"), side="published"),
        *comparison.comparison_columns(
            "class_majority_percent", "Class majority", decimals=(0, 0), unit="%", interval=False
        ),
    )
    return Table(DATASETS, columns, tuple(rows), (MAJORITY_NOTE,), comparison_notes=(SIZE_NOTE,))


def _sizes(train: DataFrame) -> list[Cell]:
    """Return the cells of the largest train, validation and test split in any run.

    A run with `--limit` has smaller ones, which say nothing about the dataset.
    """
    largest = {"train": train["train_rows"].max(), **train.groupby("split")["rows"].max()}
    return [Cell(int(largest[split])) if split in largest else Cell() for split in SPLITS]


def _cells(row: Mapping[str, Any], name: str) -> tuple[list[Cell], list[Cell], list[Cell]]:
    """Return the cells of a published row for the columns of `_columns`."""
    return (
        [Cell(row.get("type")), Cell(name)],
        [Cell(row.get(split)) for split in SPLITS],
        [Cell(row.get(name)) for name in INPUT_COLUMNS],
    )


PUBLISHED_MODELS = Layout(
    MODELS,
    "performance",
    (
        column(("dataset",), ("Dataset",), "label"),
        number("max_epochs", ("max epoch",)),
        *(number(size, ("Performance", model), size, unit="%") for model, size in comparison.SIZES.items()),
    ),
    ("Mean with a 95 % confidence interval.",),
)


def models_table(frames: Frames) -> Table:
    """Return a table of our plainly fine-tuned models by task, beside published values."""
    train = frames["train"]
    runs = train[
        (train["strategy"] == "none")
        & (train["validation"] == "unmasked")
        & (train["split"] == "test")
        & (train["masking"] == "0")
    ]
    paper = {row["dataset"]: row for row in comparison.published_rows("performance")}
    means = mean_cells(runs, ["task", "model"], "value")
    # equal in all runs of a task and model, as runs with other settings were left out
    epochs = runs.groupby(["task", "model"])["epochs"].first()
    names = short_names(runs["model"].unique())
    reference, rows = comparison.reference_model(names), []
    for task, model in comparison.sort_keys(means, paper, comparison.MODELS):
        size = comparison.published_size(reference or model)
        theirs = paper.get(comparison.strip_options(task), {}) if size else {}
        ours = means[task, model]
        performance = comparison.compare_cells(
            comparison.published_cell(theirs, size), ours.value, (0, 1), comparable=not reference
        )
        maximum = (Cell(int(epochs[task, model])), Cell(theirs.get("max_epochs")))
        rows.append((Cell(task), Cell(names[model]), *maximum, *performance, *ours.seeds))
    columns = (
        column(("task",), ("Dataset",), "group"),
        column(("model",), ("Model",), "label"),
        column(("max_epochs_ours",), ("max epoch", "ours"), form="number", side="ours"),
        column(("max_epochs_published",), ("max epoch", "in the paper"), form="number", side="published"),
        *comparison.comparison_columns("performance", "Performance", decimals=(0, 1), unit="%"),
        *SEED_COLUMNS,
    )
    notes = comparison.REFERENCE_NOTES if reference else comparison.DIFFERENCE_NOTES
    return Table(
        MODELS,
        comparison.name_reference(columns, reference),
        tuple(rows),
        interval_notes(rows, columns),
        comparison_notes=notes,
        reference=reference,
    )
