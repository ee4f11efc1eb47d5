"""`faithmeter grid --dry-run`: the planned runs of a grid, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from .screen import output, print_json, table

if TYPE_CHECKING:
    from ..grid import Run
    from ..runs.store import RunStore

Estimates = dict["Run", tuple[float, str] | None]
WORKERS = (1, 8, 64, 512)
"""Numbers of workers for which a dry run simulates the time."""


def show_plan(runs: Sequence[Run], store: RunStore, as_json: bool) -> None:
    """Print the runs of a grid with their state and expected cost, and the totals by kind."""
    from ..grid import seconds

    estimates = seconds(runs, store)
    done = {run for run in runs if run.done(store)}
    if as_json:
        print_json([_plain(run, run in done, estimates[run]) for run in runs])
        return
    for run in runs:
        cost = estimates[run]
        state = "done" if run in done else "to do"
        known = "not known" if cost is None else f"{format_clock(cost[0])} {cost[1]}"
        output.print(f"{state:5}  {known:>22}  {run.name}", soft_wrap=True)
    output.print(_totals(runs, done, estimates))
    left = {run: cost[0] for run in runs if run not in done and (cost := estimates[run]) is not None}
    if left and len(left) == len(runs) - len(done):
        for part in _sizing(left):
            output.print(part)


def _plain(run: Run, done: bool, cost: tuple[float, str] | None) -> dict[str, Any]:
    seconds, source = cost or (None, None)
    estimate = {"seconds": seconds, "known_from": source}
    return {"run": run.name, "done": done, **estimate, "config": run.config.to_dict()}


def _totals(runs: Sequence[Run], done: set[Run], estimates: Estimates) -> Any:
    totals = table("in all", "kind", "runs", "done", "to do", "estimate of what is to do", "without estimate")
    kinds = dict.fromkeys(run.config.kind for run in runs)
    for title in [*kinds, "all"]:
        chosen = [run for run in runs if title in (run.config.kind, "all")]
        left = [run for run in chosen if run not in done]
        costs = [cost[0] for run in left if (cost := estimates[run]) is not None]
        counts = (len(chosen), len(chosen) - len(left), len(left))
        total = format_clock(sum(costs)) if costs or not left else "not known"
        totals.add_row(title, *map(str, counts), total, str(len(left) - len(costs)))
    return totals


def _sizing(seconds: Mapping[Run, float]) -> list[Table]:
    """Return the time of the runs by the number of workers, and the cost of each claim of the paper."""
    from ..grid.schedule import claim_costs, simulate

    runs = list(seconds)
    sizes = table("time by the number of workers", "workers", "time", "busy", "limited by", numbers=False)
    for workers in WORKERS:
        schedule = simulate(runs, seconds, workers)
        busy = f"{100 * schedule.busy:.0f} %"
        sizes.add_row(str(workers), format_clock(schedule.makespan), busy, schedule.limit)
    claims = table("cost of each claim, on one worker", "claim", "runs", "time")
    for claim, (count, cost) in claim_costs(runs, seconds).items():
        claims.add_row(claim, str(count), format_clock(cost))
    return [sizes, claims]


def format_clock(seconds: float) -> str:
    """Return a duration as hours:minutes:seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
