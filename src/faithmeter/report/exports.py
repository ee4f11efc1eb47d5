"""Tables as files: Markdown, CSV with all digits, and LaTeX."""

from __future__ import annotations

import csv
import io
from itertools import chain
from pathlib import Path

from ..files import escape_formula, escape_markdown
from . import latex
from .blocks import Cell, Column, Table
from .values import APART_MARK, format_cell, method_label


def to_csv(table: Table) -> str:
    """Return the rows as CSV with all digits; lines end with CRLF as in the published files."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(chain.from_iterable(column.names for column in table.columns))
    for row in table.rows:
        writer.writerow(chain.from_iterable(map(_csv_fields, row, table.columns)))
    return text.getvalue()


def to_markdown(table: Table) -> str:
    """Return the table in Markdown with its title and notes; less relevant scores are in italics."""
    lines = [f"**{escape_markdown(table.title)}.**", "", *markdown_lines(table), ""]
    lines += map(escape_markdown, table.visible_notes)
    lines += [f"[{escape_markdown(title)}]({address})" for title, address in table.definitions]
    return "\n".join(lines).rstrip() + "\n"


def markdown_lines(table: Table) -> list[str]:
    """Return the lines of the table in Markdown, without title and notes."""
    filled = table.filled
    headings, marks = [], []
    for column in filled.columns:
        headings.append(escape_markdown(" ".join(filter(None, column.heading))))
        marks.append("---" if column.role != "value" else "---:")  # numbers are aligned to the right
    lines = [headings, marks]
    for row in (*filled.rows, *filled.totals):
        lines.append(list(map(_markdown_cell, row, filled.columns)))
    return [f"| {' | '.join(line)} |" for line in lines]


def save(table: Table, folder: str | Path, name: str) -> list[Path]:
    """Write name.md, name.csv and name.tex (labelled `tab:name`), and return their paths."""
    texts = {"md": to_markdown(table), "csv": to_csv(table), "tex": latex.render(table, f"tab:{name}")}
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = []
    for ending, text in texts.items():
        paths.append(Path(folder) / f"{name}.{ending}")
        paths[-1].write_text(text, encoding="utf-8", newline="")  # CSV has its own ends of lines
    return paths


def _csv_fields(cell: Cell, column: Column) -> list[str]:
    """Return the CSV fields of a cell with all digits; text that looks like a formula is escaped."""
    if isinstance(cell.value, str):  # a spreadsheet would run a name such as =1+1
        first = str(escape_formula(cell.value))
    else:
        is_hhmm = column.form == "time" and column.side == "published"
        first = format_cell(cell, column).value if is_hhmm and not cell.missing else _digits(cell.value)
    mark = "" if cell.missing else str("apart" in cell.mark).lower()
    extra = [mark] if column.side == "difference" else [_digits(cell.minus), _digits(cell.plus)]
    return [first, *extra][: len(column.names)]


def _digits(number: float | None) -> str:
    return "" if number is None else repr(number)


def _markdown_cell(cell: Cell, column: Column) -> str:
    text = format_cell(cell, column)
    if cell.missing:
        return text.value
    if column.form == "method":
        return escape_markdown("".join(method_label(text.value)))
    bounds = f" ({text.low}, {text.high})" if column.offsets else f" {text.interval}"
    value = escape_markdown(text.value) + (bounds if text.high else "")
    value += f" {APART_MARK}" if "apart" in cell.mark else ""
    return f"*{value}*" if "grey" in cell.mark else value
