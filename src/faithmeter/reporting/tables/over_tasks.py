"""Means over tasks, for those methods only that were run on the same ones."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from pandas import DataFrame

from .estimates import Estimate, estimate, over_tasks
from .published_columns import Key

ALL = "All: for each seed that was run on all of these tasks the mean over those on which it converged."


@dataclass(frozen=True)
class Together:
    """A set of tasks to take the mean over, and the models of which some method has just these."""

    name: str
    tasks: frozenset[str]
    models: set[str]


def together(*frames: DataFrame) -> list[Together]:
    """The sets of several tasks that some method has of some model, from the largest to the smallest."""
    sets: dict[frozenset[str], set[str]] = defaultdict(set)
    for frame in frames:
        for (model, _), of_method in frame.groupby(["model", "method"])["task"]:
            sets[frozenset(of_method)].add(str(model))
    found: list[Together] = []
    for tasks in sorted(sets, key=lambda tasks: (-len(tasks), sorted(tasks))):
        same = sum(len(one.tasks) == len(tasks) for one in found)
        name = f"All ({len(tasks)} tasks)" + (f" {same + 1}" if same else "")
        found += [Together(name, tasks, sets[tasks])] if len(tasks) > 1 else []
    return found


def over_all(frame: DataFrame, score: str, groups: list[Together]) -> dict[Key, Estimate]:
    """For each group those methods that were run on all of its tasks, so that like stands beside like."""
    by = ["model", "method"]
    found: dict[Key, Estimate] = {}
    for group in groups:
        rows = frame[frame["task"].isin(group.tasks) & frame["model"].isin(group.models)]
        rows = rows[rows.groupby(by)["task"].transform("nunique") == len(group.tasks)]
        for (model, method), seeds in over_tasks(rows, by, score).groupby(by):
            found[str(model), group.name, str(method)] = estimate(seeds[score])
    return found


def remarks(groups: list[Together]) -> list[str]:
    """What "All" means, and which tasks each group lacks."""
    every = {task for group in groups for task in group.tasks}
    parts = [group for group in groups if group.tasks != every]
    without = [f"{group.name}: without {', '.join(sorted(every - group.tasks))}." for group in parts]
    return [ALL, *without] if groups else []
