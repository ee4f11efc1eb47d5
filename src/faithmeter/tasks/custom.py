"""Tasks for your own data (csv, tsv, jsonl, parquet, a folder saved by `datasets`), from Python or TOML."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from ..config import MetricName, Text, Validated
from ..errors import InputError
from ..files import State, file_state, read_toml
from .readers import READERS, Record, require_columns, unreadable
from .splits import Parts, label_name, read_rows, require_text
from .task import ROLES, Columns, Own, Task

_SPLIT_NAMES = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "dev": "validation",
    "test": "test",
}


class TaskFile(Validated):
    """Contents of a task file; its entries are the arguments of `own_task`."""

    kind: ClassVar[str] = "task"

    data: Text = Field(description="file (csv, tsv, jsonl, parquet) or folder saved by `datasets`")
    text: Text = Field(description="column with the text to classify and explain")
    label: Text = Field(description="column with the label")
    pair: Text | None = Field(default=None, description="column with a second text, the context")
    valid: Text | None = Field(default=None, description="validation file; default: split off from data")
    test: Text | None = Field(default=None, description="test file; default: split off from data")
    metric: MetricName = Field(
        default="accuracy", description="metric of the curves, which also selects the best epoch"
    )
    epochs: int = Field(default=20, ge=1, lt=2**31, description="default number of training epochs")
    all_test: bool = Field(default=False, description="all rows of data are test texts, in their order")
    labels: tuple[Text, ...] | None = Field(
        default=None, strict=False, description="names of the classes in index order; default: as in the rows"
    )
    rationale: Text | None = Field(
        default=None,
        description="column of the test rows with rationales: spans, or a 0 or 1 for each word",
    )
    name: Text | None = Field(
        default=None, description="name of the task; default: the file name without its extension"
    )


def own_task(
    data: str | Path,
    *,
    text: str,
    label: str,
    pair: str | None = None,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    metric: str = "accuracy",
    epochs: int = 20,
    all_test: bool = False,
    labels: Sequence[str] | None = None,
    rationale: str | None = None,
    name: str | None = None,
) -> Task:
    """Return a task for your own data; its classes are the labels of the training rows.

    Labels are sorted, in numerical order if all are whole numbers. A missing split is taken from the rows in
    `data`: 20 % of them, or 10 % each if both validation and test are missing. The rows are chosen by the MD5
    hash of their number, so the splits do not depend on any seed.

    Args:
        data: File with the rows (csv, tsv or jsonl, plain or .gz, or parquet), or a folder saved by
            `datasets`, whose own splits are used.
        text: Column with the text to classify and explain.
        label: Column with the label: a name or a whole number.
        pair: Column with a second text, the context.
        valid: File with the validation rows.
        test: File with the test rows.
        metric: Metric of the faithfulness curves, which also selects the best epoch: `accuracy`, `macro_f1`,
            `micro_f1` or `matthews`.
        epochs: Default number of training epochs.
        all_test: All rows of `data` are test texts, in the order of the file; there are no training rows.
        labels: Names of the classes in index order, such as `clf.labels`; default: those of the rows.
        rationale: Column of the test rows with human rationales, which plausibility is measured by: spans
            `[[start, end], …]` of characters, or a 0 or 1 for each word between blanks; in csv and tsv files
            as JSON.
        name: Name of the task; by default the file name without its extension.

    Returns:
        The task. Its labels are read immediately, its rows when `load` is called.

    Raises:
        InputError: A file is not readable, a column is missing, or the labels are not classes.

    Example:
        >>> fm.own_task("stories.csv", text="story", pair="question", label="place").labels
        ('bathroom', 'bedroom', 'garden', 'hallway', 'kitchen', 'office')
    """
    paths = {"data": data, "valid": valid, "test": test}
    values: dict[str, Any] = {key: str(path) for key, path in paths.items() if path is not None}
    values |= {"text": text, "label": label, "pair": pair, "metric": metric, "epochs": epochs, "name": name}
    values |= {"all_test": all_test, "labels": None if labels is None else tuple(labels)}
    values |= {"rationale": rationale}
    return _describe(TaskFile(**values))


def task_file(path: str | Path) -> Task:
    """Return the task that a TOML file describes; relative paths in it start at the file's folder."""
    file = Path(path)
    values = read_toml(file)
    try:
        entries = TaskFile(**{"name": file.stem, **values})
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    paths = {
        key: str(file.parent / value) for key in ("data", "valid", "test") if (value := getattr(entries, key))
    }
    return _describe(entries.replace(**paths))


def _describe(entries: TaskFile) -> Task:
    valid, test = (Path(path) if path else None for path in (entries.valid, entries.test))
    own = Own(Path(entries.data), valid, test)
    if entries.all_test:
        if test is not None:
            raise InputError(f"all rows of {entries.data} are test texts; leave out test = {entries.test}")
        own = Own(None, valid, own.train)
    columns = Columns(entries.text, entries.label, entries.pair, entries.rationale)
    return Task(
        entries.name or own.main.name.partition(".")[0],
        entries.text,
        entries.labels or _read_labels(own, columns, file_state([own.main])),
        entries.pair,
        tuple(dict.fromkeys(("accuracy", "macro_f1", entries.metric))),
        entries.metric,
        entries.epochs,
        label=entries.label,
        official=ROLES,
        own=own,
        rationale=entries.rationale,
    )


def read(task: Task, own: Own) -> Parts:
    """Return the rows of each split that the user's files contain."""
    return {
        role: read_rows(path, records, columns, task.labels)
        for role, path, columns, records in _read_parts(own, task.columns)
    }


def _read_parts(own: Own, columns: Columns) -> Iterator[tuple[str, Path, Columns, Iterator[Record]]]:
    """Yield each split with its path, columns and records; only the source of test rows has rationales."""
    without = columns._replace(rationale=None)
    for role, path in own.paths.items():
        saved = _open_saved(path, role) if os.path.isdir(path) else {}
        source = "test" if own.test or "test" in saved else "train"
        if not saved:
            used = columns if role == source else without
            yield role, path, used, _read_file(path, used)
        for name, data in saved.items():
            if name == role or (role == "train" and name not in own.paths):
                used = columns if name == source else without
                yield name, path, used, _read_saved(path, data, used)


def _read_file(path: Path, columns: Columns) -> Iterator[Record]:
    if not os.path.exists(path):
        raise InputError(f"{path} does not exist; give the path of a file or of a folder saved by `datasets`")
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix not in READERS:
        kinds = ", ".join(READERS)
        raise InputError(f"{path}: unknown kind of file; expected {kinds} or a folder saved by `datasets`")
    return READERS[suffix](path, [name for name in columns if name is not None])


def _open_saved(path: Path, role: str) -> dict[str, Any]:
    """Return the splits in a folder saved by `datasets`; a single dataset becomes the split `role`."""
    import datasets
    import pyarrow as pa

    try:
        saved = datasets.load_from_disk(str(path))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise InputError(f"{unreadable(path, error)}; expected a folder saved by `datasets`") from error
    if isinstance(saved, datasets.Dataset):
        return {role: saved}
    splits = {_SPLIT_NAMES[name]: split for name, split in saved.items() if name in _SPLIT_NAMES}
    if role not in splits:
        raise InputError(f"{path}: no {role} split; there are {', '.join(saved)}")
    return splits


def _read_saved(path: Path, data: Any, columns: Columns) -> Iterator[Record]:
    names = [name for name in columns if name is not None]
    require_columns(path, names, data.column_names)
    classes = columns.label and getattr(data.features[columns.label], "names", None)
    for number, values in enumerate(data.select_columns(names)):
        if classes and (label := values[columns.label]) is not None:
            values[columns.label] = classes[label] if label >= 0 else None
        yield Record(number, f"{path}, row {number + 1}", values)


@lru_cache(maxsize=16)
def _read_labels(own: Own, columns: Columns, state: State) -> tuple[str, ...]:
    """Return the sorted labels of the main file, cached for each `state` of the file."""
    counts: Counter[str] = Counter()
    for role, _, _, records in _read_parts(own, columns):
        if role == ("train" if own.train else "test"):
            counts.update(_require_label(record, str(columns.label)) for record in records)
    if len(counts) < 2:
        raise InputError(f"{own.main}: {len(counts)} label in {columns.label!r}; expected at least 2 classes")
    if len(counts) > 20 and 2 * len(counts) > counts.total():
        what = f"{counts.total()} rows have {len(counts)} labels in {columns.label!r}"
        raise InputError(f"{own.main}: {what}; expected classes")
    numbers = all(name.removeprefix("-").isdecimal() for name in counts)
    return tuple(sorted(counts, key=int)) if numbers else tuple(sorted(counts))


def _require_label(record: Record, column: str) -> str:
    name = label_name(record.values[column])
    if name is None:
        raise InputError(f"{record.place}: no label in {column!r}; fill it in or remove the row")
    if _is_fraction(name):
        what = f"label {name} in {column!r} is not whole"
        raise InputError(f"{record.place}: {what}; expected classes: names or whole numbers")
    return require_text(name, column, record.place)


def _is_fraction(name: str) -> bool:
    try:
        number = float(name)
    except ValueError:
        return False
    return math.isfinite(number) and not number.is_integer()
