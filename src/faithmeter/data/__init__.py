"""Tasks: datasets with their splits, columns, labels and metric."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ..errors import InputError, unknown
from .catalog import MORE_TASKS, TASKS
from .custom import own_task, task_file
from .task import Task

__all__ = ["TASKS", "Task", "own_task", "task", "task_file"]

_XOR = re.compile(r"(Anemia|Diabetes)\(labels=xor\)")


def task(name: str | Path, data_dir: str | Path | None = None) -> Task:
    """Return a task of the paper by its name, or the task that a `.toml` file describes.

    `Anemia(labels=xor)` and `Diabetes(labels=xor)` have the labels of the authors' released code, in which
    two matching diagnosis codes cancel out.

    Args:
        name: One of the paper's sixteen tasks (`faithmeter list tasks` shows them), a task with rationales
            (e-SNLI, HateXplain, movies), or the path of a task file that ends in `.toml`.
        data_dir: Folder with the official files of the task, or its parent. Without it, the rows come from
            the hub or, for bAbI, from the built-in generator.

    Returns:
        The task. Its rows are read when `load` is called.

    Raises:
        InputError: The name is unknown, or the task file cannot be used.

    Example:
        >>> fm.task("bAbI-1").labels
        ('garden', 'hallway', 'kitchen', 'office', 'bedroom', 'bathroom')
    """
    name = str(name)
    if name.endswith(".toml"):
        if data_dir is not None:
            raise InputError(f"data_dir is for the paper's tasks; {name} names its own files: leave it out")
        return task_file(name)
    xor = _XOR.fullmatch(name)
    known_tasks = TASKS | MORE_TASKS
    if not xor and name not in known_tasks:
        raise unknown("task", name, known_tasks, "`faithmeter list tasks` shows those of the paper")
    known = replace(TASKS[xor[1]], name=name, xor=True) if xor else known_tasks[name]
    return replace(known, data_dir=None if data_dir is None else Path(data_dir))
