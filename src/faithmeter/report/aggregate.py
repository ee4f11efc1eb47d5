"""Means with intervals over seeds, and means over tasks, for all tables, figures and pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd
from pandas import DataFrame

from ..config import BASELINE
from ..stats.intervals import Interval, bootstrap_interval
from ..store.result_frames import POOLED, POOLED_SEEDS
from ..store.results import PREFERRED, rank_training

Frames = Mapping[str, DataFrame]
"""Frames of a store by kind: train, measure, areas, seconds and roar (see `runs.frames`)."""
ALL = "All"
"""Label of the mean over tasks in tables and figures."""


def text_columns(value: str) -> list[str]:
    """Return the names of a value's columns with the bounds over the texts of one seed."""
    return [f"{value}_lower", f"{value}_upper"]


def pooled_columns(value: str) -> list[str]:
    """Return the names of a value's columns with the bounds over seeds and texts."""
    return [f"{POOLED}{value}_lower", f"{POOLED}{value}_upper"]


def bound_columns(frame: DataFrame, value: str) -> list[str]:
    """Return the names of the interval columns of a value that a frame contains."""
    return [name for name in (*text_columns(value), *pooled_columns(value)) if name in frame]


def by_seed(frame: DataFrame, by: Sequence[str], values: Sequence[str]) -> DataFrame:
    """Return the mean of the runs of each group and seed, and whether all of them converged."""
    columns = dict.fromkeys(values, "mean") | {"converged": "all"}
    rows = frame.groupby([*by, "seed"], as_index=False, sort=False).agg(columns)
    return rows.sort_values("seed", kind="stable")  # the bootstrap depends on the order


def over_seeds(
    frame: DataFrame, by: Sequence[str], value: str = "value", *, unconverged: bool = False
) -> DataFrame:
    """Return the mean of each group over its seeds with a 95 % interval.

    Args:
        frame: One row for each run, with the columns `by`, `seed`, `converged` and `value`, and those of
            intervals over texts or over seeds and texts, if there are any.
        by: Columns that identify a group. Several runs with the same seed are averaged first.
        value: Column to average.
        unconverged: Include seeds that did not converge, which are left out by default.

    Returns:
        Columns `by`, `mean`, `lower`, `upper`, `n` (seeds averaged) and `excluded` (seeds left out). The
        mean is NaN if all seeds are left out, or if the value of an included seed is undefined.
    """
    columns, rows = [*by, *Interval._fields, "excluded"], []
    if frame.empty:
        return pd.DataFrame(columns=columns)
    bounds = [*bound_columns(frame, value), *({POOLED_SEEDS} & set(frame))]
    for key, seeds in by_seed(frame, by, [value, *bounds]).groupby(list(by), sort=False):
        counted = seeds if unconverged else seeds[seeds["converged"].astype(bool)]
        rows.append((*key, *interval_of_seeds(counted, value), len(seeds) - len(counted)))
    return pd.DataFrame(rows, columns=columns)


def interval_of_seeds(rows: DataFrame, value: str) -> Interval:
    """Return the mean of a value with its 95 % interval, from one row for each seed.

    For several seeds, the interval covers seeds and texts if the seeds were pooled, otherwise seeds only. For
    a single seed, it covers texts if their bounds are known; otherwise both bounds equal the mean.
    """
    interval = mean_interval(tuple(rows[value]))
    # bounds of a frame are those of one mean; they hold for this one only if it is over the same seeds
    if interval.n == 1:
        columns = text_columns(value)
        known = set(columns) <= set(rows) and rows[columns].notna().all(axis=None)
    else:
        columns = pooled_columns(value)
        known = set(columns) <= set(rows) and (rows[POOLED_SEEDS] == interval.n).all()
    if interval.n == 0 or not known:
        return interval
    lower, upper = map(float, rows[columns].iloc[0])
    return interval._replace(lower=lower, upper=upper)


@cache  # the table of one task repeats rows of the table of all tasks
def mean_interval(values: tuple[float, ...]) -> Interval:
    """Return the mean of the values with a 95 % bootstrap interval; NaN without values."""
    return bootstrap_interval(values) if values else Interval.undefined(0)


def choose_tunings(frame: DataFrame) -> DataFrame:
    """Return the rows of the preferred fine-tuning of each task and model.

    Fine-tunings for which only the baseline was measured are considered only if there are no others.
    """
    names, rows = [*PREFERRED, "scope"], []
    for _, own in frame.groupby(["task", "model"], sort=False):
        explained = own[own["method"] != BASELINE]
        candidates = (explained if len(explained) else own)[names].drop_duplicates()
        best: dict[Any, Any] = min(candidates.to_dict("records"), key=rank_training)
        rows.append(own[(own[names] == list(best.values())).all(axis=1)])
    return pd.concat(rows) if rows else frame


def over_tasks(frame: DataFrame, by: Sequence[str], *values: str) -> DataFrame:
    """Return the mean of each group and seed over the tasks on which the seed converged, as in the paper.

    Only seeds that were run on every task of their group are included. Several runs of a seed on one task are
    averaged first. The mean is NaN if the value on one of the tasks is undefined.
    """
    runs = by_seed(frame, [*by, "task"], values)
    tasks = runs.groupby(list(by))["task"].transform("nunique")
    # without a task that is easy, or hard, the mean of a seed would be of something else
    complete = runs.groupby([*by, "seed"])["task"].transform("size") == tasks
    # a seed that did not converge would make the mean one of models that know nothing
    converged = runs[complete & runs["converged"].astype(bool)]
    return converged.groupby([*by, "seed"], as_index=False)[list(values)].mean(skipna=False)


@dataclass(frozen=True)
class TaskGroup:
    """Set of tasks to average over, and the models with a method that was run on exactly these tasks."""

    name: str
    tasks: frozenset[str]
    models: set[str]


def task_groups(*frames: DataFrame) -> list[TaskGroup]:
    """Return every set of two or more tasks on which a method of a model was run, the largest set first."""
    models: dict[frozenset[str], set[str]] = defaultdict(set)
    for frame in frames:
        for (model, _), tasks in frame.groupby(["model", "method"])["task"]:
            models[frozenset(tasks)].add(str(model))
    groups: list[TaskGroup] = []
    for names in sorted(models, key=lambda names: (-len(names), sorted(names))):
        if len(names) > 1:
            number = 1 + sum(len(group.tasks) == len(names) for group in groups)
            # a second group of as many tasks needs another name
            suffix = f" {number}" if number > 1 else ""
            groups.append(TaskGroup(f"{ALL} ({len(names)} tasks){suffix}", names, models[names]))
    return groups


def over_task_groups(frame: DataFrame, score: str, groups: Sequence[TaskGroup]) -> DataFrame:
    """Return means over the tasks of each group and over seeds, for methods that were run on all its tasks.

    The columns are those of `over_seeds` without `excluded`, by model, task (name of the group) and method.
    """
    by = ["model", "method"]
    parts = []
    for group in groups:
        rows = frame[frame["task"].isin(group.tasks) & frame["model"].isin(group.models)]
        rows = rows[rows.groupby(by)["task"].transform("nunique") == len(group.tasks)]
        means = over_tasks(rows, by, score).assign(task=group.name, converged=True)
        parts.append(over_seeds(means, ["model", "task", "method"], score).drop(columns="excluded"))
    return pd.concat(parts, ignore_index=True) if parts else DataFrame()
