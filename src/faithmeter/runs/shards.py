"""One measurement shared by the processes of a Ray cluster, each of which loads the model once.

A task erases a whole slice and returns its traces; only this process writes them. So Ray may repeat a lost
task on any node.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..config import Precision, select_fields
from ..errors import InputError
from ..measuring.erase import Report, Slice, Work, trace_slice
from ..measuring.trace import Trace
from ..models.evaluator import Evaluator
from .cluster import LOSSES, Resources, on_every_node, own_versions, require_versions, watch_room

POLL_SECONDS = 5.0
"""Seconds between two looks at the nodes, while no slice is finished."""
Remark = Callable[[str], object]


@dataclass(frozen=True)
class Source:
    """How a worker loads the model: the arguments of `load`, and the worker's resources."""

    checkpoint: str
    device: str = "auto"
    precision: Precision = "auto"
    label: str | None = None
    resources: Resources = field(default_factory=Resources)
    overlap: int = 0


@dataclass(frozen=True, eq=False)
class Shared:
    """Values that all tasks of a measurement need, put into Ray's object store once.

    Attributes:
        source: Checkpoint, device and precision.
        fingerprint: Fingerprint that the model must have.
        files: Contents of the checkpoint's files by name; empty for a hub name, which is loaded as such.
        settings: Fields of `Work`, without the model.
        versions: Versions that a node must have.
    """

    source: Source
    fingerprint: str
    files: dict[str, bytes]
    settings: dict[str, Any]
    versions: dict[str, str]

    def load(self) -> Work:
        """Load the model in this process.

        Raises:
            InputError: It cannot be loaded, or it is another one than that of the command.
        """
        from ..models.loading import load

        require_versions(self.versions)
        source = self.source
        options = select_fields(source, ("device", "precision", "label", "overlap"))
        try:
            with tempfile.TemporaryDirectory() as folder:
                for name, content in self.files.items():
                    Path(folder, name).write_bytes(content)
                clf = load(folder if self.files else source.checkpoint, **options)
        except InputError as error:
            raise InputError(f"a worker cannot load {source.checkpoint}: {error}") from error
        if clf.fingerprint != self.fingerprint:
            raise InputError(
                f"{source.checkpoint} has the fingerprint {clf.fingerprint} on a node, {self.fingerprint} "
                "here; copy the checkpoint to all nodes again"
            )
        return Work(Evaluator(clf), **self.settings)


_loaded: dict[Any, Work] = {}
"""Model and settings of the measurement that this process works for, by the reference to what is shared."""


def erase_slice(shared: list[Any], part: Slice) -> dict[str, Trace]:
    """Return the traces of a slice, in a worker; its first slice loads the model.

    The list keeps Ray from resolving the reference, so that the weights are sent to a process only once.
    """
    import ray

    [reference] = shared
    if reference not in _loaded:
        work = ray.get(reference).load()
        _loaded.clear()  # of an earlier measurement
        _loaded[reference] = work
    return trace_slice(_loaded[reference], part)


def compute_on_ray(
    source: Source,
    work: Work,
    slices: Iterable[Slice],
    report: Report,
    remark: Remark = print,
) -> Iterator[tuple[Slice, dict[str, Trace]]]:
    """Compute the traces of slices on the connected cluster, and yield them as they are finished.

    Args:
        source: How the workers load the model.
        work: What the slices share, with the model.
        slices: Texts whose traces are missing.
        report: Called with each method and the number of texts just finished.
        remark: Called with a line if for a minute no node can hold a worker.

    Raises:
        InputError: A worker cannot load the model, its model has other weights, or workers are lost again and
            again on the same slice.
    """
    import ray

    # also writes the texts, in this process: workers never touch the store
    missing = [*slices]
    if not missing:
        return
    versions = own_versions()
    on_every_node(require_versions, versions)
    place = Path(source.checkpoint)
    # no node needs the checkpoint on its disk
    files = {path.name: path.read_bytes() for path in place.glob("*") if path.is_file()}
    settings = {name: value for name, value in vars(work).items() if name != "evaluator"}
    shared = ray.put(Shared(source, work.evaluator.fingerprint, files, settings, versions))
    # a worker with a GPU would end after each task, and load the model again
    task = ray.remote(max_calls=0, max_retries=LOSSES, **source.resources.options)(erase_slice)
    calls = {task.remote([shared], part): part for part in missing}
    look_for_room = watch_room(source.resources, remark)
    while calls:
        look_for_room()
        for call in ray.wait([*calls], timeout=POLL_SECONDS)[0]:
            part = calls.pop(call)
            try:
                traces = ray.get(call)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error
            except ray.exceptions.RayError as error:  # of the worker, its memory or its node
                cause = " ".join(str(error).split())[:300]
                raise InputError(
                    f"the slice that begins with text {int(part.batch.index[0])} ended {LOSSES + 1} workers: "
                    f"{cause}; give each more memory"
                ) from error
            for name in traces:
                report(name, len(part.batch))
            yield part, traces
