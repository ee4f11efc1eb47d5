"""Config → record in the store, doing only what is not done yet."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .config import TrainConfig
from .errors import InputError
from .store import RunStore
from .tasks import Task, own_task, task

if TYPE_CHECKING:
    from transformers import TrainerCallback


def task_of(config: TrainConfig) -> Task:
    """The task that a config names, or the one that its own data make."""
    if not config.data:
        return task(config.task, config.data_dir or None)
    if not (config.text and config.label):
        missing = "--label" if config.text else "--text"
        raise InputError(f"--data {config.data} came without {missing}, the name of that column")
    columns = {"text": config.text, "label": config.label, "pair": config.pair or None}
    return own_task(config.data, **columns, valid=config.valid or None, test=config.test or None)


def train(
    config: TrainConfig,
    store: RunStore,
    *,
    resume: bool = False,
    restart: bool = False,
    callbacks: Sequence[TrainerCallback] = (),
) -> dict[str, Any]:
    """The record of a fine-tuning; the checkpoint lies beside it. A finished run is not run again."""
    folder = store.folder(config)
    if restart:
        shutil.rmtree(folder, ignore_errors=True)
    if record := store.get(config):
        return record
    unfinished = folder / "trainer"
    if unfinished.exists() and not resume:
        raise InputError(
            f"{folder} holds an unfinished run; add --resume to go on or --restart to begin anew"
        )
    from .finetuning import finetune

    result = finetune(config, task_of(config), folder, resume=resume, callbacks=callbacks)
    record = store.put(config, result)
    shutil.rmtree(unfinished, ignore_errors=True)
    return record
