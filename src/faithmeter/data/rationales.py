"""Official files of the tasks with human rationales: e-SNLI, HateXplain and the movies of ERASER."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from ..errors import InputError
from .rows import Span
from .table_files import Record, comma_separated, jsonl, read_json, texts
from .task import Files, Task

Split = tuple[str, Path, Iterable[Record]]
"""Name of a split, its file, and its records."""
ESNLI_COLUMNS = ("gold_label", "Sentence1", "Sentence2", "Sentence1_marked_1")
HATEXPLAIN_SPLITS = {"train": "train", "validation": "val", "test": "test"}
MARKED = re.compile(r"\*(.*?)\*")
"""A highlighted word in the marked columns of e-SNLI."""


def read_esnli(task: Task, files: Files, paths: list[Path]) -> Iterator[Split]:
    """Yield the records of e-SNLI; the rationale is what the first annotator highlighted in the premise."""
    first, second, *others = paths
    train = [*_read_marked(first, "0-"), *_read_marked(second, "1-")]  # both number their rows from 0
    yield "train", first, train
    for role, path in zip(("validation", "test"), others, strict=True):
        yield role, path, _read_marked(path)


def _read_marked(path: Path, prefix: str = "") -> Iterator[Record]:
    for number, place, values in comma_separated(path, ESNLI_COLUMNS):
        text, spans = unmark(values["Sentence1_marked_1"])
        # marks that do not give the sentence back mark nothing
        matching = spans if text == values["Sentence1"] else ()
        yield Record(f"{prefix}{number}", place, {**values, "spans": matching})


def unmark(marked: str) -> tuple[str, tuple[Span, ...]]:
    """Return a text without the asterisks around its highlighted words, and the spans of these words."""
    text, spans = "", tuple[Span, ...]()
    for number, part in enumerate(MARKED.split(marked)):
        if number % 2 and part:  # the parts between are highlighted
            spans += ((len(text), len(text) + len(part)),)
        text += part
    return text, spans


def read_hatexplain(task: Task, files: Files, paths: list[Path]) -> Iterator[Split]:
    """Yield the posts of HateXplain: the majority label, and what at least half of the rationales mark.

    Posts on which all annotators disagree are left out, as in its paper.
    """
    posts, divisions = map(_read_object, paths)
    for role, name in HATEXPLAIN_SPLITS.items():
        records = []
        for key in divisions.get(name, ()):
            place = f"{paths[0]}, post {key}"
            values = _read_post(posts, key, place)
            if values is not None:
                records.append(Record(key, place, values))
        if not records:
            raise InputError(f"{paths[1]}: no posts of {name!r}; get the file again")
        yield role, paths[0], records


def _read_post(posts: dict[str, Any], key: str, place: str) -> dict[str, Any] | None:
    """Return text, label and spans of a post; None if no label has a majority."""
    with _official_layout(place):
        post = posts[key]
        tokens = [*map(str, post["post_tokens"])]
        (label, votes), *_ = Counter(one["label"] for one in post["annotators"]).most_common()
        rationales = [[*map(bool, marks)] for marks in post["rationales"]]
    if votes < 2:
        return None
    if {len(tokens), *map(len, rationales)} != {len(tokens)}:
        raise InputError(f"{place}: a rationale that does not fit its {len(tokens)} tokens; get it again")
    text, places = join_tokens(tokens)
    spans = []
    for place_of_token, *marks in zip(places, *rationales, strict=True):
        if rationales and 2 * sum(marks) >= len(rationales) and place_of_token[0] < place_of_token[1]:
            spans.append(place_of_token)
    return {"text": text, "label": label, "spans": tuple(spans)}


def read_eraser(task: Task, files: Files, paths: list[Path]) -> Iterator[Split]:
    """Yield the documents of a task of ERASER: annotations in jsonl files, texts in the folder `docs`."""
    for role, path in zip(task.roles, paths, strict=True):
        yield role, path, (_read_annotation(record, path.parent / "docs") for record in jsonl(path))


def _read_annotation(record: Record, documents: Path) -> Record:
    """Return the record of a document with its text, label and spans of evidence."""
    values, place = record.values, record.place
    with _official_layout(place):
        label, key = values["classification"], str(values["annotation_id"])
        evidence = list(chain.from_iterable(values["evidences"]))
        names, places = set(), []
        for one in evidence:
            names.add(str(one["docid"]))
            places.append((int(one["start_token"]), int(one["end_token"])))
    if len(names) > 1:
        raise InputError(f"{place}: evidence from {len(names)} documents; expected one")
    path = documents / (names.pop() if names else key)
    tokens = " ".join(texts(path)).split()
    text, spans = join_tokens(tokens)
    passages = []
    for start, end in sorted(places):
        if not 0 <= start < end <= len(tokens):
            what = f"evidence outside of the {len(tokens)} tokens of {path}"
            raise InputError(f"{place}: {what}; get the file again")
        passages.append((spans[start][0], spans[end - 1][1]))
    return Record(key, place, {"text": text, "label": label, "spans": tuple(passages)})


def join_tokens(tokens: Sequence[str]) -> tuple[str, list[Span]]:
    """Return tokens joined by blanks, and their spans."""
    spans, at = [], 0
    for token in tokens:
        spans.append((at, at + len(token)))
        at += len(token) + 1
    return " ".join(tokens), spans


@contextmanager
def _official_layout(place: str) -> Iterator[None]:
    """Convert the errors of values that are not there, or of another type, to an InputError."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{place}: {error!r}; expected the official layout: get the file again") from error


def _read_object(path: Path) -> dict[str, Any]:
    return read_json(path, "".join(texts(path)), "get the file again")
