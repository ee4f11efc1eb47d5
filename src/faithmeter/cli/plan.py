"""`faithmeter grid --dry-run`: the planned runs of a grid, and which of them are done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from .screen import output, print_json, table

if TYPE_CHECKING:
    from ..grid import Run
    from ..store.run_store import RunStore


def show_plan(runs: Sequence[Run], store: RunStore, as_json: bool) -> None:
    """Print the runs of a grid with their state, and the totals by kind."""
    done = {run for run in runs if run.done(store)}
    if as_json:
        print_json([{"run": run.name, "done": run in done, "config": run.config.to_dict()} for run in runs])
        return
    for run in runs:
        state = "done" if run in done else "to do"
        output.print(f"{state:5}  {run.name}", soft_wrap=True)
    output.print(_totals(runs, done))


def _totals(runs: Sequence[Run], done: set[Run]) -> Table:
    totals = table("in all", "kind", "runs", "done", "to do")
    kinds = dict.fromkeys(run.config.kind for run in runs)
    for title in [*kinds, "all"]:
        chosen = [run for run in runs if title in (run.config.kind, "all")]
        finished = sum(run in done for run in chosen)
        totals.add_row(title, *map(str, (len(chosen), finished, len(chosen) - finished)))
    return totals


def format_clock(seconds: float) -> str:
    """Return a duration as hours:minutes:seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
