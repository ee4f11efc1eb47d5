"""Official files of the tasks: GLUE and SuperGLUE, SNLI, MRPC, bAbI, IMDB and MIMIC-III."""

from __future__ import annotations

import gzip
import os
import re
import tarfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from operator import or_, xor
from pathlib import Path, PurePosixPath

from ..errors import InputError
from . import rationales, stories
from .rationales import Split
from .rows import Part, RowFormat
from .table_files import Record, comma_separated, jsonl, lines, tsv, unreadable
from .task import Files, Task

MSR_TRAIN = "msr_paraphrase_train.txt"
MSR_IDS = ("#1 ID", "#2 ID")
ARCHIVE, FOLDER = "aclImdb_v1.tar.gz", "aclImdb"
REVIEW = re.compile(rf"{FOLDER}/(train|test)/(neg|pos)/[^/]+\.txt")
ICD9 = {"anemia.csv": "285.1", "diabetes.csv": "250.00"}
"""Beginning of the codes of a positive row of MIMIC-III, by the list of its admissions."""
CODE_COLUMNS = ("SUBJECT_ID", "HADM_ID", "ICD9_CODE")
NOTE_COLUMNS = ("SUBJECT_ID", "HADM_ID", "CHARTDATE", "CATEGORY", "DESCRIPTION", "TEXT")

Admission = tuple[str, str]  # patient ID, hospital stay ID
Note = tuple[bool, str, str]  # is an addendum, chart date, text


def read_official(task: Task, files: Files, folder: Path) -> Iterator[Part]:
    """Yield the official splits of a task with their records."""
    columns, codes = files.columns or task.columns, files.codes or task.labels
    form = RowFormat(columns, codes, task.kind, files.key, files.unlabeled)
    for role, path, records in OFFICIAL[files.layout](task, files, find_files(files, folder)):
        yield Part(role, path, form, records)


def find_files(files: Files, folder: Path) -> list[Path]:
    """Return the paths of a task's files; of alternatives the first that exists, or else the first."""
    paths = []
    for alternatives in files.names:
        names = [*map(folder.joinpath, alternatives.split("|"))]
        paths.append(next(filter(os.path.exists, names), names[0]))
    return paths


def find_folder(task: Task, files: Files, data_dir: Path) -> Path:
    """Return the folder with the task's official files: `data_dir` or one of its subfolders.

    Raises:
        InputError: One of the files is missing.
    """
    # the folder of the task, or the one above: the official archives unpack to these names
    candidates = map(data_dir.joinpath, files.folders)
    folder = next(filter(os.path.isdir, candidates), data_dir)
    for path in find_files(files, folder):
        if not os.path.exists(path):
            advice = f"give the folder of {task.name}'s official files, or the one above, as data_dir"
            raise InputError(f"{path} does not exist; {advice} (--data-dir)")
    return folder


def describe_difference(task: Task, files: Files, folder: Path) -> str:
    """Return the reason why official files do not yield the published data; empty if they do."""
    if files.layout == "mrpc" and not (folder / MSR_TRAIN).exists():
        return f"without {MSR_TRAIN} the row numbers of the published split are lost"
    if files.layout == "mimic" and not task.xor:
        return f"positive by any matching code; the published labels are {task.name}(labels=xor)"
    return ""


def read_tables(task: Task, files: Files, paths: list[Path]) -> Iterator[Split]:
    """Yield the records of one tsv or jsonl file per split."""
    columns = [*(files.columns or task.columns).names, *filter(None, [files.key])]
    for role, path in zip(task.roles, paths, strict=True):
        if path.suffix == ".jsonl":
            yield role, path, jsonl(path, columns)
        else:
            yield role, path, tsv(path, columns, header=files.header, drop_short=files.drop_short)


def read_mrpc(task: Task, files: Files, paths: list[Path]) -> Iterator[Split]:
    """Yield the records of MRPC from Microsoft's files, or from GLUE's if the folder has only those.

    The row numbers of Microsoft's training file define the published split. The pairs that `dev_ids.tsv`
    lists are the test rows.
    """
    path, listed = paths
    if path.name != MSR_TRAIN or files.columns is None:
        yield from read_tables(task, files, paths)
        return
    # there are copies with and without a header line
    header = () if MSR_IDS[0] in next(lines(listed))[1] else MSR_IDS
    held_out = set()
    for record in tsv(listed, MSR_IDS, header=header):
        held_out.add(tuple(map(record.values.get, MSR_IDS)))
    parts: dict[str, list[Record]] = {"train": [], "test": []}
    for record in tsv(path, [*MSR_IDS, *files.columns.names]):
        is_test = tuple(map(record.values.get, MSR_IDS)) in held_out
        parts["test" if is_test else "train"].append(record)
    for role, records in parts.items():
        yield role, path, records


def read_babi(task: Task, files: Files, paths: list[Path]) -> Iterator[Split]:
    """Yield the questions of one text file per split."""
    for role, path in zip(task.roles, paths, strict=True):
        yield role, path, stories.as_records(stories.read(path), path)


def read_imdb(task: Task, files: Files, paths: list[Path]) -> Iterator[Split]:
    """Yield the labeled reviews; the key of a row is its path, such as `aclImdb/train/pos/0_9.txt`.

    They are in the archive, or in its unpacked folder: `aclImdb` inside the task's folder, or that itself.
    """
    path = paths[0] if paths[0].name == ARCHIVE else paths[0].parent
    parts: dict[str, list[Record]] = {"train": [], "test": []}
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
        _, role, label, _ = name.split("/")
        parts[role].append(Record(name, place, {"text": text, "label": label}))
    for role, records in parts.items():
        if not records:
            raise InputError(f"{path} has no reviews in {FOLDER}/{role}; get the archive again")
        yield role, path, records


def _read_reviews(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the contents of each labeled review in an archive or folder."""
    try:
        if path.is_dir():
            for file in sorted(path.glob("*/*/*.txt")):
                name = f"{FOLDER}/{file.relative_to(path).as_posix()}"
                if REVIEW.fullmatch(name):
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
        review = archive.extractfile(member) if member.isreg() and REVIEW.fullmatch(str(name)) else None
        if review is not None:
            yield str(name), review.read()


def read_mimic(task: Task, files: Files, paths: list[Path]) -> Iterator[Split]:
    """Yield a record for each listed admission that has both an ICD-9 code and a discharge summary.

    The notes (4 GB) are read as a stream; only those of the task's admissions are kept in memory.
    """
    notes_path, codes_path, list_path = paths
    cohort = read_cohort(list_path, task.official)
    labels = read_labels(codes_path, cohort, ICD9[list_path.name], released=task.xor)
    notes = read_notes(notes_path, labels)
    parts: dict[str, list[Record]] = {role: [] for role in task.roles}
    for admission in sorted(notes):
        # the summary before its addenda; `pop`, as 4 GB of notes should not be there twice
        texts = [text for *_, text in sorted(notes.pop(admission), key=lambda note: note[:2])]
        values = {"text": clean(" ".join(texts)), "diagnosis": task.labels[labels[admission]]}
        place = f"{notes_path}, admission {admission[1]}"
        parts[cohort[admission[1]]].append(Record("-".join(admission), place, values))
    for role, records in parts.items():
        if not records:
            raise InputError(f"{notes_path} has no discharge summary of the {role} admissions in {list_path}")
        yield role, notes_path, records


def read_cohort(path: Path, splits: tuple[str, ...]) -> dict[str, str]:
    """Return the split of each admission, read from lines such as `167853,train`.

    The first line may be a header.
    """
    cohort: dict[str, str] = {}
    for number, place, values in comma_separated(path, header=("id", "split")):
        admission, split = values["id"].strip(), values["split"].strip()
        is_id, is_split = admission.isdecimal(), split in splits
        if number == 0 and not is_id and not is_split:
            continue
        if not (is_id and is_split):
            raise InputError(f"{place}: {values}; expected a number and one of {', '.join(splits)}")
        if admission in cohort:
            raise InputError(f"{place}: admission {admission} occurs twice; expected it once")
        cohort[admission] = split
    return cohort


def read_labels(path: Path, cohort: dict[str, str], prefix: str, *, released: bool) -> dict[Admission, bool]:
    """Return for each admission of the cohort whether it has an ICD-9 code that starts with `prefix`.

    With `released`, as in the authors' code, the number of such codes must be odd. Admissions without codes
    are left out.
    """
    combine = xor if released else or_
    labels: dict[Admission, bool] = {}
    for record in comma_separated(path, CODE_COLUMNS):
        patient, stay, code = map(record.values.__getitem__, CODE_COLUMNS)
        if patient and code and stay in cohort:
            match = f"{code[:3]}.{code[3:]}".startswith(prefix)  # the file has codes without their point
            labels[patient, stay] = combine(labels.get((patient, stay), False), match)
    return labels


def read_notes(path: Path, admissions: dict[Admission, bool]) -> dict[Admission, list[Note]]:
    """Return the discharge summaries of the given admissions; rows with an empty value are skipped."""
    notes: dict[Admission, list[Note]] = defaultdict(list)
    for record in comma_separated(path, NOTE_COLUMNS):
        patient, stay, date, category, description, text = map(record.values.__getitem__, NOTE_COLUMNS)
        is_summary = category == "Discharge summary" and (patient, stay) in admissions
        if is_summary and date and description and text:
            notes[patient, stay].append((description == "Addendum", date, text))
    return notes


def clean(text: str) -> str:
    """Return a note in lower case, with placeholders for de-identified passages and for digits.

    `<DE>` replaces de-identified passages, and `[DIGITS]` every word that contains a digit. Repetitions of a
    punctuation mark become one.
    """
    text = re.sub(r"\[(?:\s*\*){2}.*?(?:\*\s*){2}\]", " <DE> ", text.lower())
    text = re.sub(r"([^a-z0-9\s])(?:\s*\1)+", r"\1 ", text)
    text = re.sub(r"[^\s.,?]+", lambda part: " [DIGITS] " if re.search(r"\d", part[0]) else part[0], text)
    return " ".join(text.split())


OFFICIAL: dict[str, Callable[[Task, Files, list[Path]], Iterator[Split]]] = {
    "tables": read_tables,
    "mrpc": read_mrpc,
    "babi": read_babi,
    "imdb": read_imdb,
    "mimic": read_mimic,
    "esnli": rationales.read_esnli,
    "hatexplain": rationales.read_hatexplain,
    "eraser": rationales.read_eraser,
}
"""Readers of the official files of tasks, by the layout in the task's `Files`."""
