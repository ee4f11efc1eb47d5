"""Tables as files: Markdown, CSV with all digits, and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import chain
from operator import attrgetter
from pathlib import Path

from ..files import escape_formula, escape_markdown
from .blocks import Cell, Column, Place, Table
from .values import APART_MARK, format_cell, method_label

PACKAGES = ("booktabs", "longtable", "multirow", "pdflscape", "textcomp", "xcolor")
MAX_ROWS_PER_PAGE = 30  # also on a page in landscape format
SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "†": r"\textdagger{}",
    "×": r"$\times$",
    "−": "$-$",
} | {character: "\\" + character for character in "&%$#_{}"}


def to_csv(table: Table) -> str:
    """Return the rows as CSV with all digits; lines end with CRLF as in the published files."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(chain.from_iterable(map(attrgetter("names"), table.columns)))
    for row in table.rows:
        writer.writerow(chain.from_iterable(map(_csv_fields, row, table.columns)))
    return text.getvalue()


def to_markdown(table: Table) -> str:
    """Return the table in Markdown with its title and notes; less relevant scores are in italics."""
    lines = [f"**{escape_markdown(table.title)}.**", "", *markdown_lines(table), ""]
    lines += map(escape_markdown, table.visible_notes)
    for title, address in table.definitions:
        lines.append(f"[{escape_markdown(title)}]({address})")
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
    return list(map("| {} |".format, map(" | ".join, lines)))


def save(table: Table, folder: str | Path, name: str) -> list[Path]:
    """Write name.md, name.csv and name.tex (labelled `tab:name`), and return their paths."""
    texts = {"md": to_markdown(table), "csv": to_csv(table), "tex": to_latex(table, f"tab:{name}")}
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


def escape_latex(text: str) -> str:
    """Return a text with the special characters of LaTeX escaped."""
    # in one pass: replaced one after another, the braces of \\textbackslash{} would be escaped again
    return re.sub("|".join(map(re.escape, SPECIAL)), lambda match: SPECIAL[match[0]], text)


def to_latex(table: Table, label: str) -> str:
    """Return a table in LaTeX, set as in the paper, with bounds as sub- and superscripts.

    The font is smaller for more than 7 columns, and the page in landscape format for more than 12.
    """
    columns = table.body.columns
    size = r"\small" if len(columns) <= 7 else r"\scriptsize\setlength{\tabcolsep}{3pt}"
    if 3 in map(len, map(attrgetter("names"), columns)):  # room for stacked bounds
        size += r"\renewcommand{\arraystretch}{1.2}"
    lines_of = _short_table if len(table.rows) + len(table.totals) <= MAX_ROWS_PER_PAGE else _long_table
    lines = [*lines_of(table, columns, size, label), ""]
    if len(columns) > 12:
        lines = [r"\begin{landscape}", *lines[:-1], r"\end{landscape}", ""]
    return "\n".join(lines)


def _short_table(table: Table, columns: tuple[Column, ...], size: str, label: str) -> Iterator[str]:
    yield from (r"\begin{table}[ht]", r"\centering", _caption(table, label) + r"\vspace{0.1in}", size)
    yield from (rf"\begin{{tabular}}{{{_align(columns)}}}", r"\toprule", *_head(table), r"\midrule")
    yield from (*_body(table, columns), r"\bottomrule", r"\end{tabular}", r"\end{table}")


def _long_table(table: Table, columns: tuple[Column, ...], size: str, label: str) -> Iterator[str]:
    """Yield the lines of a table over several pages, each of which repeats the table head."""
    head = (r"\toprule", *_head(table), r"\midrule")
    yield from (
        "{" + size,
        r"\setlength{\LTcapwidth}{\linewidth}",
        rf"\begin{{longtable}}{{{_align(columns)}}}",
    )
    yield from (_caption(table, label) + r" \\", *head, r"\endfirsthead", *head, r"\endhead", r"\endfoot")
    yield from (r"\bottomrule", r"\endlastfoot", *_body(table, columns), r"\end{longtable}", "}")


def _caption(table: Table, label: str) -> str:
    addresses = "; ".join(map(": ".join, table.definitions))
    definitions = [f"Definitions: {addresses}."] if addresses else []
    text = " ".join([f"{table.title}.", *table.visible_notes, *definitions])
    return rf"\caption{{{escape_latex(text)}}}" + (rf"\label{{{label}}}" if label else "")


def _align(columns: tuple[Column, ...]) -> str:
    return "".join("c" if column.role == "value" else "l" for column in columns)


def _head(table: Table) -> Iterator[str]:
    for line in table.head():
        cells, rules, at = [], [], 1
        for text, width in line:
            cell = escape_latex(text)
            cells.append(cell if width == 1 else rf"\multicolumn{{{width}}}{{c}}{{{cell}}}")
            rules += [rf"\cmidrule(r){{{at}-{at + width - 1}}}"] if width > 1 else []
            at += width
        yield " & ".join(cells) + r" \\"
        if rules:
            yield " ".join(rules)


def _body(table: Table, columns: tuple[Column, ...]) -> Iterator[str]:
    for number, (section, rows) in enumerate(table.sections()):
        if number:
            yield r"\midrule"
        if section:  # no rule below, because a page could break after it
            yield rf"\multicolumn{{{len(columns)}}}{{l}}{{\textbf{{{escape_latex(section)}}}}} \\*"
        yield from _rows(list(table.lines(rows)), len(columns))
    if table.totals:
        yield "\\midrule\n\\midrule"
    for line in table.lines(table.body.totals, merge=False):
        yield " & ".join(map(_cell, line)) + r" \\"


def _rows(lines: list[list[Place]], width: int) -> Iterator[str]:
    """Yield the lines of rows, without page breaks inside a group and with rules or space between groups."""
    heights = list(map(_group_heights, lines))
    for number, line in enumerate(lines):
        if number and any(heights[number]):
            yield rf"\cmidrule{{1-{width}}}" if heights[number][0] else r"\addlinespace"
        # after \\* no page can break; the outermost group goes on while its next height is 0
        goes_on = number + 1 < len(lines) and heights[number + 1][:1] == [0]
        yield " & ".join(map(_cell, line)) + (r" \\*" if goes_on else r" \\")


def _group_heights(line: list[Place]) -> list[int]:
    return [place.height for place in line if place.column.role == "group"]


def _cell(place: Place) -> str:
    column, cell, height = place
    if not height:
        return ""
    text = "--" if cell.missing else _value(cell, column)
    text = rf"\textcolor{{gray}}{{{text}}}" if "grey" in cell.mark else text
    return rf"\multirow[c]{{{height}}}{{*}}{{{text}}}" if height > 1 else text


def _value(cell: Cell, column: Column) -> str:
    value = format_cell(cell, column)
    if column.form == "method":
        label, options = method_label(value.value, latex=True)
        return label + escape_latex(options)
    text = escape_latex(value.value)
    if column.form == "code":
        return rf"\texttt{{{text}}}"
    if cell.number is None or (column.form == "time" and column.side == "published"):
        return text
    if column.form == "time":
        return text.replace("-", "$-$")
    mark = r"^{\dagger}" if "apart" in cell.mark else ""
    return f"${text}_{{{value.low}}}^{{{value.high}}}$" if value.high else f"${text}{mark}$"
