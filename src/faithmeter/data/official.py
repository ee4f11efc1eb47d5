"""Rows from the official files of GLUE (tsv), SuperGLUE and SNLI (jsonl), MRPC (also txt) and bAbI (txt)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path

from ..errors import InputError
from . import babi
from .readers import Record, jsonl, lines, tsv
from .splits import Parts, Row, read_rows
from .task import Files, Task

MSR_TRAIN, MSR_DEV = "msr_paraphrase_train.txt", "dev_ids.tsv"


def read_tables(task: Task, files: Files, folder: Path) -> Parts:
    """Return the rows of each official split, read from one tsv or jsonl file per split."""
    parts = zip(task.roles, files.names, strict=True)
    return {role: _read_table(task, files, folder / name) for role, name in parts}


def _read_table(task: Task, files: Files, path: Path) -> list[Row]:
    columns = files.columns or task.columns
    names = [*columns.names, *([files.key] if files.key else [])]
    if path.suffix == ".jsonl":
        records: Iterable[Record] = jsonl(path, names)
    else:
        records = tsv(path, names, header=files.header, drop_short=files.drop_short)
    codes = files.codes or task.labels
    return read_rows(path, records, columns, codes, key=files.key, unlabeled=files.unlabeled, kind=task.kind)


def has_msr(folder: Path) -> bool:
    """Return whether the folder has Microsoft's MRPC file, whose row numbers define the published split."""
    return (folder / MSR_TRAIN).exists()


def list_mrpc(files: Files, folder: Path) -> list[Path]:
    """Return the paths of Microsoft's MRPC files if the folder has them, otherwise those of GLUE's files."""
    return [folder / name for name in ((MSR_TRAIN, MSR_DEV) if has_msr(folder) else files.names)]


def read_mrpc(task: Task, files: Files, folder: Path) -> Parts:
    """Return the rows of MRPC from Microsoft's files, or from GLUE's if the folder has only those.

    The pairs of Microsoft's training file that `dev_ids.tsv` lists are the test split.
    """
    if not has_msr(folder):
        return read_tables(task, files, folder)
    ids = {(record.values["#1 ID"], record.values["#2 ID"]) for record in _read_dev_ids(folder / MSR_DEV)}
    path, columns = folder / MSR_TRAIN, files.columns or task.columns
    parts: dict[str, list[Record]] = {"train": [], "test": []}
    for record in tsv(path, ["#1 ID", "#2 ID", *columns.names]):
        held_out = (record.values["#1 ID"], record.values["#2 ID"]) in ids
        parts["test" if held_out else "train"].append(record)
    return {role: read_rows(path, part, columns, files.codes) for role, part in parts.items()}


def _read_dev_ids(path: Path) -> Iterable[Record]:
    header = ("#1 ID", "#2 ID")
    first = next(lines(path))[1].split("\t")
    return tsv(path, header, header=None if first[0] == header[0] else header)


def read_babi(task: Task, files: Files, folder: Path) -> Parts:
    """Return the rows of each official bAbI split, read from one text file per split."""
    parts = zip(task.roles, files.names, strict=True)
    return {role: story_rows(task, babi.read(folder / name), folder / name) for role, name in parts}


def story_rows(task: Task, stories: Iterable[babi.Story], source: Path | str) -> list[Row]:
    """Return a row for each question; its key is `0-<question number>`, as in the released code."""
    index = {label: number for number, label in enumerate(task.labels)}
    questions = [question for story in stories for question in story]
    if not questions:
        raise InputError(f"{source} has no questions; expected at least one")
    rows = []
    for number, question in enumerate(questions):
        place = f"{source}, question {number + 1}"
        if question.answer not in index:
            known = ", ".join(task.labels)
            raise InputError(f"{place}: answer {question.answer!r:.60}; expected one of {known}")
        if not question.paragraph.strip():
            raise InputError(f"{place}: no statement comes before the question; expected at least one")
        starts = [0, *accumulate(len(statement) + 1 for statement in question.story)]
        facts = tuple(
            (starts[fact], starts[fact] + len(question.story[fact])) for fact in question.supporting
        )
        rows.append(Row(f"0-{number}", question.paragraph, index[question.answer], question.question, facts))
    return rows
