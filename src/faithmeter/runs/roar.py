"""Recursive ROAR (Hooker 2019, Madsen 2022): which tokens the model of one step erases for the next."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..faithfulness.chunks import chunks
from ..faithfulness.dataset import seeded
from ..faithfulness.erasure import erase
from ..files import read_parquet, timed, write_json, write_parquet
from ..methods.registry import parse
from ..models.evaluator import Evaluator

if TYPE_CHECKING:
    from datasets import Dataset
    from pandas import DataFrame

ERASED = "erased.parquet"
NOTE = "trainer/explained.json"
"""By which model and in what time: not in a file that stays, as the same run may take another time."""
Positions = dict[str, list[list[int]]]
"""For each split, the positions in each row's tokens that are erased."""


def erase_splits(
    clf: Any,
    splits: Mapping[str, Dataset],
    before: Positions,
    method: str,
    percent: int,
    *,
    seed: int,
    progress: Callable[[int, int], object] | None = None,
) -> Positions:
    """`percent` of every text erased by how a model, trained on what was erased `before`, explains it."""
    chosen = seeded(parse(method), seed)
    evaluator, total = Evaluator(clf), sum(map(len, splits.values()))
    erased: Positions = {}
    for name, split in splits.items():
        erased[name] = []
        for batch, labels in chunks(clf, split, len(split)):
            evaluator.forget()
            gone = torch.zeros_like(batch.explained)
            for row, number in enumerate(batch.index.tolist() if before else ()):
                gone[row, before[name][number]] = True
            masked = batch.masked(gone, clf.mask_id)
            [(_, masked)] = erase(evaluator, masked, labels, chosen, percents=[percent])
            now = masked.explained & (masked.input_ids == clf.mask_id)
            erased[name] += [row.nonzero()[:, 0].tolist() for row in now]
            if progress is not None:
                progress(len(batch), total)
    return erased


def kept(folder: Path, model: str, make: Callable[[], Positions]) -> tuple[Positions, float]:
    """What is erased for the run in a folder, and the seconds it took: made now, or before a kill.

    What another model erased, and was trained on since, is of no use.
    """
    import pandas as pd

    frame, note = read_parquet(folder / ERASED), folder / NOTE
    if frame is not None and note.exists():
        said = json.loads(note.read_text(encoding="utf-8"))
        if said["model"] == model:
            return _positions(frame), float(said["seconds"])
    shutil.rmtree(folder, ignore_errors=True)
    seconds: dict[str, float] = {}
    with timed(seconds, "explain"):
        erased = make()
    rows = [(name, row, gone) for name, split in erased.items() for row, gone in enumerate(split)]
    write_parquet(folder / ERASED, pd.DataFrame(rows, columns=["split", "row", "positions"]))
    write_json(note, {"model": model, "seconds": seconds["explain"]})
    return erased, seconds["explain"]


def read(folder: Path) -> Positions:
    """What the checkpoint in a folder was trained on; nothing was erased where no file says so."""
    frame = read_parquet(folder / ERASED)
    return {} if frame is None else _positions(frame)


def _positions(frame: DataFrame) -> Positions:
    return {
        str(name): [gone.tolist() for gone in part.sort_values("row")["positions"]]
        for name, part in frame.groupby("split")
    }
