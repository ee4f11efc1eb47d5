"""Blocks: what a reader is shown of a result, in order and in words, before any rendering."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Literal, NamedTuple

DIGITS = 6
"""Decimals that the distances from a value to its bounds are exact to."""
Role = Literal["top", "answer", "doubt", "fact"]
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
        form: How values are written; a `method` is written as in the paper, a `time` is in seconds.
        decimals: Decimals of a number and of its bounds.
        trivial: A column that holds only this number is left out, except from files of values.
        names: Fields in a file of values: one; three with an interval; two for a difference and its mark.
        side: Whose values they are, in a table that compares ours with published ones.
        offsets: Whether bounds are written as distances from the value, as in the paper.
    """

    heading: tuple[str, ...]
    role: Literal["section", "group", "label", "value"] = "value"
    form: Literal["text", "code", "method", "number", "time"] = "text"
    decimals: tuple[int, int] = (1, 1)
    unit: str = ""
    trivial: float | None = None
    names: tuple[str, ...] = ()
    side: Literal["", "published", "ours", "difference"] = ""
    offsets: bool = False

    def without_comparison(self) -> Column:
        """Return the column without "ours" in its names and heading, for a table without published values."""
        names = tuple(name.replace("_ours", "") for name in self.names)
        heading = tuple(line for line in self.heading if line not in ("", "ours"))
        return replace(self, names=names, heading=heading)


class Place(NamedTuple):
    """Cell with its column, and the number of rows that it spans; 0 if a cell above spans its row."""

    column: Column
    cell: Cell
    height: int


def plain_row(*values: str | float | None, mark: str = "") -> Row:
    """Return a row of cells without intervals."""
    return tuple(Cell(value, mark=mark) for value in values)


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
    def filled(self) -> list[int]:
        """Positions of the columns that say something in some row; all columns if there are no rows."""
        return [at for at, column in enumerate(self.columns) if not self.rows or self._is_filled(at, column)]

    def _is_filled(self, at: int, column: Column) -> bool:
        values = [row[at].value for row in self.rows]
        return column.role == "label" or any(value not in (None, column.trivial) for value in values)

    @property
    def side_by_side(self) -> list[int]:
        """Positions of the filled columns, except for the section, which becomes a heading above its rows."""
        return [at for at in self.filled if self.columns[at].role != "section"]

    @property
    def compares_models(self) -> bool:
        """Whether any row has published values of the model that was run."""
        published = [at for at, column in enumerate(self.columns) if column.side == "published"]
        has_published = any(not row[at].missing for row in self.rows for at in published)
        return has_published and not self.reference

    @property
    def visible_notes(self) -> tuple[str, ...]:
        """Notes that apply: those on published values only if the table shows any."""
        compares = any(self.columns[at].side == "published" for at in self.filled)
        return self.notes + (self.comparison_notes if compares else ())

    def sections(self) -> list[tuple[str, list[Row]]]:
        """Return consecutive rows grouped by section; the name is "" if the table has no section column."""
        heads = [at for at, column in enumerate(self.columns) if column.role == "section"]
        parts = groupby(self.rows, key=lambda row: " ".join(str(row[at].value or "") for at in heads))
        return [(name, list(rows)) for name, rows in parts]

    def lines(self, rows: Sequence[Row], *, merge: bool = True) -> Iterator[list[Place]]:
        """Yield the visible cells of each row, with equal neighbors of a group merged if `merge`."""
        heights = {}
        for at in self.side_by_side:
            grouped = merge and self.columns[at].role == "group"
            heights[at] = self._heights(rows, at) if grouped else [1] * len(rows)
        for number, row in enumerate(rows):
            yield [Place(self.columns[at], row[at], heights[at][number]) for at in self.side_by_side]

    def _heights(self, rows: Sequence[Row], at: int) -> list[int]:
        heights: list[int] = []
        # a group ends where any column to its left changes, too
        for _, equal in groupby(rows, key=lambda row: [cell.value for cell in row[: at + 1]]):
            height = len(list(equal))
            heights += [height, *[0] * (height - 1)]
        return heights

    def head(self) -> Iterator[list[tuple[str, int]]]:
        """Yield the lines of the table head; each lists headings with the number of columns they span."""
        columns = [self.columns[at] for at in self.side_by_side]
        depth = max(len(column.heading) for column in columns)
        lines = [column.heading + ("",) * (depth - len(column.heading)) for column in columns]
        for level in range(depth):
            line: list[tuple[str, int]] = []
            for prefix, equal in groupby(lines, key=lambda heading, level=level: heading[: level + 1]):  # type: ignore[misc]
                width = len(list(equal))
                line += [(prefix[-1], width)] if prefix[-1] else [("", 1)] * width
            yield line

    def without_comparison(self) -> Table:
        """Return the table without columns and notes of published values and differences."""
        kept = [
            at for at, column in enumerate(self.columns) if column.side not in ("published", "difference")
        ]
        choose = itemgetter(*kept)
        return replace(
            self,
            columns=tuple(column.without_comparison() for column in choose(self.columns)),
            rows=tuple(map(choose, self.rows)),
            totals=tuple(map(choose, self.totals)),
            comparison_notes=(),
        )


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


Block = Sentence | Table | Chart | HeatMap | Code | Section
