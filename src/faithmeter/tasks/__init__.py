"""Tasks: datasets with their splits, columns, labels and metric. A task is data; readers bring its rows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ..errors import InputError, unknown
from .catalog import TASKS
from .custom import own_task, task_file
from .task import Task

__all__ = ["TASKS", "Task", "own_task", "task", "task_file"]

_XOR = re.compile(r"(Anemia|Diabetes)\(labels=xor\)")


def task(name: str, data_dir: str | Path | None = None) -> Task:
    """A task by its name, or from a task file that ends in .toml.

    `Anemia(labels=xor)` and `Diabetes(labels=xor)` are labeled as released: two matching codes cancel out.
    """
    if name.endswith(".toml"):
        if data_dir is not None:
            raise InputError(f"data_dir goes with the paper's tasks; {name} says itself where its data is")
        return task_file(name)
    xor = _XOR.fullmatch(name)
    if not xor and name not in TASKS:
        raise unknown("task", name, TASKS, "`faithmeter list tasks` shows all")
    found = replace(TASKS[xor[1]], name=name, xor=True) if xor else TASKS[name]
    return replace(found, data_dir=None if data_dir is None else Path(data_dir))
