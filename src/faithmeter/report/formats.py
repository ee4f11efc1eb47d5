"""Numbers of table cells as text, which all renderers share."""

from __future__ import annotations

from ..verdict.formats import UNDEFINED, format_number
from .blocks import Cell, Column


def format_value(cell: Cell, column: Column) -> str:
    """Return the value of a cell without its interval; a dash if it is missing or undefined."""
    if cell.value is None:
        return UNDEFINED
    if isinstance(cell.value, str):
        return cell.value
    return f"{format_number(cell.value, column.decimals[0])}{column.unit}"


def format_interval(cell: Cell, column: Column) -> str:
    """Return the bounds of a cell in brackets; empty if there are none."""
    if cell.low is None or cell.high is None:
        return ""
    low, high = (format_number(bound, column.decimals[1]) for bound in (cell.low, cell.high))
    return f"[{low}, {high}]"
