"""A table in HTML: what is a heading says of what, and everything is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from .cells import APART, MISSING, Cell, Column, headings, method_label, written

if TYPE_CHECKING:
    from .table import Row, Table


def render(table: Table) -> str:
    said = f' <span class="notes">{escape(" ".join(table.said))}</span>' if table.said else ""
    caption = f"<caption>{escape(table.title)}.{said}</caption>"
    lines = ["<table>", caption, "<thead>", *_head(table), "</thead>"]
    for section, rows in table.sections():
        lines.append("<tbody>")
        if section:
            span = len(table.shown)
            lines.append(f'<tr><th scope="rowgroup" colspan="{span}">{escape(section)}</th></tr>')
        lines += [*_rows(table, rows), "</tbody>"]
    if table.totals:
        lines += ["<tfoot>", *_rows(table, table.totals, merge=False), "</tfoot>"]
    return "\n".join([*lines, "</table>"])


def _head(table: Table) -> Iterator[str]:
    columns = [table.columns[number] for number in table.shown]
    lines = list(headings(columns))
    alone = {at for at, column in enumerate(columns) if sum(map(bool, column.heading)) == 1}
    for level, line in enumerate(lines):
        cells, at = [], 0
        for text, width in line:
            if at in alone and width == 1:
                whole = "".join(columns[at].heading)
                cells += [] if level else [f'<th scope="col" rowspan="{len(lines)}">{escape(whole)}</th>']
            else:
                scope = f'scope="colgroup" colspan="{width}"' if width > 1 else 'scope="col"'
                cells.append(f"<th {scope}>{escape(text)}</th>")
            at += width
        yield f"<tr>{''.join(cells)}</tr>"


def _rows(table: Table, rows: Sequence[Row], *, merge: bool = True) -> Iterator[str]:
    groups = [at for at in table.shown if merge and table.columns[at].role == "group"]
    spans = {at: table.spans(rows, at) for at in groups}
    for number, row in enumerate(rows):
        cells = (
            _cell(row[at], table.columns[at], spans[at][number] if at in spans else 1) for at in table.shown
        )
        yield f"<tr>{''.join(cells)}</tr>"


def _cell(cell: Cell, column: Column, height: int) -> str:
    text = escape(MISSING) if cell.missing else _value(cell, column)
    if column.role != "value":
        rowspan = f' rowspan="{height}"' if height > 1 else ""
        return f'<th scope="row"{rowspan}>{text}</th>' if height else ""
    classes = [name for name in ("grey", "apart") if getattr(cell, name)]
    return f'<td class="{" ".join(classes)}">{text}</td>' if classes else f"<td>{text}</td>"


def _value(cell: Cell, column: Column) -> str:
    value = written(cell, column)
    if column.form == "method":
        return escape("".join(method_label(value.main)))
    text = escape(value.main)
    if column.form == "code":
        return f"<code>{text}</code>"
    bounds = f" <sub>{escape(value.minus)}</sub> <sup>{escape(value.plus)}</sup>" if value.plus else ""
    mark = f' <abbr title="the intervals do not overlap">{APART}</abbr>' if cell.apart else ""
    return text + bounds + mark
