"""Tables as published: their columns, and cells that follow from the columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...report.blocks import Cell, Column, Row, Table
from ...report.tables.cells import column
from .comparison import published_rows


class Layout(NamedTuple):
    """Layout of a published table: its title, the file of its rows, its columns and notes.

    `mark` returns the mark of a cell, and `total` the rows of sums.
    """

    title: str
    source: str
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
    mark: Callable[[Mapping[str, Any], Column], str] = lambda row, column: ""
    total: Callable[[Sequence[Column], Sequence[Row]], Sequence[Row]] = lambda columns, rows: ()


def number(name: str, heading: tuple[str, ...], bounds: str = "", **settings: Any) -> Column:
    """Return the column of a published number, with an interval if the fields of its bounds are named."""
    names = (name, f"{bounds}_minus", f"{bounds}_plus") if bounds else (name,)
    return column(names, heading, form="number", **settings)


def published_table(layout: Layout, task: str | None = None) -> Table:
    """Return a table as published, or its rows of one task."""
    rows = []
    for row in published_rows(layout.source):
        if task in (None, row["dataset"]):
            rows.append(tuple(_cell(row, one, layout.mark(row, one)) for one in layout.columns))
    title = f"{layout.title}{'' if task is None else f' on {task}'}, published"
    return Table(title, layout.columns, tuple(rows), layout.notes, tuple(layout.total(layout.columns, rows)))


def _cell(row: Mapping[str, Any], one: Column, mark: str) -> Cell:
    value, *offsets = (row.get(name) for name in one.names)  # without bounds, a column has one name
    if one.form == "time":
        return Cell(None if value is None else parse_minutes(value))
    return replace_mark(Cell.around(value, *offsets), mark)


def replace_mark(cell: Cell, mark: str) -> Cell:
    """Return the cell with this mark before its own."""
    return Cell(cell.value, cell.low, cell.high, f"{mark} {cell.mark}".strip())


def parse_minutes(text: str) -> int:
    """Return the seconds of a published time, hh:mm."""
    hours, minutes = text.split(":")
    return 3600 * int(hours) + 60 * int(minutes)
