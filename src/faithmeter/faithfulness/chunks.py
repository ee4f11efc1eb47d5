"""A task's texts, a fixed number at a time: as batches, as people read them, and erased by all methods."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..errors import InputError
from ..files import read_parquet, write_parquet
from ..methods.registry import Method
from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from .trajectory import Tests, erased

if TYPE_CHECKING:
    from datasets import Dataset
    from pandas import DataFrame

CHUNK = 64
"""Texts that are worked on together: the unit of progress and resume. Batches do not reach across chunks."""

PHASES = ("explain", "evaluate", "check")


def chunks(clf: Any, split: Dataset, count: int) -> Iterator[tuple[Batch, Tensor]]:
    """The first texts of a split with their labels, a chunk at a time."""
    for start in range(0, count, CHUNK):
        index = range(start, min(start + CHUNK, count))
        part = split.select(index)[:]
        batch = clf.encode(part["text"], part.get("context"))
        yield replace(batch, index=torch.tensor(index)), torch.tensor(part["label"])


def readable(batch: Batch, labels: Tensor) -> DataFrame:
    """Return the texts of a batch and the places of their explained tokens, for reports to color.

    Columns: row, text, context, label, and of the tokens starts, ends, words (the number of the word).
    """
    import pandas as pd

    rows = [
        (row, layout.text, layout.pair, label, *map(list, zip(*layout.spans, strict=True)), [*layout.words])
        for row, label, layout in zip(batch.index.tolist(), labels.tolist(), batch.layouts, strict=True)
    ]
    return pd.DataFrame(rows, columns=["row", "text", "context", "label", "starts", "ends", "words"])


def erased_chunk(
    evaluator: Evaluator,
    batch: Batch,
    labels: Tensor,
    methods: Mapping[str, Method],
    percents: Sequence[int],
    tests: Tests,
    *,
    keep: Path | None,
    done: Callable[[str], object],
) -> DataFrame:
    """All methods on the texts of a chunk: from its file in the folder `keep`, or made now and put there.

    `done` hears of each method. What each cost is in the frame's `attrs`, which parquet keeps.
    """
    if keep is None:
        return _made(evaluator, batch, labels, methods, percents, tests, done)
    file = keep / f"{int(batch.index[0])}-{int(batch.index[-1])}.parquet"
    stamp = _stamp(evaluator, batch, labels, methods, percents, tests)
    found = read_texts(file)
    if found is None:
        made = _made(evaluator, batch, labels, methods, percents, tests, done)
        made.attrs["stamp"] = stamp
        write_parquet(file, made)
        return made
    if found.attrs.get("stamp") != stamp:
        raise InputError(f"{file} is of another measurement; keep each in a folder of its own")
    for name in methods:
        done(name)
    return found


def _made(
    evaluator: Evaluator,
    batch: Batch,
    labels: Tensor,
    methods: Mapping[str, Method],
    percents: Sequence[int],
    tests: Tests,
    done: Callable[[str], object],
) -> DataFrame:
    import pandas as pd

    evaluator.forget()  # methods share its memory; chunks do not, so that each stands alone
    frames, costs = [], {}
    for name, method in methods.items():
        before, seconds = evaluator.evaluations, dict.fromkeys(PHASES, 0.0)
        frames.append(erased(evaluator, batch, labels, method, percents, tests, seconds).assign(method=name))
        costs[name] = {"evaluations": evaluator.evaluations - before, "seconds": seconds}
        done(name)
    frame = pd.concat(frames, ignore_index=True)
    frame.insert(0, "method", frame.pop("method"))
    frame.attrs = {"costs": costs}
    return frame


def _stamp(
    evaluator: Evaluator,
    batch: Batch,
    labels: Tensor,
    methods: Mapping[str, Method],
    percents: Sequence[int],
    tests: Tests,
) -> str:
    """Digest of what decides a chunk's numbers."""
    model = getattr(evaluator, "fingerprint", "")
    named = [f"{method} {method.code}" for method in methods.values()]
    settings = [model, *named, *map(str, percents), *tests]
    said = hashlib.sha256(" ".join(settings).encode())
    for values in (batch.input_ids.numpy(), labels.numpy(), *(test.statistics_ for test in tests.values())):
        said.update(values.tobytes())
    return said.hexdigest()[:16]


def read_texts(file: Path) -> DataFrame | None:
    """As it was written: parquet gives arrays for lists. None if it was not, or not to its end."""
    import pandas as pd

    frame = read_parquet(file)
    if frame is None:
        return None
    for column in ("masked", "scores"):
        values = [None if value is None else value.tolist() for value in frame[column]]
        frame[column] = pd.Series(values, dtype=object)
    return frame
