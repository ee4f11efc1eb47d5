"""Blocks as HTML, by the templates of this package: fragments of pages, and cards of notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any

from .blocks import Block, Chart, Table
from .heat import Part, heat_lines, legend_parts
from .values import APART_MARK, format_cell, method_label

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 440, 220, 40, 26, 12, 22
"""Size and margins of the lead chart, in its own units."""
CHARACTER = 9
"""Width of a character of the label of an area, in these units."""


def render(blocks: Sequence[Block]) -> str:
    """Return the blocks as HTML without a style sheet; all text is escaped."""
    return str(_macros().show(blocks))


def render_table(table: Table) -> str:
    """Return a `<table>` with a caption, a `<tbody>` for each section, and totals in `<tfoot>`."""
    return str(_macros().table(table))


def part_html(part: Part) -> str:
    """Return the part as HTML for a page that includes `heat_style`."""
    return str(_macros().part(part))


def fill(name: str, **values: Any) -> str:
    """Return a template of this package with these values; every text in it is escaped."""
    return str(_templates().get_template(name).render(**values))


def _macros() -> Any:
    return _templates().get_template("blocks.html").module


@cache
def _templates() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # slow to import

    # without StrictUndefined, a name that is misspelled in a template would be an empty text
    environment = Environment(
        loader=PackageLoader(__package__, ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {
        "runs": _runs,
        "formatted": format_cell,
        "method_name": lambda name: "".join(method_label(name)),
        "head": _head,
        "picture": _picture,
        "heat_lines": heat_lines,
        "legend": legend_parts,
    }
    environment.globals["apart_mark"] = APART_MARK
    return environment


def _runs(blocks: Sequence[Block]) -> Iterator[tuple[str, list[Block]]]:
    """Yield runs of blocks of the same kind with its name; heat maps that follow each other share a table."""
    for kind, group in groupby(blocks, key=type):
        yield kind.__name__, list(group)


def _head(table: Table) -> Iterator[list[tuple[str, int, int]]]:
    """Yield the lines of the table head: each text with the columns and rows that it spans."""
    columns, lines = table.body.columns, list(table.head())
    for level, line in enumerate(lines):
        cells, at = [], 0
        for text, width in line:
            filled = list(filter(None, columns[at].heading))
            if width > 1 or len(filled) != 1:
                cells.append((text, width, 1))
            elif level == 0:  # the only line of a heading takes the whole height, and the lines below skip it
                cells.append((filled[0], 1, len(lines)))
            at += width
        yield cells


def _picture(chart: Chart) -> dict[str, Any]:
    """Return the positions of two curves, of the axes and of the label, in units of the picture."""
    low, high = chart.bounds
    right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM

    def place(percent: float, value: float) -> tuple[float, float]:
        # y grows downwards: `high` is at TOP, `low` at the floor
        return LEFT + (right - LEFT) * percent / 100, TOP + (floor - TOP) * (high - value) / (high - low)

    own, other = ([*map(place, chart.percents, values)] for values in chart.curves.values())
    widest = max(range(len(own)), key=lambda at: abs(own[at][1] - other[at][1]))
    # right of the second curve, where no line crosses the label, and inside the picture
    x = min(other[widest][0] + CHARACTER, WIDTH - len(chart.area) * CHARACTER)
    y = max(other[widest][1] - CHARACTER / 2, TOP + 2 * CHARACTER)
    digits = 0 if high - low >= 2 else 2
    levels = []
    for value in (low, (low + high) / 2, high):
        height = place(0, value)[1]
        levels.append((f"{height:.1f}", f"{height + 4:.0f}", f"{value:.{digits}f}"))
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": right,
        "bottom": floor + 18,
        "percents": [(f"{place(percent, low)[0]:.0f}", percent) for percent in (0, 25, 50, 75, 100)],
        "levels": levels,
        "line": _path(own),
        "baseline": _path(other),
        "between": _path([*own, *reversed(other)]),
        "label": (f"{x:.0f}", f"{y + 5:.0f}"),
    }


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
