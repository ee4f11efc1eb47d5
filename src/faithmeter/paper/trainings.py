"""Tables of trainings: the datasets, and the performance of plainly fine-tuned models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..report.aggregate import SEED_COLUMNS, Frames, interval_notes, mean_cells
from ..report.blocks import Cell, Column, Table, file_column
from ..report.values import short_names
from ..verdict.formats import format_metric
from . import comparison, published

MODELS = "Unmasked test performance after plain fine-tuning"
DATASETS = "Datasets"
SPLITS = ("train", "validation", "test")
INPUTS = ("masked", "auxiliary")
MAJORITY_NOTE = "The class-majority baseline is the metric of always choosing the most frequent class."
SIZE_NOTE = "A difference is shown only for a test split as large as published."


def datasets_table(frames: Frames) -> Table:
    """Return a table of the tasks with training runs, beside the published datasets."""
    train, paper, rows = frames["train"], published.rows("datasets"), []
    # a run with --limit has smaller splits, which say nothing about the dataset
    sizes = train.groupby(["task", "split"])["rows"].max().unstack()
    sizes["train"] = train.groupby("task")["train_rows"].max()
    sizes = sizes.reindex(columns=list(SPLITS))
    first = train[train["split"] == "test"].groupby("task").agg({"majority": "mean", "metric": "first"})
    for (task,) in comparison.sort_keys(zip(first.index), map("".join, paper)):
        # a task with options, such as another number of classes, is compared with the plain one
        ours: Any = {**first.loc[task], **sizes.loc[task].dropna().astype(int).to_dict()}
        theirs = paper.get((comparison.strip_options(task),), {})
        majority = comparison.compare_cells(
            Cell(theirs.get("class_majority_percent")),
            Cell(round(100 * float(ours["majority"]), 6)),
            # of fewer texts the most frequent class has another share
            comparable=comparison.has_published_counts(task, texts=ours.get("test")),
        )
        metric = format_metric(str(ours["metric"]))
        names = (theirs.get("type"), task, *map(ours.get, SPLITS), *map(theirs.get, (*SPLITS, *INPUTS)))
        metrics = (metric[:1].upper() + metric[1:], theirs.get("metric"))
        rows.append((*map(Cell, (*names, *metrics)), *majority))
    return Table(
        DATASETS, tuple(_dataset_columns()), tuple(rows), (MAJORITY_NOTE,), comparison_notes=(SIZE_NOTE,)
    )


def _dataset_columns() -> Iterator[Column]:
    yield file_column(("type",), ("Type",), "group")
    yield file_column(("task",), ("Dataset",), "label")
    for split in SPLITS:
        yield file_column((f"{split}_ours",), ("Our size", split.capitalize()), form="number", side="ours")
    for split in SPLITS:
        heading = ("Published size", split.capitalize())
        yield file_column((split,), heading, form="number", side="published")
    for name in INPUTS:
        yield file_column((name,), ("Inputs", name), form="code")
    yield file_column(("metric_ours",), ("Metric", "ours"), side="ours")
    yield file_column(("metric_published",), ("Metric", "published"), side="published")
    yield from comparison.comparison_columns(
        "class_majority_percent", "Class majority", decimals=(0, 0), unit="%", interval=False
    )


def models_table(frames: Frames) -> Table:
    """Return a table of our plainly fine-tuned models by task, beside published values."""
    runs = frames["train"].query(
        "strategy == 'none' and validation == 'unmasked' and split == 'test' and masking == '0'"
    )
    paper, means = published.rows("performance"), mean_cells(runs, ["task", "model"], "value")
    # equal in all runs of a task and model, as runs with other settings were left out
    epochs = runs.groupby(["task", "model"])["epochs"].first()
    names = short_names(runs["model"])
    reference, rows = comparison.reference_model(names), []
    for task, model in comparison.sort_keys(means, map("".join, paper), comparison.MODELS):
        size = comparison.published_size(reference or model)
        theirs = paper.get((comparison.strip_options(task),), {}) if size else {}
        ours = means[task, model]
        performance = comparison.compare_cells(
            comparison.published_cell(theirs, size), ours.value, (0, 1), comparable=not reference
        )
        maximum = (Cell(int(epochs[task, model])), Cell(theirs.get("max_epochs")))
        rows.append((Cell(task), Cell(names[model]), *maximum, *performance, *ours.seeds))
    columns = (
        file_column(("task",), ("Dataset",), "group"),
        file_column(("model",), ("Model",), "label"),
        file_column(("max_epochs_ours",), ("max epoch", "ours"), form="number", side="ours"),
        file_column(
            ("max_epochs_published",), ("max epoch", "in the paper"), form="number", side="published"
        ),
        *comparison.comparison_columns("performance", "Performance", decimals=(0, 1), unit="%"),
        *SEED_COLUMNS,
    )
    table = Table(MODELS, columns, tuple(rows), interval_notes(rows, columns))
    return comparison.beside_published(table, reference)
