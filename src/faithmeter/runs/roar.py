"""Recursive ROAR (Hooker 2019, Madsen 2022): the tokens that each step erases for the next training."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..errors import InputError
from ..files import read_parquet, timed, write_json, write_parquet
from ..measuring.erase import erase
from ..measuring.plan import seeded
from ..measuring.texts import read_slices
from ..methods.registry import parse
from ..models.evaluator import Evaluator
from ..phases import Progress, start_phase

if TYPE_CHECKING:
    from datasets import Dataset
    from pandas import DataFrame

ERASED = "erased.parquet"
NOTE = "trainer/explained.json"
"""File with the model that erased the texts and the seconds it took, deleted when the run finishes."""
Positions = dict[str, list[list[int]]]
"""By split, the erased token positions of each row."""


def erase_splits(
    clf: Any,
    splits: Mapping[str, Dataset],
    before: Positions,
    method: str,
    percent: int,
    *,
    seed: int,
    progress: Progress | None = None,
) -> Positions:
    """Return the token positions to erase so that `percent` of every text is erased.

    The method explains `clf`, which was trained on texts with the positions `before` erased.
    """
    chosen = seeded(parse(method), seed)
    evaluator = Evaluator(clf)
    done = start_phase(progress, "explain", sum(map(len, splits.values())))
    erased: Positions = {}
    for name, split in splits.items():
        erased[name] = []
        for batch, labels in read_slices(Evaluator.of(clf), split, len(split)):
            evaluator.forget()
            gone = torch.zeros_like(batch.explained)
            for row, number in enumerate(batch.index.tolist() if before else ()):
                gone[row, before[name][number]] = True
            masked = batch.masked(gone, clf.mask_id)
            [(_, masked)] = erase(evaluator, masked, labels, chosen, percents=[percent])
            now = masked.explained & (masked.input_ids == clf.mask_id)
            erased[name] += [row.nonzero()[:, 0].tolist() for row in now]
            done(len(batch))
    return erased


def stored_positions(folder: Path, model: str, compute: Callable[[], Positions]) -> tuple[Positions, float]:
    """Return the positions erased for the run in a folder, and the seconds spent; compute them only once.

    If the stored positions were chosen by another model, the folder is deleted and they are computed again.
    """
    import pandas as pd

    frame, note = read_parquet(folder / ERASED), folder / NOTE
    if frame is not None and note.exists():
        values = json.loads(note.read_text(encoding="utf-8"))
        if values["model"] == model:
            return _positions(frame), float(values["seconds"])
    shutil.rmtree(folder, ignore_errors=True)
    seconds: dict[str, float] = {}
    with timed(seconds, "explain"):
        erased = compute()
    rows = [(name, row, gone) for name, split in erased.items() for row, gone in enumerate(split)]
    write_parquet(folder / ERASED, pd.DataFrame(rows, columns=["split", "row", "positions"]))
    write_json(note, {"model": model, "seconds": seconds["explain"]})
    return erased, seconds["explain"]


def read_positions(folder: Path) -> Positions:
    """Return the erased positions that a checkpoint was trained with; empty if nothing was erased.

    Raises:
        InputError: The file with the positions is damaged.
    """
    path = folder / ERASED
    if not path.exists():
        return {}
    frame = read_parquet(path)
    if frame is None:
        raise InputError(f"{path} is not as it was written; delete {folder} and run that step again")
    return _positions(frame)


def _positions(frame: DataFrame) -> Positions:
    return {
        str(name): [gone.tolist() for gone in part.sort_values("row")["positions"]]
        for name, part in frame.groupby("split")
    }
