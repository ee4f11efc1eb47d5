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
from ..report.aggregate import Frames
from ..report.blocks import Cell, Column, Table, file_column
from . import published, walltimes
from .areas_by_task import BOUNDS, HIGHER_NOTE, faithfulness_table
from .areas_by_task import TITLE as AREAS
from .trainings import DATASETS, MAJORITY_NOTE, MODELS, datasets_table, models_table

__all__ = ["TABLES", "Frames", "PaperTable", "Show", "Table"]

Show = Literal["published", "ours", "both"]
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


TABLES: dict[str, PaperTable] = {
    "datasets": PaperTable(DATASETS, "datasets", datasets_table, (MAJORITY_NOTE,)),
    "models": PaperTable(MODELS, "performance", models_table, (INTERVAL_NOTE,)),
    "faithfulness": PaperTable(AREAS, "faithfulness", faithfulness_table, (HIGHER_NOTE,)),
}
# a table for each task, too: that of all tasks has 288 rows
for _task in TASKS:
    _one = replace(TABLES["faithfulness"], compare=partial(faithfulness_table, task=_task), task=_task)
    TABLES[f"faithfulness_{_task}"] = _one
TABLES |= zip(walltimes.PARTS, map(_walltimes, walltimes.PARTS), strict=True)
