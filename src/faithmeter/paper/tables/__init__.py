"""Tables of the paper by name, with published values, values of our runs, or both side by side.

`TABLES[name](frames, show)` returns a `Table`, which `exports` write as Markdown, CSV and LaTeX. With
`ours` and `both`, a table has a row for each run or group of runs, so it is empty without runs. Pass frames
from `comparable`; otherwise means mix different settings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Protocol, get_args

from ...data import TASKS
from ...errors import unknown
from ...report.aggregate import Frames
from ...report.blocks import Table
from ...report.page import Replication
from .. import published
from .areas_by_task import PUBLISHED, faithfulness_table
from .layouts import Layout, published_table
from .trainings import PUBLISHED_DATASETS, PUBLISHED_MODELS, datasets_table, models_table
from .walltimes import PARTS, published_layout, walltimes_table

__all__ = ["TABLES", "Frames", "Show", "Table", "replication"]

Show = Literal["published", "ours", "both"]


class TableFunction(Protocol):
    """Function in `TABLES`, which returns a table from the frames of a store."""

    def __call__(self, frames: Frames, show: Show = "both") -> Table: ...


def _table_function(
    layout: Layout, comparison: Callable[[Frames], Table], task: str | None = None
) -> TableFunction:
    def table(frames: Frames, show: Show = "both") -> Table:
        if show not in get_args(Show):
            raise unknown("variant of a table", show, get_args(Show))
        if show == "published":
            return published_table(layout, task)
        both = comparison(frames)
        return both if show == "both" else both.without_comparison()

    return table


TABLES: dict[str, TableFunction] = {
    "datasets": _table_function(PUBLISHED_DATASETS, datasets_table),
    "models": _table_function(PUBLISHED_MODELS, models_table),
    "faithfulness": _table_function(PUBLISHED, faithfulness_table),
}
# a table for each task, too: that of all tasks has 288 rows
for _task in TASKS:
    TABLES[f"faithfulness_{_task}"] = _table_function(
        PUBLISHED, partial(faithfulness_table, task=_task), _task
    )
for _name in PARTS:
    TABLES[_name] = _table_function(published_layout(_name), partial(walltimes_table, name=_name))


def replication() -> Replication:
    """Return what a report on runs adds from the paper: its tables, and its ACU in percent."""
    # beam search was too slow for some tasks, which have no published area
    rows = published.table("faithfulness").dropna(subset=["acu"])
    areas: Any = rows.set_index(["dataset", "model", "importance_measure"])["acu"].to_dict()
    return Replication(TABLES, areas)
