"""One measurement shared by the actors of a Ray cluster, which keep the model loaded.

Each actor erases whole chunks, and this process writes them to the files that a measurement by one process
reads and writes. The same code merges them, so the results are the same.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..config import Precision
from ..errors import InputError
from ..measuring.chunks import ChunkWork, erase_chunk, read_chunk, write_chunk
from ..models.evaluator import Evaluator
from .cluster import Resources, count_places, last_line, on_every_node, own_versions, require_versions

if TYPE_CHECKING:
    from pandas import DataFrame
    from torch import Tensor

    from ..models.tokens import Batch

MAX_LOSSES = 3
"""Number of actors that may be lost while they work on the same chunk, or load the model in one place."""
POLL_SECONDS = 5.0
"""Seconds between two looks at the nodes, while no actor returns."""
REMARK_SECONDS = 60.0
"""Seconds without a node that can hold an actor, after which the user is told."""
Progress = Callable[[str, int, int], object]
Remark = Callable[[str], object]


class Chunk(NamedTuple):
    """Texts of a chunk and their labels, as `erase_chunk` takes them."""

    batch: Batch
    labels: Tensor


class Call(NamedTuple):
    """Call of an actor that computes a chunk or, without one, loads the model."""

    actor: Any
    place: int
    chunk: Chunk | None = None

    @property
    def task(self) -> str:
        """Description of the work, by which losses are counted."""
        if self.chunk is None:
            return f"loading the model as worker {self.place + 1}"
        return f"the chunk that begins with text {int(self.chunk.batch.index[0])}"


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
    """Actor that loads the model once and erases chunks with it.

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
        self.work = ChunkWork(Evaluator(clf), **work)

    def ready(self) -> str:
        """Return the fingerprint of the model as soon as it is loaded."""
        return self.fingerprint

    def erase(self, chunk: Chunk) -> DataFrame:
        """Return the results of all methods on a chunk."""
        return erase_chunk(self.work, chunk.batch, chunk.labels, folder=None, done=lambda *_: None)


def fill_chunks(
    source: Source,
    work: ChunkWork,
    chunks: Iterable[tuple[Batch, Tensor]],
    folder: Path,
    progress: Progress | None = None,
    remark: Remark = print,
) -> None:
    """Compute the chunks that have no file in `folder` yet on the connected cluster, and write their files.

    Args:
        source: How the actors load the model.
        work: Settings of the measurement, with the model.
        chunks: Texts and labels of all chunks.
        folder: Folder of the chunks.
        progress: Called with each method, the number of texts just finished, and the total.
        remark: Called with a line if for a minute no node can hold an actor.

    Raises:
        InputError: An actor cannot load the model, its model has other weights, or actors are lost again and
            again.
    """
    whole = [Chunk(*chunk) for chunk in chunks]
    texts = sum(len(chunk.batch) for chunk in whole)

    def advance(chunk: Chunk) -> None:
        for name in work.methods:
            if progress is not None:
                progress(name, len(chunk.batch), texts)

    missing = []
    for chunk in whole:
        if read_chunk(work, *chunk, folder) is None:
            missing.append(chunk)
        else:
            advance(chunk)
    if not missing:
        return
    versions = own_versions()
    on_every_node(require_versions, versions)
    for chunk, frame in _erased(
        _spawner(source, work, versions), missing, source, work.evaluator.fingerprint, remark
    ):
        write_chunk(frame, work, *chunk, folder)
        advance(chunk)


def _spawner(source: Source, work: ChunkWork, versions: Mapping[str, str]) -> Callable[[], Any]:
    """Return a function that starts an actor; the model's files are put into the object store once."""
    import ray

    place = Path(source.checkpoint)
    paths = sorted(path for path in place.iterdir() if path.is_file()) if place.is_dir() else []
    files = ray.put({path.name: path.read_bytes() for path in paths})
    settings = ray.put({name: value for name, value in vars(work).items() if name != "evaluator"})
    kind = ray.remote(Eraser).options(max_restarts=0, **source.resources.options)
    return lambda: kind.remote(source, files, settings, versions)


def _erased(
    spawn: Callable[[], Any], chunks: Iterable[Chunk], source: Source, fingerprint: str, remark: Remark
) -> Iterator[tuple[Chunk, DataFrame]]:
    """Yield each chunk with its results as soon as they are computed.

    As many actors as the cluster has room for take chunks in turn. A lost actor is replaced, and its chunk
    goes back to the others.
    """
    import ray

    waiting, losses = deque(chunks), Counter[str]()
    calls: dict[Any, Call] = {}

    def start(place: int) -> None:
        actor = spawn()
        calls[actor.ready.remote()] = Call(actor, place)

    for place in range(min(len(waiting), max(1, count_places(source.resources)))):
        start(place)
    try:
        while waiting or any(call.chunk for call in calls.values()):
            for reference in _wait(calls, source.resources, remark):
                call = calls.pop(reference)
                try:
                    result = ray.get(reference)
                except ray.exceptions.RayTaskError as error:
                    raise error.cause from error
                except ray.exceptions.RayError as error:  # of the actor, its memory or its node
                    ray.kill(call.actor)  # it may still hold the place of the next one
                    _count_loss(losses, call, source, error)
                    if call.chunk is not None:
                        waiting.appendleft(call.chunk)
                    start(call.place)
                    continue
                losses.pop(call.task, None)
                if call.chunk is not None:
                    yield call.chunk, result
                elif result != fingerprint:
                    raise InputError(
                        f"{source.checkpoint} has the fingerprint {result} on a node, {fingerprint} here; "
                        "copy the checkpoint to all nodes again"
                    )
                if waiting:
                    chunk = waiting.popleft()
                    calls[call.actor.erase.remote(chunk)] = call._replace(chunk=chunk)
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
