"""Table: a title, columns and rows of cells, and the formats it can be written in."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path

from ...files import escape_formula, escape_markdown
from . import html, latex
from .cells import APART_MARK, MISSING_MARK, SEEDS_NOTE, TEXTS_NOTE, Cell, Column, format_cell, method_label

Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """Rows with one cell for each column; totals are kept apart, so that the CSV holds rows only."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    totals: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    comparison_notes: tuple[str, ...] = ()  # on published values and differences from them
    reference: str = ""  # the model of the published values, if it is not ours

    @property
    def empty(self) -> bool:
        return not self.rows

    @property
    def compares_models(self) -> bool:
        """Whether some row has published values of the model that was run."""
        numbers = [number for number, column in enumerate(self.columns) if column.side == "published"]
        has_published = any(not row[number].missing for row in self.rows for number in numbers)
        return has_published and not self.reference

    @property
    def caption(self) -> str:
        return " ".join([f"{self.title}.", *self.visible_notes])

    @property
    def visible_notes(self) -> tuple[str, ...]:
        """The notes on what is there: on published values, seeds and intervals only if there are some."""
        columns = [self.columns[number] for number in self.filled_columns]
        compared = any(column.side == "published" for column in columns)
        notes = self.notes + (self.comparison_notes if compared else ())
        several_seeds = any(column.heading[0] == "Seeds" for column in columns)
        ours = [number for number in self.filled_columns if self.columns[number].side in ("", "ours")]
        intervals = any(row[number].plus is not None for row in self.rows for number in ours)
        other_note = {SEEDS_NOTE: several_seeds, TEXTS_NOTE: intervals and not several_seeds}
        return tuple(note for note in notes if other_note.get(note, True))

    @cached_property
    def filled_columns(self) -> list[int]:
        """Numbers of the columns with a value in some row that is not the column's trivial one."""
        return [
            number
            for number, column in enumerate(self.columns)
            if self.empty or self._is_filled(number, column)
        ]

    def _is_filled(self, number: int, column: Column) -> bool:
        cells = (row[number] for row in self.rows)
        trivial = (cell.missing or (cell.mean is not None and cell.mean == column.trivial) for cell in cells)
        return column.role == "label" or not all(trivial)

    @cached_property
    def side_by_side(self) -> list[int]:
        """Positions of the filled columns, except for the section, which is a heading above its rows."""
        return [number for number in self.filled_columns if self.columns[number].role != "section"]

    def sections(self) -> list[tuple[str, list[Row]]]:
        """Return runs of rows with the same section; all rows under "" if there is no such column."""
        heads = [number for number, column in enumerate(self.columns) if column.role == "section"]
        parts = groupby(self.rows, key=lambda row: " ".join(row[number].text or "" for number in heads))
        return [(name, list(rows)) for name, rows in parts]

    def spans(self, rows: Sequence[Row], number: int) -> list[int]:
        """Return for each row how many rows share its group cell; 0 if a row above holds the cell."""
        spans: list[int] = []
        for _, equal in groupby(rows, key=lambda row: [cell.text for cell in row[: number + 1]]):
            height = len(list(equal))
            spans += [height, *[0] * (height - 1)]
        return spans

    def without_comparison(self) -> Table:
        """Return the table without published values and differences from them."""
        numbers = [
            n for n, column in enumerate(self.columns) if column.side not in ("published", "difference")
        ]

        def select(rows: tuple[Row, ...]) -> tuple[Row, ...]:
            return tuple(tuple(row[number] for number in numbers) for row in rows)

        columns = tuple(self.columns[number].without_comparison() for number in numbers)
        rows, totals = select(self.rows), select(self.totals)
        return replace(self, columns=columns, rows=rows, totals=totals, comparison_notes=())

    def to_csv(self) -> str:
        """Return the rows with all digits; lines end with CRLF as in the published files."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow([name for column in self.columns for name in column.names])
        for row in self.rows:
            pairs = zip(self.columns, row, strict=True)
            writer.writerow([field for column, cell in pairs for field in _csv_fields(cell, column)])
        return text.getvalue()

    def to_markdown(self) -> str:
        """Return a pipe table; the less relevant scores are in italics."""
        columns = [self.columns[number] for number in self.filled_columns]
        heads = [escape_markdown(" ".join(column.heading)) for column in columns]
        rules = ["---" if column.role != "value" else "---:" for column in columns]
        rows = [
            [_markdown_cell(row[number], self.columns[number]) for number in self.filled_columns]
            for row in (*self.rows, *self.totals)
        ]
        lines = ["| " + " | ".join(line) + " |" for line in (heads, rules, *rows)]
        return (
            "\n".join(
                [
                    f"**{escape_markdown(self.title)}.**",
                    "",
                    *lines,
                    "",
                    *map(escape_markdown, self.visible_notes),
                ]
            ).rstrip()
            + "\n"
        )

    def to_latex(self, label: str = "") -> str:
        """Return a table, or a longtable if it fills a page; it needs the packages `latex.PACKAGES`."""
        return latex.render(self, label)

    def to_html(self) -> str:
        """Return a `<table>` without style; the classes `grey` and `apart` mark cells."""
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


def _csv_fields(cell: Cell, column: Column) -> list[str]:
    """Return the fields of a cell with all digits; a spreadsheet never reads a text as a formula."""
    number = str(escape_formula(cell.text)) if cell.text is not None else _digits(cell.mean)
    mark = "" if cell.missing else str(cell.apart).lower()
    extra = [mark] if column.side == "difference" else [_digits(cell.minus), _digits(cell.plus)]
    return [number, *extra][: len(column.names)]


def _digits(number: float | None) -> str:
    return "" if number is None else repr(number)


def _markdown_cell(cell: Cell, column: Column) -> str:
    if cell.missing:
        return MISSING_MARK
    value = format_cell(cell, column)
    if column.form == "method":
        return escape_markdown("".join(method_label(value.main)))
    text = escape_markdown(value.main) + (f" ({value.minus}, {value.plus})" if value.plus else "")
    text += f" {APART_MARK}" if cell.apart else ""
    return f"*{text}*" if cell.grey else text
