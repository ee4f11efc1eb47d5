"""A task of one's own data (csv, tsv, jsonl, parquet, a folder saved by `datasets`), from Python or TOML."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import InputError, unknown
from .readers import READERS, Record, require_columns, unreadable
from .splits import Parts, label_name, read_rows
from .task import ROLES, Columns, Own, Task

_SPLIT_NAMES = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "dev": "validation",
    "test": "test",
}


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
    name: str | None = None,
) -> Task:
    """A task whose labels are those of the training file, sorted: by value if all are whole numbers.

    Without `valid` and `test` the file is cut into 80, 10 and 10 %, without one of them into 80 and 20 %,
    in the order of md5 of the row numbers: always the same rows, whatever the seed.
    """
    from ..metrics import METRICS

    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    own = Own(Path(data), None if valid is None else Path(valid), None if test is None else Path(test))
    return Task(
        name or Path(data).name.partition(".")[0],
        text,
        _labels(own, Columns(text, label, pair)),
        pair,
        tuple(dict.fromkeys(("accuracy", "macro_f1", metric))),
        metric,
        epochs,
        label=label,
        official=ROLES,
        own=own,
    )


def task_file(path: str | Path) -> Task:
    """The task that a TOML file describes by the arguments of `own_task`; paths start at its folder."""
    file = Path(path)
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(unreadable(file, error)) from error
    except ValueError as error:
        raise InputError(f"{file} is not TOML: {error}") from error
    options = inspect.signature(own_task).parameters
    for key, value in values.items():
        if key not in options:
            raise unknown(f"key in {file}", key, options)
        expected = int if key == "epochs" else str
        if not isinstance(value, expected) or isinstance(value, bool):
            raise InputError(f"{file}: {key} is {value!r}; expected {expected.__name__}")
    for key in ("data", "text", "label"):
        if key not in values:
            raise InputError(f"{file}: no {key!r}; a task file needs data, text and label")
    for key in {"data", "valid", "test"} & values.keys():
        values[key] = file.parent / values[key]
    return own_task(**{"name": file.stem, **values})


def read(task: Task, own: Own) -> Parts:
    """The rows of the parts that are given."""
    return {
        role: read_rows(path, records, task.columns, task.labels)
        for role, path, records in _parts(own, task.columns)
    }


def _parts(own: Own, columns: Columns) -> Iterator[tuple[str, Path, Iterator[Record]]]:
    files = {"train": own.train, "validation": own.validation, "test": own.test}
    given = {role: path for role, path in files.items() if path is not None}
    for role, path in given.items():
        if not path.is_dir():
            yield role, path, _file(path, columns)
            continue
        for inside, data in _saved(path, role).items():
            if inside == role or (role == "train" and inside not in given):
                yield inside, path, _records(path, data, columns)


def _file(path: Path, columns: Columns) -> Iterator[Record]:
    if not path.exists():
        raise InputError(f"{path} is not there; give the path of a file or of a folder saved by `datasets`")
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix not in READERS:
        kinds = ", ".join(READERS)
        raise InputError(f"{path}: unknown kind of file; expected {kinds} or a folder saved by `datasets`")
    return READERS[suffix](path, [name for name in columns if name is not None])


def _saved(path: Path, role: str) -> dict[str, Any]:
    """The splits of a folder saved by `datasets`; a single dataset is the split that was asked for."""
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


def _records(path: Path, data: Any, columns: Columns) -> Iterator[Record]:
    names = [name for name in columns if name is not None]
    require_columns(path, names, data.column_names)
    classes = getattr(data.features[columns.label], "names", None)
    for number, values in enumerate(data.select_columns(names)):
        label = values[columns.label]
        if classes and label is not None:
            values[columns.label] = classes[label] if label >= 0 else None
        yield Record(number, f"{path}, row {number + 1}", values)


def _labels(own: Own, columns: Columns) -> tuple[str, ...]:
    names: set[str] = set()
    rows = 0
    for role, _, records in _parts(own, columns):
        if role != "train":
            continue
        for _, place, values in records:
            name = label_name(values[columns.label])
            if name is None:
                raise InputError(f"{place}: no label in {columns.label!r}; fill it in or remove the row")
            names.add(name)
            rows += 1
    if len(names) < 2:
        raise InputError(f"{own.train}: {len(names)} label in {columns.label!r}; expected at least 2 classes")
    if len(names) > 20 and 2 * len(names) > rows:
        raise InputError(
            f"{own.train}: {rows} rows have {len(names)} labels in {columns.label!r}; expected classes"
        )
    numbers = all(name.removeprefix("-").isdecimal() for name in names)
    return tuple(sorted(names, key=int)) if numbers else tuple(sorted(names))
