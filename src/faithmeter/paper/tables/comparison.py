"""Comparison of our values with published ones: which are comparable, their columns, the order of rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Literal

from ...report.blocks import DIGITS, Cell, Column
from ...report.tables.cells import Key, column
from .. import published

SIZES = {"roberta-base": "base", "roberta-large": "large"}
"""Sizes of the models of the paper; its tables name their columns after them."""
MODELS = tuple(SIZES)
SPELLINGS = {"Diabetese": "Diabetes"}  # the published table of datasets misspells it

DIFFERENCE_NOTES = (
    "A difference is shown only for the paper's models; on other texts than there, scores are of a sample.",
    "† marks intervals that do not overlap, even if the published digits were rounded by the most.",
)
REFERENCE_NOTES = (
    f"Published values are those of {MODELS[0]}, only as a reference: the paper did not use our model.",
)


def compare_cells(
    published: Cell, ours: Cell, decimals: tuple[int, int] = (1, 1), *, comparable: bool = True
) -> tuple[Cell, Cell, Cell]:
    """Return our cell, the published cell and their difference, which is missing if not comparable.

    The difference is marked `apart` if the intervals do not overlap even after the largest rounding error.
    `decimals` are those of the published mean and of its bounds.
    """
    if published.number is None or ours.number is None or not comparable:
        return ours, published, Cell()
    difference, apart = round(ours.number - published.number, DIGITS), False
    if published.has_interval and ours.has_interval:
        # each published digit may be off by half a unit of its last place: of the mean and of its bound
        rounding = 0.5 * 10 ** -decimals[0] + 0.5 * 10 ** -decimals[1]
        above = difference > 0
        reach = published.plus + ours.minus if above else published.minus + ours.plus  # type: ignore[operator]
        apart = abs(difference) > reach + rounding
    return ours, published, Cell(difference, mark="apart" if apart else "")


def comparison_columns(
    name: str, heading: str, *, decimals: tuple[int, int] = (1, 1), unit: str = "", interval: bool = True
) -> tuple[Column, Column, Column]:
    """Return the columns for the cells of `compare_cells`, with bounds and a mark only if `interval`."""

    def one(side: Literal["published", "ours", "difference"], *extra: str) -> Column:
        names = tuple(f"{name}_{end}" for end in (side, *(extra if interval else ())))
        return column(names, (heading, side), form="number", side=side, decimals=decimals, unit=unit)

    return (
        one("ours", "ours_minus", "ours_plus"),
        one("published", "published_minus", "published_plus"),
        one("difference", "apart"),
    )


def reference_model(models: Collection[str]) -> str:
    """Return the published model whose values are shown for comparison with other models.

    The result is "" if no model was run, or if one of them is a model of the paper.
    """
    return MODELS[0] if models and not any(map(published_size, models)) else ""


def name_reference(columns: Sequence[Column], model: str) -> tuple[Column, ...]:
    """Return the columns with the reference model named in published columns; unchanged if it is ""."""

    def rename(column: Column) -> Column:
        if not model or column.heading[-1] != "published":
            return column
        names = tuple(name.replace("_published", f"_published_{model}") for name in column.names)
        return replace(column, names=names, heading=(*column.heading[:-1], f"published ({model})"))

    return tuple(map(rename, columns))


def sort_keys(keys: Iterable[Key], *published: Iterable[str], last: Sequence[str] = ()) -> list[Key]:
    """Return keys sorted part by part: in the published order, then other names, then those in `last`.

    A name with options follows the plain name. Models are compared by the last part of their path.
    """
    places = [list(dict.fromkeys(names)) for names in published]

    def rank(key: Key) -> list[tuple[int, int, str]]:
        ranks = []
        for part, known in zip(key, places, strict=True):
            end = last.index(part) + 1 if part in last else 0
            name = strip_options(PurePath(part).name)
            ranks.append((end, known.index(name) if name in known else len(known), part))
        return ranks

    return sorted(keys, key=rank)


def strip_options(name: str) -> str:
    """Return the name of a task or method without its options in parentheses."""
    return name.partition("(")[0]


@cache
def published_rows(name: str) -> tuple[Mapping[str, Any], ...]:
    """Return the rows of a published table as mappings; missing values are None."""
    frame = published.table(name)
    rows: list[Any] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    # the rows are cached: who changed one would change it for all tables
    return tuple(map(MappingProxyType, rows))


def task_of(row: Mapping[str, Any]) -> str:
    """Return the task of a published row, in the spelling of the other tables."""
    return SPELLINGS.get(row["dataset"], str(row["dataset"]))


def published_cell(row: Mapping[str, Any], name: str, bounds: str = "") -> Cell:
    """Return a published number with its interval, from the columns `{bounds}_minus` and `{bounds}_plus`."""
    minus, plus = (row.get(f"{bounds or name}_{end}") for end in ("minus", "plus"))
    return Cell.around(row.get(name), minus, plus)


def published_size(model: str) -> str:
    """Return the size of a model of the paper, e.g. "base"; "" for any other model."""
    return SIZES.get(PurePath(model).name, "")


def has_published_counts(task: str, **counts: int | None) -> bool:
    """Return whether the paper used the task with these counts (texts, train_rows, epochs)."""
    return counts.items() <= published_counts().get(strip_options(task), {}).items()


@cache
def published_counts() -> dict[str, dict[str, int]]:
    """Return the number of test texts, training rows and epochs in the paper, by task."""
    epochs = {row["dataset"]: row["max_epochs"] for row in published_rows("performance")}
    counts = {}
    for row in published_rows("datasets"):
        task = task_of(row)
        counts[task] = {"texts": row["test"], "train_rows": row["train"], "epochs": epochs[task]}
    return counts
