"""TABLES: the paper's tables by name, as published, of our runs, or both side by side.

`TABLES[name](frames, show)` gives a Table, which becomes Markdown, CSV, LaTeX or HTML. `ours` and `both` have
a row for what was run: without runs they are empty. Frames should be `comparable`, or means mix settings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, get_args

from ...errors import unknown
from ...tasks import TASKS
from . import datasets, faithfulness, models, walltimes
from .cells import Cell, Column
from .estimates import Frames, Show
from .table import Table, save

__all__ = ["TABLES", "Cell", "Column", "Frames", "Show", "Table", "save"]


class Maker(Protocol):
    """How a table is asked for."""

    def __call__(self, frames: Frames, show: Show = "both") -> Table: ...


def _maker(published: Callable[[], Table], beside: Callable[[Frames], Table]) -> Maker:
    def make(frames: Frames, show: Show = "both") -> Table:
        if show not in get_args(Show):
            raise unknown("variant of a table", show, get_args(Show))
        if show == "published":
            return published()
        table = beside(frames)
        return table if show == "both" else table.ours()

    return make


TABLES: dict[str, Maker] = {
    "datasets": _maker(datasets.published, datasets.beside_ours),
    "models": _maker(models.published, models.beside_ours),
    "faithfulness": _maker(faithfulness.published, faithfulness.beside_ours),
}
for _task in TASKS:
    TABLES[f"faithfulness_{_task}"] = _maker(
        partial(faithfulness.published, _task), partial(faithfulness.beside_ours, task=_task)
    )
for _name in walltimes.PARTS:
    TABLES[_name] = _maker(partial(walltimes.published, _name), partial(walltimes.beside_ours, name=_name))
