"""Tasks with human rationales, from their official files: e-SNLI, HateXplain and the movies of ERASER."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import InputError
from .passages import Spans, join_tokens
from .readers import comma_separated, jsonl, lines
from .splits import Parts, Row
from .task import Files, Task

ESNLI = (("esnli_train_1.csv", "esnli_train_2.csv"), ("esnli_dev.csv",), ("esnli_test.csv",))
"""Files of each split of e-SNLI."""
ESNLI_COLUMNS = ("gold_label", "Sentence1", "Sentence2", "Sentence1_marked_1")
HATEXPLAIN = ("dataset.json", "post_id_divisions.json")
HATEXPLAIN_SPLITS = {"train": "train", "validation": "val", "test": "test"}
ERASER = ("train.jsonl", "val.jsonl", "test.jsonl")
MARKED = re.compile(r"\*(.*?)\*")
"""A highlighted word in the marked columns of e-SNLI."""


def read_esnli(task: Task, files: Files, folder: Path) -> Parts:
    """Read e-SNLI; the rationale is the part of the premise that the first annotator highlighted."""
    return {
        role: [
            row
            for number, name in enumerate(names)
            for row in _read_esnli_file(task, folder / name, f"{number}-" if len(names) > 1 else "")
        ]
        for role, names in zip(task.roles, ESNLI, strict=True)
    }


def _read_esnli_file(task: Task, path: Path, prefix: str) -> Iterator[Row]:
    for record in comma_separated(path, ESNLI_COLUMNS):
        values = record.values
        text, spans = unmark(values["Sentence1_marked_1"])
        label = _number(task, values["gold_label"], record.place)
        if text != values["Sentence1"]:
            text, spans = values["Sentence1"], ()  # marks that do not give the sentence back
        yield Row(f"{prefix}{record.number}", text, label, values["Sentence2"], spans)


def unmark(marked: str) -> tuple[str, Spans]:
    """Return a text without the asterisks around its highlighted words, and the spans of these words."""
    text, spans, at = "", [], 0
    for match in MARKED.finditer(marked):
        text += marked[at : match.start()]
        spans.append((len(text), len(text) + len(match[1])))
        text += match[1]
        at = match.end()
    return text + marked[at:], tuple(span for span in spans if span[0] < span[1])


def read_hatexplain(task: Task, files: Files, folder: Path) -> Parts:
    """Read HateXplain: the majority label, and the tokens that at least half of the rationales mark.

    Posts on which all annotators disagree are left out, as in its paper.
    """
    posts, divisions = (_read_json(folder / name) for name in HATEXPLAIN)
    parts: Parts = {}
    for role, name in HATEXPLAIN_SPLITS.items():
        rows = [_hatexplain_row(task, posts, key, folder) for key in divisions.get(name, ())]
        parts[role] = [row for row in rows if row is not None]
        if not parts[role]:
            raise InputError(f"{folder / HATEXPLAIN[1]}: no posts of {name!r}; get the file again")
    return parts


def _hatexplain_row(task: Task, posts: dict[str, Any], key: str, folder: Path) -> Row | None:
    place = f"{folder / HATEXPLAIN[0]}, post {key}"
    try:
        post = posts[key]
        tokens = [str(token) for token in post["post_tokens"]]
        (label, votes), *_ = Counter(one["label"] for one in post["annotators"]).most_common()
        rationales = [[bool(mark) for mark in marks] for marks in post["rationales"]]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{place}: {error!r}; expected the official layout: get the file again") from error
    if votes < 2:
        return None
    if any(len(marks) != len(tokens) for marks in rationales):
        raise InputError(f"{place}: a rationale that does not fit its {len(tokens)} tokens; get it again")
    marks = [2 * sum(votes) >= len(rationales) for votes in zip(*rationales, strict=True)]
    text, spans = join_tokens(tokens)
    marked = tuple(span for span, mark in zip(spans, marks, strict=False) if mark) if rationales else ()
    return Row(key, text, _number(task, label, place), None, marked)


def read_eraser(task: Task, files: Files, folder: Path) -> Parts:
    """Read a document task of ERASER: annotations in jsonl files, documents in the folder `docs`."""
    names = zip(task.roles, ERASER, strict=True)
    return {
        role: [_eraser_row(task, record, folder) for record in jsonl(folder / name)] for role, name in names
    }


def _eraser_row(task: Task, record: Any, folder: Path) -> Row:
    values, place = record.values, record.place
    try:
        label, key = values["classification"], str(values["annotation_id"])
        evidences = [one for group in values["evidences"] for one in group]
        places = [(int(one["start_token"]), int(one["end_token"])) for one in evidences]
        documents = {str(one["docid"]) for one in evidences} or {key}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{place}: {error!r}; expected the official layout: get the file again") from error
    if len(documents) > 1:
        raise InputError(f"{place}: evidence from {len(documents)} documents; expected one")
    path = folder / "docs" / documents.pop()
    tokens = " ".join(line for _, line in lines(path)).split()
    if any(not 0 <= start < end <= len(tokens) for start, end in places):
        raise InputError(
            f"{place}: evidence outside of the {len(tokens)} tokens of {path}; get the file again"
        )
    text, spans = join_tokens(tokens)
    rationale = tuple((spans[start][0], spans[end - 1][1]) for start, end in sorted(places))
    return Row(key, text, _number(task, label, place), None, rationale)


def _number(task: Task, label: Any, place: str) -> int:
    names = [*(task.files.codes if task.files and task.files.codes else task.labels)]
    if label not in names:
        raise InputError(f"{place}: label {label!r:.60}; expected one of {', '.join(names)}")
    return names.index(label)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads("".join(line for _, line in lines(path)))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not JSON ({error}); get the file again") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: {type(values).__name__}; expected an object: get the file again")
    return values


def list_esnli(files: Files, folder: Path) -> list[Path]:
    return [folder / name for names in ESNLI for name in names]


_THREE = ("train", "validation", "test")
RATIONALE_TASKS = {
    "e-SNLI": Task(
        "e-SNLI",
        "premise",
        ("entailment", "neutral", "contradiction"),
        "hypothesis",
        epochs=10,
        official=_THREE,
        files=Files("esnli", ("e-SNLI", "esnli", "dataset")),
    ),
    "HateXplain": Task(
        "HateXplain",
        "text",
        ("hatespeech", "normal", "offensive"),
        metrics=("accuracy", "macro_f1"),
        metric="macro_f1",
        official=_THREE,
        files=Files("hatexplain", ("HateXplain", "Data"), HATEXPLAIN),
    ),
    "movies": Task(
        "movies",
        "review",
        ("negative", "positive"),
        metrics=("accuracy", "macro_f1"),
        metric="macro_f1",
        official=_THREE,
        files=Files("eraser", ("movies",), ERASER, codes=("NEG", "POS")),
    ),
}
"""Tasks with rationales by name; their files must be given as data_dir."""
