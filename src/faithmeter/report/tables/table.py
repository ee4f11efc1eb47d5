"""Table with a title, columns and rows of cells, and its output formats."""

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
    """Table whose rows have one cell for each column; totals are separate and left out of the CSV."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    totals: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    comparison_notes: tuple[str, ...] = ()  # notes on published values and differences
    reference: str = ""  # model of the published values, if it is not the one that was run
    definitions: tuple[tuple[str, str], ...] = ()  # titles of columns, and addresses of their definitions

    @property
    def empty(self) -> bool:
        return not self.rows

    @property
    def compares_models(self) -> bool:
        """Whether any row has published values of the model that was run."""
        numbers = [number for number, column in enumerate(self.columns) if column.side == "published"]
        has_published = any(not row[number].missing for row in self.rows for number in numbers)
        return has_published and not self.reference

    @property
    def caption(self) -> str:
        addresses = "; ".join(f"{title}: {address}" for title, address in self.definitions)
        definitions = [f"Definitions: {addresses}."] if addresses else []
        return " ".join([f"{self.title}.", *self.visible_notes, *definitions])

    @property
    def visible_notes(self) -> tuple[str, ...]:
        """Notes that apply; notes on published values, seeds and intervals only if the table has any."""
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
        """Positions of the columns with a nontrivial value in some row; all columns if there are no rows."""
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
        """Positions of the filled columns, except for the section, which becomes a heading above its rows."""
        return [number for number in self.filled_columns if self.columns[number].role != "section"]

    def sections(self) -> list[tuple[str, list[Row]]]:
        """Return consecutive rows grouped by section; the name is "" if the table has no section column."""
        heads = [number for number, column in enumerate(self.columns) if column.role == "section"]
        parts = groupby(self.rows, key=lambda row: " ".join(row[number].text or "" for number in heads))
        return [(name, list(rows)) for name, rows in parts]

    def spans(self, rows: Sequence[Row], number: int) -> list[int]:
        """Return for each row how many rows its group cell spans; 0 if a cell above spans the row."""
        spans: list[int] = []
        for _, equal in groupby(rows, key=lambda row: [cell.text for cell in row[: number + 1]]):
            height = len(list(equal))
            spans += [height, *[0] * (height - 1)]
        return spans

    def without_comparison(self) -> Table:
        """Return the table without columns and notes of published values and differences."""
        numbers = [
            n for n, column in enumerate(self.columns) if column.side not in ("published", "difference")
        ]

        def select(rows: tuple[Row, ...]) -> tuple[Row, ...]:
            return tuple(tuple(row[number] for number in numbers) for row in rows)

        columns = tuple(self.columns[number].without_comparison() for number in numbers)
        rows, totals = select(self.rows), select(self.totals)
        return replace(self, columns=columns, rows=rows, totals=totals, comparison_notes=())

    def to_csv(self) -> str:
        """Return the rows as CSV with all digits; lines end with CRLF as in the published files."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow([name for column in self.columns for name in column.names])
        for row in self.rows:
            pairs = zip(self.columns, row, strict=True)
            writer.writerow([field for column, cell in pairs for field in _csv_fields(cell, column)])
        return text.getvalue()

    def to_markdown(self) -> str:
        """Return the table in Markdown with its title and notes; less relevant scores are in italics."""
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
                    *(f"[{escape_markdown(title)}]({address})" for title, address in self.definitions),
                ]
            ).rstrip()
            + "\n"
        )

    def to_latex(self, label: str = "") -> str:
        """Return the table in LaTeX, as a longtable if it is long; it needs the packages `latex.PACKAGES`."""
        return latex.render(self, label)

    def to_html(self) -> str:
        """Return a `<table>` without styles; the classes `grey` and `apart` mark cells."""
        return html.render(self)


def save(table: Table, folder: str | Path, name: str) -> list[Path]:
    """Write name.md, name.csv and name.tex (labelled `tab:name`), and return their paths."""
    texts = {"md": table.to_markdown(), "csv": table.to_csv(), "tex": table.to_latex(f"tab:{name}")}
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = []
    for ending, text in texts.items():
        paths.append(Path(folder) / f"{name}.{ending}")
        paths[-1].write_text(text, encoding="utf-8", newline="")
    return paths


def _csv_fields(cell: Cell, column: Column) -> list[str]:
    """Return the CSV fields of a cell with all digits; text that looks like a formula is escaped."""
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
