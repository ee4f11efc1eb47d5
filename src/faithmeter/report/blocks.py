"""Blocks: what a reader is shown of a result, in order and in words, before any rendering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

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

    @property
    def has_interval(self) -> bool:
        return self.low is not None and self.high is not None


@dataclass(frozen=True)
class Column:
    """Heading, role and number format of a column.

    Attributes:
        heading: Lines of the heading, from top to bottom; equal first lines of neighbors are merged.
        role: A `section` is a heading above its rows; equal values of a `group` are merged.
        form: How values are written; a `method` is written as in the paper.
        decimals: Decimals of a number and of its bounds.
        trivial: A column that holds only this number is left out.
    """

    heading: tuple[str, ...]
    role: Literal["section", "group", "label", "value"] = "value"
    form: Literal["text", "code", "method", "number", "time"] = "text"
    decimals: tuple[int, int] = (1, 1)
    unit: str = ""
    trivial: float | None = None


@dataclass(frozen=True)
class Table:
    """Table whose rows have one cell for each column."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def filled(self) -> list[int]:
        """Positions of the columns that say something in some row; all columns if there are no rows."""
        return [at for at, column in enumerate(self.columns) if not self.rows or self._is_filled(at, column)]

    def _is_filled(self, at: int, column: Column) -> bool:
        values = [row[at].value for row in self.rows]
        return column.role == "label" or any(value not in (None, column.trivial) for value in values)


@dataclass(frozen=True, eq=False)
class Chart:
    """Chart of the rows of a frame; the kind says which marks are drawn, the encoding from which columns."""

    kind: Literal["area"]
    frame: Sequence[Mapping[str, Any]]
    encoding: Mapping[str, Any]
    title: str = ""


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
    blocks: tuple[Block, ...] = field(default=())
    folded: bool = False


Block = Sentence | Table | Chart | HeatMap | Code | Section
