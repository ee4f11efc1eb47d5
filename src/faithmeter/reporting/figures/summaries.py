"""What the figures show: rows as people read them, means over seeds with their intervals, and over tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from pandas import DataFrame

from ...faithfulness.intervals import Interval, bootstrap_interval
from .styles import STRATEGIES, metric_label, short

ALL = "All"
PLACE = ["task", "model", "unit"]
Frames = Mapping[str, DataFrame]


def means(frame: DataFrame, by: Sequence[str], value: str = "value") -> DataFrame:
    """A row for each group: mean, lower and upper bound (BCa), and n; rows without a value do not count."""
    groups = frame.dropna(subset=[value]).groupby(list(by), sort=False)[value]
    rows = [(*key, *bootstrap_interval(values.to_numpy())) for key, values in groups]
    return pd.DataFrame(rows, columns=[*by, *Interval._fields])


def with_all(train: DataFrame) -> DataFrame:
    """The rows, and those of a task "All": for each seed, the mean of the tasks that converged.

    It mixes metrics, as the paper does. The tasks' own rows keep runs that did not converge. One task alone
    has no All.
    """
    if train["task"].nunique() < 2:
        return train
    by = ["model", "strategy", "validation", "seed"]
    learned = train[train["converged"].astype(bool)]
    rows = learned.groupby(by, as_index=False)[["value", "majority"]].mean()
    return pd.concat([train, rows.assign(task=ALL, metric="performance")], ignore_index=True)


def labeled(frame: DataFrame) -> DataFrame:
    """Rows as people read them: tasks and models by their last part, values in percent, and the unit."""
    task, model = (frame[name].map(short(frame[name])) for name in ("task", "model"))
    unit = frame["metric"].map(metric_label)
    return frame.assign(task=task, model=model, value=100 * frame["value"], unit=unit)


def named(frame: DataFrame) -> DataFrame:
    """Rows of the strategies that have a name, with it."""
    names = [STRATEGIES.get(pair, "") for pair in zip(frame["strategy"], frame["validation"], strict=True)]
    rows = frame.assign(tuning=names)
    return rows[rows["tuning"] != ""]
