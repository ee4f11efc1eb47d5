"""Rows from the Hugging Face hub, downloaded and cached by `datasets`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import InputError
from .readers import Record, require_columns
from .splits import Parts, read_rows
from .task import Hub, Task

UNLABELED = "-1"


def read(task: Task, hub: Hub) -> Parts:
    """Return the rows of a task's official splits on the hub, except unlabeled rows (label -1)."""
    names = [*task.columns.names, *([hub.key] if hub.key else [])]
    codes = [str(number) for number in range(len(task.labels))]
    parts: Parts = {}
    for role, split in task.roles.items():
        place = f"{title(hub)}, {split}"
        data = _download(task, hub, split)
        require_columns(place, names, data.column_names)
        _require_labels(place, data.features[task.label], task)
        records = _records(place, data.select_columns(names))
        parts[role] = read_rows(place, records, task.columns, codes, key=hub.key, unlabeled=UNLABELED)
    return parts


def title(hub: Hub) -> str:
    return "/".join(filter(None, (hub.repo, hub.config)))


def is_cached(hub: Hub) -> bool:
    """Return whether a dataset is in the cache of `datasets`, without importing that package."""
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    cache = Path(os.environ.get("HF_DATASETS_CACHE", home / "datasets"))
    return (cache / hub.repo.replace("/", "___").lower() / (hub.config or "")).is_dir()


def _download(task: Task, hub: Hub, split: str) -> Any:
    import datasets

    try:
        return datasets.load_dataset(hub.repo, hub.config, split=split)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{task.name} could not be loaded from the hub ({title(hub)}): {reason}; connect to the network, "
            "or give the folder of its official files as data_dir (--data-dir)"
        ) from error


def _require_labels(place: str, feature: Any, task: Task) -> None:
    names = getattr(feature, "names", None)
    if names is not None and tuple(names) != task.labels:
        raise InputError(f"{place}: the labels are {names}; expected {list(task.labels)}")


def _records(place: str, data: Any) -> Iterator[Record]:
    number = 0
    for batch in data.iter(batch_size=1000):
        for values in zip(*batch.values(), strict=True):
            yield Record(number, f"{place}, row {number}", dict(zip(batch, values, strict=True)))
            number += 1
