"""Blocks as HTML: fragments of pages, and cards of notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Any

from .blocks import Block, Cell, Chart, Code, Column, HeatMap, Row, Section, Sentence, Table
from .heat import Part, heat_parts, legend_parts, list_strongest
from .values import APART_MARK, format_cell, method_label

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 440, 220, 40, 26, 12, 22
"""Size and margins of the lead chart, in its own units."""
CHARACTER = 9
"""Width of a character of the label of an area, in these units."""


def render(blocks: Sequence[Block]) -> str:
    """Return the blocks as HTML without a style sheet; all text is escaped."""
    parts: list[str] = []
    for kind, group in groupby(blocks, key=type):
        own: list[Any] = list(group)
        drawn = [_heat_table(own)] if kind is HeatMap else [RENDERERS[kind](block) for block in own]
        # neighboring sections are compared, side by side where the screen is wide enough
        parts += ["<div class='beside'>", *drawn, "</div>"] if kind is Section and len(own) > 1 else drawn
    return "".join(parts)


def _sentence(sentence: Sentence) -> str:
    if sentence.role == "fact" and sentence.mood == "note":
        return f"<p>{escape(sentence.text)}</p>"
    lead = f"<strong>{escape(sentence.lead)}</strong> " if sentence.lead else ""
    if len(sentence.points) > 1:
        points = "".join(f"<li>{escape(point)}</li>" for point in sentence.points)
        return f"<div class='callout {sentence.role} {sentence.mood}'>{lead}<ul>{points}</ul></div>"
    return f"<p class='callout {sentence.role} {sentence.mood}'>{lead}{escape(sentence.text)}</p>"


def _table(table: Table) -> str:
    """Return the table in a box that can be scrolled sideways."""
    attributes = f'class="scroll numbers" tabindex="0" role="group" aria-label="{escape(table.title)}"'
    return f"<div {attributes}>{render_table(table)}</div>"


def render_table(table: Table) -> str:
    """Return a `<table>` with a caption, a `<tbody>` for each section, and totals in `<tfoot>`."""
    links = [f'<a href="{escape(address)}">{escape(title)}</a>' for title, address in table.definitions]
    notes = [*map(escape, table.visible_notes), *([f"Definitions: {', '.join(links)}."] if links else [])]
    text = f' <span class="notes">{" ".join(notes)}</span>' if notes else ""
    caption = f"<caption>{escape(table.title)}.{text}</caption>"
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
    columns = [table.columns[at] for at in table.side_by_side]
    lines = list(table.head())
    alone = {at for at, column in enumerate(columns) if sum(map(bool, column.heading)) == 1}
    for level, line in enumerate(lines):
        cells, at = [], 0
        for text, width in line:
            if at in alone and width == 1:
                whole = "".join(columns[at].heading)
                rowspan = f' rowspan="{len(lines)}"' if len(lines) > 1 else ""
                cells += [] if level else [f'<th scope="col"{rowspan}>{escape(whole)}</th>']
            else:
                scope = f'scope="colgroup" colspan="{width}"' if width > 1 else 'scope="col"'
                cells.append(f"<th {scope}>{escape(text)}</th>")
            at += width
        yield f"<tr>{''.join(cells)}</tr>"


def _rows(table: Table, rows: Sequence[Row], *, merge: bool = True) -> Iterator[str]:
    groups = [at for at in table.side_by_side if merge and table.columns[at].role == "group"]
    spans = {at: table.spans(rows, at) for at in groups}
    for number, row in enumerate(rows):
        cells = [
            _cell(row[at], table.columns[at], spans[at][number] if at in spans else 1)
            for at in table.side_by_side
        ]
        yield f"<tr>{''.join(cells)}</tr>"


def _cell(cell: Cell, column: Column, height: int) -> str:
    if column.role != "value":
        rowspan = f' rowspan="{height}"' if height > 1 else ""
        return f'<th scope="row"{rowspan}>{_value(cell, column)}</th>' if height else ""
    attribute = f' class="{cell.mark}"' if cell.mark else ""
    return f"<td{attribute}>{_value(cell, column)}</td>"


def _value(cell: Cell, column: Column) -> str:
    text = format_cell(cell, column)
    if column.form == "method":
        return escape("".join(method_label(text.value)))
    if column.form == "code" and not cell.missing:
        return f"<code>{escape(text.value)}</code>"
    bounds = f" <small>{escape(text.interval)}</small>"
    if column.offsets:
        bounds = f" <sub>{escape(text.low)}</sub> <sup>{escape(text.high)}</sup>"
    mark = f' <abbr title="the intervals do not overlap">{APART_MARK}</abbr>' if "apart" in cell.mark else ""
    return escape(text.value) + (bounds if text.high else "") + mark


def _chart(chart: Chart) -> str:
    """Return two curves as a picture in SVG, with the area between them; it takes the page's colors."""
    encoding, frame = chart.encoding, chart.frame
    names = encoding["order"]
    curves = [[row for row in frame if row[encoding["color"]] == name] for name in names]
    values = [row[encoding["y"]] for row in frame]
    low, high = min(0.0, *values), max(values) or 1.0

    def place(percent: float, value: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * percent / 100
        return x, TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    points = [[place(row[encoding["x"]], row[encoding["y"]]) for row in own] for own in curves]
    label = f"{chart.title}: {names[0]} against {names[1]}, {encoding['area']}"
    lines = [
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' role='img' aria-label='{escape(label)}'>",
        *_axes(place, (low, high), encoding["x"]),
        f"<path class='between' d='{_path([*points[0], *reversed(points[1])])}Z'/>",
        f"<path class='line baseline' d='{_path(points[1])}'/>",
        f"<path class='line' d='{_path(points[0])}'/>",
        _area_label(str(encoding["area"]), points),
        "</svg>",
    ]
    keys = "".join(f"<span class='key'>{escape(name)}</span>" for name in names)
    caption = f"<figcaption>{escape(chart.title)}<span class='keys'>{keys}</span></figcaption>"
    return f"<figure class='area'>{caption}{''.join(lines)}</figure>"


def _axes(place: Any, bounds: tuple[float, float], unit: str) -> Iterator[str]:
    low, high = bounds
    for percent in (0, 25, 50, 75, 100):
        x, y = place(percent, low)
        yield f"<text x='{x:.0f}' y='{y + 18:.0f}' text-anchor='middle'>{percent} %</text>"
    digits = 0 if high - low >= 2 else 2
    for value in (low, (low + high) / 2, high):
        x, y = place(0, value)
        right, _ = place(100, value)
        yield f"<path class='axis' d='M{x:.0f},{y:.1f}H{right:.0f}'/>"
        yield f"<text x='{x - 8:.0f}' y='{y + 4:.0f}' text-anchor='end'>{value:.{digits}f}</text>"


def _area_label(text: str, points: Sequence[Sequence[tuple[float, float]]]) -> str:
    """Return the label of the area, where the curves are furthest apart."""
    gaps = [abs(own[1] - other[1]) for own, other in zip(*points, strict=True)]
    widest = gaps.index(max(gaps))
    half = len(text) * CHARACTER / 2  # the label must not leave the picture
    x = min(max(points[0][widest][0], LEFT + half), WIDTH - half)
    y = (points[0][widest][1] + points[1][widest][1]) / 2
    return f"<text class='label' x='{x:.0f}' y='{y + 5:.0f}' text-anchor='middle'>{escape(text)}</text>"


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _heat_table(maps: Sequence[HeatMap]) -> str:
    """Return a row of colored words for each heat map, the strongest words, and the legend."""
    rows, method = [], None
    for number, one in enumerate(maps):
        name = one.method if one.method != method else ""
        method = one.method
        rows.append(_heat_row(name, one.pieces, "".join(map(part_html, heat_parts(one))), " class='text'"))
        if number + 1 == len(maps) or maps[number + 1].method != method:
            words = next(other for other in maps if other.method == method)
            rows.append(_heat_row("", "strongest", escape(list_strongest(words))))
    signed = {one.signed for one in maps}
    legend = legend_parts(maps[0].label, signed=True in signed, unsigned=False in signed)
    table = f"<table class='heat-map'>{''.join(rows)}</table>"
    return f"{table}<p class='soft'>{' '.join(map(part_html, legend))}</p>"


def _heat_row(method: str, kind: str, content: str, attribute: str = "") -> str:
    return f"<tr><th>{escape(method)}</th><td class='soft'>{kind}</td><td{attribute}>{content}</td></tr>"


def part_html(part: Part) -> str:
    """Return the part as HTML for a page that includes `heat_style`."""
    if not part.is_colored:
        return escape(part.text)
    title = f" title='{escape(part.title)}'" if part.title else ""
    attributes = f"class='heat {part.tone.name}' style='--share:{part.strength:.3f}'{title}"
    return f"<span {attributes}>{escape(part.text)}</span>"


def _code(code: Code) -> str:
    return f"<pre>{escape(code.text)}</pre>"


def _section(section: Section) -> str:
    content = render(section.blocks)
    if section.folded:
        return f"<details><summary>{escape(section.title)}</summary>{content}</details>"
    return f"<section><h2>{escape(section.title)}</h2>{content}</section>"


RENDERERS: dict[type[Any], Any] = {
    Sentence: _sentence,
    Table: _table,
    Chart: _chart,
    Code: _code,
    Section: _section,
}
