"""Chunks: fixed slices of a task's texts, erased by all methods, with the results saved in a file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..config import UnitName
from ..errors import InputError
from ..files import read_parquet, timed, write_parquet
from ..methods.registry import Method
from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from ..models.units import in_units
from .costs import sort_by_cost
from .erase import keep_erased, trace_erasure
from .plan import Tests
from .trace import Trace, frame_traces

if TYPE_CHECKING:
    from datasets import Dataset
    from pandas import DataFrame

CHUNK = 64
"""Number of texts in a chunk, the unit of progress and resume; no batch spans two chunks."""

Done = Callable[[str, int], object]
"""Function that is called with a method and the number of texts just finished; 0 while it is at work."""


@dataclass(frozen=True)
class ChunkWork:
    """Settings that all chunks of a measurement share."""

    evaluator: Evaluator
    methods: Mapping[str, Method]
    percents: Sequence[int]
    tests: Tests
    unit: UnitName = "token"
    complement: bool = False


def read_chunks(
    clf: Evaluator, split: Dataset, count: int, unit: UnitName = "token"
) -> Iterator[tuple[Batch, Tensor]]:
    """Yield the first `count` texts of a split and their labels, one chunk at a time."""
    for start in range(0, count, CHUNK):
        index = range(start, min(start + CHUNK, count))
        part = split.select(index)[:]
        batch = in_units(clf.encode(part["text"], part.get("context")), unit)
        yield replace(batch, index=torch.tensor(index)), torch.tensor(part["label"])


def locate_tokens(batch: Batch, labels: Tensor) -> DataFrame:
    """Return a frame of the texts of a batch with the positions of their explained units.

    Columns: row, text, context, label, and lists with the starts, ends and word numbers (`words`) of units.
    """
    import pandas as pd

    layouts = [layout.of_units for layout in batch.layouts]
    rows = [
        (row, layout.text, layout.pair, label, *map(list, zip(*layout.spans, strict=True)), [*layout.words])
        for row, label, layout in zip(batch.index.tolist(), labels.tolist(), layouts, strict=True)
    ]
    return pd.DataFrame(rows, columns=["row", "text", "context", "label", "starts", "ends", "words"])


def erase_chunk(
    work: ChunkWork,
    batch: Batch,
    labels: Tensor,
    *,
    folder: Path | None,
    done: Done,
) -> DataFrame:
    """Return the results of all methods on a chunk, read from its file in `folder` or computed and written.

    Without a folder nothing is written. `done` is called with the name of each finished method. The costs of
    the methods are in the frame's `attrs`.

    Raises:
        InputError: The file belongs to another measurement.
    """
    frame = None if folder is None else read_chunk(work, batch, labels, folder)
    if frame is not None:
        for name in work.methods:
            done(name, len(batch))
        return frame
    frame = _compute(work, batch, labels, done)
    if folder is not None:
        write_chunk(frame, work, batch, labels, folder)
    return frame


def read_chunk(work: ChunkWork, batch: Batch, labels: Tensor, folder: Path) -> DataFrame | None:
    """Return the results in a chunk's file; None if there is none.

    Raises:
        InputError: The file belongs to another measurement.
    """
    file = _chunk_file(batch, folder)
    frame = read_texts(file)
    if frame is not None and frame.attrs.get("stamp") != _stamp(work, batch, labels):
        raise InputError(f"{file} belongs to another measurement; keep each in a folder of its own")
    return frame


def write_chunk(frame: DataFrame, work: ChunkWork, batch: Batch, labels: Tensor, folder: Path) -> None:
    """Write the results of a chunk to its file, with the stamp that `read_chunk` verifies."""
    frame.attrs["stamp"] = _stamp(work, batch, labels)
    write_parquet(_chunk_file(batch, folder), frame)


def _chunk_file(batch: Batch, folder: Path) -> Path:
    return folder / f"{int(batch.index[0])}-{int(batch.index[-1])}.parquet"


def _beat(done: Done, name: str, evaluations: int) -> None:
    done(name, 0)


def _compute(work: ChunkWork, batch: Batch, labels: Tensor, done: Done) -> DataFrame:
    evaluator = work.evaluator
    evaluator.forget()  # methods share its cache; chunks do not, so that each is independent
    traces: dict[str, Trace] = {}
    for name, method in sort_by_cost(work.methods, batch, work.percents):
        evaluator.progress = partial(_beat, done, name)
        before = evaluator.evaluations
        evaluator.requested = {}
        trace = trace_erasure(evaluator, batch, labels, method, work.percents, work.tests)
        if work.complement:
            seconds = dict(trace.seconds)
            with timed(seconds, "evaluate"):
                kept = keep_erased(evaluator, batch, labels, trace)
            trace = replace(trace, kept=kept, seconds=seconds)
        evaluations = evaluator.evaluations - before
        alone = evaluations + sum(evaluator.requested.values())
        traces[name] = replace(trace, method=name, evaluations=evaluations, evaluations_alone=alone)
        done(name, len(batch))
    evaluator.progress = evaluator.requested = None
    costs = {
        name: {"evaluations": trace.evaluations, "alone": trace.evaluations_alone, "seconds": trace.seconds}
        for name, trace in traces.items()
    }
    frame = frame_traces(traces[name] for name in work.methods)
    frame.attrs = {"costs": costs, "device": str(evaluator.device)}
    return frame


def _stamp(work: ChunkWork, batch: Batch, labels: Tensor) -> str:
    """Return a digest of everything that a chunk's numbers depend on."""
    model = getattr(work.evaluator, "fingerprint", "")
    methods = [f"{method} {method.code}" for method in work.methods.values()]
    settings = [
        model,
        *getattr(work.evaluator, "labels", ()),
        *methods,
        *map(str, work.percents),
        *work.tests,
    ]
    if work.evaluator.precision != "fp32":
        settings.append(work.evaluator.precision)
    settings += [] if work.unit == "token" else [work.unit]
    settings += ["complement"] if work.complement else []
    overlap = getattr(work.evaluator, "overlap", 0)
    settings += [f"overlap={overlap}"] if overlap else []
    digest = hashlib.sha256(" ".join(settings).encode())
    statistics = (test.statistics_ for test in work.tests.values())
    for values in (batch.input_ids.numpy(), labels.numpy(), *statistics):
        digest.update(values.tobytes())
    return digest.hexdigest()[:16]


def read_texts(file: Path) -> DataFrame | None:
    """Read the per-text results of a measurement; None if the file is missing or damaged.

    The columns `masked` and `scores` are converted back to lists.
    """
    import pandas as pd

    frame = read_parquet(file)
    if frame is None:
        return None
    for column in ("masked", "scores"):
        values = [None if value is None else value.tolist() for value in frame[column]]
        frame[column] = pd.Series(values, dtype=object)
    return frame
