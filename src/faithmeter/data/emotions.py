"""Rows from the official files of GoEmotions: a text and the numbers of its labels, separated by commas."""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError
from .readers import tsv
from .splits import Parts, Row, require_text
from .task import Files, Task

HEADER = ("text", "labels", "id")


def read(task: Task, files: Files, folder: Path) -> Parts:
    """Read one tsv file for each split."""
    parts = zip(task.roles, files.names, strict=True)
    return {role: _read_file(task, folder / name) for role, name in parts}


def _read_file(task: Task, path: Path) -> list[Row]:
    rows = []
    for number, place, values in tsv(path, HEADER, header=HEADER):
        labels = {_label_number(code, len(task.labels), place) for code in values["labels"].split(",")}
        text = require_text(values["text"], "text", place)
        if not text.strip():
            raise InputError(f"{place}: the text is empty; fill it in or remove the row")
        rows.append(Row(str(number), text, tuple(int(label in labels) for label in range(len(task.labels)))))
    return rows


def _label_number(code: str, labels: int, place: str) -> int:
    if not (code.isdecimal() and int(code) < labels):
        raise InputError(f"{place}: label {code!r:.60}; expected numbers from 0 to {labels - 1}")
    return int(code)
