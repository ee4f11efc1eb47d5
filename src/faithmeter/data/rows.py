"""Conversion of records to rows: text, label, context, and the passages that people call the reason."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

from ..config import Kind
from ..errors import InputError
from .table_files import Record
from .task import Columns

Label = int | float | tuple[int, ...]
"""Class number, number of a regression task, or 0 or 1 for each of several labels."""
Span = tuple[int, int]
"""Start and end of a passage, in characters."""
SEPARATORS = r"[,;|]"
"""Characters between the names of several labels in one column."""
FLAGS = {"0": False, "1": True, "0.0": False, "1.0": True, "false": False, "true": True}
"""Values in the column of one of several labels."""
PASSAGES = "expected [[start, end], …] in characters, or a 0 or 1 for each word"


class Row(NamedTuple):
    """Example of a task, in one form for all sources."""

    key: str  # determines the order of the rows
    text: str
    label: Label
    context: str | None = None
    supporting: Sequence[Span] | None = None  # passages of `text` that hold the reason


@dataclass(frozen=True)
class RowFormat:
    """Columns of a source, and how it writes labels.

    Attributes:
        columns: Names of the text, label, context and rationale columns. Without a label column, all rows
            get the first label.
        codes: Labels as written in the source, in the order of their class numbers.
        kind: Kind of the task.
        key: Column with the keys of the rows; None uses the numbers of the records.
        unlabeled: Label of rows to skip.
    """

    columns: Columns
    codes: Sequence[str]
    kind: Kind = "single-label"
    key: str | None = None
    unlabeled: str | None = None

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Class number of each label as written in the source."""
        return dict(zip(self.codes, range(len(self.codes)), strict=True))

    @property
    def names(self) -> list[str]:
        """Names of all columns that are read."""
        return [*self.columns.names, *filter(None, [self.key])]


class Part(NamedTuple):
    """Split of a source that has not been read yet."""

    role: str  # train, validation or test
    place: Path | str  # for error messages
    form: RowFormat
    records: Iterable[Record]


def read_rows(part: Part) -> list[Row]:
    """Convert the records of a split to rows.

    Raises:
        InputError: A label, key or text is missing or invalid, or there are no rows.
    """
    form, columns, rows = part.form, part.form.columns, list[Row]()
    seen: dict[str, str] = {}  # key → place
    for number, place, values in part.records:
        if form.unlabeled is not None and label_name(values[str(columns.label)]) == form.unlabeled:
            continue
        label = read_label(values, form, place)
        key = str(number) if form.key is None else _key(values[form.key], form.key, place)
        # rows are ordered by the hash of the key: equal keys would leave their order to the file
        if form.key is not None and seen.setdefault(key, place) != place:
            raise InputError(
                f"{place}: {form.key} {key} occurs twice, first at {seen[key]}; expected it once"
            )
        text = require_text(values[columns.text], columns.text, place)
        if not text.strip():
            raise InputError(f"{place}: {columns.text!r} is empty; fill it in or remove the row")
        # the context may be empty: QQP has two such rows
        context = columns.context and require_text(values[columns.context], columns.context, place)
        spans = values[columns.rationale] if columns.rationale else None
        if columns.rationale and not isinstance(spans, tuple):  # readers of official files give tuples
            spans = read_passages(spans, text, f"{place}, {columns.rationale!r}")
        rows.append(Row(key, text, label, context, spans))
    if not rows:
        raise InputError(f"{part.place} has no rows; expected at least one")
    return rows


def require_text(value: Any, column: str, place: str) -> str:
    """Return the value if it is a string of valid Unicode; raise an InputError otherwise."""
    if not isinstance(value, str):
        raise InputError(f"{place}: {column!r} is {type(value).__name__}; expected a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # JSON can encode half a surrogate pair
        raise InputError(f"{place}: {column!r} is not valid Unicode ({error.reason}); repair it") from error
    return value


def _key(value: Any, column: str, place: str) -> str:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{place}: {column!r} is {value!r:.60}; expected a whole number")
    return str(value)


def read_label(values: Mapping[str, Any], form: RowFormat, place: str) -> Label:
    """Return the label of a row; `place` is the file and line for error messages.

    Raises:
        InputError: The label is missing, unknown, or not a number where one is expected.
    """
    column, known = form.columns.label, form.numbers
    if column is None:
        return 0
    if form.kind == "regression":
        return read_number(values[str(column)], str(column), place)
    several = form.kind == "multi-label"
    names = read_names(values, form.columns, place) if several else [label_name(values[str(column)])]
    for name in names:
        if name not in known:
            what = "no label" if name is None else f"label {name!r:.60}"
            raise InputError(f"{place}: {what} in {column!r}; expected one of {', '.join(known)}")
    return tuple(int(name in names) for name in known) if several else known[str(names[0])]


def read_classes(text: str) -> dict[str, str]:
    """Return the model's names of classes by the task's, from `fresh=positive,rotten=negative`."""
    names: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        own, equals, of_model = map(str.strip, part.partition("="))
        if not (own and equals and of_model) or own in names:
            raise InputError(
                f"--classes {text!r}: {part!r}; expected each class of the data once, with its name in the "
                "model: fresh=positive,rotten=negative"
            )
        names[own] = of_model
    return names


def label_name(value: Any) -> str | None:
    """Return a label as a string ('1' for both 1 and 1.0), or None if it is missing."""
    if isinstance(value, float):  # pandas and parquet read whole numbers beside an empty field as floats
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
        value = [*filter(str.strip, re.split(SEPARATORS, value))]
    names = [*map(label_name, value if isinstance(value, list) else [None])]
    if None in names:
        raise InputError(
            f"{place}: {values[str(columns.label)]!r:.60} in {columns.label!r}; expected a list of labels, "
            "or names with commas between them"
        )
    return [*map(str, names)]


def _read_flag(value: Any, column: str, place: str) -> bool:
    flag = (label_name(value) or "").lower()
    if flag not in FLAGS:
        raise InputError(f"{place}: {column!r} is {value!r:.60}; expected 0 or 1")
    return FLAGS[flag]


def read_passages(value: Any, text: str, place: str) -> list[Span]:
    """Return the spans of a rationale in a text; an empty value has none.

    Args:
        value: Spans `[[start, end], …]` in characters, or a 0 or 1 for each word between blanks; files that
            cannot hold lists have them as JSON.
        text: The text that the rationale belongs to.
        place: Place of the value, for error messages.

    Raises:
        InputError: The value is neither, or does not fit the text.
    """
    items = _as_list(value, place)
    if not all(isinstance(item, int) and item in (0, 1) for item in items):  # truth values are such, too
        return sorted(_as_span(item, text, place) for item in items)
    words = [match.span() for match in re.finditer(r"\S+", text)]
    if items and len(items) != len(words):
        raise InputError(f"{place}: {len(items)} marks for {len(words)} words; {PASSAGES}")
    return list(compress(words, items))


def _as_list(value: Any, place: str) -> list[Any]:
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise InputError(f"{place}: {value!r:.60} is not JSON; {PASSAGES}") from None
    value = unboxed(value)
    # pandas and parquet have NaN where a row has no value
    if value is None or value == "" or value != value:
        return []
    if not isinstance(value, list):
        raise InputError(f"{place}: {value!r:.60}; {PASSAGES}")
    return list(map(unboxed, value))


def unboxed(value: Any) -> Any:
    """Return an array of NumPy or torch as a list, and any other value as it is."""
    return value.tolist() if hasattr(value, "tolist") else value


def _as_span(value: object, text: str, place: str) -> Span:
    if not isinstance(value, Sequence) or len(value) != 2 or {*map(type, value)} != {int}:
        raise InputError(f"{place}: {value!r:.60} in a rationale; {PASSAGES}")
    start, end = value
    if not 0 <= start < end <= len(text):
        raise InputError(f"{place}: span {start} to {end}; expected a part of its {len(text)} characters")
    return start, end
