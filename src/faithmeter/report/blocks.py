"""Blocks: what a reader is shown of a result, in order and in words, before any rendering."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, Literal, NamedTuple

DIGITS = 6
"""Decimals that the distances from a value to its bounds are exact to."""
Role = Literal["top", "answer", "doubt", "fact"]
ColumnRole = Literal["section", "group", "label", "value"]
Form = Literal["text", "code", "method", "number", "time", "link"]
Side = Literal["", "published", "ours", "difference"]
Row = tuple["Cell", ...]


@dataclass(frozen=True)
class Sentence:
    """Sentence in plain words.

    Attributes:
        text: The sentence.
        mood: good, caution, bad or note.
        role: `top` is the one sentence for a reader who has ten seconds.
        lead: Question or subject, which stands before the text.
        points: Sentences of a list, if the text has several parts.
    """

    text: str
    mood: str = "note"
    role: Role = "fact"
    lead: str = ""
    points: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cell:
    """Value of a table: a text, a number with an optional interval, or nothing.

    `mark` holds words: `grey` for the less relevant of two scores, `apart` for a difference of two means
    whose intervals do not overlap.
    """

    value: str | float | None = None
    low: float | None = None
    high: float | None = None
    mark: str = ""

    @property
    def missing(self) -> bool:
        return self.value is None

    @classmethod
    def around(cls, value: float | None, minus: float | None = None, plus: float | None = None) -> Cell:
        """Return the cell of a number with its distances down to the lower and up to the upper bound."""
        if value is None or minus is None or plus is None:
            return cls(value)
        return cls(value, value - minus, value + plus)

    @property
    def number(self) -> float | None:
        """The value, if it is a number."""
        return None if isinstance(self.value, str) else self.value

    @property
    def has_interval(self) -> bool:
        return self.low is not None and self.high is not None

    @property
    def minus(self) -> float | None:
        """Distance from the value down to the lower bound."""
        return None if self.number is None or self.low is None else round(self.number - self.low, DIGITS)

    @property
    def plus(self) -> float | None:
        """Distance from the value up to the upper bound."""
        return None if self.number is None or self.high is None else round(self.high - self.number, DIGITS)


@dataclass(frozen=True)
class Column:
    """Heading, role and number format of a column.

    Attributes:
        heading: Lines of the heading, from top to bottom; equal first lines of neighbors are merged.
        role: A `section` is a heading above its rows; equal values of a `group` are merged.
        form: How values are written; a `method` is written as in the paper, a `time` is in seconds, a `link`
            is the address of a page, written as the folder that it is in.
        decimals: Decimals of a number and of its bounds.
        trivial: A column that holds only this number is left out, except from files of values.
        names: Fields in a file of values: one; three with an interval; two for a difference and its mark.
        side: Whose values they are, in a table that compares ours with published ones.
        offsets: Whether bounds are written as distances from the value, as in the paper.
    """

    heading: tuple[str, ...]
    role: ColumnRole = "value"
    form: Form = "text"
    decimals: tuple[int, int] = (1, 1)
    unit: str = ""
    trivial: float | None = None
    names: tuple[str, ...] = ()
    side: Side = ""
    offsets: bool = False

    def without_comparison(self) -> Column:
        """Return the column without "ours" in its names and heading, for a table without published values."""
        # without a comparison "ours" goes without saying, in files, too
        names = tuple(map(methodcaller("replace", "_ours", ""), self.names))
        heading = tuple(line for line in self.heading if line not in ("", "ours"))
        return replace(self, names=names, heading=heading)


def file_column(
    names: tuple[str, ...],
    heading: tuple[str, ...],
    role: ColumnRole = "value",
    form: Form = "text",
    **settings: Any,
) -> Column:
    """Return a column that files have, too; its bounds are distances from the value, as in the paper."""
    return Column(
        heading, role, form, names=names, offsets=len(names) == 3, **{"decimals": (0, 1), **settings}
    )


class Place(NamedTuple):
    """Cell with its column, and the number of rows that it spans; 0 if a cell above spans its row."""

    column: Column
    cell: Cell
    height: int


def plain_row(*values: str | float | None, mark: str = "") -> Row:
    """Return a row of cells without intervals."""
    return tuple(map(partial(Cell, mark=mark), values))


def number_columns(headings: Iterable[object], decimals: int = 1) -> tuple[Column, ...]:
    """Return a column of numbers for each heading."""
    return tuple(Column((str(one),), form="number", decimals=(decimals, decimals)) for one in headings)


@dataclass(frozen=True)
class Table:
    """Table whose rows have one cell for each column.

    Attributes:
        totals: Rows below a line, which files of values leave out.
        comparison_notes: Notes that apply only beside published values.
        reference: Model of the published values, if it is not the one that was run.
        definitions: Titles of columns, and the addresses of their definitions.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    totals: tuple[Row, ...] = ()
    comparison_notes: tuple[str, ...] = ()
    reference: str = ""
    definitions: tuple[tuple[str, str], ...] = ()

    @cached_property
    def filled(self) -> Table:
        """The table without columns that say nothing in any row; itself if there are no rows."""
        places = []
        for at, column in enumerate(self.columns):
            values = {row[at].value for row in self.rows}
            # a row must keep its name, also if it is the only one
            if column.role == "label" or values - {None, column.trivial} or not self.rows:
                places.append(at)
        return self._with_columns(places)

    @cached_property
    def body(self) -> Table:
        """The filled table without the column of sections, whose names become headings above rows."""
        kept = [at for at, column in enumerate(self.filled.columns) if column.role != "section"]
        return self.filled._with_columns(kept)

    @property
    def compares_models(self) -> bool:
        """Whether any row has published values of the model that was run."""
        for row in self.rows:
            for column, cell in zip(self.columns, row, strict=True):
                if column.side == "published" and not cell.missing:
                    return not self.reference
        return False

    @property
    def visible_notes(self) -> tuple[str, ...]:
        """Notes that apply: those on published values only if the table shows any."""
        sides = set(map(attrgetter("side"), self.filled.columns))
        return self.notes + (self.comparison_notes if "published" in sides else ())

    def sections(self) -> Iterator[tuple[str, list[Row]]]:
        """Yield consecutive rows of the body by section; the name is "" if the table has no such column."""
        # a section is the first column, if there is one
        has_sections = self.columns[0].role == "section"
        names = [str(row[0].value or "") if has_sections else "" for row in self.rows]
        for name, rows in groupby(zip(names, self.body.rows, strict=True), key=itemgetter(0)):
            yield name, list(map(itemgetter(1), rows))

    def lines(self, rows: Sequence[Row], *, merge: bool = True) -> Iterator[list[Place]]:
        """Yield the cells of rows of the body, with equal neighbors of a group merged if `merge`."""
        columns = self.body.columns
        heights = []
        for at, column in enumerate(columns):
            grouped = merge and column.role == "group"
            heights.append(_group_heights(rows, at) if grouped else [1] * len(rows))
        for row, *spans in zip(rows, *heights, strict=True):
            yield list(map(Place, columns, row, spans))

    def head(self) -> Iterator[list[tuple[str, int]]]:
        """Yield the lines of the table head; each lists headings with the number of columns they span."""
        headings = list(map(attrgetter("heading"), self.body.columns))
        depth = max(map(len, headings))
        padded = [heading + ("",) * (depth - len(heading)) for heading in headings]
        for level in range(1, depth + 1):
            line: list[tuple[str, int]] = []
            # neighbors share a heading only if all lines above it are the same, too
            for prefix, equal in groupby(padded, key=itemgetter(slice(level))):
                width = len(list(equal))
                line += [(prefix[-1], width)] if prefix[-1] else [("", 1)] * width
            yield line

    def without_comparison(self) -> Table:
        """Return the table without columns and notes of published values and differences."""
        kept = []
        for at, column in enumerate(self.columns):
            if column.side not in ("published", "difference"):
                kept.append(at)
        ours = self._with_columns(kept)
        columns = tuple(map(Column.without_comparison, ours.columns))
        return replace(ours, columns=columns, comparison_notes=())

    def with_own_names(self) -> Table:
        """Return the table with the method names of faithmeter instead of those of the paper."""
        columns = []
        for column in self.columns:
            columns.append(replace(column, form="code") if column.form == "method" else column)
        return replace(self, columns=tuple(columns))

    def _with_columns(self, places: Sequence[int]) -> Table:
        def choose(row: Row) -> Row:
            return tuple(row[at] for at in places)

        columns = tuple(self.columns[at] for at in places)
        rows, totals = tuple(map(choose, self.rows)), tuple(map(choose, self.totals))
        return replace(self, columns=columns, rows=rows, totals=totals)


def _group_heights(rows: Sequence[Row], at: int) -> list[int]:
    """Return how many rows the cell of each row spans; 0 where the cell above spans the row."""
    heights: list[int] = []
    # a group ends where any column to its left changes, too
    for _, equal in groupby(rows, key=lambda row: [cell.value for cell in row[: at + 1]]):
        height = len(list(equal))
        heights += [height, *[0] * (height - 1)]
    return heights


@dataclass(frozen=True)
class Chart:
    """Two curves and the area between them.

    Attributes:
        title: What the curves show.
        percents: Percentages erased, [S].
        curves: Values of the method and then of the baseline by name, [S] each.
        area: Label of the area between them.
    """

    title: str
    percents: tuple[int, ...]
    curves: Mapping[str, Sequence[float]]
    area: str

    @property
    def bounds(self) -> tuple[float, float]:
        """Start and end of the y axis, which are never equal; it starts at 0 unless a value is negative."""
        own, other = self.curves.values()
        return min(0.0, *own, *other), max(*own, *other) or 1.0


@dataclass(frozen=True)
class Figure:
    """Chart of many panels, as a Vega-Lite specification that a page with its scripts draws."""

    name: str
    title: str
    spec: Mapping[str, Any]

    @property
    def panels(self) -> int:
        return len(self.spec["concat"])


@dataclass(frozen=True)
class HeatMap:
    """Words of a text, colored by their scores.

    Attributes:
        words: The words; one that follows a gap begins with a blank.
        scores: Score of each word.
        steps: Erasure step that masks each word first; empty if nothing was erased.
        probabilities: Probability of the label at each step.
        method: Method that the scores are from.
        label: Explained class.
        signed: Whether negative scores speak against the label.
        pieces: What the words are: words or tokens.
    """

    words: tuple[str, ...]
    scores: tuple[float, ...]
    steps: tuple[int, ...] = ()
    probabilities: tuple[float, ...] = ()
    method: str = ""
    label: str = ""
    signed: bool = True
    pieces: Literal["words", "tokens"] = "words"


@dataclass(frozen=True)
class Code:
    """Command or code to copy."""

    text: str


@dataclass(frozen=True)
class Section:
    """Blocks under a title; a folded one is opened by the reader, where the surface can fold."""

    title: str
    blocks: tuple[Block, ...] = ()
    folded: bool = False


Block = Sentence | Table | Chart | Figure | HeatMap | Code | Section
