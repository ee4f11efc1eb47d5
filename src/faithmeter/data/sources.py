"""Sources of a task's splits: the user's files, official files, the hub or the bAbI generator."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InputError
from ..files import State, file_state
from . import custom, mimic, official, rationales, stories
from .readers import of_dataset
from .rows import Parts, RowFormat, read_rows
from .splits import arrange, dataset
from .task import Files, Hub, Source, Task

if TYPE_CHECKING:
    from datasets import Dataset


class Reader(NamedTuple):
    """Pair of functions that read a task's official files and list their paths."""

    read: Callable[[Task, Files, Path], Parts]
    list_files: Callable[[Files, Path], list[Path]]


def _list_names(files: Files, folder: Path) -> list[Path]:
    return [folder / name for name in files.names]


OFFICIAL = {
    "tables": Reader(official.read_tables, _list_names),
    "mrpc": Reader(official.read_mrpc, official.list_mrpc),
    "babi": Reader(official.read_babi, _list_names),
    "imdb": Reader(official.read_imdb, official.list_imdb),
    "esnli": Reader(rationales.read_esnli, rationales.list_esnli),
    "hatexplain": Reader(rationales.read_hatexplain, _list_names),
    "eraser": Reader(rationales.read_eraser, _list_names),
    "mimic": Reader(mimic.read, mimic.list_files),
}
"""Readers of the official files of tasks, by the name in the task's `Files`."""

GENERATORS = {f"bAbI-{number}": number for number in stories.TASKS}
GENERATED = {"train": (10_000, 10_001), "test": (1_000, 10_002)}
"""Number of questions, equal to that of the official files, and seed of each generated bAbI split."""
UNLABELED = "-1"
"""Label of rows on the hub without one."""


class Origin(NamedTuple):
    """Source of a task, its local files, and a function that reads its rows."""

    source: Source
    files: list[Path]
    read: Callable[[], Parts]


def load(task: Task) -> dict[str, Dataset]:
    """Return the train, validation and test split of a task; they do not depend on any seed."""
    if not task.codes:
        return dict(_load(task, file_state(_find_origin(task).files)))
    from datasets import ClassLabel

    written = load(replace(task, labels=task.codes, codes=()))  # with the names that the source has
    names = ClassLabel(names=[*task.labels])
    return {role: rows.cast_column("label", names) for role, rows in written.items()}


@lru_cache(maxsize=3)
def _load(task: Task, state: State) -> dict[str, Dataset]:
    """Return the splits of a task, cached for the last `state` of its files.

    A measurement loads its task several times, and MIMIC's notes alone take 4 GB.
    """
    origin = _find_origin(task)
    splits = origin.read()
    if task.own is None or task.own.train is not None:  # rows that are all test texts keep their order
        splits = arrange(splits, task.roles, origin.source.place)
    return {role: dataset(rows, task.labels) for role, rows in splits.items()}


def describe(task: Task) -> Source:
    """Return the source that `load` would read, without opening or downloading it.

    If there is none, the source is marked as unavailable, and its note states the reason.
    """
    try:
        return _find_origin(task).source
    except InputError as error:
        return Source("files", str(task.data_dir or ""), available=False, published=False, note=str(error))


def _find_origin(task: Task) -> Origin:
    own, files, repo = task.own, task.files, task.hub
    if own is not None:
        paths = [*own.paths.values()]
        available = all(map(os.path.exists, paths))
        source = Source("own", ", ".join(map(str, paths)), available=available, published=False)
        return Origin(source, paths, lambda: custom.read(task, own))
    if task.data_dir is not None and files is not None:
        folder = _find_folder(task, files, task.data_dir)
        reader, note = OFFICIAL[files.reader], _describe_difference(task, files, folder)
        source = Source("files", str(folder), available=True, published=not note, note=note)
        return Origin(source, reader.list_files(files, folder), lambda: reader.read(task, files, folder))
    if repo is not None:
        source = Source("hub", repo.title, available=is_cached(repo), published=not repo.note, note=repo.note)
        return Origin(source, [], lambda: _read_hub(task, repo))
    if task.name in GENERATORS:
        source = Source("generated", "built-in generator", True, False, "stories like the official ones")
        return Origin(source, [], lambda: _generate(task))
    if files is not None and files.reader == "mimic":
        raise InputError(
            f"{task.name} has no public source: get MIMIC-III at "
            "https://physionet.org/content/mimiciii/1.4/ and give the folder of its files as data_dir "
            "(--data-dir)"
        )
    raise InputError(
        f"{task.name} is read from its official files; give their folder as data_dir (--data-dir)"
    )


def _describe_difference(task: Task, files: Files, folder: Path) -> str:
    """Return the reason why official files do not yield the published data; empty if they do."""
    if files.reader == "mrpc" and not official.has_msr(folder):
        return f"without {official.MSR_TRAIN} the row numbers of the published split are lost"
    if files.reader == "mimic" and not task.xor:
        return f"positive by any matching code; the published labels are {task.name}(labels=xor)"
    return ""


def _find_folder(task: Task, files: Files, data_dir: Path) -> Path:
    """Return the folder with the task's official files: `data_dir` or one of its subfolders.

    Raises:
        InputError: One of the files is missing.
    """
    # the folder of the task, or the one above: the official archives unpack to these names
    candidates = (data_dir / name for name in files.folders)
    folder = next(filter(os.path.isdir, candidates), data_dir)
    for path in OFFICIAL[files.reader].list_files(files, folder):
        if not os.path.exists(path):
            advice = f"give the folder of {task.name}'s official files, or the one above, as data_dir"
            raise InputError(f"{path} does not exist; {advice} (--data-dir)")
    return folder


def _generate(task: Task) -> Parts:
    parts: Parts = {}
    for role, (questions, seed) in GENERATED.items():
        generated = stories.generate(GENERATORS[task.name], questions, seed=seed)
        parts[role] = official.story_rows(task, generated, "the generator")
    return parts


def is_cached(hub: Hub) -> bool:
    """Return whether a dataset is in the cache of `datasets`, without importing that package."""
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    cache = Path(os.environ.get("HF_DATASETS_CACHE", home / "datasets"))
    return (cache / hub.repo.replace("/", "___").lower() / (hub.config or "")).is_dir()


def _read_hub(task: Task, hub: Hub) -> Parts:
    """Return the rows of a task's official splits on the hub, except unlabeled rows."""
    codes = [*map(str, range(len(task.labels)))]  # the hub has class numbers
    form = RowFormat(task.columns, codes, key=hub.key, unlabeled=UNLABELED)
    parts: Parts = {}
    for role, split in task.roles.items():
        place, data = f"{hub.title}, {split}", _download(task, hub, split)
        names = getattr(data.features.get(task.label), "names", None)
        if names is not None and tuple(names) != task.labels:
            raise InputError(f"{place}: the labels are {names}; expected {list(task.labels)}")
        parts[role] = read_rows(place, of_dataset(place, data, form.names), form)
    return parts


def _download(task: Task, hub: Hub, split: str) -> Any:
    import datasets

    try:
        return datasets.load_dataset(hub.repo, hub.config, split=split)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{task.name} could not be loaded from the hub ({hub.title}): {reason}; connect to the network, "
            "or give the folder of its official files as data_dir (--data-dir)"
        ) from error
