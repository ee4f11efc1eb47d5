"""Rows from the official files of GLUE (tsv), SuperGLUE, SNLI (jsonl), MRPC (also txt), bAbI (txt), IMDB."""

from __future__ import annotations

import gzip
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path, PurePosixPath

from ..errors import InputError
from . import babi
from .readers import Record, jsonl, lines, tsv, unreadable
from .rows import Parts, Row, RowFormat, read_rows
from .task import Files, Task

MSR_TRAIN, MSR_DEV = "msr_paraphrase_train.txt", "dev_ids.tsv"
ARCHIVE, FOLDER = "aclImdb_v1.tar.gz", "aclImdb"
_REVIEW = re.compile(rf"{FOLDER}/(train|test)/(neg|pos)/[^/]+\.txt")


def read_tables(task: Task, files: Files, folder: Path) -> Parts:
    """Return the rows of each official split, read from one tsv or jsonl file per split."""
    form = _form(task, files)
    parts: Parts = {}
    for role, name in zip(task.roles, files.names, strict=True):
        path = folder / name
        records = (
            jsonl(path, form.names)
            if path.suffix == ".jsonl"
            else tsv(path, form.names, header=files.header, drop_short=files.drop_short)
        )
        parts[role] = read_rows(path, records, form)
    return parts


def _form(task: Task, files: Files) -> RowFormat:
    columns, codes = files.columns or task.columns, files.codes or task.labels
    return RowFormat(columns, codes, task.kind, files.key, files.unlabeled)


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
    pair = ("#1 ID", "#2 ID")
    first = next(lines(folder / MSR_DEV))[1].split("\t")
    header = None if first[0] == pair[0] else pair  # there are copies with and without a header line
    held_out = {(own["#1 ID"], own["#2 ID"]) for *_, own in tsv(folder / MSR_DEV, pair, header=header)}
    path, form = folder / MSR_TRAIN, _form(task, files)
    records: dict[str, list[Record]] = {"train": [], "test": []}
    for record in tsv(path, [*pair, *form.names]):
        is_test = (record.values["#1 ID"], record.values["#2 ID"]) in held_out
        records["test" if is_test else "train"].append(record)
    return {role: read_rows(path, part, form) for role, part in records.items()}


def read_babi(task: Task, files: Files, folder: Path) -> Parts:
    """Return the rows of each official bAbI split, read from one text file per split."""
    parts = zip(task.roles, files.names, strict=True)
    return {role: story_rows(task, babi.read(folder / name), folder / name) for role, name in parts}


def story_rows(task: Task, stories: Iterable[babi.Story], source: Path | str) -> list[Row]:
    """Return a row for each question; its key is `0-<question number>`, as in the released code."""
    rows: list[Row] = []
    for story in stories:
        for question in story:
            place = f"{source}, question {len(rows) + 1}"
            if question.answer not in task.labels:
                known = ", ".join(task.labels)
                raise InputError(f"{place}: answer {question.answer!r:.60}; expected one of {known}")
            if not question.paragraph.strip():
                raise InputError(f"{place}: no statement comes before the question; expected at least one")
            starts = [0, *accumulate(len(statement) + 1 for statement in question.story)]  # 1: the blank
            facts = tuple((starts[fact], starts[fact + 1] - 1) for fact in question.supporting)
            label = task.labels.index(question.answer)
            rows.append(Row(f"0-{len(rows)}", question.paragraph, label, question.question, facts))
    if not rows:
        raise InputError(f"{source} has no questions; expected at least one")
    return rows


def list_imdb(files: Files, folder: Path) -> list[Path]:
    """Return the path of IMDB's archive or, if there is only an unpacked folder, of that folder.

    The unpacked folder is `aclImdb` inside `folder`, or `folder` itself.
    """
    archive = folder / ARCHIVE
    for unpacked in (folder / FOLDER, folder):
        if (unpacked / "train").is_dir() and not archive.exists():
            return [unpacked]
    return [archive]


def read_imdb(task: Task, files: Files, folder: Path) -> Parts:
    """Return the labeled reviews; the key of a row is its path, such as `aclImdb/train/pos/0_9.txt`."""
    (path,) = list_imdb(files, folder)
    parts: Parts = {"train": [], "test": []}
    seen: set[str] = set()
    for name, data in _read_reviews(path):
        place = f"{path}, {name}"
        if name in seen:
            raise InputError(f"{place} occurs twice; expected it once: get the archive again")
        seen.add(name)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{place}: not UTF-8 ({error.reason}); get the archive again") from error
        if not text.strip():
            raise InputError(f"{place} is empty; expected a review: get the archive again")
        _, role, label, _ = name.split("/")
        parts[role].append(Row(name, text, task.labels.index(label)))
    for role, rows in parts.items():
        if not rows:
            raise InputError(f"{path} has no reviews in {FOLDER}/{role}; get the archive again")
    return parts


def _read_reviews(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the contents of each labeled review in an archive or folder."""
    try:
        if path.is_dir():
            for file in sorted(path.glob("*/*/*.txt")):
                name = f"{FOLDER}/{file.relative_to(path).as_posix()}"
                if _REVIEW.fullmatch(name):
                    yield name, file.read_bytes()
        else:
            with gzip.open(path) as data:
                with tarfile.open(fileobj=data, mode="r|") as archive:
                    yield from _read_archive(path, archive)
                while data.read(2**20):  # gzip verifies its checksum at the end of the file
                    pass
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise InputError(unreadable(path, error)) from error


def _read_archive(path: Path, archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        name = PurePosixPath(member.name)
        # nothing is unpacked to the disk; such a name still tells that this is not the official archive
        if name.is_absolute() or ".." in name.parts:
            raise InputError(f"{path}: member {member.name!r} points outside the archive; get it again")
        review = archive.extractfile(member) if member.isreg() and _REVIEW.fullmatch(str(name)) else None
        if review is not None:
            yield str(name), review.read()
