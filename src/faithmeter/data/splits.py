"""Conversion of records to rows, and of rows to datasets with the published splits and order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..config import Kind
from ..errors import InputError
from .label_values import Label, label_name, read_label
from .passages import Spans, read_passages
from .readers import Record
from .task import ROLES, Columns

if TYPE_CHECKING:
    from datasets import Dataset


class Row(NamedTuple):
    """Example of a task, in one form for all sources."""

    key: str  # determines the order of the rows
    text: str
    label: Label
    context: str | None = None
    supporting: Spans | None = None  # passages of `text` that hold the reason


Parts = dict[str, list[Row]]  # train, validation, test → rows


def read_rows(
    source: Path | str,
    records: Iterable[Record],
    columns: Columns,
    codes: Sequence[str],
    *,
    key: str | None = None,
    unlabeled: str | None = None,
    kind: Kind = "single-label",
) -> list[Row]:
    """Convert records to rows.

    Args:
        source: Name of the source for error messages.
        records: The records.
        columns: Names of the text, label, context and rationale columns. Without a label column, all rows
            get the first label.
        codes: Labels as written in the source, in the order of their class numbers.
        key: Column with the keys of the rows; None uses the row numbers.
        unlabeled: Label of rows to skip.
        kind: Kind of the task.

    Raises:
        InputError: A label, key or text is missing or invalid, or there are no rows.
    """
    index = {code: number for number, code in enumerate(codes)}
    rows: list[Row] = []
    seen: dict[str, str] = {}
    for number, place, values in records:
        if unlabeled is not None and label_name(values[str(columns.label)]) == unlabeled:
            continue
        label = read_label(values, columns, index, kind, place)
        name = str(number) if key is None else _key(values[key], key, place)
        if key is not None and seen.setdefault(name, place) != place:
            raise InputError(f"{place}: {key} {name} occurs twice, first at {seen[name]}; expected it once")
        text = require_text(values[columns.text], columns.text, place)
        if not text.strip():
            raise InputError(f"{place}: {columns.text!r} is empty; fill it in or remove the row")
        # the context may be empty: QQP has two such rows
        context = columns.context and require_text(values[columns.context], columns.context, place)
        rationale = columns.rationale and read_passages(
            values[columns.rationale], text, f"{place}, {columns.rationale!r}"
        )
        rows.append(Row(name, text, label, context, rationale or (() if columns.rationale else None)))
    if not rows:
        raise InputError(f"{source} has no rows; expected at least one")
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


def arrange(parts: Parts, official: Mapping[str, str], place: str) -> Parts:
    """Return the train, validation and test rows, sorted by the MD5 hash of official split name and key.

    A missing split is the last 20 % of the training rows; if two are missing, each gets 10 %.

    Raises:
        InputError: There are too few training rows for the missing splits.
    """
    ordered = {role: _ordered(rows, official[role]) for role, rows in parts.items()}
    missing = [role for role in ROLES if role not in parts]
    if missing:
        train = ordered["train"]
        percents = (0, 80, 100) if len(missing) == 1 else (0, 80, 90, 100)
        cuts = [(len(train) * percent + 50) // 100 for percent in percents]
        if len(set(cuts)) < len(cuts):
            what = f"{len(train)} rows are too few to cut {' and '.join(missing)} from"
            raise InputError(f"{place}: {what}; expected 10 or more, or files for them")
        pieces = zip(["train", *missing], cuts, cuts[1:], strict=False)
        ordered |= {role: train[start:end] for role, start, end in pieces}
    return {role: ordered[role] for role in ROLES}


def _ordered(rows: Iterable[Row], name: str) -> list[Row]:
    return sorted(rows, key=lambda row: _md5(f"{name}{row.key}"))


def _md5(text: str) -> bytes:
    return hashlib.md5(text.encode(), usedforsecurity=False).digest()


def dataset(rows: Sequence[Row], labels: Sequence[str]) -> Dataset:
    """Convert rows to a dataset with columns `text`, `label` and, if present, `context` and `supporting`."""
    from datasets import ClassLabel, Dataset, Features, List, Value

    types = {tuple: List(Value("int8")), float: Value("float64")}
    label = types.get(type(rows[0].label)) or ClassLabel(names=list(labels))
    features = {"text": Value("string"), "label": label}
    columns: dict[str, list[Any]] = {"text": [row.text for row in rows], "label": [row.label for row in rows]}
    if rows[0].context is not None:
        features["context"] = Value("string")
        columns["context"] = [row.context for row in rows]
    if rows[0].supporting is not None:
        features["supporting"] = List(List(Value("int32")))
        columns["supporting"] = [row.supporting for row in rows]
    return Dataset.from_dict(columns, features=Features(features))


def digest(split: Dataset) -> str:
    """Return the SHA-256 of the texts, contexts and labels of a split, in order."""
    result = hashlib.sha256()
    names = [name for name in ("text", "context", "label") if name in split.column_names]
    for batch in split.select_columns(names).iter(batch_size=1000):
        for values in zip(*(batch[name] for name in names), strict=True):
            result.update(json.dumps(values).encode() + b"\n")
    return result.hexdigest()
