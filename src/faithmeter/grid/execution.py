"""Planned runs, and their execution by any number of processes.

Each run is performed once. If a run fails, only the runs that need it are not performed.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import Config, MeasureConfig, RoarConfig, TrainConfig
from ..files import write_json
from ..runs.measured import filled_config
from ..runs.run import changed_inputs, current_inputs, describe_change
from ..store.records import ForeignRecord
from ..store.run_store import Busy, RunStore, Unready, environment

if TYPE_CHECKING:
    from ..training.inputs import Inputs

RETRY_SECONDS = 2.0
"""Seconds to wait before trying runs again that other processes are working on."""


Show = Callable[[str, int, int, str], object]
"""Function that is called with the part of a run at work, the amount done, the total, and a remark."""


@dataclass(frozen=True)
class Run:
    """A planned run, with the run that must finish before it.

    Attributes:
        config: Config of the run; that of a measurement is completed once its model is trained.
        after: Run that must finish first; None if there is none.
    """

    config: Config
    after: Run | None = None

    @property
    def trained(self) -> TrainConfig:
        """Training config of this run or, for a measurement, of the model that it measures."""
        config = self.after.config if isinstance(self.config, MeasureConfig) and self.after else self.config
        assert isinstance(config, TrainConfig)
        return config

    @property
    def name(self) -> str:
        """Human-readable name, such as `train bAbI-1 embedded half/both seed 0`."""
        trained = self.trained
        words = [self.config.kind, trained.task_or_data, Path(trained.model).name]
        words += [f"{trained.strategy}/{trained.validation}", f"seed {trained.seed}"]
        if isinstance(self.config, RoarConfig):
            words += [self.config.method, f"{self.config.percent} %"]
        return " ".join(words)

    def located(self, store: RunStore) -> Config | None:
        """Return the complete config, whose digest identifies the record.

        A measurement depends on the weights of its model: the result is None until that model is trained.
        """
        if not isinstance(self.config, MeasureConfig):
            return self.config
        # without verifying files: this is asked for every run at every look
        record = store.peek(self.trained)
        if record is None:
            return None
        # as `measure_checkpoint` completes it, or the record would not be found
        return filled_config(self.config, self.trained, record.fingerprint, record.data)

    def changed_inputs(self, store: RunStore, read: Callable[[TrainConfig], Inputs]) -> str:
        """Describe which inputs of a finished training run have changed since; empty if none has.

        The result is also empty for measurements and unfinished training runs. `read` returns the current
        inputs of a config.
        """
        if not isinstance(self.config, TrainConfig):
            return ""
        record = store.peek(self.config)
        return "" if record is None else changed_inputs(self.config, record, store, read)

    def done(self, store: RunStore) -> bool:
        """Return whether the store holds a record of the run in the current format.

        The files beside the record are verified only by the runs that use them.
        """
        try:
            config = self.located(store)
            return config is not None and store.peek(config) is not None
        except ForeignRecord:
            return False


def perform(run: Run, store: RunStore, show: Show, device: str = "auto", processes: int = 1) -> None:
    """Execute one run and write its record.

    A measurement is evaluated on `device`; a training is shared by so many processes.
    """
    config = run.config
    if isinstance(config, MeasureConfig):
        from ..runs.measured import Origin
        from ..runs.measurements import Conduct, measure_checkpoint

        folder = store.folder(run.trained)
        moved = _summed(show, parts=len(config.methods) + 2)  # the check and the baseline
        data_dir = run.trained.data_dir
        origin = Origin(Path(data_dir) if data_dir else None)
        measure_checkpoint(folder, config, store, origin, Conduct(device, moved))
        return
    from ..training.trainer import StepReport

    options: dict[str, Any] = {"callbacks": [StepReport(partial(show, ""))], "processes": processes}
    if isinstance(config, RoarConfig):
        from ..paper.roar import roar

        roar(config, store, progress=_summed(show, parts=1), **options)
    else:
        from ..runs.run import train

        train(run.trained, store, resume=True, **options)


def _summed(show: Show, *, parts: int) -> Callable[[str, int, int], None]:
    """Return a progress function that shows percent of all parts, which may have other numbers of texts."""
    finished: dict[str, float] = {}

    def move(part: str, done: int, total: int) -> None:
        # each part is a method on all texts; dear ones do not count more
        finished[part] = done / total
        show(part, round(100 * sum(finished.values()) / parts), 100, "")

    return move


def execute(
    runs: Sequence[Run],
    store: RunStore,
    work: Callable[[Run], object],
    report: Callable[[Run, str], object],
    *,
    call: str = "",
) -> dict[Run, str]:
    """Perform the runs that are not done yet, and return the reasons for those that could not be done.

    If another process is working on a run, wait until it has finished.

    Args:
        runs: Planned runs, each after the run that it needs.
        store: Store of the records.
        work: Performs a run and writes its record.
        report: Called with each run and its outcome: `done` (before this call), `finished`, `failed`,
            `skipped` (it failed in another process of the same call) or `blocked` (it needs a failed run).
        call: Identifier shared by the processes of one call; empty to try every run.

    Returns:
        The reason for each run that failed, was skipped or was blocked.
    """
    pending, failed, read = list(runs), dict[Run, str](), cache(current_inputs)
    while pending:
        waiting: list[Run] = []
        for run in pending:
            outcome, reason = settle(run, store, failed, read)
            if outcome == "open" and run.after is not None and not run.after.done(store):
                # the run that it needs is unfinished, or has been put aside as damaged
                waiting += [run] if run.after in waiting else [run.after, run]
                continue
            if outcome == "open":
                outcome, reason = _attempt(run, store, work, call)
            if outcome == "later":
                waiting.append(run)
                continue
            if reason:
                failed[run] = reason
            report(run, outcome)
        # nothing could be done: all that is left is at work elsewhere
        if waiting == pending:
            time.sleep(RETRY_SECONDS)
        pending = waiting
    return failed


def settle(
    run: Run, store: RunStore, failed: Mapping[Run, str], read: Callable[[TrainConfig], Inputs]
) -> tuple[str, str]:
    """Return the outcome of a run that needs no work, and the reason for a failure.

    The outcome is `blocked` if it needs a failed run, `done`, `failed` if it is done but its inputs have
    changed since, and `open` if it has to be executed. `read` returns the current inputs of a config.
    """
    if run.after is not None and run.after in failed:
        return "blocked", f"needs {run.after.name}"
    if not run.done(store):
        return "open", ""
    changes = run.changed_inputs(store, read)
    if changes:
        return "failed", describe_change(store.folder(run.config), changes)
    with suppress(OSError):  # the store may be read-only
        failure_file(run, store).unlink(missing_ok=True)
    return "done", ""


def _attempt(run: Run, store: RunStore, work: Callable[[Run], object], call: str) -> tuple[str, str]:
    """Perform a run unless it already failed in this call; return its outcome and the reason for a failure.

    The outcome `later` means that another process holds the run, or that a run it needs is not ready.
    """
    file = failure_file(run, store)
    try:
        with store.lock(file.stem):  # held until a failure is written, so that others see it
            reason = _failure_in(call, file)
            if reason:
                return "skipped", reason
            try:
                work(run)
            except (Busy, Unready):
                return "later", ""
            except Exception as error:  # recorded, so that one failing run does not stop the others
                return "failed", record_failure(run, error, store, call)
            file.unlink(missing_ok=True)
    except Busy:
        return "later", ""
    except OSError as error:  # such as a full disk, which has no room for the lock
        return "failed", _line(error)
    return "finished", ""


def record_failure(run: Run, error: Exception, store: RunStore, call: str) -> str:
    """Write the error of a run, with its traceback, to its failure file; return the error in one line."""
    reason = _line(error)
    failure = {
        "run": run.name,
        "config": run.config.to_dict(),
        "error": reason,
        "traceback": "".join(traceback.format_exception(error)),
        "failed": datetime.now(UTC).isoformat(timespec="seconds"),
        # other processes of this call skip the run; the next call tries it again
        "call": call,
        "environment": environment(),
    }
    try:
        write_json(failure_file(run, store), failure)
    except OSError as trouble:
        return f"{reason}; its traceback could not be written: {_line(trouble)}"
    return reason


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _failure_in(call: str, file: Path) -> str:
    """Return the reason in the failure file if the run failed in this call, else an empty string."""
    if call:
        with suppress(OSError, ValueError):
            failure = json.loads(file.read_text(encoding="utf-8"))
            if failure["call"] == call:
                return str(failure["error"])
    return ""


def failure_file(run: Run, store: RunStore) -> Path:
    """Return the path of the JSON file that describes a run's failure, with the traceback."""
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in run.name)
    return store.root / "failures" / f"{name}-{run.trained.digest}.json"
