"""`faithmeter grid`: all runs of a TOML file, in order, each done once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress

from ..config import MeasureConfig, RoarConfig
from .screen import Json, Store, bars, marked, output, print_json, quiet, table, training_bar

if TYPE_CHECKING:
    from ..grid import Run
    from ..runs.store import RunStore

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
    call: Annotated[str, typer.Option(hidden=True, help="the call that this process is a worker of")] = "",
) -> None:
    """Train, measure and check all that a file asks for, skipping what is done; then see `faithmeter report`.

    Several of these may work in one folder, also from different machines. Exit code 1 if a run failed.
    Example: faithmeter grid grids/smoke.toml --dry-run
    """
    from ..grid import execute, read
    from ..runs.store import RunStore

    found, place = read(file, data_dir=data_dir), RunStore(store)
    runs, workers = found.runs, workers or found.workers
    if dry_run:
        _show_plan(runs, place, as_json)
        return
    begun, before, worker = time.perf_counter(), {run for run in runs if run.done(place)}, bool(call)
    call = call or uuid.uuid4().hex
    if workers > 1:
        _share(workers, call)
    quiet()
    outcomes: dict[Run, str] = {}
    with bars() as progress:
        total = progress.add_task("runs", total=len(runs), note="")

        def tell(run: Run, outcome: str) -> None:
            outcomes[run] = "finished" if outcome == "done" and run not in before else outcome
            progress.advance(total)
            if outcome in ("finished", "failed"):  # here; what other workers did they tell themselves
                progress.console.print(f"{outcome}: {run.name}")

        failed = execute(runs, place, lambda run: work(run, place, progress), tell, call=call)
    if worker:
        return
    _show_outcomes(outcomes, failed, place, time.perf_counter() - begun, as_json)
    if failed:
        raise typer.Exit(1)


def _show_outcomes(
    outcomes: dict[Run, str], failed: dict[Run, str], store: RunStore, seconds: float, as_json: bool
) -> None:
    from ..grid import failure_file

    said = {run: "failed" if outcome == "skipped" else outcome for run, outcome in outcomes.items()}
    counts = Counter(said.values())
    tried = [(run, why, failure_file(run, store)) for run, why in failed.items() if said[run] == "failed"]
    if as_json:
        failures = [
            {"run": run.name, "error": why, "traceback": str(file) if file.exists() else None}
            for run, why, file in tried
        ]
        print_json({"outcomes": counts, "failures": failures})
        return
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    output.print(f"{len(said)} runs: {told}; {_clock(seconds)}")
    for run, why, file in tried:
        place = f"; traceback in {file}" if file.exists() else ""
        output.print(marked("failed: ", "bold red", f"{run.name}: {why}{place}"), soft_wrap=True)


def work(run: Run, store: RunStore, progress: Progress) -> None:
    """One run, with a bar of its own."""
    from ..runs import run as runs

    def moved(name: str, done: int, total: int) -> None:
        said = f"{run.name}: {name}"
        progress.update(line, description=said, advance=done, total=total * parts, visible=True)

    config, before = run.config, len(progress.tasks)
    try:
        if isinstance(config, MeasureConfig):
            parts = len(config.methods) + 2  # the check and the baseline
            line = progress.add_task(run.name, total=None, note="")
            folder = store.folder(run.trained)
            runs.measure(folder, config, store, data_dir=_data_dir(run), progress=moved)
        elif isinstance(config, RoarConfig):
            line, parts = progress.add_task(run.name, total=None, note="", visible=False), 1
            explained = partial(moved, "explain")
            runs.roar(config, store, callbacks=[training_bar(progress, run.name)], progress=explained)
        else:
            runs.train(run.trained, store, resume=True, callbacks=[training_bar(progress, run.name)])
    finally:
        for task in progress.tasks[before:]:
            progress.remove_task(task.id)


def _data_dir(run: Run) -> Path | None:
    return Path(run.trained.data_dir) if run.trained.data_dir else None


def _share(workers: int, call: str) -> None:
    """Let other processes do the same in the same store; this one then does what they left, if anything."""
    command = [sys.executable, "-m", "faithmeter", *sys.argv[1:], "--workers", "1", "--call", call]
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
        output.print(f"{state:5}  {known:>22}  {run.name}", soft_wrap=True)
    output.print(_totals(runs, done, estimates))


def _plain(run: Run, done: bool, cost: tuple[float, str] | None) -> dict[str, Any]:
    told = (
        {"seconds": None, "known_from": None} if cost is None else {"seconds": cost[0], "known_from": cost[1]}
    )
    return {"run": run.name, "done": done, **told, "config": run.config.to_dict()}


def _totals(runs: Sequence[Run], done: set[Run], estimates: Estimates) -> Any:
    shown = table("in all", "kind", "runs", "done", "to do", "estimate of what is to do", "without estimate")
    kinds = dict.fromkeys(run.config.kind for run in runs)
    for title in [*kinds, "all"]:
        chosen = [run for run in runs if title in (run.config.kind, "all")]
        left = [run for run in chosen if run not in done]
        costs = [cost[0] for run in left if (cost := estimates[run]) is not None]
        counts = (len(chosen), len(chosen) - len(left), len(left))
        total = _clock(sum(costs)) if costs or not left else "not known"
        shown.add_row(title, *map(str, counts), total, str(len(left) - len(costs)))
    return shown


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
