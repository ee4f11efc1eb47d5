"""Table of the metrics of other papers, on the erasures of our runs."""

from __future__ import annotations

from ...faithfulness.other_metrics import OTHER_METRICS
from ..aggregate import Frames, over_seeds
from ..labels import short_names
from .cells import SEED_COLUMNS, SEEDS_NOTE, Cell, Column, MeanCells, mean_cells, mean_row_cells
from .same_texts import note_fewer_texts
from .table import Table

TITLE = "Metrics of other papers on the same erasures"
PREFERENCE = (
    "Prefer ACU with its check: it is compared with random erasure of the same texts, has an interval, and "
    "is trusted only if the erased texts are in distribution."
)


def other_metrics_table(frames: Frames) -> Table:
    """Return the metrics of each task, model and method; definitions are linked in the notes."""
    areas, by = frames["areas"], ["task", "model", "method"]
    cells: dict[str, dict[tuple[str, ...], MeanCells]] = {
        name: mean_cells(areas, by, name) if metric.unit else mean_row_cells(over_seeds(areas, by, name), by)
        for name, metric in OTHER_METRICS.items()
    }
    names = short_names(areas["model"].unique())
    first = cells["comprehensiveness"]
    rows = tuple(
        (
            Cell(task),
            Cell(names[model]),
            Cell(method),
            *(cells[name][task, model, method].value for name in OTHER_METRICS),
            *first[task, model, method].seeds,
        )
        for task, model, method in first
        if not first[task, model, method].value.missing
    )
    links = "; ".join(f"{metric.title}: {metric.url}" for metric in OTHER_METRICS.values())
    notes = (PREFERENCE, f"Definitions: {links}.", SEEDS_NOTE, *note_fewer_texts(areas))
    return Table(TITLE, _columns(), rows, (), notes)


def _columns() -> tuple[Column, ...]:
    return (
        Column(("task",), ("Dataset",), "section"),
        Column(("model",), ("Model",), "group"),
        Column(("method",), ("Method",), "label", form="method"),
        *(
            Column(
                (name, f"{name}_minus", f"{name}_plus"),
                (metric.title, f"{metric.better} is better"),
                form="number",
                decimals=(1, 1) if metric.unit else (2, 2),
                unit=metric.unit,
            )
            for name, metric in OTHER_METRICS.items()
        ),
        *SEED_COLUMNS,
    )
