"""`faithmeter grid`: execution of all runs in a TOML file, each at most once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ..errors import InputError
from ..files import require_writable
from ..runs.processes import end_with_parent, free_memory, usable_cores
from .options import Device, Workers, import_all, imported, option
from .progress import RunLines, bars
from .screen import Json, Store, marked, note, output, print_json, quiet, table

if TYPE_CHECKING:
    from ..grid import Run
    from ..store.run_store import RunStore

AUTO = "auto"
MEMORY_OF_A_RUN = 3 * 2**30
"""Bytes that the training of a base-size encoder takes, about."""
LOG = "grid.log"
"""Name of the file in a store that gets a line for each start and end of a grid's runs."""


@dataclass(frozen=True)
class Processes(Workers):
    """Options that choose who executes the runs."""

    processes: str = option(
        "0",
        "processes that share the runs and the cores; auto: one for each core, as far as the memory "
        "suffices; 0: as the file says, or 1",
        "--workers",
    )
    device: Device = "auto"
    call: str = option("", "call that started this worker process", hidden=True)


def grid(
    file: Annotated[Path, typer.Argument(help="a grid, such as grids/smoke.toml")],
    workers: Processes,
    data_dir: Annotated[Path | None, typer.Option(help="folder with the official files of the tasks")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only list the runs")] = False,
    store: Store = Path("runs"),
    as_json: Json = False,
) -> None:
    """Perform all runs that a grid file defines: train, measure and check. Finished runs are skipped.

    Several processes may share one folder, even on different machines. Exits with code 1 if a run failed.
    Example: faithmeter grid grids/smoke.toml --dry-run
    """
    if workers.call:
        end_with_parent()  # before the imports, which take seconds
    from ..grid import execute, read
    from ..models.devices import find_device
    from ..store.run_store import RunStore

    cluster, device = workers.on_ray, workers.device
    if cluster and workers.processes != "0":
        raise InputError(
            f"--workers {workers.processes} goes with --engine local; Ray uses the CPUs of its cluster"
        )
    plan, place = read(file, data_dir=data_dir), RunStore(store)
    runs, count = plan.runs, count_processes(workers.processes, len(plan.runs)) or plan.workers
    if dry_run:
        show_plan(runs, place, as_json)
        return
    require_writable(store, "--output")
    if not cluster:
        find_device(device)  # a wrong one is one error, not one for each run
    start, done_before = time.perf_counter(), {run for run in runs if run.done(place)}
    call = workers.call or uuid.uuid4().hex  # the runs that failed in this call are not tried again in it
    if count > 1 and not cluster:
        _share(count, call)
    quiet()
    outcomes: dict[Run, str] = {}  # in the order in which runs end
    with bars() as progress:
        lines = RunLines(progress, len(runs), store / LOG)

        def show_outcome(run: Run, outcome: str) -> None:
            outcomes[run] = "finished" if outcome == "done" and run not in done_before else outcome
            lines.end(run.name, outcome)

        if cluster:
            from ..grid.ray_engine import Job, execute_on_ray
            from ..runs.cluster import connected, find_resources

            with connected(workers.address):
                resources = find_resources(workers.cpus_per_run, workers.gpus_per_run)
                prepare = partial(import_all, tuple(imported))
                job = Job(store.resolve(), call, device, prepare=prepare, processes=resources.processes)
                failed = execute_on_ray(
                    runs, job, show_outcome, lines.show_step, resources=resources, remark=note
                )
        else:
            perform = partial(work, store=place, lines=lines, device=device)
            failed = execute(runs, place, perform, show_outcome, call=call)
    if workers.call:  # the process that started this one prints the outcomes of all
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
    output.print(f"{len(results)} runs: {summary}; {format_clock(seconds)}")
    for run, reason, file in tried:
        place = f"; traceback in {file}" if file.exists() else ""
        output.print(marked("failed: ", "bold red", f"{run.name}: {reason}{place}"), soft_wrap=True)


def work(run: Run, store: RunStore, lines: RunLines, device: str = "auto") -> None:
    """Execute one run, with a progress bar that is removed at the end; a measurement runs on `device`."""
    from ..grid.execution import perform

    try:
        perform(run, store, partial(lines.show, run.name, ""), device)
    finally:
        lines.remove(run.name)


def count_processes(workers: str, runs: int) -> int:
    """Return the number of processes that `--workers` asks for; `auto` leaves neither cores nor memory idle.

    Raises:
        InputError: It is neither `auto` nor a whole number.
    """
    if workers.isdecimal():
        return int(workers)
    if workers != AUTO:
        raise InputError(f"--workers {workers}; expected {AUTO} or a whole number, such as 2")
    # a process too many makes all of them swap, which is slower than waiting
    return max(1, min(usable_cores(), runs, free_memory() // MEMORY_OF_A_RUN))


def _share(workers: int, call: str) -> None:
    """Start worker processes for the same grid and store, and wait until they end."""
    command = [sys.executable, "-m", "faithmeter", *sys.argv[1:], "--workers", "1", "--call", call]
    threads = str(max(1, usable_cores() // workers))  # more threads than cores slow each other down
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


def show_plan(runs: Sequence[Run], store: RunStore, as_json: bool) -> None:
    """Print the runs of a grid with their state, and the totals by kind."""
    done = {run for run in runs if run.done(store)}
    if as_json:
        print_json([{"run": run.name, "done": run in done, "config": run.config.to_dict()} for run in runs])
        return
    for run in runs:
        state = "done" if run in done else "to do"  # as the store has it now: another process may finish more
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
