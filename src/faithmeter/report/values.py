"""Values of table cells as text, which all renderers share."""

from __future__ import annotations

from dataclasses import dataclass

from ..verdict.formats import UNDEFINED, format_number
from .blocks import Cell, Column
from .labels import METHOD_LABELS

APART_MARK = "†"


@dataclass(frozen=True)
class Text:
    """Value of a cell and its bounds as texts; each renderer combines them in its own way."""

    value: str
    low: str = ""
    high: str = ""

    @property
    def interval(self) -> str:
        """Both bounds in brackets; empty if there are none."""
        return f"[{self.low}, {self.high}]" if self.high else ""


def format_cell(cell: Cell, column: Column) -> Text:
    """Return a cell as text, in the number format of its column; a dash if it is missing."""
    if cell.value is None:
        return Text(UNDEFINED)
    if isinstance(cell.value, str):
        return Text(cell.value)
    sign = "+" if column.side == "difference" else ""
    if column.form == "time":
        minutes = column.side == "published"  # the paper cuts times off at minutes
        return Text(format_minutes(cell.value) if minutes else format_duration(cell.value, sign))
    digits, digits_of_bounds = column.decimals  # the paper rounds performance to 0 digits and its bounds to 1
    number = format_number(cell.value, digits)
    text = f"{'' if number.startswith('-') else sign}{number}{column.unit}"
    if cell.low is None or cell.high is None:
        return Text(text)
    if not column.offsets:
        return Text(text, *(format_number(bound, digits_of_bounds) for bound in (cell.low, cell.high)))
    offsets = ("-", cell.minus), ("+", cell.plus)
    return Text(text, *(_format_offset(mark, size or 0.0, digits_of_bounds) for mark, size in offsets))


def _format_offset(sign: str, size: float, decimals: int) -> str:
    """Format the distance to a bound with `sign` before it, or the opposite sign if it is negative."""
    text = format_number(size, decimals)
    return sign + text if not text.startswith("-") else {"-": "+", "+": "-"}[sign] + text[1:]


def format_duration(seconds: float, sign: str = "") -> str:
    """Format seconds as h:mm:ss, with tenths below ten seconds; `sign` precedes non-negative values."""
    size, minus = abs(seconds), "-" if seconds < 0 else sign
    if size < 9.95:  # from here on it would round to 10.0, which is written without tenths
        return f"{minus}0:00:{size:04.1f}"
    minutes, rest = divmod(round(size), 60)
    return f"{minus}{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def format_minutes(seconds: float) -> str:
    """Format seconds as hh:mm, as in the paper."""
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours:02d}:{rest // 60:02d}"


def method_label(name: str, *, latex: bool = False) -> tuple[str, str]:
    """Return a method's name in the paper, escaped for the output format, and its options, not escaped.

    The name is empty for a method that is not in the paper, and its own name is then returned as the options.
    """
    base, bracket, options = name.partition("(")
    if base not in METHOD_LABELS:
        return "", name
    return METHOD_LABELS[base][latex], f" {bracket}{options}" if bracket else ""
