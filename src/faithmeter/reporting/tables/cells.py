"""What a table is made of: cells, columns, and how a value is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

APART = "†"
MISSING = "–"
METHODS = {  # as the paper writes them: for pages, in LaTeX
    "random": ("Random", "Random"),
    "grad-l1": ("Grad (L₁)", "Grad ($L_1$)"),
    "grad-l2": ("Grad (L₂)", "Grad ($L_2$)"),
    "inp-grad-sign": ("x ⊙ grad (sign)", r"x $\odot$ grad (sign)"),
    "inp-grad-abs": ("x ⊙ grad (abs)", r"x $\odot$ grad (abs)"),
    "int-grad-sign": ("IG (sign)", "IG (sign)"),
    "int-grad-abs": ("IG (abs)", "IG (abs)"),
    "loo-sign": ("LOO (sign)", "LOO (sign)"),
    "loo-abs": ("LOO (abs)", "LOO (abs)"),
    "beam": ("Beam", "Beam"),
}


@dataclass(frozen=True)
class Cell:
    """A text, or a number that may have an interval, or (without both) a value that is missing.

    Where there are both, the text is what is shown and the number is what is computed with.
    """

    text: str | None = None
    mean: float | None = None
    minus: float | None = None  # from the mean down to the lower bound
    plus: float | None = None
    grey: bool = False  # the less relevant one of two scores
    apart: bool = False  # a difference between two intervals that do not overlap

    @property
    def missing(self) -> bool:
        return self.text is None and self.mean is None


@dataclass(frozen=True)
class Column:
    """What the cells below each other have in common."""

    names: tuple[str, ...]  # in CSV: one; three for an interval; two for a difference and its mark
    heading: tuple[str, ...]  # from the top line down
    role: Literal["section", "group", "label", "value"] = "value"
    form: Literal["text", "code", "method", "number", "time"] = "text"
    side: Literal["", "published", "ours", "difference"] = ""
    decimals: tuple[int, int] = (0, 1)  # of a number and of its bounds
    unit: str = ""

    def ours(self) -> Column:
        """This column in a table that shows nothing else beside it."""
        names = tuple(name.replace("_ours", "") for name in self.names)
        heading = tuple(line for line in self.heading if line not in ("", "ours"))
        return replace(self, names=names, heading=heading)


@dataclass(frozen=True)
class Written:
    """A value as text, in the parts that each format puts together in its own way."""

    main: str
    minus: str = ""
    plus: str = ""


def written(cell: Cell, column: Column) -> Written:
    if cell.text is not None:
        return Written(cell.text)
    if cell.mean is None:
        return Written("")
    sign = "+" if column.side == "difference" else ""
    if column.form == "time":
        return Written(duration(cell.mean, sign))
    digits, bounds = column.decimals
    main = f"{cell.mean:{sign}z.{digits}f}{column.unit}"
    if cell.minus is None or cell.plus is None:
        return Written(main)
    return Written(main, _offset("-", cell.minus, bounds), _offset("+", cell.plus, bounds))


def _offset(sign: str, size: float, decimals: int) -> str:
    """With its sign, also where it is zero; a bound on the other side of the mean has the other sign."""
    text = f"{size:z.{decimals}f}"
    return sign + text if not text.startswith("-") else {"-": "+", "+": "-"}[sign] + text[1:]


def duration(seconds: float, sign: str = "") -> str:
    """h:mm:ss; a few seconds with tenths."""
    size, minus = abs(seconds), "-" if seconds < 0 else sign
    if size < 9.95:
        return f"{minus}0:00:{size:04.1f}"
    minutes, rest = divmod(round(size), 60)
    return f"{minus}{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def method_label(name: str, *, latex: bool = False) -> tuple[str, str]:
    """How the paper writes a method, in markup if wanted, and what is left to be escaped: its options."""
    base, bracket, options = name.partition("(")
    if base not in METHODS:
        return "", name
    return METHODS[base][latex], f" {bracket}{options}" if bracket else ""


def headings(columns: Sequence[Column]) -> Iterator[list[tuple[str, int]]]:
    """The lines of a table's head: texts with the number of columns that each spans."""
    depth = max(len(column.heading) for column in columns)
    lines = [column.heading + ("",) * (depth - len(column.heading)) for column in columns]
    for level in range(depth):
        line: list[tuple[str, int]] = []
        for upto, equal in groupby(lines, key=lambda heading, level=level: heading[: level + 1]):  # type: ignore[misc]
            width = len(list(equal))
            line += [(upto[-1], width)] if upto[-1] else [("", 1)] * width
        yield line
