"""Tables in LaTeX, set as in the paper: booktabs, multirow groups, bounds as sub- and superscripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .blocks import Cell, Column, Place, Table
from .values import format_cell, method_label

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


def escape(text: str) -> str:
    """Return a text with the special characters of LaTeX escaped."""
    # in one pass: replaced one after another, the braces of \\textbackslash{} would be escaped again
    return re.sub("|".join(map(re.escape, SPECIAL)), lambda match: SPECIAL[match[0]], text)


def render(table: Table, label: str) -> str:
    """Return a table in LaTeX.

    The font is smaller for more than 7 columns, and the page in landscape format for more than 12.
    """
    columns = table.body.columns
    size = r"\small" if len(columns) <= 7 else r"\scriptsize\setlength{\tabcolsep}{3pt}"
    if any(len(column.names) == 3 for column in columns):  # room for stacked bounds
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
    addresses = "; ".join(f"{title}: {address}" for title, address in table.definitions)
    definitions = [f"Definitions: {addresses}."] if addresses else []
    text = " ".join([f"{table.title}.", *table.visible_notes, *definitions])
    return rf"\caption{{{escape(text)}}}" + (rf"\label{{{label}}}" if label else "")


def _align(columns: tuple[Column, ...]) -> str:
    return "".join("c" if column.role == "value" else "l" for column in columns)


def _head(table: Table) -> Iterator[str]:
    for line in table.head():
        cells, rules, at = [], [], 1
        for text, width in line:
            cells.append(escape(text) if width == 1 else rf"\multicolumn{{{width}}}{{c}}{{{escape(text)}}}")
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
            yield rf"\multicolumn{{{len(columns)}}}{{l}}{{\textbf{{{escape(section)}}}}} \\*"
        yield from _rows(list(table.lines(rows)), len(columns))
    if table.totals:
        yield "\\midrule\n\\midrule"
    for line in table.lines(table.body.totals, merge=False):
        yield " & ".join(map(_cell, line)) + r" \\"


def _rows(lines: list[list[Place]], width: int) -> Iterator[str]:
    """Yield the lines of rows, without page breaks inside a group and with rules or space between groups."""
    heights = [[place.height for place in line if place.column.role == "group"] for line in lines]
    for number, line in enumerate(lines):
        if number and any(heights[number]):
            yield rf"\cmidrule{{1-{width}}}" if heights[number][0] else r"\addlinespace"
        # after \\* no page can break; the outermost group goes on while its next height is 0
        goes_on = number + 1 < len(lines) and heights[number + 1][:1] == [0]
        yield " & ".join(map(_cell, line)) + (r" \\*" if goes_on else r" \\")


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
        return label + escape(options)
    text = escape(value.value)
    if column.form == "code":
        return rf"\texttt{{{text}}}"
    if cell.number is None or (column.form == "time" and column.side == "published"):
        return text
    if column.form == "time":
        return text.replace("-", "$-$")
    mark = r"^{\dagger}" if "apart" in cell.mark else ""
    return f"${text}_{{{value.low}}}^{{{value.high}}}$" if value.high else f"${text}{mark}$"
