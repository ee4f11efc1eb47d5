"""Rows from MIMIC-III: discharge summaries of hospital admissions, labeled by ICD-9 codes.

The notes (4 GB) are read as a stream; only those of the task's admissions are kept in memory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from operator import or_, xor
from pathlib import Path

from ..errors import InputError
from .readers import comma_separated
from .rows import Parts, Row
from .task import Files, Task

NOTES, DIAGNOSES = "NOTEEVENTS.csv", "DIAGNOSES_ICD.csv"
_CODE_COLUMNS = ("SUBJECT_ID", "HADM_ID", "ICD9_CODE")
_NOTE_COLUMNS = ("SUBJECT_ID", "HADM_ID", "CHARTDATE", "CATEGORY", "DESCRIPTION", "TEXT")

Admission = tuple[str, str]  # patient ID, hospital stay ID
Note = tuple[bool, str, str]  # is an addendum, chart date, text


def list_files(files: Files, folder: Path) -> list[Path]:
    """Return the paths of the notes, the diagnoses (both plain or .gz) and the list of admissions."""
    paths = []
    for name in (NOTES, DIAGNOSES):
        plain = folder / name
        paths.append(plain if plain.exists() else folder / f"{name}.gz")
    return [*paths, folder / files.names[0]]


def read(task: Task, files: Files, folder: Path) -> Parts:
    """Return a row for each listed admission that has both a code and a discharge summary."""
    notes_path, codes_path, list_path = list_files(files, folder)
    cohort = read_cohort(list_path, task.official)
    labels = read_labels(codes_path, cohort, files.codes[0], released=task.xor)
    notes = read_notes(notes_path, labels)
    parts: Parts = {role: [] for role in task.roles}
    for admission in sorted(notes):
        # the summary before its addenda; `pop`, as 4 GB of notes should not be there twice
        texts = [text for *_, text in sorted(notes.pop(admission), key=lambda note: note[:2])]
        text = clean(" ".join(texts))
        if not text:
            raise InputError(f"{notes_path}: the notes of admission {admission[1]} are blank; expected text")
        parts[cohort[admission[1]]].append(Row("-".join(admission), text, int(labels[admission])))
    for role, rows in parts.items():
        if not rows:
            raise InputError(f"{notes_path} has no discharge summary of the {role} admissions in {list_path}")
    return parts


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
    for record in comma_separated(path, _CODE_COLUMNS):
        patient, stay, code = map(record.values.__getitem__, _CODE_COLUMNS)
        if patient and code and stay in cohort:
            match = f"{code[:3]}.{code[3:]}".startswith(prefix)  # the file has codes without their point
            labels[patient, stay] = combine(labels.get((patient, stay), False), match)
    return labels


def read_notes(path: Path, admissions: dict[Admission, bool]) -> dict[Admission, list[Note]]:
    """Return the discharge summaries of the given admissions; rows with an empty value are skipped."""
    notes: dict[Admission, list[Note]] = defaultdict(list)
    for record in comma_separated(path, _NOTE_COLUMNS):
        patient, stay, date, category, description, text = map(record.values.__getitem__, _NOTE_COLUMNS)
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
