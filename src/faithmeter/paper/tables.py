"""Tables of the paper by name, with published values, values of our runs, or both side by side.

`TABLES[name](frames, show)` returns a `Table`, which `exports` write as Markdown, CSV and LaTeX. With
`ours` and `both`, a table has a row for each run or group of runs, so it is empty without runs. Pass frames
from `comparable`; otherwise means mix different settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

from ..data import TASKS
from ..errors import unknown
from ..report.aggregate import SEED_COLUMNS, Frames, interval_notes, mean_cells
from ..report.blocks import Cell, Column, Table, file_column
from ..report.values import short_names
from ..verdict.formats import format_metric
from . import comparison, published, walltimes
from .areas_by_task import BOUNDS, HIGHER_NOTE, faithfulness_table
from .areas_by_task import TITLE as AREAS

Show = Literal["published", "ours", "both"]
PERFORMANCE = "Unmasked test performance after plain fine-tuning"
DATASETS = "Datasets"
SPLITS = ("train", "validation", "test")
INPUTS = ("masked", "auxiliary")
MAJORITY_NOTE = "The class-majority baseline is the metric of always choosing the most frequent class."
SIZE_NOTE = "A difference is shown only for a test split as large as published."
INTERVAL_NOTE = "Mean with a 95 % confidence interval."
LABEL_COLUMNS = {
    "type": file_column(("type",), ("Type",), "group"),
    "model": file_column(("model",), ("Model",), "section"),
    "dataset": file_column(("dataset",), ("Dataset",), "group"),
    "importance_measure": file_column(("importance_measure",), ("IM",), "label", "method"),
}
"""Columns that name the rows of published tables."""


@dataclass(frozen=True)
class PaperTable:
    """Table of the paper.

    Attributes:
        source: Name of the published file.
        compare: Returns the table of our runs beside the published values.
        notes: Notes on the published values.
        task: Name of the only task, if the table is on one.
    """

    title: str
    source: str
    compare: Callable[[Frames], Table]
    notes: tuple[str, ...]
    task: str = ""

    def __call__(self, frames: Frames, show: Show = "both") -> Table:
        """Return the table from the frames of a store."""
        if show not in get_args(Show):
            raise unknown("variant of a table", show, get_args(Show))
        if show == "published":
            return self._published()
        both = self.compare(frames)
        return both if show == "both" else both.without_comparison()

    def _published(self) -> Table:
        columns, rows = tuple(_published_columns(self.source)), []
        for row in published.rows(self.source).values():
            if self.task in ("", row["dataset"]):
                fields = (map(row.get, column.names) for column in columns)
                rows.append(tuple(map(_published_cell, columns, fields)))
        title = f"{self.title}{' on ' * bool(self.task)}{self.task}, published"
        return Table(title, columns, tuple(rows), self.notes, tuple(walltimes.sum_times(columns, rows)))


def _published_columns(source: str) -> Iterator[Column]:
    """Yield the columns of a published file; a number with its bounds is one column of three fields."""
    names = list(published.table(source).columns)
    *groups, last = filter(LABEL_COLUMNS.__contains__, names)
    yield from map(LABEL_COLUMNS.__getitem__, groups)
    yield replace(LABEL_COLUMNS[last], role="label")
    # the paper rounds performance to whole percents, and its bounds to one digit
    form: Any = {"decimals": (1, 1)} if source == "faithfulness" else {"unit": "%"}
    for name in names:
        heading, bounds = (name.replace("_", " "),), BOUNDS.get(name, name)
        if name in LABEL_COLUMNS or name.endswith(("_minus", "_plus")):
            continue
        if f"{bounds}_minus" in names:
            yield file_column((name, f"{bounds}_minus", f"{bounds}_plus"), heading, form="number", **form)
        else:
            is_time = name.endswith("_hhmm")
            yield file_column((name,), heading, form="time" if is_time else "number", side="published")


def _published_cell(column: Column, fields: Iterable[Any]) -> Cell:
    value, *bounds = fields
    return Cell(published.parse_minutes(value)) if column.form == "time" else Cell.around(value, *bounds)


def _walltimes(name: str) -> PaperTable:
    part = walltimes.PARTS[name]
    notes = filter(None, (part.note, part.published_note, walltimes.SUM_NOTE, walltimes.TRUNCATION_NOTE))
    return PaperTable(part.title, name, partial(walltimes.walltimes_table, name=name), tuple(notes))


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
    table = Table(PERFORMANCE, columns, tuple(rows), interval_notes(rows, columns))
    return comparison.beside_published(table, reference)


TABLES: dict[str, PaperTable] = {
    "datasets": PaperTable(DATASETS, "datasets", datasets_table, (MAJORITY_NOTE,)),
    "models": PaperTable(PERFORMANCE, "performance", models_table, (INTERVAL_NOTE,)),
    "faithfulness": PaperTable(AREAS, "faithfulness", faithfulness_table, (HIGHER_NOTE,)),
}
# a table for each task, too: that of all tasks has 288 rows
for _task in TASKS:
    _one = replace(TABLES["faithfulness"], compare=partial(faithfulness_table, task=_task), task=_task)
    TABLES[f"faithfulness_{_task}"] = _one
TABLES |= zip(walltimes.PARTS, map(_walltimes, walltimes.PARTS), strict=True)
