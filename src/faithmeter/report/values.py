"""Values of cells as text, and names of models, tasks and methods, which all renderers share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from ..data import TASKS
from ..verdict.formats import UNDEFINED, format_number
from .blocks import Cell, Column

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..store.records import Record

APART_MARK = "†"
METHOD_LABELS = {
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
"""Names of methods in the paper: in plain text, in LaTeX."""


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
        return Text(
            text, format_number(cell.low, digits_of_bounds), format_number(cell.high, digits_of_bounds)
        )
    below = _format_offset("-", cell.minus or 0.0, digits_of_bounds)
    return Text(text, below, _format_offset("+", cell.plus or 0.0, digits_of_bounds))


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


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Map each path or hub name to its last part, or to itself if the last part is not unique."""
    # a store may have been written on Windows and be read elsewhere
    last = {name: PurePath(name.replace("\\", "/")).name or name for name in set(names)}
    counts = Counter(last.values())
    return {name: part if counts[part] == 1 else name for name, part in last.items()}


def task_names(records: Iterable[Record]) -> dict[str, str]:
    """Map the data or task file of runs on your own data to the name of the task.

    Names that are not unique, or that a built-in task has, are left out.
    """
    names = {record.trained.task_or_data: record.task_name for record in records if record.task_name}
    counts = Counter(names.values())
    return {path: name for path, name in names.items() if counts[name] == 1 and name not in TASKS}


def rename_tasks(frame: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """Return a frame with the tasks called by these names."""
    return frame.assign(task=frame["task"].replace(dict(names)))
