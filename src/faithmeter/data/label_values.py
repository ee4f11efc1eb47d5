"""Labels of rows: a class number, 0 or 1 for each of several labels, or a number."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from ..config import Kind
from ..errors import InputError
from .task import Columns

Label = int | float | tuple[int, ...]
"""Class number, number of a regression task, or 0 or 1 for each of several labels."""
SEPARATORS = r"[,;|]"
"""Characters between the names of several labels in one column."""
FLAGS = {"0": False, "1": True, "0.0": False, "1.0": True, "false": False, "true": True}
"""Values in the column of one of several labels."""


def read_label(
    values: Mapping[str, Any], columns: Columns, index: Mapping[str, int], kind: Kind, place: str
) -> Label:
    """Return the label of a row.

    Args:
        values: Values of the row by column.
        columns: Names of the columns. Without a label column, all rows get the first label.
        index: Class number by label, as written in the source.
        kind: Kind of the task.
        place: File and line for error messages.

    Raises:
        InputError: The label is missing, unknown, or not a number where one is expected.
    """
    if columns.label is None:
        return 0
    if kind == "regression":
        return read_number(values[str(columns.label)], str(columns.label), place)
    if kind == "multi-label":
        names = read_names(values, columns, place)
        for name in names:
            if name not in index:
                raise _unknown(f"label {name!r:.60}", columns, index, place)
        return tuple(int(name in names) for name in index)
    label = label_name(values[str(columns.label)])
    if label is None or label not in index:
        raise _unknown("no label" if label is None else f"label {label!r:.60}", columns, index, place)
    return index[label]


def _unknown(what: str, columns: Columns, known: Mapping[str, int], place: str) -> InputError:
    return InputError(f"{place}: {what} in {columns.label!r}; expected one of {', '.join(known)}")


def read_classes(text: str) -> dict[str, str]:
    """Return the model's names of classes by the task's, from `fresh=positive,rotten=negative`."""
    names: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        own, equals, of_model = (piece.strip() for piece in part.partition("="))
        if not (own and equals and of_model) or own in names:
            raise InputError(
                f"--classes {text!r}: {part!r}; expected each class of the data once, with its name in the "
                "model: fresh=positive,rotten=negative"
            )
        names[own] = of_model
    return names


def label_name(value: Any) -> str | None:
    """Return a label as a string ('1' for both 1 and 1.0), or None if it is missing."""
    if isinstance(value, float):
        return None if not math.isfinite(value) else str(int(value) if value.is_integer() else value)
    return str(value).strip() or None if isinstance(value, str | int) else None


def read_number(value: Any, column: str, place: str) -> float:
    """Return a finite number, given as a number or as text; raise an InputError otherwise."""
    if value is None or (isinstance(value, str) and not value.strip()):
        raise InputError(f"{place}: no label in {column!r}; fill it in or remove the row")
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(
            f"{place}: label {value!r:.60} in {column!r}; expected a finite number, as for regression"
        )
    return number


def read_names(values: Mapping[str, Any], columns: Columns, place: str) -> list[str]:
    """Return the names of a row's labels.

    Several label columns hold 0 or 1 each. A single column holds a list of names, or names with a comma,
    semicolon or bar between them; an empty field means none.
    """
    if isinstance(columns.label, tuple):
        return [name for name in columns.label if _read_flag(values[name], name, place)]
    value = values[str(columns.label)]
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if isinstance(value, str):
        value = [part for part in re.split(SEPARATORS, value) if part.strip()]
    parts = value if isinstance(value, list) else [None]
    names = [name for part in parts if (name := label_name(part)) is not None]
    if len(names) < len(parts):
        raise InputError(
            f"{place}: {values[str(columns.label)]!r:.60} in {columns.label!r}; expected a list of labels, "
            "or names with commas between them"
        )
    return names


def _read_flag(value: Any, column: str, place: str) -> bool:
    flag = (label_name(value) or "").lower()
    if flag not in FLAGS:
        raise InputError(f"{place}: {column!r} is {value!r:.60}; expected 0 or 1")
    return FLAGS[flag]
