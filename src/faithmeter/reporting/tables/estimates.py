"""Frames of a store → means over seeds with intervals, of one task or over tasks, on the same texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from typing import Literal

from pandas import DataFrame

from ...faithfulness.intervals import bootstrap_interval
from .cells import Cell
from .published_columns import Key

Frames = Mapping[str, DataFrame]
"""By kind: what `store.frame(kind)` gives for train, measure, areas, seconds and roar."""
Show = Literal["published", "ours", "both"]

SEEDS = "Ours: mean over n seeds with a 95 % BCa interval; excl.: seeds that did not converge, left out."


@dataclass(frozen=True)
class Estimate:
    """The mean over the seeds that converged, how many did, and how many not."""

    cell: Cell
    n: int | None = None
    excluded: int | None = None

    def counts(self) -> tuple[Cell, Cell]:
        return Cell(mean=self.n), Cell(mean=self.excluded)


NONE = Estimate(Cell())


def estimates(frame: DataFrame, by: Sequence[str], value: str) -> dict[Key, Estimate]:
    """Of fractions, in percent, by task, model, …; several runs of one seed count as their mean."""
    seeds = frame.groupby([*by, "seed"], as_index=False).agg({value: "mean", "converged": "all"})
    return {
        tuple(map(str, key)): estimate(group.loc[group["converged"], value], len(group))
        for key, group in seeds.groupby(list(by))
    }


def estimate(fractions: Iterable[float], seeds: int | None = None) -> Estimate:
    """Of the seeds that converged; a single one has no interval."""
    values = tuple(100 * value for value in fractions)
    return Estimate(_interval(values), len(values), None if seeds is None else seeds - len(values))


def over_tasks(frame: DataFrame, by: Sequence[str], value: str) -> DataFrame:
    """A row for each seed: its mean over the tasks on which it converged, as in the paper.

    A seed counts if it was run on every task that the group has; several runs of it on a task are one.
    """
    columns = {value: "mean", "converged": "all"}
    runs = frame.groupby([*by, "seed", "task"], as_index=False).agg(columns)
    tasks = runs.groupby(list(by))["task"].transform("nunique")
    complete = runs.groupby([*by, "seed"])["task"].transform("size") == tasks
    learned = runs[complete & runs["converged"]].groupby([*by, "seed"], as_index=False)
    return learned[[value]].mean(skipna=False)


@cache  # the table of a task repeats what the one of all tasks has
def _interval(values: tuple[float, ...]) -> Cell:
    if not values or math.isnan(sum(values)):
        return Cell()
    mean, lower, upper, n = bootstrap_interval(values)
    if n == 1:
        return Cell(mean=round(mean, 6))
    return Cell(mean=round(mean, 6), minus=round(mean - lower, 6), plus=round(upper - mean, 6))


def same_texts(frame: DataFrame, among: list[str]) -> tuple[DataFrame, tuple[str, ...]]:
    """Only what may be averaged: `among` (for each task, model, …) runs on as many texts as most seeds have.

    Of equals the greater number is taken. The second value says what is left out.
    """
    seeds = frame.groupby([*among, "texts"])["seed"].nunique().reset_index()
    chosen = seeds.sort_values(["seed", "texts"]).drop_duplicates(among, keep="last")
    keys = [*among, "texts"]
    kept = frame.set_index(keys).index.isin(chosen.set_index(keys).index)
    return frame[kept], _listed("Left out, on another number of texts than most", frame[~kept])


def fewer_texts(frame: DataFrame) -> tuple[str, ...]:
    """Says which methods must not be compared with the others of their task and model."""
    most = frame.groupby(["task", "model"])["texts"].transform("max")
    fewer = frame.assign(texts=frame["texts"].astype(str) + " of " + most.astype(str))[frame["texts"] < most]
    return _listed("Not to be compared with the other methods, on fewer texts", fewer)


def _listed(what: str, frame: DataFrame) -> tuple[str, ...]:
    parts = (
        f"{task}, {PurePath(str(model)).name}, {', '.join(sorted(set(rows['method'])))} ({texts} texts)"
        for (task, model, texts), rows in frame.groupby(["task", "model", "texts"])
    )
    said = "; ".join(parts)
    return (f"{what}: {said}.",) if said else ()
