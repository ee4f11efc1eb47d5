"""Frames of a store → means over seeds with intervals; published rows; how the two compare."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from typing import Any, Literal

from pandas import DataFrame

from .. import published
from ..bootstrap import bootstrap_interval
from .cells import Cell, Column

Frames = Mapping[str, DataFrame]
"""By kind: what `store.frame(kind)` gives for train, measure, areas, seconds and roar."""
Show = Literal["published", "ours", "both"]
Key = tuple[str, ...]

ALL = "All"
MODELS, SIZES = ("roberta-base", "roberta-large"), ("base", "large")
"""The published models, and what the published columns call them."""

CHANGED = "† marks intervals that do not overlap, also if the published digits were rounded by the most."
SEEDS = "Ours: mean over n seeds with a 95 % BCa interval; seeds that did not converge are excluded."


@dataclass(frozen=True)
class Estimate:
    """The mean over the seeds that converged, and how many did and did not."""

    cell: Cell
    n: int
    excluded: int

    def counts(self) -> tuple[Cell, Cell]:
        return (Cell(mean=self.n), Cell(mean=self.excluded)) if self.n or self.excluded else (Cell(), Cell())


NONE = Estimate(Cell(), 0, 0)


def estimates(frame: DataFrame, by: Sequence[str], value: str) -> dict[Key, Estimate]:
    """Of fractions, in percent, by task, model, …; several runs of one seed count as their mean."""
    seeds = frame.groupby([*by, "seed"], as_index=False).agg({value: "mean", "converged": "all"})
    return {
        tuple(map(str, key)): estimate(group.loc[group["converged"], value], len(group))
        for key, group in seeds.groupby(list(by))
    }


def estimate(fractions: Iterable[float], seeds: int) -> Estimate:
    """Of the seeds that converged; a single one has no interval."""
    values = tuple(100 * value for value in fractions)
    return Estimate(_interval(values), len(values), seeds - len(values))


@cache  # the table of a task repeats what the one of all tasks has
def _interval(values: tuple[float, ...]) -> Cell:
    if not values or math.isnan(sum(values)):
        return Cell()
    mean, lower, upper, n = bootstrap_interval(values)
    if n == 1:
        return Cell(mean=round(mean, 6))
    return Cell(mean=round(mean, 6), minus=round(mean - lower, 6), plus=round(upper - mean, 6))


def compared(published: Cell, ours: Cell, decimals: tuple[int, int] = (1, 1)) -> tuple[Cell, Cell, Cell]:
    """Published, ours, and the difference with a mark; `decimals` tells how far the published was rounded."""
    if published.mean is None or ours.mean is None:
        return published, ours, Cell()
    difference, apart = round(ours.mean - published.mean, 6), False
    if None not in (published.minus, published.plus, ours.minus, ours.plus):
        rounding = sum(0.5 * 10**-places for places in decimals)
        above = difference > 0
        reach = published.plus + ours.minus if above else published.minus + ours.plus  # type: ignore[operator]
        apart = abs(difference) > reach + rounding
    return published, ours, Cell(mean=difference, apart=apart)


def beside(
    name: str, heading: str, *, decimals: tuple[int, int] = (1, 1), unit: str = "", interval: bool = True
) -> tuple[Column, Column, Column]:
    """The columns of `compared`; without intervals there are no bounds, and no mark."""

    def column(side: Literal["published", "ours", "difference"], *also: str) -> Column:
        names = tuple(f"{name}_{end}" for end in (side, *(also if interval else ())))
        return Column(names, (heading, side), form="number", side=side, decimals=decimals, unit=unit)

    return (
        column("published", "published_minus", "published_plus"),
        column("ours", "ours_minus", "ours_plus"),
        column("difference", "apart"),
    )


def same_texts(frame: DataFrame, among: list[str]) -> tuple[DataFrame, tuple[str, ...]]:
    """Only what may be averaged: `among` (for each task, model, …) runs on as many texts as most seeds have.

    Of equals the greater number is taken. The second value says what is left out.
    """
    seeds = frame.groupby([*among, "texts"])["seed"].nunique().reset_index()
    chosen = seeds.sort_values(["seed", "texts"]).drop_duplicates(among, keep="last")
    left_out = (
        f"Left out: {', '.join(row[name] for name in among)} on {row['texts']} texts."
        for row in seeds.drop(chosen.index).to_dict("records")
    )
    return frame.merge(chosen[[*among, "texts"]]), tuple(left_out)


def in_order(keys: Iterable[Key], *published: Iterable[str]) -> list[Key]:
    """Sorted part by part: as the published table has them, then by name, "All" at the end.

    Options follow the name without them; models are known by the last part of their path.
    """
    places = [{name: number for number, name in enumerate(dict.fromkeys(names))} for names in published]

    def rank(key: Key) -> list[tuple[bool, int, str]]:
        pairs = zip(key, places, strict=True)
        return [
            (part == ALL, place.get(plain(PurePath(part).name), len(place)), part) for part, place in pairs
        ]

    return sorted(keys, key=rank)


def plain(name: str) -> str:
    """A task or method without its options."""
    return name.partition("(")[0]


def quoted(name: str) -> list[dict[str, Any]]:
    """The rows of a published table; what is missing is None."""
    frame = published.table(name)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def quoted_cell(row: Mapping[str, Any], name: str, bounds: str = "") -> Cell:
    """A number of a published row with its interval, whose columns may have a name of their own."""
    minus, plus = (row.get(f"{bounds or name}_{end}") for end in ("minus", "plus"))
    return Cell(mean=row.get(name), minus=minus, plus=plus)


def model_names(models: Iterable[str]) -> dict[str, str]:
    """Folders and hub names → their last part, by which published models are known; whole if not unique."""
    short = {model: PurePath(model).name for model in models}
    known = list(short.values())
    return {model: name if known.count(name) == 1 else model for model, name in short.items()}


def size(model: str) -> str:
    """What the published columns call a model; "" if nothing is published of it."""
    return dict(zip(MODELS, SIZES, strict=True)).get(PurePath(model).name, "")
