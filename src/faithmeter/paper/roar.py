"""Recursive ROAR (Hooker 2019, Madsen 2022): each step trains without the tokens that a method erased."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..config import RoarConfig
from ..errors import InputError
from ..files import read_parquet, timed, write_json, write_parquet
from ..measuring.erase import erase
from ..measuring.plan import seeded
from ..measuring.texts import read_slices
from ..methods.registry import parse
from ..models.evaluator import Evaluator
from ..phases import Progress, start_phase
from ..runs.measured import task_of
from ..runs.run import finetune_in, run_once
from ..store.records import RoarRecord
from ..store.run_store import RunStore, Unready
from ..training import Goal, Session

if TYPE_CHECKING:
    from datasets import Dataset
    from pandas import DataFrame
    from transformers import TrainerCallback

ERASED = "erased.parquet"
NOTE = "trainer/explained.json"
"""File with the model that erased the texts and the seconds it took, deleted when the run finishes."""
Positions = dict[str, list[list[int]]]
"""By split, the erased token positions of each row."""


def roar(
    config: RoarConfig,
    store: RunStore,
    *,
    callbacks: Sequence[TrainerCallback] = (),
    progress: Progress | None = None,
    processes: int = 1,
) -> RoarRecord:
    """Perform one step of Recursive ROAR, or return its record if the store already has it.

    Args:
        config: Training, method and percent of the step.
        store: Store with the step before.
        callbacks: Callbacks for the Hugging Face Trainer.
        progress: Called with a phase, the number of texts done in it so far, and the total.
        processes: Number of processes that share the training.

    Raises:
        Unready: The previous step is not in the store.
        InputError: Another process is working on the run, or its inputs have changed.
    """
    from ..models.loading import load
    from ..training.inputs import load_splits

    task = task_of(config)

    def work(folder: Path) -> dict[str, Any]:
        earlier, before = store.get(config.before), store.folder(config.before)
        if earlier is None:
            raise Unready(f"{before} has no record; Recursive ROAR needs the step before: run that first")

        def compute() -> Positions:
            splits = load_splits(config, task)
            return erase_splits(load(str(before)), splits, read_positions(before), config, progress)

        erased, explained = stored_positions(folder, earlier.fingerprint, compute)
        goal = Goal(erased, earlier.fingerprint)
        result = finetune_in(config, task, folder, goal, Session(True, callbacks, processes=processes))
        plain = earlier.plain if isinstance(earlier, RoarRecord) else earlier.unmasked
        return {**result, "plain": plain, "seconds": {"explain": explained, **result["seconds"]}}

    record = run_once(config, store, work, resume=True, restart=False)
    assert isinstance(record, RoarRecord)
    return record


def erase_splits(
    clf: Any,
    splits: Mapping[str, Dataset],
    before: Positions,
    config: RoarConfig,
    progress: Progress | None = None,
) -> Positions:
    """Return the token positions to erase so that the percent of the config is erased of every text.

    The method of the config explains `clf`, which was trained on texts with the positions `before` erased.
    """
    chosen = seeded(parse(config.method), config.seed)
    evaluator = Evaluator(clf)
    done = start_phase(progress, "explain", sum(map(len, splits.values())))
    erased: Positions = {}
    for name, split in splits.items():
        erased[name] = []
        for batch, labels in read_slices(Evaluator.of(clf), split, len(split)):
            evaluator.forget()  # no text is seen twice, and what is remembered of it would only fill memory
            gone = torch.zeros_like(
                batch.explained
            )  # [B, T]: the tokens that the model never saw in training
            for row, number in enumerate(batch.index.tolist() if before else ()):
                gone[row, before[name][number]] = True
            masked = batch.masked(gone, clf.mask_id)
            [(_, masked)] = erase(evaluator, masked, labels, chosen, percents=[config.percent])
            # positions of the step before are kept, so that the erased part only grows
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
        if values["model"] == model:  # explaining takes hours: a training that was cut goes on from here
            return _positions(frame), float(values["seconds"])
    shutil.rmtree(folder, ignore_errors=True)
    seconds: dict[str, float] = {}
    with timed(seconds, "explain"):
        erased = compute()
    rows: list[tuple[str, int, list[int]]] = []
    for name, split in erased.items():
        rows += ((name, row, gone) for row, gone in enumerate(split))
    write_parquet(folder / ERASED, pd.DataFrame(rows, columns=["split", "row", "positions"]))
    # the note comes last: a kill between both files leaves no note, and the positions are computed again
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
    positions = {}
    for name, part in frame.groupby("split"):
        positions[str(name)] = part.sort_values("row")["positions"].tolist()
    return positions
