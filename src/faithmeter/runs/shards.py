"""One measurement shared by the actors of a Ray cluster, which keep the model loaded.

Each actor erases whole slices and returns their traces; only this process writes them.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..config import Precision
from ..errors import InputError
from ..measuring.slices import Report, Slice, Work, trace_slice
from ..measuring.trace import Trace
from ..models.evaluator import Evaluator
from .cluster import Resources, count_places, last_line, on_every_node, own_versions, require_versions

MAX_LOSSES = 3
"""Number of actors that may be lost while they work on the same part, or load the model in one place."""
POLL_SECONDS = 5.0
"""Seconds between two looks at the nodes, while no actor returns."""
REMARK_SECONDS = 60.0
"""Seconds without a node that can hold an actor, after which the user is told."""
Remark = Callable[[str], object]


class Call(NamedTuple):
    """Call of an actor that computes a slice or, without one, loads the model."""

    actor: Any
    place: int
    part: Slice | None = None

    @property
    def task(self) -> str:
        """Description of the work, by which losses are counted."""
        if self.part is None:
            return f"loading the model as worker {self.place + 1}"
        return f"the slice that begins with text {int(self.part.batch.index[0])}"


@dataclass(frozen=True)
class Source:
    """How an actor loads the model: the arguments of `load`, and the actor's resources."""

    checkpoint: str
    device: str = "auto"
    precision: Precision = "auto"
    label: str | None = None
    resources: Resources = field(default_factory=Resources)
    overlap: int = 0


class Eraser:
    """Actor that loads the model once and erases slices with it.

    Args:
        source: Checkpoint, device and precision.
        files: Contents of the checkpoint's files by name; empty for a hub name, which is loaded as such.
        work: Settings of the measurement, without the model.
        versions: Versions that the node must have.
    """

    def __init__(
        self, source: Source, files: Mapping[str, bytes], work: Mapping[str, Any], versions: Mapping[str, str]
    ) -> None:
        from ..models.loading import load

        require_versions(versions)
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                Path(folder, name).write_bytes(content)
            clf = load(
                folder if files else source.checkpoint,
                device=source.device,
                precision=source.precision,
                label=source.label,
                overlap=source.overlap,
            )
        self.fingerprint = clf.fingerprint
        self.work = Work(Evaluator(clf), **work)

    def ready(self) -> str:
        """Return the fingerprint of the model as soon as it is loaded."""
        return self.fingerprint

    def erase(self, part: Slice) -> dict[str, Trace]:
        """Return the traces of a slice."""
        return trace_slice(self.work, part)


def compute_on_ray(
    source: Source,
    work: Work,
    slices: Iterable[Slice],
    report: Report,
    remark: Remark = print,
) -> Iterator[tuple[Slice, dict[str, Trace]]]:
    """Compute the traces of slices on the connected cluster, and yield them as they are finished.

    Args:
        source: How the actors load the model.
        work: What the slices share, with the model.
        slices: Texts whose traces are missing.
        report: Called with each method and the number of texts just finished.
        remark: Called with a line if for a minute no node can hold an actor.

    Raises:
        InputError: An actor cannot load the model, its model has other weights, or actors are lost again and
            again.
    """
    missing = [*slices]
    if not missing:
        return
    versions = own_versions()
    on_every_node(require_versions, versions)
    spawn, fingerprint = _spawner(source, work, versions), work.evaluator.fingerprint
    for part, traces in _erased(spawn, missing, source, fingerprint, remark):
        for name in traces:
            report(name, len(part.batch))
        yield part, traces


def _spawner(source: Source, work: Work, versions: Mapping[str, str]) -> Callable[[], Any]:
    """Return a function that starts an actor; the model's files are put into the object store once."""
    import ray

    place = Path(source.checkpoint)
    paths = sorted(path for path in place.iterdir() if path.is_file()) if place.is_dir() else []
    files = ray.put({path.name: path.read_bytes() for path in paths})
    settings = ray.put({name: value for name, value in vars(work).items() if name != "evaluator"})
    kind = ray.remote(Eraser).options(max_restarts=0, **source.resources.options)
    return lambda: kind.remote(source, files, settings, versions)


def _erased(
    spawn: Callable[[], Any], slices: Iterable[Slice], source: Source, fingerprint: str, remark: Remark
) -> Iterator[tuple[Slice, dict[str, Trace]]]:
    """Yield each part with its results as soon as they are computed.

    As many actors as the cluster has room for take parts in turn. A lost actor is replaced, and its part
    goes back to the others.
    """
    import ray

    waiting, losses = deque(slices), Counter[str]()
    calls: dict[Any, Call] = {}

    def start(place: int) -> None:
        actor = spawn()
        calls[actor.ready.remote()] = Call(actor, place)

    for place in range(min(len(waiting), max(1, count_places(source.resources)))):
        start(place)
    try:
        while waiting or any(call.part for call in calls.values()):
            for reference in _wait(calls, source.resources, remark):
                call = calls.pop(reference)
                try:
                    result = ray.get(reference)
                except ray.exceptions.RayTaskError as error:
                    raise error.cause from error
                except ray.exceptions.RayError as error:  # of the actor, its memory or its node
                    ray.kill(call.actor)  # it may still hold the place of the next one
                    _count_loss(losses, call, source, error)
                    if call.part is not None:
                        waiting.appendleft(call.part)
                    start(call.place)
                    continue
                losses.pop(call.task, None)
                if call.part is not None:
                    yield call.part, result
                elif result != fingerprint:
                    raise InputError(
                        f"{source.checkpoint} has the fingerprint {result} on a node, {fingerprint} here; "
                        "copy the checkpoint to all nodes again"
                    )
                if waiting:
                    part = waiting.popleft()
                    calls[call.actor.erase.remote(part)] = call._replace(part=part)
    finally:
        for call in calls.values():
            ray.kill(call.actor)


def _wait(calls: Iterable[Any], resources: Resources, remark: Remark) -> list[Any]:
    """Return a call that has ended; remark once if for long no node can hold an actor."""
    import ray

    last_room = time.monotonic()
    while not (ended := ray.wait([*calls], timeout=POLL_SECONDS)[0]):
        if count_places(resources):
            last_room = time.monotonic()
        elif time.monotonic() - last_room >= REMARK_SECONDS:
            remark(f"no node of the cluster can hold a worker, which needs {resources}; waiting for one")
            last_room = math.inf
    return list(ended)


def _count_loss(losses: Counter[str], call: Call, source: Source, error: Exception) -> None:
    """Raise an InputError if an actor cannot load the model, or its work has ended too many actors."""
    if getattr(error, "actor_init_failed", False):
        raise InputError(f"a worker cannot load {source.checkpoint}: {last_line(error)}") from error
    losses[call.task] += 1
    if losses[call.task] > MAX_LOSSES:
        cause = " ".join(str(error).split())[:300]
        raise InputError(
            f"{call.task} ended {losses[call.task]} workers: {cause}; give each more memory"
        ) from error
