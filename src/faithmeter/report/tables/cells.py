"""Cells and columns of tables, and the formatting of values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import isnan
from typing import Literal

from pandas import DataFrame

from ...verdict.formats import format_percent
from ..aggregate import bound_columns, over_seeds
from ..labels import METHOD_LABELS

Key = tuple[str, ...]
APART_MARK = "†"
MISSING_MARK = "–"


@dataclass(frozen=True)
class Cell:
    """Cell that holds a text, a number with an optional interval, or neither (a missing value).

    If a cell holds both, the text is displayed and the number is used in computations.
    """

    text: str | None = None
    mean: float | None = None
    minus: float | None = None  # distance from the mean down to the lower bound
    plus: float | None = None  # distance from the mean up to the upper bound
    grey: bool = False  # the less relevant of two scores
    apart: bool = False  # a difference of two means whose intervals do not overlap

    @property
    def missing(self) -> bool:
        return self.text is None and self.mean is None


@dataclass(frozen=True)
class Column:
    """Heading, role and number format of a column."""

    names: tuple[str, ...]  # CSV fields: one; three with an interval; two for a difference and its mark
    heading: tuple[str, ...]  # lines of the heading, from top to bottom
    role: Literal["section", "group", "label", "value"] = "value"
    form: Literal["text", "code", "method", "number", "time"] = "text"
    side: Literal["", "published", "ours", "difference"] = ""
    decimals: tuple[int, int] = (0, 1)  # decimals of a number and of its bounds
    unit: str = ""
    trivial: float | None = None  # a column that holds only this number is omitted, except from CSV

    def without_comparison(self) -> Column:
        """Return the column without "ours" in its names and heading, for a table without published values."""
        names = tuple(name.replace("_ours", "") for name in self.names)
        heading = tuple(line for line in self.heading if line not in ("", "ours"))
        return replace(self, names=names, heading=heading)


@dataclass(frozen=True)
class FormattedValue:
    """Value formatted as text; each output format combines the parts in its own way."""

    main: str
    minus: str = ""
    plus: str = ""


SEED_COLUMNS = (
    Column(("n",), ("Seeds", "n"), form="number", trivial=1),
    Column(("excluded",), ("Seeds", "excl."), form="number", trivial=0),
)
TEXTS_NOTE = "Ours: with a 95 % BCa interval over texts."
SEEDS_NOTE = "Ours: mean over n seeds with a 95 % BCa interval; excl.: seeds that did not converge, left out."
POOLED_NOTE = "Intervals of tasks are over seeds and texts together; all others are over seeds."


@dataclass(frozen=True)
class MeanCells:
    """Cells of one group: the mean with its interval, and the cells of `SEED_COLUMNS`."""

    value: Cell = Cell()
    seeds: tuple[Cell, Cell] = (Cell(), Cell())


def mean_cells(frame: DataFrame, by: list[str], value: str) -> dict[Key, MeanCells]:
    """Return the cells of each group: the mean over seeds of a column of fractions, in percent."""
    columns = [value, *bound_columns(frame, value)]
    percents = frame.assign(**{name: 100 * frame[name].astype(float) for name in columns})
    return mean_row_cells(over_seeds(percents, by, value), by)


def mean_row_cells(means: DataFrame, by: list[str]) -> dict[Key, MeanCells]:
    """Return the cells for the rows of `over_seeds`; one seed without bounds has no interval."""
    cells = {}
    for row in means.to_dict("records"):
        mean, n, excluded = row["mean"], row["n"], row.get("excluded")
        value = Cell() if isnan(mean) else Cell(mean=round(mean, 6))
        if not isnan(mean) and not isnan(row["lower"]) and (n > 1 or row["lower"] < row["upper"]):
            minus, plus = round(mean - row["lower"], 6), round(row["upper"] - mean, 6)
            value = replace(value, minus=minus, plus=plus)
        cells[tuple(str(row[name]) for name in by)] = MeanCells(value, (Cell(mean=n), Cell(mean=excluded)))
    return cells


def format_cell(cell: Cell, column: Column) -> FormattedValue:
    """Return the formatted value of a cell, in the number format of its column; empty if missing."""
    if cell.text is not None:
        return FormattedValue(cell.text)
    if cell.mean is None:
        return FormattedValue("")
    sign = "+" if column.side == "difference" else ""
    if column.form == "time":
        return FormattedValue(format_duration(cell.mean, sign))
    digits, bounds = column.decimals
    number = format_percent(cell.mean / 100, digits)
    main = f"{sign if not number.startswith('-') else ''}{number}{column.unit}"
    if cell.minus is None or cell.plus is None:
        return FormattedValue(main)
    return FormattedValue(
        main, _format_offset("-", cell.minus, bounds), _format_offset("+", cell.plus, bounds)
    )


def _format_offset(sign: str, size: float, decimals: int) -> str:
    """Format the distance to a bound with `sign` before it, or the opposite sign if it is negative."""
    text = format_percent(size / 100, decimals)
    return sign + text if not text.startswith("-") else {"-": "+", "+": "-"}[sign] + text[1:]


def format_duration(seconds: float, sign: str = "") -> str:
    """Format seconds as h:mm:ss, with tenths below ten seconds; `sign` precedes non-negative values."""
    size, minus = abs(seconds), "-" if seconds < 0 else sign
    if size < 9.95:
        return f"{minus}0:00:{size:04.1f}"
    minutes, rest = divmod(round(size), 60)
    return f"{minus}{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def method_label(name: str, *, latex: bool = False) -> tuple[str, str]:
    """Return a method's name in the paper, escaped for the output format, and its options, not escaped.

    The name is empty for a method that is not in the paper, and its own name is then returned as the options.
    """
    base, bracket, options = name.partition("(")
    if base not in METHOD_LABELS:
        return "", name
    return METHOD_LABELS[base][latex], f" {bracket}{options}" if bracket else ""


def heading_lines(columns: Sequence[Column]) -> Iterator[list[tuple[str, int]]]:
    """Yield the lines of a table head; each lists headings with the number of columns that they span."""
    depth = max(len(column.heading) for column in columns)
    lines = [column.heading + ("",) * (depth - len(column.heading)) for column in columns]
    for level in range(depth):
        line: list[tuple[str, int]] = []
        for prefix, equal in groupby(lines, key=lambda heading, level=level: heading[: level + 1]):  # type: ignore[misc]
            width = len(list(equal))
            line += [(prefix[-1], width)] if prefix[-1] else [("", 1)] * width
        yield line
