"""Cells of means over seeds, for the tables of a store, and the runs that may be averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import PurePath
from typing import Any, Literal

from pandas import DataFrame

from ..aggregate import bound_columns, over_seeds
from ..blocks import DIGITS, Cell, Column, Row

Key = tuple[str, ...]


def column(
    names: tuple[str, ...],
    heading: tuple[str, ...],
    role: Literal["section", "group", "label", "value"] = "value",
    form: Literal["text", "code", "method", "number", "time"] = "text",
    **settings: Any,
) -> Column:
    """Return a column that files have, too; its bounds are distances from the value, as in the paper."""
    settings.setdefault("decimals", (0, 1))
    return Column(heading, role, form, names=names, offsets=len(names) == 3, **settings)


MISSING = Cell()
SEED_COLUMNS = (
    column(("n",), ("Seeds", "n"), form="number", trivial=1),
    column(("excluded",), ("Seeds", "excl."), form="number", trivial=0),
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
        mean, lower, upper, n = (row[name] for name in ("mean", "lower", "upper", "n"))
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
