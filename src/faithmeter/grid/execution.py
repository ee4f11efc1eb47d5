"""Runs → records: each done once, by any number of processes; a failed run does not stop the others."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from ..files import write_json
from ..runs.run import current_inputs, describe_change
from ..runs.store import Busy, RunStore, Unready, environment
from .planned import Run

RETRY_SECONDS = 2.0
"""Time after which runs that other processes work on are tried again."""


def execute(
    runs: Sequence[Run],
    store: RunStore,
    work: Callable[[Run], object],
    report: Callable[[Run, str], object],
    *,
    call: str = "",
) -> dict[Run, str]:
    """Do the runs that are not done; return those that failed, with the reasons.

    `report` is called with every run and its outcome: done, finished, failed, or blocked by one that failed.
    A run that another process works on is waited for; one that failed in a process of the same `call` is
    skipped.
    """
    pending, failed, read = list(runs), dict[Run, str](), cache(current_inputs)
    while pending:
        waiting: list[Run] = []
        for run in pending:
            if run.after in failed:
                failed[run] = f"needs {run.after.name}"
                report(run, "blocked")
            elif run.done(store):
                if changes := run.changed_inputs(store, read):
                    failed[run] = describe_change(store.folder(run.config), changes)
                    report(run, "failed")
                    continue
                with suppress(OSError):  # a store that can only be read
                    failure_file(run, store).unlink(missing_ok=True)
                report(run, "done")
            elif run.after is not None and not run.after.done(store):
                # not finished yet, or put aside since
                waiting += [run] if run.after in waiting else [run.after, run]
            else:
                outcome, reason = _attempt(run, store, work, call)
                if outcome == "later":
                    waiting.append(run)
                    continue
                if reason:
                    failed[run] = reason
                report(run, outcome)
        if waiting == pending:
            time.sleep(RETRY_SECONDS)
        pending = waiting
    return failed


def _attempt(run: Run, store: RunStore, work: Callable[[Run], object], call: str) -> tuple[str, str]:
    """Perform a run unless it failed in this call before; return the outcome and the reason of a failure."""
    file = failure_file(run, store)
    try:
        with store.lock(file.stem):  # until a failure is written, which the others must see
            if reason := _failure_in(call, file):
                return "skipped", reason
            try:
                work(run)
            except (Busy, Unready):
                return "later", ""
            except Exception as error:  # recorded, so that one failing run does not stop the others
                return "failed", _record_failure(run, error, file, call)
            file.unlink(missing_ok=True)
    except Busy:
        return "later", ""
    except OSError as error:  # a full disk has no room for a lock either
        return "failed", _line(error)
    return "finished", ""


def _record_failure(run: Run, error: Exception, file: Path, call: str) -> str:
    reason = _line(error)
    failure = {
        "run": run.name,
        "config": run.config.to_dict(),
        "error": reason,
        "traceback": traceback.format_exc(),
        "failed": datetime.now(UTC).isoformat(timespec="seconds"),
        "call": call,
        "environment": environment(),
    }
    try:
        write_json(file, failure)
    except OSError as trouble:
        return f"{reason}; its traceback could not be written: {_line(trouble)}"
    return reason


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _failure_in(call: str, file: Path) -> str:
    """Return the reason for which the run failed in this call; empty if it did not."""
    if call:
        with suppress(OSError, ValueError):
            failure = json.loads(file.read_text(encoding="utf-8"))
            if failure["call"] == call:
                return str(failure["error"])
    return ""


def failure_file(run: Run, store: RunStore) -> Path:
    """Return the file with the traceback of a failed run."""
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in run.name)
    return store.root / "failures" / f"{name}-{run.trained.digest}.json"
