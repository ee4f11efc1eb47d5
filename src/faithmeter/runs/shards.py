"""One measurement shared by the actors of a Ray cluster, which keep the model loaded.

Each actor erases whole slices and returns their traces; only this process writes them.
"""

from __future__ import annotations

import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..config import Precision
from ..errors import InputError
from ..measuring.slices import Report, Slice, Work, trace_slice
from ..measuring.trace import Trace
from ..models.evaluator import Evaluator
from .cluster import (
    Resources,
    count_places,
    last_line,
    on_every_node,
    own_versions,
    require_versions,
    watch_room,
)

MAX_LOSSES = 3
"""Number of actors that may be lost while they work on the same slice or, for each place, load the model."""
POLL_SECONDS = 5.0
"""Seconds between two looks at the nodes, while no actor returns."""
Remark = Callable[[str], object]


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
        options = {name: getattr(source, name) for name in ("device", "precision", "label", "overlap")}
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                Path(folder, name).write_bytes(content)
            clf = load(folder if files else source.checkpoint, **options)
        self.work = Work(Evaluator(clf), **work)

    def ready(self) -> str:
        """Return the fingerprint of the model as soon as it is loaded."""
        return str(self.work.evaluator.fingerprint)

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
    # also writes the texts, in this process: workers never touch the store
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
    # once for the cluster: no node needs the checkpoint on its disk
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
    calls: dict[Any, tuple[Any, Slice | None]] = {}  # without a slice, the actor loads the model
    places = min(len(waiting), max(1, count_places(source.resources)))
    look_for_room = watch_room(source.resources, remark)

    def start() -> None:
        actor = spawn()
        calls[actor.ready.remote()] = actor, None

    for _ in range(places):
        start()
    try:
        while waiting or any(part for _, part in calls.values()):
            look_for_room()
            for reference in ray.wait([*calls], timeout=POLL_SECONDS)[0]:
                actor, part = calls.pop(reference)
                try:
                    result = ray.get(reference)
                except ray.exceptions.RayTaskError as error:
                    raise error.cause from error
                except ray.exceptions.RayError as error:  # of the actor, its memory or its node
                    ray.kill(actor)  # it may still hold the place of the next one
                    # all places load the model at the same time, so its losses are those of all
                    _count_loss(losses, part, MAX_LOSSES * (1 if part else places), source, error)
                    if part is not None:
                        # at once, so that a slice that ends workers is noticed early
                        waiting.appendleft(part)
                    start()
                    continue
                # a model that was loaded shows that the losses while loading were accidents
                losses.pop(_describe(part), None)
                if part is not None:
                    yield part, result
                elif result != fingerprint:
                    raise InputError(
                        f"{source.checkpoint} has the fingerprint {result} on a node, {fingerprint} here; "
                        "copy the checkpoint to all nodes again"
                    )
                if waiting:
                    following = waiting.popleft()
                    calls[actor.erase.remote(following)] = actor, following
    finally:
        for actor, _ in calls.values():
            ray.kill(actor)


def _describe(part: Slice | None) -> str:
    """Return a description of an actor's work, by which losses are counted."""
    return f"the slice that begins with text {int(part.batch.index[0])}" if part else "loading the model"


def _count_loss(
    losses: Counter[str], part: Slice | None, allowed: int, source: Source, error: Exception
) -> None:
    """Raise an InputError if an actor cannot load the model, or its work has ended too many actors."""
    if getattr(error, "actor_init_failed", False):
        raise InputError(f"a worker cannot load {source.checkpoint}: {last_line(error)}") from error
    work = _describe(part)
    losses[work] += 1
    if losses[work] > allowed:
        cause = " ".join(str(error).split())[:300]
        raise InputError(f"{work} ended {losses[work]} workers: {cause}; give each more memory") from error
