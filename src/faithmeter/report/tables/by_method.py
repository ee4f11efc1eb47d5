"""Tables with a row for each task, model and method: metrics of other papers, and plausibility."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ...measuring.plausibility import PLAUSIBILITY
from ...stats.other_metrics import OTHER_METRICS
from ..aggregate import Frames, over_seeds
from ..blocks import Cell, Column, Table
from ..labels import short_names
from .cells import (
    SEED_COLUMNS,
    Key,
    MeanCells,
    column,
    interval_notes,
    mean_cells,
    mean_row_cells,
    note_fewer_texts,
)

METRICS_TITLE = "Metrics of other papers on the same erasures"
PREFERENCE = (
    "Prefer ACU with its check: it is compared with random erasure of the same texts, has an interval, and "
    "is trusted only if the erased texts are in distribution."
)
PLAUSIBILITY_TITLE = "Faithful and plausible explanations"
DIFFERENCE = (
    "ACU: whether the model needs the words that a method calls important. All others: whether people call "
    "the same words the reason (human rationales). Neither says anything about the other."
)


def other_metrics_table(frames: Frames) -> Table:
    """Return the metrics of each task, model and method; definitions are linked."""
    columns, definitions = {}, {}
    for name, metric in OTHER_METRICS.items():
        columns[name] = number_column(name, (metric.title, f"{metric.better} is better"), metric.unit)
        definitions[metric.title] = metric.url
    table = table_by_method(frames, METRICS_TITLE, columns, (PREFERENCE,), needs="comprehensiveness")
    return replace(table, definitions=tuple(definitions.items()))


def plausibility_table(frames: Frames) -> Table:
    """Return ACU and the agreement with human rationales of each task, model and method."""
    columns = {"acu": number_column("acu", ("faithful", "ACU"))}
    for name, title in PLAUSIBILITY.items():
        columns[name] = number_column(name, ("plausible", title))
    return table_by_method(frames, PLAUSIBILITY_TITLE, columns, (DIFFERENCE,), needs="auprc")


def number_column(name: str, heading: tuple[str, ...], unit: str = "%") -> Column:
    """Return the column of a number with its interval; percents have one decimal, other numbers two."""
    decimals = (1, 1) if unit else (2, 2)
    names = (name, f"{name}_minus", f"{name}_plus")
    return column(names, heading, form="number", decimals=decimals, unit=unit)


def table_by_method(
    frames: Frames, title: str, columns: Mapping[str, Column], notes: Iterable[str], *, needs: str
) -> Table:
    """Return the means of some columns of `areas`, without methods that have no value in the column `needs`.

    Args:
        frames: Frames of a store, restricted to comparable runs.
        title: Title of the table.
        columns: Columns by their names in `areas`; those in percent are fractions there.
        notes: Notes below the table.
        needs: Name of a column.
    """
    areas, by = frames["areas"], ["task", "model", "method"]
    cells: dict[str, dict[Key, MeanCells]] = {}
    for name, one in columns.items():
        in_percent = bool(one.unit)  # log-odds are no fraction
        means = mean_cells(areas, by, name) if in_percent else mean_row_cells(over_seeds(areas, by, name), by)
        cells[name] = means
    names, rows = short_names(areas["model"].unique()), []
    for key, present in cells[needs].items():
        if not present.value.missing:  # measured without this metric, such as without human rationales
            task, model, method = key
            values = (cells[name][key].value for name in columns)
            rows.append((Cell(task), Cell(names[model]), Cell(method), *values, *present.seeds))
    heads = (
        column(("task",), ("Dataset",), "section"),
        column(("model",), ("Model",), "group"),
        column(("method",), ("Method",), "label", form="method"),
    )
    layout = (*heads, *columns.values(), *SEED_COLUMNS)
    return Table(
        title, layout, tuple(rows), (*notes, *interval_notes(rows, layout), *note_fewer_texts(areas))
    )
