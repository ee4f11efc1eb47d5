"""Texts to explain: one from the command line, lines of a file, or rows of a table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ..errors import InputError, unknown


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
        return list(_read_lines(file, given))
    if os.path.isfile(f"{given['text']}/config.json"):  # unlike Path, also for texts that are no paths
        raise InputError(
            f"{given['text']} is a checkpoint; expected a text: if a pattern stands for several "
            "folders, name one of them"
        )
    if given["text"] == "-":
        given["text"] = typer.get_text_stream("stdin").read().strip()
    return [_row(given)]


def _read_table(data: Path, columns: dict[str, str | None], label: str | None) -> Iterator[Row]:
    """Yield the rows of a table; without a column of labels, `label` is the class to explain."""
    from ..data.custom import read_records
    from ..data.label_values import label_name
    from ..data.task import Columns

    if columns["text"] is None:
        raise InputError(f"--data {data} requires --text, the name of the column with the text to explain")
    for record in read_records(data, Columns(columns["text"], columns["label"], columns["pair"])):
        values = {role: record.values[name] for role, name in columns.items() if name is not None}
        if "label" in values:
            values["label"] = label_name(values["label"])
        with name_place(record.place):
            yield _row({"text": None, "pair": None, "label": label} | values, record.place)


def _read_lines(file: Path, given: dict[str, str | None]) -> Iterator[Row]:
    """Yield the rows of a file of lines; values given on the command line fill in missing keys."""
    suffix = Path(file.name.removesuffix(".gz")).suffix
    if suffix in TABLES:
        raise InputError(
            f"--file {file} is a table ({suffix}), and --file takes a text in each line; explain a column of "
            f"it: --data {file} --text COLUMN"
        )
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    if not any(map(str.strip, lines)):
        raise InputError(f"{file} holds no text; expected one per line")
    for number, line in enumerate(lines, start=1):
        place = f"{file}, line {number}"
        if line.strip():
            with name_place(place):
                own = _object(line) if file.suffix == ".jsonl" else {"text": line}
                yield _row(given | own, place)


def _object(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise InputError(f"got {line.strip()}; expected an object with `text`")
    return row


def _row(given: dict[str, Any], place: str = "") -> Row:
    for key, value in given.items():
        if key not in ROW_TYPES:
            raise unknown("key", key, ROW_TYPES)
        if not isinstance(value, ROW_TYPES[key]):
            raise InputError(f"`{key}` is {value!r}; expected a string")
    if not given["text"].strip():
        raise InputError("the text is empty; expected at least one word")
    return Row(**given, place=place)


@contextmanager
def name_place(place: str) -> Iterator[None]:
    """Prefix the message of any InputError raised in the block with `place`, unless it is empty."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}" if place else str(error)) from error
