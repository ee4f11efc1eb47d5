"""Blocks in a terminal, by rich; every line fits the width of the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, starmap
from operator import attrgetter
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from ..verdict.formats import format_number
from .blocks import Block, Chart, Code, HeatMap, Section, Sentence, Table
from .heat import AGAINST, Part, heat_lines, legend_parts
from .values import format_cell

MARKS = {
    "good": ("✓ ", "green"),
    "caution": ("! ", "yellow"),
    "bad": ("✕ ", "red"),
    "note": ("· ", "dim"),
}
"""Mark and style of a sentence, by mood."""
MIN_NAME_WIDTH = 12
"""Width to which the first column of a table may be folded before its other columns are split."""
PLOT_HEIGHT = 9
MAX_PLOT_WIDTH = 60


def render(blocks: Sequence[Block]) -> RenderableType:
    """Return the blocks as something that rich prints."""
    parts: list[RenderableType] = []
    for kind, group in groupby(blocks, key=type):
        own: list[Any] = list(group)
        if parts and kind is not HeatMap:
            parts.append(Text())
        if kind is HeatMap:
            parts += [_heat_grid(own), _legend(own)]
        else:
            for number, block in enumerate(own):
                if number and kind is Table:  # sentences stand below each other, tables apart
                    parts.append(Text())
                parts.append(RENDERERS[kind](block))
    return Group(*parts)


@dataclass(frozen=True)
class Line:
    """Sentence after its mark; wrapped lines are indented below its first word."""

    sentence: Sentence

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        sentence = self.sentence
        mark, style = MARKS[sentence.mood] if sentence.role != "fact" else ("", "")
        if not sentence.text:
            mark = " " * len(mark)
        parts = (sentence.lead, "bold"), (sentence.text, "bold" if sentence.role == "top" else "")
        text = Text(" ").join(Text(*part) for part in parts if part[0])
        if options.no_wrap:  # a pipe has no width: one line, which other programs can search
            yield Text.assemble((mark, style), text)
            return
        # rich would indent only the first line; the others stand below the first word, too
        lines = text.wrap(console, max(1, options.max_width - len(mark)))
        for number, line in enumerate(lines):
            yield Text.assemble((mark, style) if number == 0 else " " * len(mark), line)


@dataclass(frozen=True)
class FittedTable:
    """Table of which no value is ever cut: its names are folded, then its columns are split into parts."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        names, *values = _text_columns(self.table)
        width = options.max_width
        # two blanks between columns where there is room, one before a column has to go below
        gap = 2 if names.width + _width(values, 2) <= width else 1
        yield Text(self.table.title, "bold")
        for part in _split(values, width - min(names.width, MIN_NAME_WIDTH), gap):
            room = width - _width(part, gap)
            yield _grid(self.table, [names.folded(max(1, room)), *part], gap)
        for note in self.table.visible_notes:
            yield Text(note, "italic dim")


@dataclass(frozen=True)
class TextColumn:
    """Column as texts, the heading first."""

    texts: list[str]
    is_number: bool

    @property
    def width(self) -> int:
        return max(map(cell_len, "\n".join(self.texts).split("\n")))

    def folded(self, width: int) -> TextColumn:
        """Return the column with line breaks between the options of a method where its name is too long."""
        return TextColumn(list(map(partial(_fold, width=width), self.texts)), self.is_number)


def _text_columns(table: Table) -> Iterator[TextColumn]:
    """Yield the filled columns as texts, and a column of intervals after each column that has any."""
    filled = table.filled
    rows = [*filled.rows, *filled.totals]
    for at, column in enumerate(filled.columns):
        is_number = column.role == "value"
        heading = " ".join(filter(None, column.heading))
        texts = [format_cell(row[at], column) for row in rows]
        yield TextColumn([heading, *map(attrgetter("value"), texts)], is_number)
        intervals = list(map(attrgetter("interval"), texts))
        if any(intervals):
            yield TextColumn(["[95 %]", *intervals], is_number)


def _width(columns: Sequence[TextColumn], gap: int) -> int:
    return sum(column.width + gap for column in columns)


def _fold(text: str, width: int) -> str:
    lines = [""]
    for part in re.split(r"(?<=[(,\s])", text):
        if lines[-1] and cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _split(columns: Sequence[TextColumn], room: int, gap: int) -> Iterator[list[TextColumn]]:
    """Yield consecutive columns that fit into the room together, at least one at a time."""
    part: list[TextColumn] = []
    for column in columns:
        if part and _width([*part, column], gap) > room:
            yield part
            part = []
        part.append(column)
    yield part


def _grid(table: Table, columns: Sequence[TextColumn], gap: int) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    for number, column in enumerate(columns):
        justify: Any = "right" if column.is_number else "left"
        least = column.width if number else None  # a name may still be folded, a value never
        grid.add_column(
            Text(column.texts[0]), justify=justify, overflow="fold", no_wrap=number > 0, min_width=least
        )
    _, *lines = zip(*map(attrgetter("texts"), columns), strict=True)
    for row, texts in zip([*table.rows, *table.totals], lines, strict=True):
        grid.add_row(*map(Text, texts), style="dim" if "grey" in row[0].mark else "")
    return grid


@dataclass(frozen=True)
class Plot:
    """Two curves drawn with characters, and the area between them."""

    chart: Chart

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        method, baseline = self.chart.curves
        low, high = self.chart.bounds
        decimals = 0 if high - low >= 2 else 2
        top, bottom = format_number(high, decimals), format_number(low, decimals)
        margin = max(len(top), len(bottom))
        width = max(11, min(MAX_PLOT_WIDTH, options.max_width - margin - 2))
        marks = "o.:" if options.ascii_only else "●·░"
        yield Text(self.chart.title, "dim")
        labels = [top, *[""] * (PLOT_HEIGHT - 2), bottom]
        for label, row in zip(labels, _plot(self.chart, width, marks), strict=True):
            yield Text.assemble((f"{label:>{margin}} ", "dim"), _color_plot(row, marks))
        yield Text(" " * (margin + 1) + "0" + "100".rjust(width - 1), "dim")
        key = f"{marks[0]} {method}   {marks[1]} {baseline}   {marks[2]} {self.chart.area}"
        yield Text(" " * (margin + 1) + key)


def _plot(chart: Chart, width: int, marks: str) -> list[str]:
    """Return the lines of a plot: the first curve, the second, and what lies between them."""
    import numpy as np

    low, high = chart.bounds
    points = np.linspace(0, 100, width)
    canvas = np.full((PLOT_HEIGHT, width), " ")
    heights = []
    for values in chart.curves.values():
        shares = (high - np.interp(points, chart.percents, values)) / (high - low)  # 0 is the top line
        heights.append(np.rint(shares * (PLOT_HEIGHT - 1)).astype(int))
    for place, (own, other) in enumerate(zip(*heights, strict=True)):
        canvas[min(own, other) : max(own, other), place] = marks[2]
        canvas[other, place] = marks[1]
        canvas[own, place] = marks[0]  # last: where both curves are, the method is seen
    return list(map("".join, canvas))


def _color_plot(row: str, marks: str) -> Text:
    text = Text(row.rstrip())
    text.highlight_words([marks[0]], "bold cyan")
    text.highlight_words([marks[2]], "cyan dim")
    return text


def _heat_grid(maps: Sequence[HeatMap]) -> Grid:
    """Return a line of colored words for each heat map, and its strongest words below."""
    grid = Grid.grid(padding=(0, 2))
    for method, kind, parts in heat_lines(maps):
        grid.add_row(Text(method, "bold"), Text(kind, "dim"), Text.assemble(*map(part_text, parts)))
    return grid


def _legend(maps: Sequence[HeatMap]) -> Text:
    return Text(" ").join(starmap(Text, map(part_text, legend_parts(maps))))


def part_text(part: Part) -> tuple[str, str]:
    """Return the text of the part and its rich style, which is empty for a faint score."""
    if not part.is_colored:
        return part.text, ""
    depth = 0.25 + 0.75 * part.strength
    mixed = [round(255 + (channel - 255) * depth) for channel in part.tone.light]
    # hexadecimal, as a terminal may show "black" as gray; strong blue needs white letters
    letters = "#ffffff" if part.tone is AGAINST and depth >= 0.8 else "#000000"
    return part.text, letters + " on #{:02x}{:02x}{:02x}".format(*mixed)


def _section(section: Section) -> RenderableType:
    return Group(Text(section.title, "bold"), render(section.blocks))


def _code(code: Code) -> RenderableType:
    return Text(code.text, no_wrap=True, overflow="ignore")


RENDERERS: dict[type[Any], Any] = {
    Sentence: Line,
    Table: FittedTable,
    Chart: Plot,
    Code: _code,
    Section: _section,
}
