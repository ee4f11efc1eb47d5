"""Recursive ROAR (Hooker 2019, Madsen 2022): which tokens the model of one step erases for the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .erasure import erase
from .errors import InputError
from .evaluator import Evaluator
from .measurement import chunks, seeded
from .methods import parse
from .store import write_parquet

if TYPE_CHECKING:
    from datasets import Dataset

ERASED = "erased.parquet"
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


def save(erased: Positions, folder: Path) -> None:
    """Beside the checkpoint that was trained on it."""
    import pandas as pd

    rows = [(name, row, gone) for name, split in erased.items() for row, gone in enumerate(split)]
    write_parquet(folder / ERASED, pd.DataFrame(rows, columns=["split", "row", "positions"]))


def read(folder: Path) -> Positions:
    """What the checkpoint in a folder was trained on; nothing was erased where no file says so."""
    import pandas as pd

    if not (folder / ERASED).exists():
        return {}
    try:
        frame = pd.read_parquet(folder / ERASED)
        return {
            str(name): [gone.tolist() for gone in part.sort_values("row")["positions"]]
            for name, part in frame.groupby("split")
        }
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{folder / ERASED} cannot be read: {error}; run that step again") from error
