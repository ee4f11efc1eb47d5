"""Areas on shared texts, for measurements of one checkpoint on different numbers of texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...config import BASELINE
from ...store.frames import TRAINING
from ...store.records import MeasureRecord, Record, read_measurement

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = (*TRAINING, "method", "texts", "acu")


def shared(records: Sequence[tuple[Path, Record]]) -> DataFrame:
    """Return the ACU of each method on the texts of every smaller measurement of its checkpoint.

    These areas are comparable between methods that were measured on different numbers of texts. The frame is
    empty if all measurements of a checkpoint have the same number of texts.
    """
    import pandas as pd

    checkpoints = defaultdict(list)
    for folder, record in records:
        if isinstance(record, MeasureRecord):
            config = record.config
            key = config.checkpoint, config.data, config.step, config.unit, config.overlap
            checkpoints[key].append((folder, record))
    rows = [row for runs in checkpoints.values() for row in _rows(runs)]
    return pd.DataFrame(rows, columns=list(COLUMNS)).drop_duplicates()


def _rows(runs: Sequence[tuple[Path, MeasureRecord]]) -> Iterator[dict[str, Any]]:
    explained = [(folder, record) for folder, record in runs if set(record.methods) - {BASELINE}]
    sizes = sorted({record.texts for _, record in explained})[:-1]
    if not sizes:
        return
    measured = [(record, read_measurement(folder, record)) for folder, record in explained]
    for size in sizes:
        texts = next(set(result.frame["row"]) for record, result in measured if record.texts == size)
        for record, whole in measured:
            if record.texts < size:
                continue
            trained, part = record.trained, whole.among(texts)
            for method in (name for name in part.methods if name != BASELINE):
                named = {**{name: getattr(trained, name) for name in TRAINING}, "task": record.task_title}
                yield {**named, "method": method, "texts": size, "acu": part.acu(method)}
