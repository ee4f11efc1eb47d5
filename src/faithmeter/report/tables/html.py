"""Tables in HTML; headings have a scope, and all text is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from .cells import APART_MARK, MISSING_MARK, Cell, Column, format_cell, heading_lines, method_label

if TYPE_CHECKING:
    from .table import Row, Table


def render(table: Table) -> str:
    """Return a `<table>` with a caption, a `<tbody>` for each section, and totals in `<tfoot>`."""
    links = ", ".join(
        f'<a href="{escape(address)}">{escape(title)}</a>' for title, address in table.definitions
    )
    notes = " ".join([*map(escape, table.visible_notes), *([f"Definitions: {links}."] if links else [])])
    notes = f' <span class="notes">{notes}</span>' if notes else ""
    caption = f"<caption>{escape(table.title)}.{notes}</caption>"
    lines = ["<table>", caption, "<thead>", *_head(table), "</thead>"]
    for section, rows in table.sections():
        lines.append("<tbody>")
        if section:
            span = len(table.side_by_side)
            lines.append(f'<tr><th scope="rowgroup" colspan="{span}">{escape(section)}</th></tr>')
        lines += [*_rows(table, rows), "</tbody>"]
    if table.totals:
        lines += ["<tfoot>", *_rows(table, table.totals, merge=False), "</tfoot>"]
    return "\n".join([*lines, "</table>"])


def _head(table: Table) -> Iterator[str]:
    columns = [table.columns[number] for number in table.side_by_side]
    lines = list(heading_lines(columns))
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
    groups = [at for at in table.side_by_side if merge and table.columns[at].role == "group"]
    spans = {at: table.spans(rows, at) for at in groups}
    for number, row in enumerate(rows):
        cells = (
            _cell(row[at], table.columns[at], spans[at][number] if at in spans else 1)
            for at in table.side_by_side
        )
        yield f"<tr>{''.join(cells)}</tr>"


def _cell(cell: Cell, column: Column, height: int) -> str:
    text = escape(MISSING_MARK) if cell.missing else _value(cell, column)
    if column.role != "value":
        rowspan = f' rowspan="{height}"' if height > 1 else ""
        return f'<th scope="row"{rowspan}>{text}</th>' if height else ""
    classes = [name for name in ("grey", "apart") if getattr(cell, name)]
    return f'<td class="{" ".join(classes)}">{text}</td>' if classes else f"<td>{text}</td>"


def _value(cell: Cell, column: Column) -> str:
    value = format_cell(cell, column)
    if column.form == "method":
        return escape("".join(method_label(value.main)))
    text = escape(value.main)
    if column.form == "code":
        return f"<code>{text}</code>"
    bounds = f" <sub>{escape(value.minus)}</sub> <sup>{escape(value.plus)}</sup>" if value.plus else ""
    mark = f' <abbr title="the intervals do not overlap">{APART_MARK}</abbr>' if cell.apart else ""
    return text + bounds + mark
