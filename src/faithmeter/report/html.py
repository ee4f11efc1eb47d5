"""Blocks as HTML, by the templates, style sheets and scripts of this package."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..measuring.explanation import STRONGEST_WORDS
from .blocks import Block, Chart, Table
from .heat import FAINT, SCORE_DIGITS, TONES, Part, heat_lines, legend_parts
from .values import APART_MARK, format_cell, method_label

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 440, 220, 40, 26, 12, 22
"""Size and margins of the lead chart, in its own units."""
CHARACTER, LINE_HEIGHT = 9, 22
"""Width of a character of the label of an area and height of its line, in these units."""


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


def fill_page(name: str, scripts: Sequence[str] = (), **values: Any) -> str:
    """Return a page from a template, with the style of the report and scripts that it may run."""
    from markupsafe import Markup

    style = heat_style() + resource("styles/area.css") + resource("page/page.css")
    values |= {"style": Markup(style), "scripts": list(map(Markup, scripts))}
    return fill(name, policy=_policy(scripts, style), **values)


@cache
def resource(path: str) -> str:
    """Return a style sheet or script of this package."""
    return files(__package__).joinpath(path).read_text(encoding="utf-8")


def palette_style(scope: str = ":root") -> str:
    """Return the CSS that defines the colors and fonts as variables of the selector `scope`."""
    return resource("styles/palette.css").replace(":root", scope)


def heat_style(scope: str = ":root") -> str:
    """Return the CSS of heat maps: colors as variables of the selector `scope`, and rules."""
    lines = []
    for tone in TONES:
        for end, light, dark in (("", tone.light, tone.dark), ("-line", tone.light_line, tone.dark_line)):
            colors = f"light-dark(rgb({_channels(light)}), rgb({_channels(dark)}))"
            lines.append(f"  --{tone.name}{end}: {colors};")
    return f"{scope} {{\n" + "\n".join(lines) + "\n}\n" + resource("styles/heat.css")


def _channels(color: Sequence[int]) -> str:
    return " ".join(map(str, color))


def heat_script() -> str:
    """Return the JavaScript of heat maps: the constants of `heat`, and a function that applies them."""
    constants = {"FAINT": FAINT, "STRONGEST_WORDS": STRONGEST_WORDS, "SCORE_DIGITS": SCORE_DIGITS}
    return f"const HEAT = {json.dumps(constants)};\n" + resource("styles/heat.js")


def _policy(scripts: Sequence[str], style: str) -> str:
    """Return a content security policy that forbids requests and allows only these scripts and styles."""

    def sources(*contents: str) -> str:
        # by their hashes, so that a script in a text of the data could not run even if it were not escaped
        hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in contents)
        return " ".join(map("'sha256-{}'".format, hashes))

    return (
        f"default-src 'none'; script-src {sources(*scripts)}; style-src {sources(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


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
    right, floor, digits = WIDTH - RIGHT, HEIGHT - BOTTOM, 0 if high - low >= 2 else 2

    def across(percents: Sequence[float]) -> NDArray[Any]:
        return LEFT + (right - LEFT) * np.asarray(percents) / 100

    def up(values: Sequence[float]) -> NDArray[Any]:
        # y grows downwards: `high` is at TOP, `low` at the floor
        return TOP + (floor - TOP) * (high - np.asarray(values)) / (high - low)

    ticks, levels = (0, 25, 50, 75, 100), []
    for value in (low, (low + high) / 2, high):
        levels.append((f"{up([value])[0]:.1f}", f"{up([value])[0] + 4:.0f}", f"{value:.{digits}f}"))
    own, other = (np.stack([across(chart.percents), up(values)], axis=1) for values in chart.curves.values())
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": right,
        "bottom": floor + 18,
        "percents": list(zip(across(ticks).round().astype(int), ticks, strict=True)),
        "levels": levels,
        "line": _path(own),
        "baseline": _path(other),
        "between": _path(np.concatenate([own, other[::-1]])),
        "label": _place_label(own, other, len(chart.area) * CHARACTER),
    }


def _place_label(own: NDArray[Any], other: NDArray[Any], width: int) -> tuple[int, int]:
    """Return the start of the label's base line where no curve crosses it: in the area, above or below."""
    xs = np.arange(LEFT, WIDTH - RIGHT)
    curves = np.stack([np.interp(xs, *curve.T) for curve in (own, other)])
    upper, lower = curves.min(axis=0), curves.max(axis=0)
    spots = []
    for start in range(0, max(1, len(xs) - width), CHARACTER):
        above, below = upper[start : start + width], lower[start : start + width]
        # free bands over the width of the label, from the best to the worst: in the area, above, below
        bands = (above.max(), below.min()), (0, above.min()), (below.max(), HEIGHT - BOTTOM)
        for rank, (top, bottom) in enumerate(bands):
            if bottom - top >= LINE_HEIGHT:
                spots.append((rank, top - bottom, LEFT + start, round((top + bottom) / 2) + 5))
    *_, x, y = min(spots, default=(0, 0.0, WIDTH - width, TOP + LINE_HEIGHT))
    return x, y


def _path(points: NDArray[Any]) -> str:
    return "L".join(map("{0[0]:.1f},{0[1]:.1f}".format, points))
