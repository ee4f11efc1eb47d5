"""Published values beside ours: which are comparable, their cells and columns, the order of rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from ..report.aggregate import Key
from ..report.blocks import DIGITS, Cell, Column, Side, Table, file_column
from . import published

SIZES = {"roberta-base": "base", "roberta-large": "large"}
"""Sizes of the models of the paper; its tables name their columns after them."""
MODELS = tuple(SIZES)

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


def comparison_columns(name: str, heading: str, *, interval: bool = True, **form: Any) -> Iterable[Column]:
    """Yield the columns for the cells of `compare_cells`, with bounds and a mark only if `interval`."""
    ends: dict[Side, tuple[str, ...]] = {
        "ours": ("ours", "ours_minus", "ours_plus"),
        "published": ("published", "published_minus", "published_plus"),
        "difference": ("difference", "apart"),
    }
    for side, fields in ends.items():
        names = map(f"{name}_{{}}".format, fields if interval else fields[:1])
        yield file_column(tuple(names), (heading, side), form="number", side=side, **form)


def reference_model(models: Collection[str]) -> str:
    """Return the published model whose values are shown for comparison with other models.

    The result is "" if no model was run, or if one of them is a model of the paper.
    """
    return MODELS[0] if models and not any(map(published_size, models)) else ""


def beside_published(table: Table, reference: str, notes: Sequence[str] = DIFFERENCE_NOTES) -> Table:
    """Return the table with the notes of a comparison, and a reference model named in published columns."""
    columns = []
    for column in table.columns:
        if reference and column.heading[-1] == "published":
            names = tuple(name.replace("_published", f"_published_{reference}") for name in column.names)
            heading = (*column.heading[:-1], f"published ({reference})")
            column = replace(column, names=names, heading=heading)
        columns.append(column)
    notes = (*table.comparison_notes, *(REFERENCE_NOTES if reference else notes))
    return replace(table, columns=tuple(columns), comparison_notes=notes, reference=reference)


def sort_keys(keys: Iterable[Key], *orders: Iterable[str], last: Sequence[str] = ()) -> list[Key]:
    """Return keys sorted part by part: in the published order, then other names, then those in `last`.

    A name with options follows the plain name. Models are compared by the last part of their path.
    """
    places = [list(dict.fromkeys(names)) for names in orders]

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


def published_cell(row: Mapping[str, Any], name: str, bounds: str = "") -> Cell:
    """Return a published number with its interval, from the columns `{bounds}_minus` and `{bounds}_plus`."""
    of = bounds or name
    return Cell.around(row.get(name), row.get(f"{of}_minus"), row.get(f"{of}_plus"))


def published_size(model: str) -> str:
    """Return the size of a model of the paper, e.g. "base"; "" for any other model."""
    return SIZES.get(PurePath(model).name, "")


def has_published_counts(task: str, **counts: int | None) -> bool:
    """Return whether the paper used the task with these counts (texts, train_rows, epochs)."""
    return counts.items() <= published.counts().get(strip_options(task), {}).items()
