"""`faithmeter grid`: all runs of a TOML file, in order, each done once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress

from ..config import MeasureConfig, RoarConfig
from .screen import Json, Store, bars, output, print_json, quiet, table, training_bar

if TYPE_CHECKING:
    from ..grid import Run
    from ..store import RunStore

Estimates = dict["Run", tuple[float, str] | None]


def grid(
    file: Annotated[Path, typer.Argument(help="a grid, such as grids/smoke.toml")],
    data_dir: Annotated[Path | None, typer.Option(help="folder with the official files of the tasks")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only list the runs and what they cost")] = False,
    workers: Annotated[
        int,
        typer.Option(min=0, help="processes that share the runs and the cores; 0: as the file says, or 1"),
    ] = 0,
    store: Store = Path("runs"),
    as_json: Json = False,
) -> None:
    """Train, measure and check all that a file asks for, skipping what is done; then see `faithmeter report`.

    Several of these may work in one folder, also from different machines. Exit code 1 if a run failed.
    Example: faithmeter grid grids/smoke.toml --dry-run
    """
    from ..grid import execute, failures, read
    from ..store import RunStore

    found, place = read(file, data_dir=data_dir), RunStore(store)
    runs, workers = found.runs, workers or found.workers
    if dry_run:
        _show_plan(runs, place, as_json)
        return
    begun = time.perf_counter()
    if workers > 1:
        _share(workers)
    quiet()
    outcomes: Counter[str] = Counter()
    with bars() as progress:
        total = progress.add_task("runs", total=len(runs), note="")

        def tell(run: Run, outcome: str) -> None:
            outcomes[outcome] += 1
            progress.advance(total)
            if outcome != "done":
                progress.console.print(f"{outcome}: {run.name}", highlight=False)

        execute(runs, place, lambda run: work(run, place, progress), tell)
    failed = failures(runs, place)
    if as_json:
        print_json(
            {"outcomes": dict(outcomes), "failures": {name: str(path) for name, path in failed.items()}}
        )
    else:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        output.print(f"{len(runs)} runs: {counts}; {_clock(time.perf_counter() - begun)}")
        for name, path in failed.items():
            output.print(f"[bold red]failed:[/] {name}; traceback in {path}", soft_wrap=True, highlight=False)
    if failed or outcomes["blocked"]:
        raise typer.Exit(1)


def work(run: Run, store: RunStore, progress: Progress) -> None:
    """One run, with a bar of its own."""
    from .. import runs

    def moved(name: str, done: int, total: int) -> None:
        progress.update(line, description=f"{run.name}: {name}", advance=done, total=total * parts)

    config, before = run.config, len(progress.tasks)
    try:
        if isinstance(config, MeasureConfig):
            parts = len(config.methods.split()) + 2  # the check and the baseline
            line = progress.add_task(run.name, total=None, note="")
            folder = store.folder(run.trained)
            runs.measure(folder, config, store, data_dir=_data_dir(run), progress=moved)
        elif isinstance(config, RoarConfig):
            runs.roar(config, store, callbacks=[training_bar(progress, run.name)])
        else:
            runs.train(run.trained, store, resume=True, callbacks=[training_bar(progress, run.name)])
    finally:
        for task in progress.tasks[before:]:
            progress.remove_task(task.id)


def _data_dir(run: Run) -> Path | None:
    return Path(run.trained.data_dir) if run.trained.data_dir else None


def _share(workers: int) -> None:
    """Let other processes do the same in the same store; this one then does what they left, if anything."""
    command = [sys.executable, "-m", "faithmeter", *sys.argv[1:], "--workers", "1"]
    threads = str(max(1, (os.cpu_count() or 1) // workers))
    environment = os.environ | {"OMP_NUM_THREADS": threads}
    processes = [subprocess.Popen(command, env=environment, stdout=sys.stderr) for _ in range(workers)]
    try:
        for process in processes:
            process.wait()
    finally:
        for process in processes:
            process.terminate()


def _show_plan(runs: Sequence[Run], store: RunStore, as_json: bool) -> None:
    from ..grid import seconds

    estimates = seconds(runs, store)
    done = {run for run in runs if run.done(store)}
    if as_json:
        print_json([_plain(run, run in done, estimates[run]) for run in runs])
        return
    for run in runs:
        cost = estimates[run]
        state = "done" if run in done else "to do"
        known = "not known" if cost is None else f"{_clock(cost[0])} {cost[1]}"
        output.print(f"{state:5}  {known:>22}  {run.name}", soft_wrap=True, highlight=False)
    output.print(_totals(runs, done, estimates))


def _plain(run: Run, done: bool, cost: tuple[float, str] | None) -> dict[str, Any]:
    told = (
        {"seconds": None, "known_from": None} if cost is None else {"seconds": cost[0], "known_from": cost[1]}
    )
    return {"run": run.name, "done": done, **told, "config": run.config.to_dict()}


def _totals(runs: Sequence[Run], done: set[Run], estimates: Estimates) -> Any:
    shown = table("in all", "kind", "runs", "done", "to do", "estimate of what is to do", "not estimated")
    kinds = dict.fromkeys(run.config.kind for run in runs)
    for title in [*kinds, "all"]:
        chosen = [run for run in runs if title in (run.config.kind, "all")]
        left = [run for run in chosen if run not in done]
        costs = [cost[0] for run in left if (cost := estimates[run]) is not None]
        counts = (len(chosen), len(chosen) - len(left), len(left))
        shown.add_row(title, *map(str, counts), _clock(sum(costs)), str(len(left) - len(costs)))
    return shown


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
