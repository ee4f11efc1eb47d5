"""Runs → records: each done once, by any number of processes; one that fails costs nothing but itself."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from ..files import write_json
from ..runs.store import Busy, RunStore, Unready, environment
from .planned import Run

PATIENCE = 2.0
"""Seconds until runs that other processes work on are looked at again."""


def execute(
    runs: Sequence[Run],
    store: RunStore,
    work: Callable[[Run], object],
    tell: Callable[[Run, str], object],
    *,
    call: str = "",
) -> dict[Run, str]:
    """Do what is not done, and return the runs that failed and why. A failure is recorded, the rest goes on.

    `tell` hears of every run: done, finished, failed, or blocked by one that failed. A run that another
    process works on is waited for; one that failed in a process of the same `call` is skipped.
    """
    pending, failed = list(runs), dict[Run, str]()
    while pending:
        waiting: list[Run] = []
        for run in pending:
            if run.done(store):
                failure_file(run, store).unlink(missing_ok=True)
                tell(run, "done")
            elif run.after in failed:
                failed[run] = f"needs {run.after.name}"
                tell(run, "blocked")
            elif run.after is not None and not run.after.done(store):
                # not finished yet, or put aside since
                waiting += [run] if run.after in waiting else [run.after, run]
            else:
                outcome, why = _attempt(run, store, work, call)
                if outcome == "later":
                    waiting.append(run)
                    continue
                if why:
                    failed[run] = why
                tell(run, outcome)
        if waiting == pending:
            time.sleep(PATIENCE)
        pending = waiting
    return failed


def _attempt(run: Run, store: RunStore, work: Callable[[Run], object], call: str) -> tuple[str, str]:
    """What came of a run, and why it failed if it did."""
    file = failure_file(run, store)
    try:
        with store.lock(file.stem):  # until a failure is written, which the others must see
            if why := _failed_in(call, file):
                return "skipped", why
            try:
                work(run)
            except (Busy, Unready):
                return "later", ""
            except Exception as error:  # recorded, so that one bad run costs nothing but itself
                return "failed", _recorded(run, error, file, call)
            file.unlink(missing_ok=True)
    except Busy:
        return "later", ""
    except OSError as error:  # a full disk has no room for a lock either
        return "failed", _line(error)
    return "finished", ""


def _recorded(run: Run, error: Exception, file: Path, call: str) -> str:
    why = _line(error)
    failure = {
        "run": run.name,
        "config": run.config.to_dict(),
        "error": why,
        "traceback": traceback.format_exc(),
        "failed": datetime.now(UTC).isoformat(timespec="seconds"),
        "call": call,
        "environment": environment(),
    }
    try:
        write_json(file, failure)
    except OSError as trouble:
        return f"{why}; its traceback could not be written: {_line(trouble)}"
    return why


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _failed_in(call: str, file: Path) -> str:
    """Why the run failed, if it was in this call."""
    if call:
        with suppress(OSError, ValueError):
            failure = json.loads(file.read_text(encoding="utf-8"))
            if failure["call"] == call:
                return str(failure["error"])
    return ""


def failure_file(run: Run, store: RunStore) -> Path:
    """Where the traceback of a failed run is."""
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in run.name)
    return store.root / "failures" / f"{name}-{run.trained.digest}.json"
