"""Rows as datasets, with the published splits and order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .rows import Parts, Row
from .task import ROLES

if TYPE_CHECKING:
    from datasets import Dataset

    from .task import Task


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
        cuts = [(len(train) * percent + 50) // 100 for percent in percents]  # rounded half up
        if len(set(cuts)) < len(cuts):
            what = f"{len(train)} rows are too few to cut {' and '.join(missing)} from"
            raise InputError(f"{place}: {what}; expected 10 or more, or files for them")
        for role, start, end in zip(["train", *missing], cuts, cuts[1:], strict=False):
            ordered[role] = train[start:end]
    return {role: ordered[role] for role in ROLES}


def _ordered(rows: Iterable[Row], name: str) -> list[Row]:
    # as the authors' released code orders them: any other order would give other validation and test rows
    def md5(row: Row) -> bytes:
        return hashlib.md5(f"{name}{row.key}".encode(), usedforsecurity=False).digest()

    return sorted(rows, key=md5)


def dataset(rows: Sequence[Row], labels: Sequence[str]) -> Dataset:
    """Convert rows to a dataset with columns `text`, `label` and, if present, `context` and `supporting`."""
    from datasets import ClassLabel, Dataset, Features, List, Value

    numbers = {tuple: List(Value("int8")), float: Value("float64")}
    kinds: dict[str, Any] = {
        "text": Value("string"),
        "label": numbers.get(type(rows[0].label)) or ClassLabel(names=[*labels]),
        "context": Value("string"),
        "supporting": List(List(Value("int32"))),
    }
    features, columns = Features(), {}
    for name, kind in kinds.items():
        if getattr(rows[0], name) is not None:  # one row of a source has a column if all have it
            features[name], columns[name] = kind, [getattr(row, name) for row in rows]
    return Dataset.from_dict(columns, features=features)


def digest(split: Dataset) -> str:
    """Return the SHA-256 of the texts, contexts and labels of a split, in order."""
    result = hashlib.sha256()
    names = [name for name in ("text", "context", "label") if name in split.column_names]
    for batch in split.select_columns(names).iter(batch_size=1000):
        for values in zip(*map(batch.__getitem__, names), strict=True):
            result.update(json.dumps(values).encode() + b"\n")
    return result.hexdigest()


def measured_data(task: Task) -> str:
    """Return a digest of the complete validation and test splits, which a measurement reads.

    It covers a rationale column of your own data, too: plausibility depends on it.
    """
    splits = task.load()
    parts = [digest(splits[role])[:16] for role in ("validation", "test") if role in splits]
    if task.rationale:
        parts.append(hashlib.sha256(json.dumps(splits["test"]["supporting"][:]).encode()).hexdigest()[:16])
    return "-".join(parts)
