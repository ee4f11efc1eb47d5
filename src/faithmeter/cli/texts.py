"""Options that name texts: a task, files with their columns, single texts; the same in every verb."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..config import CLASSES
from ..errors import InputError, located, unknown
from .options import option
from .screen import describe_given, note

if TYPE_CHECKING:
    from ..data import Task
    from ..runs.measured import Origin

TaskName = Annotated[str, typer.Option("--task", help="default: the task that the checkpoint was trained on")]
DataDir = Annotated[Path | None, typer.Option(help="folder with the official files of the task")]
TextColumn = Annotated[str | None, typer.Option("--text", help="column with the text to explain")]
PairColumn = Annotated[str | None, typer.Option("--pair", help="column with a second text, the context")]
ClassName = Annotated[
    str | None, typer.Option("--class", help="label to look at, for a model that gives several at once")
]


@dataclass(frozen=True)
class Texts:
    """Options that name the texts to measure or check."""

    task: TaskName = ""
    data_dir: DataDir = None
    limit: int = option(0, "only the first texts of the test split; 0 takes all", min=0)
    data: Path | None = option(
        None,
        "your own data instead of a task; without --text: the data that the checkpoint was trained on, if "
        "moved",
    )
    text: TextColumn = None
    label: str | None = option(
        None, "column with the label; several columns of 0 and 1: with commas between", "--label"
    )
    pair: PairColumn = None
    valid: Path | None = option(
        None,
        "file with validation rows, which the check is fitted on; default: split off from --data, else "
        "those of the training",
    )
    test: Path | None = option(
        None, "file whose rows are all test texts; default: test rows are split off from --data"
    )
    classes: str = option("", CLASSES)
    name: ClassName = None

    @property
    def settings(self) -> dict[str, Any]:
        """Fields of a `MeasureConfig`."""
        return {"task": self.task, "limit": self.limit, "classes": self.classes, "label": self.name or ""}

    def origin(self, checkpoint: str) -> Origin:
        """Return where the texts come from; raise an InputError for options that do not fit."""
        from ..runs.measured import Origin

        own = _own_test_texts(checkpoint, self)
        return Origin(self.data_dir, None if own else self.data, own)


@dataclass(frozen=True)
class TextsWithRationales(Texts):
    """Options that name the texts to measure, and what people call the reason in them."""

    rationale: str | None = option(None, "column with human rationales", "--rationale")


def _own_test_texts(checkpoint: str, texts: Texts) -> Task | None:
    """Return the task of the user's own files and columns; None if no column is named.

    Labels are classes, several at once or numbers, as the checkpoint's head says.
    """
    data = None if texts.data == texts.test else texts.data  # the same file twice: all rows are test texts
    rationale = getattr(texts, "rationale", None)
    columns = {"--text": texts.text, "--label": texts.label, "--pair": texts.pair, "--rationale": rationale}
    options = {**columns, "--valid": texts.valid, "--test": texts.test}
    given = describe_given(options)
    if not given:
        return None
    source = f"--data {data}" if data else f"--test {texts.test}"
    if data is None and texts.test is None:
        raise InputError(f"{given[0]} goes with --data or --test, the file that it belongs to")
    if texts.task:
        raise InputError(
            f"--task {texts.task} and {source} with columns exclude each other; leave one of them out"
        )
    for name in ("--text", "--label"):
        if not columns[name]:
            raise InputError(f"{source} requires {name}, the name of that column")
    from ..data import own_task
    from ..models.loading import kind_of_model

    own = own_task(
        data or str(texts.test),
        text=str(texts.text),
        label=str(texts.label),
        label_kind=kind_of_model(checkpoint),
        pair=texts.pair,
        rationale=rationale,
        valid=texts.valid,
        test=texts.test if data else None,
        all_test=data is None,
    )
    if texts.test is None:
        splits = own.load()
        note(
            f"{len(splits['test'])} of {sum(map(len, splits.values()))} rows are test texts, split off as in "
            f"training; to take all: --test {data} instead of --data"
        )
    return own


@dataclass(frozen=True)
class Row:
    """Text to explain, with its context and class; `place` names its file and line, if it has any."""

    text: str
    pair: str | None
    label: str | int | None
    place: str = ""

    @property
    def pairs(self) -> list[str] | None:
        return None if self.pair is None else [self.pair]


TABLES = (".csv", ".tsv", ".parquet")
"""Endings of files whose lines are no texts."""
ROW_TYPES = {"text": str, "pair": str | None, "label": str | int | None}


def read_texts(
    given: dict[str, str | None], file: Path | None, data: Path | None, columns: dict[str, str | None]
) -> list[Row]:
    """Return the texts to explain, from the command line, standard input, a file of lines, or a table.

    Args:
        given: Text, context and class on the command line; the rows of a file may name their own.
        file: A file with a text in each line, or jsonl.
        data: A table, such as a csv file.
        columns: The table's columns with text, context and class.

    Raises:
        InputError: No text, or more than one source of texts is given, or a row is not valid.
    """
    if [given["text"], file, data].count(None) != 2:
        raise InputError(
            "expected either a text, --data with a table or --file with a text in each line: "
            'faithmeter explain CHECKPOINT "a text"'
        )
    for role, column in columns.items():
        if column is not None and data is None:
            raise InputError(f"--{role} {column} is a column of --data, which is missing: add it")
    if data is not None:
        return list(_read_table(data, columns, given["label"]))
    if file is not None:
        return _read_lines(file, given)
    if os.path.isfile(f"{given['text']}/config.json"):  # unlike Path, also for texts that are no paths
        raise InputError(
            f"{given['text']} is a checkpoint; expected a text: if a pattern stands for several "
            "folders, name one of them"
        )
    if given["text"] == "-":
        given["text"] = typer.get_text_stream("stdin").read().strip()  # the end of line of `echo` is no text
    return [_row(given)]


def _read_table(data: Path, columns: dict[str, str | None], label: str | None) -> Iterator[Row]:
    """Yield the rows of a table; without a column of labels, `label` is the class to explain."""
    from ..data.custom import read_records
    from ..data.rows import label_name
    from ..data.task import Columns

    if columns["text"] is None:
        raise InputError(f"--data {data} requires --text, the name of the column with the text to explain")
    for record in read_records(data, Columns(columns["text"], columns["label"], columns["pair"])):
        values = {role: record.values[name] for role, name in columns.items() if name is not None}
        if "label" in values:
            values["label"] = label_name(values["label"])
        with located(record.place):
            yield _row({"text": None, "pair": None, "label": label} | values, record.place)


def _read_lines(file: Path, given: dict[str, str | None]) -> list[Row]:
    """Return the rows of a file of lines; values given on the command line fill in missing keys."""
    suffix = Path(file.name.removesuffix(".gz")).suffix
    if suffix in TABLES:
        raise InputError(
            f"--file {file} is a table ({suffix}), and --file takes a text in each line; explain a column of "
            f"it: --data {file} --text COLUMN"
        )
    rows: list[Row] = []
    for place, own in _lines_of(file, suffix):
        with located(place):
            rows.append(_row(given | own, place))
    if not rows:  # an empty result would look like a success
        raise InputError(f"{file} holds no text; expected one per line")
    return rows


def _lines_of(file: Path, suffix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the values of each line that is not blank."""
    from ..data.table_files import jsonl, lines

    if suffix == ".jsonl":
        for record in jsonl(file):
            yield record.place, record.values
        return
    for number, text in lines(file):
        if text.strip():
            yield f"{file}, line {number}", {"text": text.rstrip("\r\n")}


def _row(given: dict[str, Any], place: str = "") -> Row:
    for key, value in given.items():  # a row of a file may have any keys, such as a misspelled `texts`
        if key not in ROW_TYPES:
            raise unknown("key", key, ROW_TYPES)
        if not isinstance(value, ROW_TYPES[key]):
            raise InputError(f"`{key}` is {value!r}; expected a string")
    if not given["text"].strip():
        raise InputError("the text is empty; expected at least one word")
    return Row(**given, place=place)
