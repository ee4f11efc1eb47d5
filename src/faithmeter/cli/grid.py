"""`faithmeter grid`: execution of all runs in a TOML file, each at most once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
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
from .options import Device
from .progress import bars, training_bar
from .screen import Json, Store, marked, output, print_json, quiet, table

if TYPE_CHECKING:
    from ..grid import Run
    from ..runs.store import RunStore

Estimates = dict["Run", tuple[float, str] | None]


def grid(
    file: Annotated[Path, typer.Argument(help="a grid, such as grids/smoke.toml")],
    data_dir: Annotated[Path | None, typer.Option(help="folder with the official files of the tasks")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only list the runs and their costs")] = False,
    workers: Annotated[
        int,
        typer.Option(min=0, help="processes that share the runs and the cores; 0: as the file says, or 1"),
    ] = 0,
    device: Device = "auto",
    store: Store = Path("runs"),
    as_json: Json = False,
    call: Annotated[str, typer.Option(hidden=True, help="call that started this worker process")] = "",
) -> None:
    """Perform all runs that a grid file defines: train, measure and check. Finished runs are skipped.

    Several processes may share one folder, even on different machines. Exits with code 1 if a run failed.
    Example: faithmeter grid grids/smoke.toml --dry-run
    """
    if call:
        end_with_parent()  # before the imports, which take seconds
    from ..grid import execute, read
    from ..models.devices import find_device
    from ..runs.store import RunStore

    plan, place = read(file, data_dir=data_dir), RunStore(store)
    runs, workers = plan.runs, workers or plan.workers
    if dry_run:
        _show_plan(runs, place, as_json)
        return
    find_device(device)  # a wrong one is one error, not one for each run
    start, done_before, worker = time.perf_counter(), {run for run in runs if run.done(place)}, bool(call)
    call = call or uuid.uuid4().hex
    if workers > 1:
        _share(workers, call)
    quiet()
    outcomes: dict[Run, str] = {}
    with bars() as progress:
        total = progress.add_task("runs", total=len(runs), note="")

        def show_outcome(run: Run, outcome: str) -> None:
            outcomes[run] = "finished" if outcome == "done" and run not in done_before else outcome
            progress.advance(total)
            if outcome in ("finished", "failed"):  # other workers print their own
                progress.console.print(f"{outcome}: {run.name}")

        failed = execute(runs, place, lambda run: work(run, place, progress, device), show_outcome, call=call)
    if worker:
        return
    _show_outcomes(outcomes, failed, place, time.perf_counter() - start, as_json)
    if failed:
        raise typer.Exit(1)


def _show_outcomes(
    outcomes: dict[Run, str], failed: dict[Run, str], store: RunStore, seconds: float, as_json: bool
) -> None:
    from ..grid import failure_file

    results = {run: "failed" if outcome == "skipped" else outcome for run, outcome in outcomes.items()}
    counts = Counter(results.values())
    tried = [
        (run, reason, failure_file(run, store)) for run, reason in failed.items() if results[run] == "failed"
    ]
    if as_json:
        failures = [
            {"run": run.name, "error": reason, "traceback": str(file) if file.exists() else None}
            for run, reason, file in tried
        ]
        print_json({"outcomes": counts, "failures": failures})
        return
    summary = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    output.print(f"{len(results)} runs: {summary}; {_clock(seconds)}")
    for run, reason, file in tried:
        place = f"; traceback in {file}" if file.exists() else ""
        output.print(marked("failed: ", "bold red", f"{run.name}: {reason}{place}"), soft_wrap=True)


def work(run: Run, store: RunStore, progress: Progress, device: str = "auto") -> None:
    """Execute one run, with a progress bar that is removed at the end; a measurement runs on `device`."""
    from ..runs import run as runs

    def moved(name: str, done: int, total: int) -> None:
        title = f"{run.name}: {name}"
        progress.update(line, description=title, advance=done, total=total * parts, visible=True)

    config, before = run.config, len(progress.tasks)
    try:
        if isinstance(config, MeasureConfig):
            parts = len(config.methods) + 2  # the check and the baseline
            line = progress.add_task(run.name, total=None, note="")
            folder = store.folder(run.trained)
            runs.measure(folder, config, store, data_dir=_data_dir(run), device=device, progress=moved)
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
    """Start worker processes for the same grid and store, and wait until they end."""
    command = [sys.executable, "-m", "faithmeter", *sys.argv[1:], "--workers", "1", "--call", call]
    threads = str(max(1, (os.cpu_count() or 1) // workers))
    environment = os.environ | {"OMP_NUM_THREADS": threads}
    # nothing is written to these pipes; they close when this process ends for any reason
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": sys.stderr}
    processes = [subprocess.Popen(command, env=environment, **streams) for _ in range(workers)]
    try:
        for process in processes:
            process.wait()
    finally:
        for process in processes:
            process.terminate()


def end_with_parent() -> None:
    """Start a thread that ends this process as soon as its parent ends, i.e. when standard input closes."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)  # has the effect of a kill, after which a store is intact

    threading.Thread(target=watch, daemon=True).start()


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
        total = _clock(sum(costs)) if costs or not left else "not known"
        totals.add_row(title, *map(str, counts), total, str(len(left) - len(costs)))
    return totals


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
