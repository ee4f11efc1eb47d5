"""Execution of planned runs on a Ray cluster: workers compute, only this process writes the store.

A run is a function of the files that it needs: a worker performs it in a temporary store that holds nothing
else, and returns the files that it wrote. So no node needs the store, and Ray may repeat a lost run.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..config import MeasureConfig
from ..errors import InputError
from ..files import TEMPORARY, atomic
from ..runs.cluster import (
    LOSSES,
    Resources,
    count_places,
    on_every_node,
    own_versions,
    require_versions,
    watch_room,
)
from ..runs.run import current_inputs
from ..store.records import MANIFEST, RECORD
from ..store.run_store import Busy, RunStore
from ..store.traces import find_subjects
from ..training import UNFINISHED
from .execution import Run, Show, failure_file, perform, record_failure, settle

AHEAD = 2
"""Runs that wait in Ray's queue, so that no place is idle and a cluster that can grow sees the demand."""
POLL_SECONDS = 1.0
"""Seconds between two looks at the outcomes and the progress of the cluster."""
REPORT_SECONDS = 0.5
"""Minimum seconds between two progress reports of a run."""
LOCKS = "locks"
"""Folder of a store that is never sent."""
Files = dict[str, bytes]
"""Contents of files, by their paths in a store."""


class UnfitNode(InputError):
    """Error raised if a node cannot perform runs, such as one that joined with other versions."""


class Step(NamedTuple):
    """Progress of a run on a node: the part at work, the amount done, the total, and a remark."""

    host: str
    part: str
    done: int
    total: int
    note: str


ShowStep = Callable[[Run, Step], object]


class Steps:
    """Actor that keeps the last step that was reported of each run, by its number."""

    def __init__(self) -> None:
        self.steps: dict[int, Step] = {}

    def report(self, number: int, step: Step) -> None:
        self.steps[number] = step

    def read(self) -> dict[int, Step]:
        return self.steps


@dataclass(frozen=True)
class Job:
    """Settings that all runs of one call share, as they are sent to the workers.

    Attributes:
        root: Path of the store, which only the command uses.
        call: Identifier of the call.
        device: Device of measurements.
        folder: Current folder of the command, to which relative paths refer.
        versions: Versions that every worker must have.
        prepare: Called in each worker before a run, to register methods of the user's.
        processes: Number of processes of a training, one for each GPU.
    """

    root: Path
    call: str
    device: str = "auto"
    folder: str = field(default_factory=os.getcwd)
    versions: Mapping[str, str] = field(default_factory=own_versions)
    prepare: Callable[[], object] | None = None
    processes: int = 1


def execute_on_ray(
    runs: Sequence[Run],
    job: Job,
    report: Callable[[Run, str], object],
    show: ShowStep,
    *,
    resources: Resources,
    remark: Callable[[str], object] = print,
) -> dict[Run, str]:
    """Perform the runs that are not done yet on the connected cluster, and return the failures as `execute`.

    Args:
        runs: Planned runs, each after the run that it needs.
        job: Store and settings.
        report: Called with each run and its outcome.
        show: Called with a run at work and its progress.
        resources: CPUs and GPUs of each run.
        remark: Called with a line if for long no node can hold a run.

    Raises:
        InputError: A node has other versions than this process, or cannot import the user's methods.
    """
    import ray

    on_every_node(prepare_worker, job)
    store, failed, read = RunStore(job.root), dict[Run, str](), cache(current_inputs)
    steps = ray.remote(Steps).options(num_cpus=0, max_restarts=-1, max_task_retries=-1).remote()
    task = ray.remote(perform_apart).options(max_retries=LOSSES, **resources.options)
    look_for_room = watch_room(resources, remark)
    pending, working = list(runs), dict[Any, Claimed]()

    def settled(run: Run, outcome: str, reason: str) -> None:
        if reason:
            failed[run] = reason
        report(run, outcome)

    try:
        while pending or working:
            # asked each time, as nodes join and leave
            room = count_places(resources) + AHEAD
            at_work = {claimed.run for claimed in working.values()}
            waiting: list[Run] = []
            for run in pending:
                if len(working) >= room or run.after in at_work or run.after in waiting:
                    waiting.append(run)
                    continue
                outcome, reason = settle(run, store, failed, read)
                if outcome != "open":
                    settled(run, outcome, reason)
                elif run.after is not None and not _is_intact(run.after, store):
                    waiting += [run.after, run]
                elif claimed := _claim(run, store):
                    files = read_needed(run, store)
                    working[task.remote(job, steps, runs.index(run), run, files)] = claimed
                    at_work.add(run)
                else:
                    waiting.append(run)
            pending = waiting
            look_for_room()
            if working:
                ended, _ = ray.wait([*working], timeout=POLL_SECONDS)
                for number, step in ray.get(steps.read.remote()).items():
                    if runs[number] in at_work:
                        show(runs[number], step)
                for call in ended:
                    claimed = working.pop(call)
                    settled(claimed.run, *_finish(claimed, call, store, job.call))
            elif pending:  # other processes are working on them
                time.sleep(POLL_SECONDS)
    finally:
        for claimed in working.values():
            claimed.locks.close()
    return failed


def _is_intact(run: Run, store: RunStore) -> bool:
    """Return whether a run is done and its files are as they were written; a damaged one is put aside."""
    return run.done(store) and store.open(store.folder(run.config)) is not None


class Claimed(NamedTuple):
    """Run with the locks that are held for it."""

    run: Run
    locks: ExitStack


def _claim(run: Run, store: RunStore) -> Claimed | None:
    """Take the locks of a run; None if another process holds them, or has just finished it."""
    config = run.located(store)
    assert config is not None  # the run that it needs is done
    with suppress(Busy), ExitStack() as locks:
        locks.enter_context(store.lock(failure_file(run, store).stem))
        locks.enter_context(store.claim(config))
        if not run.done(store):
            return Claimed(run, locks.pop_all())
    return None


def _finish(claimed: Claimed, call: Any, store: RunStore, name: str) -> tuple[str, str]:
    """Write the files that a run returned, and release its locks; return its outcome and the reason.

    Raises:
        InputError: Its node has other versions, as any run there would fail.
    """
    import ray

    run = claimed.run
    with claimed.locks:
        try:
            # records come last in it, so a kill here leaves an unfinished run and no broken one
            for path, data in ray.get(call).items():
                with atomic(store.root / path) as temporary:
                    temporary.write_bytes(data)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, UnfitNode):
                raise InputError(str(error.cause)) from None
            error.cause.__cause__ = error  # whose message is the traceback of the worker
            return "failed", record_failure(run, error.cause, store, name)
        except (ray.exceptions.RayError, InputError) as error:  # lost too often; a full disk here
            return "failed", record_failure(run, error, store, name)
        shutil.rmtree(store.folder(run.config) / UNFINISHED, ignore_errors=True)
        with suppress(OSError):
            failure_file(run, store).unlink(missing_ok=True)
    return "finished", ""


def read_needed(run: Run, store: RunStore) -> Files:
    """Return the files that a run begins with: those of the run that it needs, and of an earlier attempt."""
    config = run.located(store)
    assert config is not None  # the run that it needs is done
    folders = [store.folder(config).name]
    if isinstance(config, MeasureConfig):
        folders += find_subjects(store.root, config.checkpoint)
    if run.after is not None:
        folders.append(store.folder(run.after.config).name)
    paths = [path for folder in folders for path in list_files(store.root, folder)]
    return {path: (store.root / path).read_bytes() for path in paths}


def list_files(root: Path, folder: str = "") -> dict[str, int]:
    """Return the times of change of the files below a folder of a store; records come last.

    A record says that a run is finished, so all its files must be there before it.
    """
    paths = [path for path in (root / folder).rglob("*") if path.is_file() and path.suffix != TEMPORARY]
    paths.sort(key=lambda path: (path.name in (RECORD, MANIFEST), path))
    # a file counts as written if its time changed; contents need not be compared
    names = {path.relative_to(root): path.stat().st_mtime_ns for path in paths}
    return {name.as_posix(): changed for name, changed in names.items() if name.parts[0] != LOCKS}


def prepare_worker(job: Job) -> None:
    """Change to the command's folder and register the user's methods.

    Raises:
        UnfitNode: The versions differ from the command's, or a method cannot be registered.
    """
    try:
        require_versions(job.versions)
    except InputError as error:
        raise UnfitNode(str(error)) from None
    with suppress(OSError):  # this node may lack the folder; then only absolute paths work
        os.chdir(job.folder)
    if job.prepare is not None:
        try:
            job.prepare()
        except InputError as error:
            raise UnfitNode(f"node {platform.node()}: {error}") from error


def perform_apart(job: Job, steps: Any, number: int, run: Run, files: Files) -> Files:
    """Perform a run, given the files that it needs; return the files that it wrote."""
    prepare_worker(job)
    show = _throttled(lambda *step: steps.report.remote(number, Step(platform.node(), *step)))
    show("starting", 0, 0, "")
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(folder)
        for path, data in files.items():
            target = store.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        before = list_files(store.root)
        perform(run, store, show, job.device, job.processes)
        now = list_files(store.root)
        written = [path for path, changed in now.items() if before.get(path) != changed]
        return {path: (store.root / path).read_bytes() for path in written}


def _throttled(show: Show) -> Show:
    """Return a progress function that passes on one call in `REPORT_SECONDS`, and the first of each part."""
    last = "", 0.0

    def pass_on(part: str, done: int, total: int, note: str) -> None:
        nonlocal last
        if part != last[0] or time.monotonic() - last[1] >= REPORT_SECONDS:
            last = part, time.monotonic()
            show(part, done, total, note)

    return pass_on
