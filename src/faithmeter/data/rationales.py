"""Rows with human rationales from the official files of e-SNLI, HateXplain and the movies of ERASER."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InputError
from .readers import Record, comma_separated, jsonl, lines
from .rows import Parts, RowFormat, Spans, read_rows
from .task import Columns, Files, Task

ESNLI = (("esnli_train_1.csv", "esnli_train_2.csv"), ("esnli_dev.csv",), ("esnli_test.csv",))
"""Files of each split of e-SNLI."""
ESNLI_COLUMNS = ("gold_label", "Sentence1", "Sentence2", "Sentence1_marked_1")
HATEXPLAIN = ("dataset.json", "post_id_divisions.json")
HATEXPLAIN_SPLITS = {"train": "train", "validation": "val", "test": "test"}
MARKED = re.compile(r"\*(.*?)\*")
"""A highlighted word in the marked columns of e-SNLI."""


def list_esnli(files: Files, folder: Path) -> list[Path]:
    """Return the paths of e-SNLI's files."""
    return [folder / name for names in ESNLI for name in names]


def read_esnli(task: Task, files: Files, folder: Path) -> Parts:
    """Read e-SNLI; the rationale is the part of the premise that the first annotator highlighted."""
    form = _form(task, Columns("Sentence1", "gold_label", "Sentence2", "spans"))
    parts: Parts = {}
    for role, names in zip(task.roles, ESNLI, strict=True):
        records: list[Record] = []
        for file, name in enumerate(names):
            prefix = f"{file}-" if len(names) > 1 else ""  # both training files number their rows from 0
            for number, place, values in comma_separated(folder / name, ESNLI_COLUMNS):
                text, spans = unmark(values["Sentence1_marked_1"])
                if text != values["Sentence1"]:
                    spans = ()  # marks that do not give the sentence back
                records.append(Record(f"{prefix}{number}", place, {**values, "spans": [*spans]}))
        parts[role] = read_rows(folder / names[0], records, form)
    return parts


def unmark(marked: str) -> tuple[str, Spans]:
    """Return a text without the asterisks around its highlighted words, and the spans of these words."""
    text, spans, at = "", [], 0
    for match in MARKED.finditer(marked):
        text += marked[at : match.start()]
        if match[1]:
            spans.append((len(text), len(text) + len(match[1])))
        text += match[1]
        at = match.end()
    return text + marked[at:], tuple(spans)


def read_hatexplain(task: Task, files: Files, folder: Path) -> Parts:
    """Read HateXplain: the majority label, and the tokens that at least half of the rationales mark.

    Posts on which all annotators disagree are left out, as in its paper.
    """
    posts, divisions = (_read_json(folder / name) for name in HATEXPLAIN)
    form = _form(task, Columns("text", rationale="spans"))
    parts: Parts = {}
    for role, name in HATEXPLAIN_SPLITS.items():
        records = []
        for key in divisions.get(name, ()):
            place = f"{folder / HATEXPLAIN[0]}, post {key}"
            values = _read_post(posts, key, place)
            if values is not None:
                records.append(Record(key, place, values))
        if not records:
            raise InputError(f"{folder / HATEXPLAIN[1]}: no posts of {name!r}; get the file again")
        parts[role] = read_rows(folder / HATEXPLAIN[0], records, form)
    return parts


def _read_post(posts: dict[str, Any], key: str, place: str) -> dict[str, Any] | None:
    """Return text, label and spans of a post; None if no label has a majority."""
    with _official_layout(place):
        post = posts[key]
        tokens = [*map(str, post["post_tokens"])]
        (label, votes), *_ = Counter(one["label"] for one in post["annotators"]).most_common()
        rationales = [[*map(bool, marks)] for marks in post["rationales"]]
    if votes < 2:
        return None
    if any(len(marks) != len(tokens) for marks in rationales):
        raise InputError(f"{place}: a rationale that does not fit its {len(tokens)} tokens; get it again")
    text, places = join_tokens(tokens)
    spans = []
    for place_of_token, *marks in zip(places, *rationales, strict=True):
        if rationales and 2 * sum(marks) >= len(rationales) and place_of_token[0] < place_of_token[1]:
            spans.append(place_of_token)
    return {"text": text, "label": label, "spans": spans}


def read_eraser(task: Task, files: Files, folder: Path) -> Parts:
    """Read a document task of ERASER: annotations in jsonl files, documents in the folder `docs`."""
    form = _form(task, Columns("text", rationale="spans"))
    parts: Parts = {}
    for role, name in zip(task.roles, files.names, strict=True):
        records = (_read_annotation(record, folder) for record in jsonl(folder / name))
        parts[role] = read_rows(folder / name, records, form)
    return parts


def _read_annotation(record: Record, folder: Path) -> Record:
    """Return the record of a document with its text, label and spans of evidence."""
    values, place = record.values, record.place
    with _official_layout(place):
        label, key = values["classification"], str(values["annotation_id"])
        evidences = [one for group in values["evidences"] for one in group]
        places = sorted((int(one["start_token"]), int(one["end_token"])) for one in evidences)
        documents = {str(one["docid"]) for one in evidences} or {key}
    if len(documents) > 1:
        raise InputError(f"{place}: evidence from {len(documents)} documents; expected one")
    path = folder / "docs" / documents.pop()
    tokens = " ".join(line for _, line in lines(path)).split()
    if any(not 0 <= start < end <= len(tokens) for start, end in places):
        raise InputError(
            f"{place}: evidence outside of the {len(tokens)} tokens of {path}; get the file again"
        )
    text, spans = join_tokens(tokens)
    evidence = [(spans[start][0], spans[end - 1][1]) for start, end in places]
    return Record(key, place, {"text": text, "label": label, "spans": evidence})


def join_tokens(tokens: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Return tokens joined by blanks, and their spans."""
    spans, at = [], 0
    for token in tokens:
        spans.append((at, at + len(token)))
        at += len(token) + 1
    return " ".join(tokens), spans


def _form(task: Task, columns: Columns) -> RowFormat:
    """Return the format of records whose rationales have been found."""
    return RowFormat(columns, (task.files and task.files.codes) or task.labels)


@contextmanager
def _official_layout(place: str) -> Iterator[None]:
    """Convert the errors of values that are not there, or of another type, to an InputError."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{place}: {error!r}; expected the official layout: get the file again") from error


def _read_json(path: Path) -> dict[str, Any]:
    text = "".join(line for _, line in lines(path))
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error}); get the file again") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: {type(values).__name__}; expected an object: get the file again")
    return values
