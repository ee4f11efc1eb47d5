"""Tasks for your own data (csv, tsv, jsonl, parquet, a folder saved by `datasets`), from Python or TOML."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from ..config import Kind, Text, Validated
from ..errors import InputError
from ..files import State, file_state, read_toml
from ..stats.metrics import METRICS_OF, MetricFunction, name_metric, require_metric
from .rows import Part, RowFormat, label_name, read_names, read_number, require_text
from .table_files import Record, open_saved, read_file, read_saved
from .task import ROLES, Columns, Own, Task


class TaskFile(Validated):
    """Contents of a task file; its entries are the arguments of `own_task`."""

    kind: ClassVar[str] = "task"

    data: Text = Field(description="file (csv, tsv, jsonl, parquet) or folder saved by `datasets`")
    text: Text = Field(description="column with the text to classify and explain")
    label: Text = Field(
        description="column with the label; for several labels also columns of 0 and 1, with commas between"
    )
    pair: Text | None = Field(default=None, description="column with a second text, the context")
    valid: Text | None = Field(default=None, description="validation file; default: split off from data")
    test: Text | None = Field(default=None, description="test file; default: split off from data")
    label_kind: Kind = Field(
        default="single-label",
        description="one class, several labels at once (multi-label), or a number (regression)",
    )
    metric: Text | None = Field(
        default=None,
        description="metric of the curves, which also selects the best epoch; default: accuracy, micro_f1 "
        "of several labels, pearson of numbers",
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
    label: str | Sequence[str],
    label_kind: Kind = "single-label",
    pair: str | None = None,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    metric: str | MetricFunction | None = None,
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
        label: Column with the label: a name or a whole number. For several labels at once, a column with a
            list of names or names separated by commas, or one column of 0 and 1 for each label.
        label_kind: `single-label`, `multi-label` or `regression`, for which labels are numbers. The kind is
            never guessed from the labels.
        pair: Column with a second text, the context.
        valid: File with the validation rows.
        test: File with the test rows.
        metric: Metric of the faithfulness curves, which also selects the best epoch: `accuracy`, `macro_f1`,
            `micro_f1` or `matthews`; of numbers `pearson`, `spearman` or `r2`. The default is `accuracy`,
            `micro_f1` of several labels, and `pearson` of numbers. A function is a metric of your own, see
            `metric`.
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
    if not isinstance(label, str):
        if label_kind != "multi-label":
            raise InputError(f"label names {len(label)} columns; expected one, or label_kind='multi-label'")
        label = ",".join(label)
    entries = TaskFile(
        data=str(data),
        text=text,
        label=label,
        pair=pair,
        valid=str(valid) if valid else None,
        test=str(test) if test else None,
        label_kind=label_kind,
        metric=metric and name_metric(metric),
        epochs=epochs,
        all_test=all_test,
        labels=tuple(labels) if labels else None,
        rationale=rationale,
        name=name,
    )
    return _describe(entries)


def task_file(path: str | Path) -> Task:
    """Return the task that a TOML file describes; relative paths in it start at the file's folder."""
    file = Path(path)
    values = read_toml(file)
    try:
        entries = TaskFile(**{"name": file.stem, **values})
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    for key in ("data", "valid", "test"):
        path = getattr(entries, key)
        if path:
            entries = entries.replace(**{key: str(file.parent / path)})
    return _describe(entries)


def _describe(entries: TaskFile) -> Task:
    valid, test = (Path(path) if path else None for path in (entries.valid, entries.test))
    own = Own(Path(entries.data), valid, test)
    if entries.all_test:
        if test is not None:
            raise InputError(f"all rows of {entries.data} are test texts; leave out test = {entries.test}")
        own = Own(None, valid, own.train)
    kind = entries.label_kind
    if kind == "regression" and entries.labels:
        raise InputError(f"labels are {', '.join(entries.labels)}; leave them out: regression has no classes")
    label = split_columns(entries.label, kind)
    columns = Columns(entries.text, label, entries.pair, entries.rationale)
    # checked now: a metric that does not fit would end a training at its first evaluation
    metric = entries.metric or METRICS_OF[kind][0]
    require_metric(metric, kind)
    return Task(
        entries.name or own.main.name.partition(".")[0],
        entries.text,
        entries.labels or _read_labels(own, columns, kind, file_state([own.main])),
        entries.pair,
        tuple(dict.fromkeys((*METRICS_OF[kind], metric))),
        metric,
        entries.epochs,
        label=label,
        official=ROLES,
        own=own,
        rationale=entries.rationale,
        kind=kind,
    )


def split_columns(label: str, kind: Kind) -> str | tuple[str, ...]:
    """Return the label column, or the columns of several labels, which have commas between them."""
    several = kind == "multi-label" and "," in label  # a single column of that kind holds lists
    return tuple(map(str.strip, label.split(","))) if several else label


def read_own(task: Task, own: Own) -> Iterator[Part]:
    """Yield the splits that the user's files contain."""
    for role, path, columns, records in _read_parts(own, task.columns):
        yield Part(role, path, RowFormat(columns, task.labels, task.kind), records)


def _read_parts(own: Own, columns: Columns) -> Iterator[tuple[str, Path, Columns, Iterator[Record]]]:
    """Yield each split with its path, columns and records; only the source of test rows has rationales."""
    without = columns._replace(rationale=None)
    for role, path in own.paths.items():
        saved = open_saved(path, role) if os.path.isdir(path) else {}
        source = "test" if own.test or "test" in saved else "train"
        if not saved:
            used = columns if role == source else without
            yield role, path, used, read_file(path, used.names)
        for name, data in saved.items():
            if name == role or (role == "train" and name not in own.paths):
                used = columns if name == source else without
                yield name, path, used, read_saved(path, data, used)


def read_records(path: Path, columns: Columns) -> Iterator[Record]:
    """Yield all records of a file, or those of the test split of a folder saved by `datasets`."""
    if os.path.isdir(path):
        return read_saved(path, open_saved(path, "test")["test"], columns)
    return read_file(path, columns.names)


@lru_cache(maxsize=16)
def _read_labels(own: Own, columns: Columns, kind: Kind, state: State) -> tuple[str, ...]:
    """Return the labels of the main file, cached for each `state` of the file."""
    main = "train" if own.train else "test"
    records: list[Record] = []
    for role, *_, part in _read_parts(own, columns):
        if role == main:
            records += part
    if kind == "regression":
        return _name_number(own, str(columns.label), records)
    if kind == "multi-label":
        return _list_several(own, columns, records)
    counts = Counter(_require_label(record, str(columns.label)) for record in records)
    if len(counts) < 2:
        raise InputError(f"{own.main}: {len(counts)} label in {columns.label!r}; expected at least 2 classes")
    if len(counts) > 20 and 2 * len(counts) > counts.total():  # rather free text than classes
        what = f"{counts.total()} rows have {len(counts)} labels in {columns.label!r}"
        raise InputError(f"{own.main}: {what}; expected classes")
    return _sorted_labels(counts)


def _sorted_labels(names: Iterable[str]) -> tuple[str, ...]:
    """Return labels in alphabetical order, or in numerical order if all are whole numbers."""
    ordered = sorted(names)  # 2 before 10 in numerical order, the other way round by name
    numbers = all(name.removeprefix("-").isdecimal() for name in ordered)
    return tuple(sorted(ordered, key=int)) if numbers else tuple(ordered)


def _name_number(own: Own, column: str, records: Sequence[Record]) -> tuple[str]:
    """Return the name of the number to predict, after checking that all are numbers, and not all equal."""
    numbers = {read_number(record.values[column], column, record.place) for record in records}
    if len(numbers) < 2:
        what = f"all {len(records)} rows have the number {next(iter(numbers), 0):g}" if numbers else "no rows"
        raise InputError(f"{own.main}: {what} in {column!r}; expected different numbers to predict")
    return (column,)


def _list_several(own: Own, columns: Columns, records: Sequence[Record]) -> tuple[str, ...]:
    """Return the names of several labels, after checking that some rows have each of them, and some not."""
    counts: Counter[str] = Counter()
    for _, place, values in records:
        for name in {*read_names(values, columns, place)}:  # a row that names a label twice has it once
            counts[require_text(name, str(columns.label), place)] += 1
    labels = columns.label if isinstance(columns.label, tuple) else _sorted_labels(counts)
    if len(labels) < 2:
        raise InputError(f"{own.main}: {len(labels)} label in {columns.label!r}; expected at least 2 labels")
    for label in labels:
        if counts[label] in (0, len(records)):
            share = "no row has" if not counts[label] else f"all {len(records)} rows have"
            raise InputError(
                f"{own.main}: {share} the label {label!r}; expected rows with it and rows without it"
            )
    return labels


def _require_label(record: Record, column: str) -> str:
    name = label_name(record.values[column])
    if name is None:  # a row without a label would silently become a class of its own
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
