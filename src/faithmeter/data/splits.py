"""Splits of a task: where their rows come from, how they are cut and ordered, and their digests."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InputError
from ..files import State, file_state
from . import custom, stories
from .official import describe_difference, find_files, find_folder, read_official
from .rows import Part, Row, RowFormat, read_rows
from .table_files import of_dataset
from .task import ROLES, Hub, Source, Task

if TYPE_CHECKING:
    from datasets import Dataset

GENERATORS = dict(zip(("bAbI-1", "bAbI-2", "bAbI-3"), stories.TASKS, strict=True))
GENERATED = {"train": (10_000, 10_001), "test": (1_000, 10_002)}
"""Number of questions, equal to that of the official files, and seed of each generated bAbI split."""
UNLABELED = "-1"
"""Label of rows on the hub without one."""
Rows = dict[str, list[Row]]
"""Rows of each split."""


class Origin(NamedTuple):
    """Source of a task, its local files, and a function that reads the records of its splits."""

    source: Source
    files: list[Path]
    read: Callable[[], Iterator[Part]]


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
    rows: Rows = {}
    for part in origin.read():
        rows[part.role] = read_rows(part)
    if task.own is None or task.own.train is not None:  # rows that are all test texts keep their order
        rows = arrange(rows, task.roles, origin.source.place)
    return {role: _dataset(part, task.labels) for role, part in rows.items()}


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
        return Origin(source, paths, lambda: custom.read_own(task, own))
    if task.data_dir is not None and files is not None:
        folder = find_folder(task, files, task.data_dir)
        note = describe_difference(task, files, folder)
        source = Source("files", str(folder), available=True, published=not note, note=note)
        return Origin(source, find_files(files, folder), lambda: read_official(task, files, folder))
    if repo is not None:
        source = Source("hub", repo.title, available=is_cached(repo), published=not repo.note, note=repo.note)
        return Origin(source, [], lambda: _read_hub(task, repo))
    if task.name in GENERATORS:
        source = Source("generated", "built-in generator", True, False, "stories like the official ones")
        return Origin(source, [], lambda: _generate(task))
    if files is not None and files.layout == "mimic":
        raise InputError(
            f"{task.name} has no public source: get MIMIC-III at "
            "https://physionet.org/content/mimiciii/1.4/ and give the folder of its files as data_dir "
            "(--data-dir)"
        )
    raise InputError(
        f"{task.name} is read from its official files; give their folder as data_dir (--data-dir)"
    )


def _generate(task: Task) -> Iterator[Part]:
    form = RowFormat(stories.STORY_COLUMNS, task.labels)
    for role, (questions, seed) in GENERATED.items():
        generated = stories.generate(GENERATORS[task.name], questions, seed=seed)
        yield Part(role, "the generator", form, stories.as_records(generated, "the generator"))


def is_cached(hub: Hub) -> bool:
    """Return whether a dataset is in the cache of `datasets`, without importing that package."""
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    cache = Path(os.environ.get("HF_DATASETS_CACHE", home / "datasets"))
    return (cache / hub.repo.replace("/", "___").lower() / (hub.config or "")).is_dir()


def _read_hub(task: Task, hub: Hub) -> Iterator[Part]:
    """Yield a task's official splits on the hub, where rows without a label are left out."""
    codes = [*map(str, range(len(task.labels)))]  # the hub has class numbers
    form = RowFormat(task.columns, codes, key=hub.key, unlabeled=UNLABELED)
    for role, split in task.roles.items():
        place, data = f"{hub.title}, {split}", _download(task, hub, split)
        names = getattr(data.features.get(task.label), "names", None)
        if names is not None and tuple(names) != task.labels:
            raise InputError(f"{place}: the labels are {names}; expected {list(task.labels)}")
        yield Part(role, place, form, of_dataset(place, data, form.names))


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


def arrange(parts: Rows, official: Mapping[str, str], place: str) -> Rows:
    """Return the train, validation and test rows, sorted by the MD5 hash of official split name and key.

    A missing split is the last 20 % of the training rows; if two are missing, each gets 10 %.

    Raises:
        InputError: There are too few training rows for the missing splits.
    """
    ordered = {role: _ordered(rows, official[role]) for role, rows in parts.items()}
    missing = [role for role in ROLES if role not in parts]
    if missing:
        train = ordered["train"]
        percents = (0, 80, 100) if len(missing) == 1 else (0, 80, 90, 100)
        cuts = [(len(train) * percent + 50) // 100 for percent in percents]  # rounded half up
        if len(set(cuts)) < len(cuts):
            what = f"{len(train)} rows are too few to cut {' and '.join(missing)} from"
            raise InputError(f"{place}: {what}; expected 10 or more, or files for them")
        for role, start, end in zip(["train", *missing], cuts, cuts[1:], strict=False):
            ordered[role] = train[start:end]
    return {role: ordered[role] for role in ROLES}


def _ordered(rows: Iterable[Row], name: str) -> list[Row]:
    # as the authors' released code orders them: any other order would give other validation and test rows
    def md5(row: Row) -> bytes:
        return hashlib.md5(f"{name}{row.key}".encode(), usedforsecurity=False).digest()

    return sorted(rows, key=md5)


def _dataset(rows: Sequence[Row], labels: Sequence[str]) -> Dataset:
    """Convert rows to a dataset with columns `text`, `label` and, if present, `context` and `supporting`."""
    from datasets import ClassLabel, Dataset, Features, List, Value

    numbers = {tuple: List(Value("int8")), float: Value("float64")}
    kinds: dict[str, Any] = {
        "text": Value("string"),
        "label": numbers.get(type(rows[0].label)) or ClassLabel(names=[*labels]),
        "context": Value("string"),
        "supporting": List(List(Value("int32"))),
    }
    features, columns = Features(), {}
    for name, kind in kinds.items():
        if getattr(rows[0], name) is not None:  # one row of a source has a column if all have it
            features[name], columns[name] = kind, [*map(attrgetter(name), rows)]
    return Dataset.from_dict(columns, features=features)


def digest(split: Dataset) -> str:
    """Return the SHA-256 of the texts, contexts and labels of a split, in order."""
    result = hashlib.sha256()
    names = [name for name in ("text", "context", "label") if name in split.column_names]
    for batch in split.select_columns(names).iter(batch_size=1000):
        for values in zip(*map(batch.__getitem__, names), strict=True):
            result.update(json.dumps(values).encode() + b"\n")
    return result.hexdigest()


def measured_data(task: Task) -> str:
    """Return a digest of the complete validation and test splits, which a measurement reads.

    It covers a rationale column of your own data, too: plausibility depends on it.
    """
    splits = task.load()
    parts = [digest(splits[role])[:16] for role in ("validation", "test") if role in splits]
    if task.rationale:
        parts.append(hashlib.sha256(json.dumps(splits["test"]["supporting"][:]).encode()).hexdigest()[:16])
    return "-".join(parts)
