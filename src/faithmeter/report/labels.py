"""Display names of models and tasks in tables, figures and pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from ..data import TASKS

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..store.records import Record

METHOD_LABELS = {
    "random": ("Random", "Random"),
    "grad-l1": ("Grad (L₁)", "Grad ($L_1$)"),
    "grad-l2": ("Grad (L₂)", "Grad ($L_2$)"),
    "inp-grad-sign": ("x ⊙ grad (sign)", r"x $\odot$ grad (sign)"),
    "inp-grad-abs": ("x ⊙ grad (abs)", r"x $\odot$ grad (abs)"),
    "int-grad-sign": ("IG (sign)", "IG (sign)"),
    "int-grad-abs": ("IG (abs)", "IG (abs)"),
    "loo-sign": ("LOO (sign)", "LOO (sign)"),
    "loo-abs": ("LOO (abs)", "LOO (abs)"),
    "beam": ("Beam", "Beam"),
}
"""Names of methods in the paper: in plain text, in LaTeX."""


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Map each path or hub name to its last part, or to itself if the last part is not unique."""
    # a store may have been written on Windows and be read elsewhere
    last = {name: PurePath(name.replace("\\", "/")).name or name for name in set(names)}
    counts = Counter(last.values())
    return {name: part if counts[part] == 1 else name for name, part in last.items()}


def task_names(records: Iterable[Record]) -> dict[str, str]:
    """Map the data or task file of runs on your own data to the name of the task.

    Names that are not unique, or that a built-in task has, are left out.
    """
    names = {record.trained.task_or_data: record.task_name for record in records if record.task_name}
    counts = Counter(names.values())
    return {path: name for path, name in names.items() if counts[name] == 1 and name not in TASKS}


def rename_tasks(frame: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """Return a frame with the tasks called by these names."""
    return frame.assign(task=frame["task"].replace(dict(names)))
