"""Simulated schedules: how long a grid takes on a number of workers, and what limits it."""

from __future__ import annotations

import argparse
import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from faithmeter.cli.grid import format_clock
from faithmeter.cli.screen import output, table
from faithmeter.grid import read
from faithmeter.grid.execution import Run
from faithmeter.store.run_store import RunStore

from .costs import seconds

WORK, CHAIN, TAIL = "amount of work", "longest chain of runs", "last runs"
"""Limits of a makespan; see `Schedule.limit`."""
WORKERS = (1, 8, 64, 512)
"""Numbers of workers for which the time is simulated."""
LIMIT_SHARE = 0.95
"""Share of the makespan that a lower bound must reach to count as what limits it."""


@dataclass(frozen=True)
class Schedule:
    """Simulated execution of runs.

    Attributes:
        workers: Number of workers, each of which performs one run at a time.
        makespan: Seconds from the first start to the last end.
        work: Sum of the runs' seconds.
        chain: Seconds of the longest chain of runs that need each other, the critical path.
    """

    workers: int
    makespan: float
    work: float
    chain: float

    @property
    def busy(self) -> float:
        """Fraction of the workers' time in which they work."""
        return self.work / (self.workers * self.makespan) if self.makespan else 1.0

    @property
    def limit(self) -> str:
        """Limit of the makespan.

        More workers help against the amount of work. Against the longest chain only faster ones do. In
        between, the last runs end one after the other, and starting long ones first helps.
        """
        if self.chain >= LIMIT_SHARE * self.makespan:
            return CHAIN
        return WORK if self.busy >= LIMIT_SHARE else TAIL


def simulate(runs: Sequence[Run], seconds: Mapping[Run, float], workers: int) -> Schedule:
    """Simulate the execution of runs in their order by workers that take the first run that is ready.

    Args:
        runs: Planned runs, each after the run that it needs; those needed but not listed count as done.
        seconds: Duration of each run.
        workers: Number of workers.
    """
    numbers = {run: number for number, run in enumerate(runs)}
    followers: dict[int, list[int]] = defaultdict(list)
    ready: list[int] = []
    for run, number in numbers.items():
        if run.after in numbers:
            followers[numbers[run.after]].append(number)
        else:
            ready.append(number)
    working: list[tuple[float, int]] = []
    now = 0.0
    while ready or working:
        while ready and len(working) < workers:
            number = heapq.heappop(ready)
            heapq.heappush(working, (now + seconds[runs[number]], number))
        now, ended = heapq.heappop(working)
        for number in followers[ended]:
            heapq.heappush(ready, number)
    return Schedule(workers, now, sum(seconds[run] for run in runs), longest_chain(runs, seconds))


def longest_chain(runs: Iterable[Run], seconds: Mapping[Run, float]) -> float:
    """Return the seconds of the longest chain of runs that need each other."""
    ends: dict[Run, float] = {}
    for run in runs:
        ends[run] = seconds[run] + (ends.get(run.after, 0.0) if run.after else 0.0)
    return max(ends.values(), default=0.0)


def needed_runs(runs: Iterable[Run]) -> set[Run]:
    """Return the runs with all runs that they need."""
    needed: set[Run] = set()
    for run in runs:
        step: Run | None = run
        while step is not None and step not in needed:
            needed.add(step)
            step = step.after
    return needed


CLAIMS: dict[str, Callable[[Run], bool]] = {
    "masked fine-tuning keeps the performance": lambda run: (
        run.config.kind == "train" and _pair(run) in ("half/both", "none/unmasked")
    ),
    "masking half of every mini-batch is the best strategy": lambda run: run.config.kind == "train",
    "erased texts are in distribution, and the methods have this order": lambda run: (
        run.config.kind == "measure" and _pair(run) == "half/both"
    ),
    "without masked fine-tuning they are not": lambda run: (
        run.config.kind == "measure" and _pair(run) == "none/unmasked"
    ),
    "areas are larger than those of Recursive ROAR": lambda run: (
        run.config.kind == "roar" or (run.config.kind == "measure" and _pair(run) == "half/both")
    ),
}
"""Claims of the paper, and which runs of its grid support each."""


def _pair(run: Run) -> str:
    return f"{run.trained.strategy}/{run.trained.validation}"


def claim_costs(runs: Sequence[Run], seconds: Mapping[Run, float]) -> dict[str, tuple[int, float]]:
    """Return the number of runs that each claim of the paper needs, and their seconds.

    Runs that several claims need are counted for each of them. Claims without runs are left out.
    """
    costs = {}
    for claim, supports in CLAIMS.items():
        needed = needed_runs(run for run in runs if supports(run)) & {*runs}
        if needed:
            costs[claim] = len(needed), sum(seconds[run] for run in needed)
    return costs


def show(file: Path, store: Path) -> None:
    """Print what the open runs of a grid cost: in all, by the number of workers, and for each claim."""
    place = RunStore(store)
    runs = [run for run in read(file).runs if not run.done(place)]
    expected = seconds(runs, place)
    known = {run: cost[0] for run, cost in expected.items() if cost is not None}
    total = format_clock(sum(known.values()))
    output.print(f"{len(runs)} runs to do: {total} on one worker, {len(runs) - len(known)} without estimate")
    if len(known) < len(runs):
        return
    sizes = table("time by the number of workers", "workers", "time", "busy", "limited by", numbers=False)
    for workers in WORKERS:
        schedule = simulate(runs, known, workers)
        busy = f"{100 * schedule.busy:.0f} %"
        sizes.add_row(str(workers), format_clock(schedule.makespan), busy, schedule.limit)
    claims = table("cost of each claim, on one worker", "claim", "runs", "time")
    for claim, (count, cost) in claim_costs(runs, known).items():
        claims.add_row(claim, str(count), format_clock(cost))
    output.print(sizes)
    output.print(claims)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Simulate the time of a grid on clusters of several sizes.")
    parser.add_argument("grid", type=Path, help="a grid file, such as grids/paper.toml")
    parser.add_argument("--store", type=Path, default=Path("runs"), help="store whose runs tell the times")
    options = parser.parse_args()
    show(options.grid, options.store)
