"""Runs → means with intervals over seeds, and means over tasks: one rule for tables, figures and page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import pandas as pd
from pandas import DataFrame

from ..faithfulness.intervals import Interval, bootstrap_interval

Frames = Mapping[str, DataFrame]
"""Frames of a store by kind: train, measure, areas, seconds and roar (see `runs.frames`)."""
ALL = "All"
"""Name of the mean over tasks in tables and figures."""


def by_seed(frame: DataFrame, by: Sequence[str], values: Sequence[str]) -> DataFrame:
    """Return one row for each group and seed: the mean of its runs, and whether all converged."""
    columns = dict.fromkeys(values, "mean") | {"converged": "all"}
    rows = frame.groupby([*by, "seed"], as_index=False, sort=False).agg(columns)
    return rows.sort_values("seed", kind="stable")  # the digits of a bootstrap depend on the order


def over_seeds(
    frame: DataFrame, by: Sequence[str], value: str = "value", *, unconverged: bool = False
) -> DataFrame:
    """Return the mean of each group over its seeds with a 95 % interval.

    Args:
        frame: One row for each run, with the columns `by`, `seed`, `converged` and `value`. For a single
            seed, the columns `{value}_lower` and `{value}_upper` give the interval over texts.
        by: Columns that name a group. Several runs of one seed in a group count as their mean.
        value: Column to average.
        unconverged: Also count seeds that did not converge; by default they are left out.

    Returns:
        Columns `by`, `mean`, `lower`, `upper`, `n` (seeds averaged) and `excluded` (seeds left out). The
        mean is nan for a group in which no seed converged or in which a seed's value is undefined.
    """
    bounds = [name for name in (f"{value}_lower", f"{value}_upper") if name in frame]
    rows = []
    for key, seeds in by_seed(frame, by, [value, *bounds]).groupby(list(by), sort=False):
        counted = seeds if unconverged else seeds[seeds["converged"].astype(bool)]
        interval = mean_interval(tuple(counted[value]))
        if interval.n == 1 and bounds and counted[bounds].notna().all(axis=None):
            lower, upper = map(float, counted[bounds].iloc[0])
            interval = interval._replace(lower=lower, upper=upper)
        rows.append((*key, *interval, len(seeds) - len(counted)))
    return pd.DataFrame(rows, columns=[*by, *Interval._fields, "excluded"])


@cache  # the table of one task repeats rows of the table of all tasks
def mean_interval(values: tuple[float, ...]) -> Interval:
    """Return the mean with its 95 % interval; undefined if there are no values."""
    return bootstrap_interval(values) if values else Interval.undefined(0)


def over_tasks(frame: DataFrame, by: Sequence[str], *values: str) -> DataFrame:
    """Return one row for each group and seed: the mean over the tasks on which it converged.

    As in the paper. A seed counts if it was run on every task of its group; several runs of it on a task
    count as their mean. An undefined value on a task makes the seed's mean undefined.
    """
    runs = by_seed(frame, [*by, "task"], values)
    tasks = runs.groupby(list(by))["task"].transform("nunique")
    complete = runs.groupby([*by, "seed"])["task"].transform("size") == tasks
    converged = runs[complete & runs["converged"].astype(bool)]
    return converged.groupby([*by, "seed"], as_index=False)[list(values)].mean(skipna=False)


@dataclass(frozen=True)
class TaskGroup:
    """Tasks to average over, and the models that have a method measured on exactly these."""

    name: str
    tasks: frozenset[str]
    models: set[str]


def task_groups(*frames: DataFrame) -> list[TaskGroup]:
    """Return the sets of several tasks that a method of a model was run on, the largest set first."""
    models: dict[frozenset[str], set[str]] = defaultdict(set)
    for frame in frames:
        for (model, _), tasks in frame.groupby(["model", "method"])["task"]:
            models[frozenset(tasks)].add(str(model))
    groups: list[TaskGroup] = []
    for names in sorted(models, key=lambda names: (-len(names), sorted(names))):
        if len(names) > 1:
            number = 1 + sum(len(group.tasks) == len(names) for group in groups)
            suffix = f" {number}" if number > 1 else ""
            groups.append(TaskGroup(f"{ALL} ({len(names)} tasks){suffix}", names, models[names]))
    return groups


def over_task_groups(frame: DataFrame, score: str, groups: Sequence[TaskGroup]) -> DataFrame:
    """Return the rows of `over_seeds` for each task group, for the methods that ran on all its tasks."""
    by = ["model", "method"]
    parts = []
    for group in groups:
        rows = frame[frame["task"].isin(group.tasks) & frame["model"].isin(group.models)]
        rows = rows[rows.groupby(by)["task"].transform("nunique") == len(group.tasks)]
        means = over_tasks(rows, by, score).assign(task=group.name, converged=True)
        parts.append(over_seeds(means, ["model", "task", "method"], score).drop(columns="excluded"))
    return pd.concat(parts, ignore_index=True) if parts else DataFrame()
