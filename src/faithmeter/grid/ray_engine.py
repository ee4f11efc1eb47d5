"""Execution of planned runs as tasks of a Ray cluster, which schedules them and repeats lost ones.

Each task calls `execute` for its run, as a process of this machine would. Nodes that do not see the store
work in a copy (`runs.mirror`).
"""

from __future__ import annotations

import math
import os
import platform
import random
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..config import MeasureConfig
from ..errors import InputError
from ..runs.cluster import Resources, count_places, on_every_node, on_node, own_versions, require_versions
from ..runs.mirror import Desk, Mirror
from ..runs.run import current_inputs
from ..store.run_store import Busy, RunStore, Unready
from .execution import execute, failure_file, record_failure, settle
from .planned import Run
from .work import Show, perform

RETRIES = 3
"""Number of times that a run is started again after its worker or node was lost."""
POLL_SECONDS = 1.0
"""Seconds between two looks at the outcomes and the progress of the cluster."""
REPORT_SECONDS = 0.5
"""Minimum seconds between two progress reports of a run."""
ROOM_SECONDS = 60.0
"""Seconds without a node that can hold a run after which the command says that it waits for one."""
PROBES, PROBE_SECONDS = 5, 0.1
"""Number of looks at the command's lock, and the longest pause between two of them."""
NODE_LABEL = "ray.io/node-id"
"""Label that Ray gives to each node, by which tasks avoid nodes."""
SHARED, APART, WITHOUT_LOCKS = "shared", "apart", "without locks"
"""How a node sees the store: with the locks of this machine, not at all, or without its locks."""


class UnfitNode(InputError):
    """Error raised if a node cannot perform runs, such as one that joined with other versions.

    Args:
        reason: Description in one line.
        node: Ray's identifier of the node.
    """

    def __init__(self, reason: str, node: str = "") -> None:  # pickled by the reason, and then the node
        super().__init__(reason)
        self.node = node


class Outcome(NamedTuple):
    """Outcome of a run, and the reason why it could not be done."""

    outcome: str
    reason: str = ""


class Step(NamedTuple):
    """Progress of a run on a node: the part at work, the amount done, the total, and a remark."""

    host: str
    part: str
    done: int
    total: int
    note: str


ShowStep = Callable[[Run, Step], object]


@dataclass(frozen=True)
class Job:
    """Settings that all runs of one call share, as they are sent to the workers.

    Attributes:
        root: Absolute path of the store.
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

    @property
    def lock(self) -> str:
        """Name of the lock that the command holds, by which workers recognize its store."""
        return f"cluster-{self.call}"


def execute_on_ray(
    runs: Sequence[Run],
    job: Job,
    report: Callable[[Run, str], object],
    show: ShowStep,
    *,
    resources: Resources,
    remark: Callable[[str], object] = print,
) -> dict[Run, str]:
    """Perform the runs that are not done yet on the connected cluster; see `execute`.

    Args:
        runs: Planned runs, each after the run that it needs.
        job: Store and settings.
        report: Called with each run and its outcome.
        show: Called with a run at work and its progress.
        resources: CPUs and GPUs of each run.
        remark: Called with a line about nodes that do not share the store, are unfit or are missing.

    Returns:
        The reason for each run that failed, was skipped or was blocked.

    Raises:
        InputError: A node has other versions than this process or cannot import the user's methods, or the
            process beside the store has died.
    """
    import ray

    store, failed, read = RunStore(job.root), dict[Run, str](), cache(current_inputs)
    pending, unfit = dict[Run, Any](), set[str]()
    numbers = {run: number for number, run in enumerate(runs)}

    def submit(run: Run) -> None:
        before = None if run.after is None else pending.get(run.after)
        options = {"max_retries": RETRIES, **resources.options, **_avoid(unfit)}
        pending[run] = task.options(**options).remote(job, desk, numbers[run], run, before)
        for other in [other for other in pending if other.after == run]:  # they failed with its last task
            submit(other)

    def settled(run: Run, outcome: str, reason: str) -> None:
        if reason:
            failed[run] = reason
        report(run, outcome)

    with store.lock(job.lock):
        for line in describe_nodes(on_every_node(inspect_node, job), job.root):
            remark(line)
        desk = ray.remote(Desk).options(num_cpus=0, scheduling_strategy=on_node()).remote(job.root)
        task = ray.remote(run_task)
        for run in runs:
            outcome, reason = settle(run, store, failed, read)
            if outcome == "open":
                submit(run)
            else:
                settled(run, outcome, reason)
        watch = _watch_room(resources, unfit, remark)
        while pending:
            ready, _ = ray.wait([*pending.values()], num_returns=len(pending), timeout=POLL_SECONDS)
            watch()
            for number, step in _read_steps(desk).items():
                if runs[number] in pending:
                    show(runs[number], step)
            for run in [*pending]:
                if pending[run] not in ready:
                    continue
                try:
                    outcome, reason = _outcome(run, pending[run], failed, unfit, store, job.call)
                except UnfitNode as error:
                    if error.node not in unfit:
                        remark(f"{error}; its runs go to other nodes")
                        unfit.add(error.node)
                    submit(run)
                    continue
                del pending[run]
                desk.release.remote(numbers[run])  # its worker may have been lost
                settled(run, outcome, reason)
    return failed


def _avoid(nodes: Collection[str]) -> dict[str, Any]:
    """Return the options of a task that may be placed on all nodes but these."""
    return {"label_selector": {NODE_LABEL: f"!in({', '.join(sorted(nodes))})"}} if nodes else {}


def _watch_room(
    resources: Resources, unfit: Collection[str], remark: Callable[[str], object]
) -> Callable[[], None]:
    """Return a function that remarks, once in a period, that no node can hold a run."""
    last = time.monotonic()

    def look() -> None:
        nonlocal last
        if count_places(resources) and _fit_nodes(unfit):
            last = time.monotonic()
        elif time.monotonic() - last >= ROOM_SECONDS:
            remark(f"waiting for a node that can hold a run, with {resources}; add one to the cluster")
            last = math.inf

    return look


def _fit_nodes(unfit: Collection[str]) -> set[str]:
    import ray

    return {node["NodeID"] for node in ray.nodes() if node["Alive"]}.difference(unfit)


def _read_steps(desk: Any) -> dict[int, Step]:
    """Return the last step of each run, by its number; raise an InputError if the desk has died."""
    import ray

    try:
        steps: dict[int, Step] = ray.get(desk.read_steps.remote())
    except ray.exceptions.RayActorError as error:
        raise InputError(
            "the helper process of this command, to which the workers report, has died; start the grid "
            "again: it continues where it was"
        ) from error
    return steps


def _outcome(
    run: Run, result: Any, failed: Mapping[Run, str], unfit: Collection[str], store: RunStore, call: str
) -> Outcome:
    """Return the outcome of a task that has ended; a run whose workers were lost too often has failed.

    Raises:
        UnfitNode: The run was not tried, and another node may perform it.
    """
    import ray

    try:
        outcome = Outcome(*ray.get(result))
    except ray.exceptions.RayError as error:
        if run.after is not None and run.after in failed:
            return Outcome("blocked", f"needs {run.after.name}")
        cause: Exception = error
        if isinstance(error, ray.exceptions.RayTaskError):
            cause = error.cause
            cause.__cause__ = error  # whose message is the traceback of the worker
        if isinstance(cause, UnfitNode) and _fit_nodes({*unfit, cause.node}):
            raise cause from None
        return Outcome("failed", record_failure(run, cause, store, call))
    if outcome.outcome == "finished":
        with suppress(OSError):  # a worker without the store does not see an earlier failure
            failure_file(run, store).unlink(missing_ok=True)
    return outcome


def inspect_node(job: Job) -> tuple[str, str]:
    """Return the name of this node, and how it sees the store; raise an InputError if it is unfit."""
    prepare_worker(job)
    return platform.node(), find_store(job)


def prepare_worker(job: Job) -> None:
    """Change to the command's folder and register the user's methods.

    Raises:
        InputError: The versions differ from the command's, or a method cannot be registered.
    """
    require_versions(job.versions)
    with suppress(OSError):  # this node may lack the folder; then only absolute paths work
        os.chdir(job.folder)
    if job.prepare is not None:
        try:
            job.prepare()
        except InputError as error:
            raise InputError(f"node {platform.node()}: {error}") from error


def find_store(job: Job) -> str:
    """Return how this process sees the store, by a lock that the command holds on its own node.

    Without shared locks, another worker of this node may hold the lock for the moment of its own look.
    """
    store = RunStore(job.root)
    if not (store.root / "locks" / f"{job.lock}.lock").exists():
        return APART
    for _ in range(PROBES):
        try:
            with store.lock(job.lock):
                return WITHOUT_LOCKS
        except Busy:
            time.sleep(random.SystemRandom().uniform(0, PROBE_SECONDS))
        except InputError:
            return WITHOUT_LOCKS
    return SHARED


def describe_nodes(nodes: Sequence[tuple[str, str]], root: Path) -> list[str]:
    """Return a line for each kind of nodes that cannot work in the store itself."""
    reasons = {
        APART: f"{root} is not there",
        WITHOUT_LOCKS: f"the file system of {root} does not share locks",
    }
    lines = []
    for state, reason in reasons.items():
        if hosts := sorted({host for host, how in nodes if how == state}):
            lines.append(f"{', '.join(hosts)}: {reason}; its workers send their files to this process")
    return lines


def run_task(job: Job, desk: Any, number: int, run: Run, before: Outcome | None) -> Outcome:
    """Perform a run in a worker; `before` is the outcome of the run that it needs, if that was a task too."""
    if before is not None and before.reason:
        return Outcome("blocked", f"needs {run.after.name if run.after else ''}")
    import ray

    ray.get(desk.release.remote(number))  # an earlier worker of this run may have been lost
    try:
        prepare_worker(job)
    except InputError as error:
        raise UnfitNode(str(error), ray.get_runtime_context().get_node_id()) from None
    show = _throttled(lambda *step: desk.report.remote(number, Step(platform.node(), *step)))
    show("starting", 0, 0, "")
    if find_store(job) == SHARED:
        store = RunStore(job.root)
        return _execute(
            run, store, lambda each: perform(each, store, show, job.device, job.processes), job.call
        )
    with tempfile.TemporaryDirectory() as folder:
        mirror = Mirror(Path(folder), lambda name, *values: ray.get(getattr(desk, name).remote(*values)))
        return perform_apart(run, number, mirror, show, job)


def perform_apart(run: Run, number: int, mirror: Mirror, show: Show, job: Job) -> Outcome:
    """Perform a run in a temporary store, whose files are fetched from and sent to the command's."""
    store = RunStore(mirror.root)

    def beat(*step: Any) -> None:
        show(*step)
        mirror.push_sometimes()

    def work(each: Run) -> None:
        folders = _folders(each, store)
        if not mirror.call("hold", number, folders[0], platform.node()):
            raise Busy(f"another process is working on {each.name}; wait for it to end")
        try:
            for folder in folders:
                mirror.fetch(folder)
            if not each.done(store):  # another process may have finished it
                perform(each, store, beat, job.device, job.processes)
        finally:
            mirror.push()
            mirror.call("release", number)

    if run.after is not None:
        for folder in _folders(run.after, store):
            mirror.fetch(folder)
    outcome = _execute(run, store, work, job.call)
    mirror.push()  # the description of a failure
    return outcome


def _folders(run: Run, store: RunStore) -> list[str]:
    """Return the names of a run's folder and, for a measurement, the folder of its chunks."""
    config = run.located(store)
    if config is None:
        raise Unready(f"{run.name} needs a model that is not in the store")
    chunks = [f"chunks/{config.chunks}"] if isinstance(config, MeasureConfig) else []
    return [store.folder(config).name, *chunks]


def _execute(run: Run, store: RunStore, work: Callable[[Run], object], call: str) -> Outcome:
    outcomes: dict[Run, str] = {}
    failed = execute([run], store, work, outcomes.__setitem__, call=call)
    return Outcome(outcomes[run], failed.get(run, ""))


def _throttled(show: Show) -> Show:
    """Return a progress function that passes on one call in `REPORT_SECONDS`, and the first of each part."""
    last = "", 0.0

    def pass_on(part: str, done: int, total: int, note: str) -> None:
        nonlocal last
        if part != last[0] or time.monotonic() - last[1] >= REPORT_SECONDS:
            last = part, time.monotonic()
            show(part, done, total, note)

    return pass_on
