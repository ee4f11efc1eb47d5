"""Means over seeds and tasks with intervals, as frames and as cells, and which runs may be averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import isnan
from operator import itemgetter
from pathlib import PurePath
from typing import Any

import pandas as pd
from pandas import DataFrame

from ..config import BASELINE
from ..stats.intervals import Interval, bootstrap_interval
from ..store.frames import POOLED, POOLED_SEEDS
from ..store.results import PREFERRED, rank_training
from .blocks import DIGITS, Cell, Column, Row, file_column

Frames = Mapping[str, DataFrame]
"""Frames of a store by kind: train, measure, areas, seconds and roar (see `store.frames`)."""
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


Key = tuple[str, ...]
MISSING = Cell()
SEED_COLUMNS = (
    file_column(("n",), ("Seeds", "n"), form="number", trivial=1),
    file_column(("excluded",), ("Seeds", "excl."), form="number", trivial=0),
)
TEXTS_NOTE = "Ours: with a 95 % BCa interval over texts."
SEEDS_NOTE = "Ours: mean over n seeds with a 95 % BCa interval; excl.: seeds that did not converge, left out."
POOLED_NOTE = "Intervals of tasks are over seeds and texts together; all others are over seeds."


@dataclass(frozen=True)
class MeanCells:
    """Cells of one group: the mean with its interval, and the cells of `SEED_COLUMNS`."""

    value: Cell = MISSING
    seeds: tuple[Cell, Cell] = (MISSING, MISSING)


def mean_cells(frame: DataFrame, by: list[str], value: str) -> dict[Key, MeanCells]:
    """Return the cells of each group: the mean over seeds of a column of fractions, in percent."""
    columns = [value, *bound_columns(frame, value)]
    # with its bounds, which `over_seeds` takes as they are beside the mean
    percents = frame.assign(**(100 * frame[columns].astype(float)))
    return mean_row_cells(over_seeds(percents, by, value), by)


def mean_row_cells(means: DataFrame, by: list[str]) -> dict[Key, MeanCells]:
    """Return the cells for the rows of `over_seeds`; one seed without bounds has no interval."""
    cells = {}
    for row in means.to_dict("records"):
        mean, lower, upper, n = itemgetter("mean", "lower", "upper", "n")(row)
        value = Cell() if isnan(mean) else Cell(round(mean, DIGITS))
        # equal bounds mean for one seed that none are known, and for several that the seeds agree
        if not isnan(mean) and (n > 1 or lower < upper) and not isnan(lower):
            value = Cell(round(mean, DIGITS), lower, upper)
        cells[tuple(str(row[name]) for name in by)] = MeanCells(value, (Cell(n), Cell(row.get("excluded"))))
    return cells


def interval_notes(rows: Sequence[Row], columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the note on what our intervals are over, if any row has one."""
    note: tuple[str, ...] = ()
    for row in rows:
        for cell, column in zip(row, columns, strict=True):
            # a column of seeds that says something else than one seed, none left out
            if column.heading[0] == "Seeds" and cell.value not in (None, column.trivial):
                return (SEEDS_NOTE,)
            if column.side in ("", "ours") and cell.has_interval:
                note = (TEXTS_NOTE,)
    return note


def keep_usual_texts(frame: DataFrame, by: list[str]) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the runs of each group on its most common number of texts, and a note on the runs left out.

    The most common number is the one with the most seeds; the larger one wins a tie.
    """
    if frame.empty:
        return frame, ()
    seeds = frame.groupby([*by, "texts"])["seed"].nunique().reset_index()
    usual = seeds.sort_values(["seed", "texts"]).drop_duplicates(by, keep="last")
    keys = [*by, "texts"]
    mask = frame.set_index(keys).index.isin(usual.set_index(keys).index)
    return frame[mask], _note("Left out because they ran on another number of texts than most", frame[~mask])


def note_fewer_texts(frame: DataFrame) -> tuple[str, ...]:
    """Return a note on methods that ran on fewer texts than others of their task and model, if any."""
    most = frame.groupby(["task", "model"])["texts"].transform("max")
    fewer = frame.assign(texts=frame["texts"].astype(str) + " of " + most.astype(str))[frame["texts"] < most]
    return _note("Not comparable with the other methods because they ran on fewer texts", fewer)


def _note(reason: str, frame: DataFrame) -> tuple[str, ...]:
    runs = []
    for (task, model, texts), rows in frame.groupby(["task", "model", "texts"]):
        methods = ", ".join(sorted(set(rows["method"])))
        runs.append(f"{task}, {PurePath(str(model)).name}, {methods} ({texts} texts)")
    return (f"{reason}: {'; '.join(runs)}.",) if runs else ()
