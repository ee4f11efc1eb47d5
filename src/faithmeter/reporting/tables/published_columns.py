"""What is published, which of it may be compared with ours, and in which order it stands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import PurePath
from typing import Any, Literal

from ... import published
from .cells import Cell, Column

Key = tuple[str, ...]

MODELS, SIZES = ("roberta-base", "roberta-large"), ("base", "large")
"""The published models, and what the published columns call them."""
SPELLED = {"Diabetese": "Diabetes"}  # in the published table of datasets, unlike in the others

CHANGED = "† marks intervals that do not overlap, also if the published digits were rounded by the most."
OURS = "A difference is shown only for the paper's models; on other texts than there, scores are of a sample."
LIKE = "A difference is shown only for the paper's models with as many {} as there."
REFERENCE = f"Published values are of {MODELS[0]}, only as a reference: the paper did not use our model."


def compared(
    published: Cell, ours: Cell, decimals: tuple[int, int] = (1, 1), *, like: bool = True
) -> tuple[Cell, Cell, Cell]:
    """Published, ours and, of like with like, the difference with a mark.

    `decimals` tells how far the published was rounded.
    """
    if published.mean is None or ours.mean is None or not like:
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


def stand_in(models: Collection[str]) -> str:
    """The model whose published values are a reference where none of the paper's was run; else ""."""
    return MODELS[0] if models and not any(map(size, models)) else ""


def told(columns: Sequence[Column], model: str) -> tuple[Column, ...]:
    """Columns that tell of which model the published values are, if it is one that stands in."""

    def naming_it(column: Column) -> Column:
        if not model or column.heading[-1] != "published":
            return column
        names = tuple(name.replace("_published", f"_published_{model}") for name in column.names)
        return replace(column, names=names, heading=(*column.heading[:-1], f"published ({model})"))

    return tuple(map(naming_it, columns))


def in_order(keys: Iterable[Key], *published: Iterable[str], last: Sequence[str] = ()) -> list[Key]:
    """Sorted part by part: as the published table has them, then by name, and at the end as `last` has them.

    Options follow the name without them; models are known by the last part of their path.
    """
    ends = {name: number for number, name in enumerate(last, start=1)}
    places = [{name: number for number, name in enumerate(dict.fromkeys(names))} for names in published]

    def rank(key: Key) -> list[tuple[int, int, str]]:
        pairs = zip(key, places, strict=True)
        return [
            (ends.get(part, 0), place.get(plain(PurePath(part).name), len(place)), part)
            for part, place in pairs
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


def as_many(task: str, **counts: int | None) -> bool:
    """Whether the paper has the task with that number of (test) texts, train_rows, or epochs."""
    return counts.items() <= published_counts().get(plain(task), {}).items()


@cache
def published_counts() -> dict[str, dict[str, int]]:
    """How much the paper tested and trained on, by task."""
    rows = {SPELLED.get(row["dataset"], row["dataset"]): row for row in quoted("datasets")}
    epochs = {row["dataset"]: row["max_epochs"] for row in quoted("performance")}
    return {
        task: {"texts": row["test"], "train_rows": row["train"], "epochs": epochs[task]}
        for task, row in rows.items()
    }
