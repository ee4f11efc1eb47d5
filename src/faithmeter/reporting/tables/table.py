"""Table: a title, columns and rows of cells, and the formats it can be written in."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path

from . import html, latex
from .cells import APART, MISSING, Cell, Column, method_label, written

Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """Rows of cells, one for each column; totals are not rows, so that the CSV holds each thing once."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    totals: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    comparison: tuple[str, ...] = ()  # notes on what is published and how ours differs

    @property
    def empty(self) -> bool:
        return not self.rows

    @property
    def caption(self) -> str:
        return " ".join([f"{self.title}.", *self.said])

    @property
    def said(self) -> tuple[str, ...]:
        """The notes; those on published values only if there are some."""
        compared = any(self.columns[number].side == "published" for number in self.filled)
        return self.notes + (self.comparison if compared else ())

    @cached_property
    def filled(self) -> list[int]:
        """The columns that have something to show: not those whose values are missing in every row."""
        return [
            number
            for number, column in enumerate(self.columns)
            if column.role != "value" or self.empty or not all(row[number].missing for row in self.rows)
        ]

    @cached_property
    def shown(self) -> list[int]:
        """The columns that stand side by side: of the filled ones all but a section, which heads its rows."""
        return [number for number in self.filled if self.columns[number].role != "section"]

    def sections(self) -> list[tuple[str, list[Row]]]:
        """Runs of rows with the same section; all rows under "" if there is no such column."""
        heads = [number for number, column in enumerate(self.columns) if column.role == "section"]
        parts = groupby(self.rows, key=lambda row: " ".join(row[number].text or "" for number in heads))
        return [(name, list(rows)) for name, rows in parts]

    def spans(self, rows: Sequence[Row], number: int) -> list[int]:
        """For each row how many, from it on, share the cell of a group column; 0 where one above has it."""
        spans: list[int] = []
        for _, equal in groupby(rows, key=lambda row: [cell.text for cell in row[: number + 1]]):
            height = len(list(equal))
            spans += [height, *[0] * (height - 1)]
        return spans

    def ours(self) -> Table:
        """Without the published values and what depends on them."""
        keep = [n for n, column in enumerate(self.columns) if column.side not in ("published", "difference")]

        def kept(rows: tuple[Row, ...]) -> tuple[Row, ...]:
            return tuple(tuple(row[number] for number in keep) for row in rows)

        columns = tuple(self.columns[number].ours() for number in keep)
        rows, totals = kept(self.rows), kept(self.totals)
        return replace(self, columns=columns, rows=rows, totals=totals, comparison=())

    def to_csv(self) -> str:
        """The rows with all their digits; the lines end as those of the published files do (CRLF)."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow([name for column in self.columns for name in column.names])
        for row in self.rows:
            pairs = zip(self.columns, row, strict=True)
            writer.writerow([field for column, cell in pairs for field in _fields(cell, column)])
        return text.getvalue()

    def to_markdown(self) -> str:
        """A pipe table; the less relevant scores are in italics."""
        columns = [self.columns[number] for number in self.filled]
        heads = [_pipe(" ".join(column.heading)) for column in columns]
        rules = ["---" if column.role != "value" else "---:" for column in columns]
        rows = [
            [_markdown(row[number], self.columns[number]) for number in self.filled]
            for row in (*self.rows, *self.totals)
        ]
        lines = ["| " + " | ".join(line) + " |" for line in (heads, rules, *rows)]
        return "\n".join([f"**{self.title}.**", "", *lines, "", *self.said]).rstrip() + "\n"

    def to_latex(self, label: str = "") -> str:
        """A table, or from about a page on a longtable, that needs the packages of `latex.PACKAGES`."""
        return latex.render(self, label)

    def to_html(self) -> str:
        """A `<table>` without style; the classes `grey` and `apart` say what cells are."""
        return html.render(self)


def save(table: Table, folder: str | Path, name: str) -> list[Path]:
    """Write name.md, name.csv and name.tex, in which the table is labelled `tab:name`."""
    texts = {"md": table.to_markdown(), "csv": table.to_csv(), "tex": table.to_latex(f"tab:{name}")}
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = []
    for ending, text in texts.items():
        paths.append(Path(folder) / f"{name}.{ending}")
        paths[-1].write_text(text, encoding="utf-8", newline="")
    return paths


def _fields(cell: Cell, column: Column) -> list[str]:
    """A cell in CSV: numbers as they are, so that published digits come out as they went in."""
    number = cell.text if cell.text is not None else _digits(cell.mean)
    mark = "" if cell.missing else str(cell.apart).lower()
    more = [mark] if column.side == "difference" else [_digits(cell.minus), _digits(cell.plus)]
    return [number, *more][: len(column.names)]


def _digits(number: float | None) -> str:
    return "" if number is None else repr(number)


def _markdown(cell: Cell, column: Column) -> str:
    if cell.missing:
        return MISSING
    value = written(cell, column)
    if column.form == "method":
        return _pipe("".join(method_label(value.main)))
    text = _pipe(value.main) + (f" ({value.minus}, {value.plus})" if value.plus else "")
    text += f" {APART}" if cell.apart else ""
    return f"*{text}*" if cell.grey else text


def _pipe(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")
