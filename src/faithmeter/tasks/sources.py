"""A task's splits from own files, official files, the hub or the bAbI generator, and which of them it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import InputError
from . import custom as own
from . import hub, imdb, mimic, official, stories
from .splits import Parts, arrange, dataset
from .task import Files, Source, Task

if TYPE_CHECKING:
    from datasets import Dataset


class Reader(NamedTuple):
    read: Callable[[Task, Files, Path], Parts]
    needed: Callable[[Files, Path], list[Path]]


def _names(files: Files, folder: Path) -> list[Path]:
    return [folder / name for name in files.names]


READERS = {
    "tables": Reader(official.read_tables, _names),
    "mrpc": Reader(official.read_mrpc, official.needed_mrpc),
    "babi": Reader(official.read_babi, _names),
    "imdb": Reader(imdb.read, imdb.needed),
    "mimic": Reader(mimic.read, mimic.needed),
}

GENERATORS = {f"bAbI-{number}": number for number in stories.TASKS}
GENERATED = {"train": (10_000, 10_001), "test": (1_000, 10_002)}
"""Questions and seed of generated bAbI: as many as in the official files."""


def load(task: Task) -> dict[str, Dataset]:
    """The splits of a task. They do not depend on any seed."""
    source, read = _find(task)
    if source.kind == "generated":  # always the same, while files may change
        return dict(_generated(task))
    return _arranged(task, read(), source.place)


@lru_cache(maxsize=3)
def _generated(task: Task) -> dict[str, Dataset]:
    return _arranged(task, _generate(task), "the generator")


def _arranged(task: Task, parts: Parts, place: str) -> dict[str, Dataset]:
    splits = arrange(parts, task.roles, place)
    return {role: dataset(rows, task.labels) for role, rows in splits.items()}


def describe(task: Task) -> Source:
    """Where `load` would find the rows, and whether they are there now; nothing is opened or downloaded."""
    try:
        return _find(task)[0]
    except InputError as error:
        return Source("files", str(task.data_dir or ""), available=False, published=False, note=str(error))


def _find(task: Task) -> tuple[Source, Callable[[], Parts]]:
    """The source of a task, and what reads it."""
    if task.own is not None:
        own_files = task.own
        paths = [path for path in (own_files.train, own_files.validation, own_files.test) if path is not None]
        place, there = ", ".join(map(str, paths)), all(path.exists() for path in paths)
        return Source("own", place, available=there, published=False), lambda: own.read(task, own_files)
    if task.data_dir is not None and task.files is not None:
        files, folder = task.files, _folder(task, task.files, task.data_dir)
        note = _difference(task, files, folder)
        source = Source("files", str(folder), available=True, published=not note, note=note)
        return source, lambda: READERS[files.reader].read(task, files, folder)
    if task.hub is not None:
        repo = task.hub
        there = hub.is_cached(repo)
        source = Source("hub", hub.title(repo), available=there, published=not repo.note, note=repo.note)
        return source, lambda: hub.read(task, repo)
    if task.name in GENERATORS:
        source = Source("generated", "built-in generator", True, False, "stories like the official ones")
        return source, lambda: _generate(task)
    raise InputError(
        f"{task.name} has no public source: get MIMIC-III at https://physionet.org/content/mimiciii/1.4/ "
        "and give the folder of its files as data_dir (--data-dir)"
    )


def _difference(task: Task, files: Files, folder: Path) -> str:
    """Why rows or splits from official files are not the published ones; empty if they are."""
    if files.reader == "mrpc" and not official.has_msr(folder):
        return f"without {official.MSR_TRAIN} the row numbers of the published split are lost"
    if files.reader == "mimic" and not task.xor:
        return f"positive by any matching code; the published labels are {task.name}(labels=xor)"
    return ""


def _folder(task: Task, files: Files, data_dir: Path) -> Path:
    """The dataset's own folder, in a folder of datasets or as given, with all the files it needs."""
    inside = (data_dir / name for name in files.folders)
    folder = next((path for path in inside if path.is_dir()), data_dir)
    for path in READERS[files.reader].needed(files, folder):
        if not path.exists():
            advice = f"give the folder of {task.name}'s official files, or the one above, as data_dir"
            raise InputError(f"{path} is not there; {advice} (--data-dir)")
    return folder


def _generate(task: Task) -> Parts:
    number = GENERATORS[task.name]
    return {
        role: official.story_rows(task, stories.generate(number, questions, seed=seed), "the generator")
        for role, (questions, seed) in GENERATED.items()
    }
