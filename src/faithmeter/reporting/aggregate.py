"""Runs → means with intervals over seeds, and means over tasks: one rule for tables, figures and page."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from pandas import DataFrame

from ..faithfulness.intervals import Interval, bootstrap_interval


def by_seed(frame: DataFrame, by: Sequence[str], values: Sequence[str]) -> DataFrame:
    """Return one row for each group and seed: the mean of its runs, and whether all converged."""
    columns = dict.fromkeys(values, "mean") | {"converged": "all"}
    return frame.groupby([*by, "seed"], as_index=False, sort=False).agg(columns)


def over_seeds(
    frame: DataFrame, by: Sequence[str], value: str = "value", *, unconverged: bool = False
) -> DataFrame:
    """Return the mean of each group over its seeds with a 95 % interval.

    Args:
        frame: One row for each run, with the columns `by`, `seed`, `converged` and `value`.
        by: Columns that name a group. Several runs of one seed in a group count as their mean.
        value: Column to average.
        unconverged: Also count seeds that did not converge; by default they are left out.

    Returns:
        Columns `by`, `mean`, `lower`, `upper`, `n` (seeds averaged) and `excluded` (seeds left out). The
        mean is nan for a group in which no seed converged or in which a seed's value is undefined.
    """
    rows = []
    for key, seeds in by_seed(frame, by, [value]).groupby(list(by), sort=False):
        counted = seeds if unconverged else seeds[seeds["converged"].astype(bool)]
        interval = bootstrap_interval(counted[value]) if len(counted) else Interval.undefined(0)
        rows.append((*key, *interval, len(seeds) - len(counted)))
    return pd.DataFrame(rows, columns=[*by, *Interval._fields, "excluded"])


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
