"""Masked fine-tuning from a config and a task to a saved checkpoint and its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from datasets import Dataset

from ..config import TrainConfig
from ..data import Task
from ..data.splits import measured_data
from ..files import timed, writing
from ..models.classifier import find_max_length
from ..models.encoding import tokenize
from ..models.loading import load, load_tokenizer
from ..phases import Progress, start_phase
from ..stats.metrics import majority
from . import LABELS_ONLY, UNFINISHED, Goal, Session
from .checkpoints import require_best, resume_point
from .inputs import Encoder, load_encoder, load_splits, summarize_inputs
from .masking import CONDITIONS, SAMPLE, Condition, Masks, Sweep
from .trainer import (
    SELECTION,
    MaskedTrainer,
    Stopwatch,
    SweepReport,
    epochs_until_stop,
    find_precision,
    judge_epochs,
    make_trainer,
    read_history,
    training_arguments,
)

ONE_THREAD_PARAMETERS = 1_000_000
"""Models with fewer parameters than this train on one thread."""


def finetune(
    config: TrainConfig,
    task: Task,
    folder: Path,
    goal: Goal = LABELS_ONLY,
    session: Session | None = None,
) -> dict[str, Any]:
    """Fine-tune a model, save its best epoch in `folder`, and return the results for its record.

    Args:
        config: Config of the run.
        task: Task to train on.
        folder: Folder for the checkpoint; an unfinished run is kept in its subfolder `trainer`.
        goal: What is learned besides the labels of the task.
        session: Whether to resume, callbacks, and progress, whose phases are `validate` and `test` (masked
            texts that are evaluated after the last epoch).

    Returns:
        JSON-ready results: history of the epochs, test metrics, facts about the data, digests of the inputs,
        and durations in seconds.
    """
    session = session or Session()
    seconds: dict[str, float] = {}
    precision = find_precision(config.precision)
    transformers.set_seed(config.seed)  # the new head and dropout draw from torch's global generator
    with timed(seconds, "load"):
        splits = load_splits(config, task)
        encoder = load_encoder(config, task)
        inputs = summarize_inputs(task, splits, encoder.fingerprint, goal.previous)
    with timed(seconds, "tokenize"):
        rows = _tokenized(splits, encoder, goal)
        masks = Masks(
            mask_id=encoder.tokenizer.mask_token_id,
            scope=config.scope,
            rates=config.rates,
            seed=config.seed,
            stream="validation",
            # what was erased before the training stays the only mask
            conditions=CONDITIONS if goal.erased is None else (0,),
        )
        selecting = _selecting(config, masks, goal)
        validation = Sweep(rows["validation"].to_list(), replace(masks, conditions=selecting))
    arguments = training_arguments(config, task, folder / UNFINISHED)
    judge = judge_epochs(config, task, encoder.model, validation, goal.enough)
    trainer = make_trainer(config, encoder, rows["train"], validation, arguments, judge)
    with trainer.args.main_process_first(local=False):  # of several processes
        checkpoint = resume_point(folder / UNFINISHED, inputs, resume=session.resume)
    if checkpoint is not None and (epochs := epochs_until_stop(checkpoint)):
        trainer.args.num_train_epochs = epochs  # it was stopped there; another epoch would change the weights
    for callback in (stopwatch := Stopwatch(), *session.callbacks):
        trainer.add_callback(callback)
    with _fitting_threads(encoder.model):
        with timed(seconds, "train"):
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
            require_best(trainer.state)
        seconds["train"] += stopwatch.earlier
        trainer.compute_metrics = None  # the current function only fits the validation of an epoch
        history = read_history(trainer.state.log_history)
        best = max(history, key=lambda epoch: (epoch["selection"], -epoch["epoch"]))  # of equals, the first
        masks = replace(masks, limit=SAMPLE if config.sweep == "sample" else 0)
        others = [condition for condition in masks.conditions if condition not in selecting]
        if others:
            with timed(seconds, "sweep"):
                rest = replace(masks, conditions=others)
                best["validation"] += _sweep(
                    trainer, task, rows["validation"], rest, "validate", session.progress
                )
                best["validation"].sort(key=lambda row: masks.conditions.index(row["masking"]))
        with timed(seconds, "test"):
            masks = replace(masks, stream="sweep")
            test = _sweep(trainer, task, rows["test"], masks, "test", session.progress)
    with timed(seconds, "save"):
        _save(trainer, config, folder)
    first = task.labels[0] if task.kind == "multi-label" else None  # the fingerprint is that of all
    return {
        "epochs": history,
        "best_epoch": best["epoch"],
        "test": test,
        **_describe(task, rows),
        **inputs,
        "source": asdict(task.source),
        "columns": [name for name in ("text", "context") if name in splits["train"].column_names],
        "fingerprint": load(folder, label=first).fingerprint,
        "precision": precision,
        "seconds": seconds,
    }


def _selecting(config: TrainConfig, masks: Masks, goal: Goal) -> Sequence[Condition]:
    """Return the conditions that are evaluated after each epoch: those that choose it, or all if wanted."""
    if config.sweep == "every-epoch":
        return masks.conditions
    whole: list[Condition] = [] if goal.enough is None else [0]  # by which a training is stopped
    return list(dict.fromkeys([*whole, *SELECTION[config.validation]]))


def _sweep(
    trainer: MaskedTrainer, task: Task, rows: Dataset, masks: Masks, phase: str, progress: Progress | None
) -> list[dict[str, Any]]:
    """Return the performance of the trainer's model on tokenized rows under each condition."""
    if progress is not None:  # before the texts are masked, which takes time; equal ones are dropped
        progress(phase, 0, sum(map(len, masks.choose(len(rows)).values())))
    sweep = Sweep(rows.to_list(), masks)
    report = SweepReport(len(sweep), start_phase(progress, phase, len(sweep)))
    trainer.add_callback(report)
    logits = np.asarray(trainer.predict(sweep).predictions)
    trainer.remove_callback(report)
    return sweep.table(logits, task.metrics)


def _tokenized(splits: Mapping[str, Dataset], encoder: Encoder, goal: Goal) -> dict[str, Dataset]:
    """Return the tokenized rows of all splits, with erased tokens masked and the targets of a training."""
    tokenizer = encoder.tokenizer
    max_length = find_max_length(encoder.model, tokenizer)
    rows = {}
    for name, split in splits.items():
        rows[name] = tokenize(split, tokenizer, max_length=max_length)
        if goal.erased is not None:
            rows[name] = _erased(rows[name], goal.erased[name], tokenizer.mask_token_id)
    if goal.targets is not None:
        rows["train"] = rows["train"].add_column("targets", goal.targets.tolist())
    return rows


def _save(trainer: MaskedTrainer, config: TrainConfig, folder: Path) -> None:
    if trainer.is_world_process_zero():
        with writing(folder):
            trainer.accelerator.unwrap_model(trainer.model).save_pretrained(folder)
            # load it again, because the trainer's tokenizer keeps the settings of its last call
            load_tokenizer(config.model, add_mask_token=config.add_mask_token).save_pretrained(folder)
    trainer.accelerator.wait_for_everyone()


def _describe(task: Task, rows: Mapping[str, Dataset]) -> dict[str, Any]:
    """Return the results that depend only on the task and its tokenized rows."""
    majorities, counts, truncated = {}, {}, {}
    for name, split in rows.items():
        counts[name], truncated[name] = len(split), float(np.mean(split["truncated"]))
        if name != "train":
            majorities[name] = majority(
                task.metrics, rows["train"]["labels"], split["labels"], len(task.labels)
            )
    return {
        "metric": task.metric,
        "threshold": task.threshold,
        "majority": majorities,
        "data": measured_data(task),
        "labels": list(task.labels),
        "rows": counts,
        "truncated": truncated,
    }


def _erased(rows: Dataset, positions: Sequence[Sequence[int]], mask_id: int) -> Dataset:
    """Return tokenized rows with the mask token at the given positions of each row."""

    def mask(row: dict[str, Any], number: int) -> dict[str, Any]:
        masked = set(positions[number])
        return {"input_ids": [mask_id if place in masked else t for place, t in enumerate(row["input_ids"])]}

    return rows.map(mask, with_indices=True, keep_in_memory=True, load_from_cache_file=False)


@contextmanager
def _fitting_threads(model: torch.nn.Module) -> Iterator[None]:
    """Use one thread in the block if the model is too small to gain from several."""
    threads = torch.get_num_threads()
    if sum(parameter.numel() for parameter in model.parameters()) < ONE_THREAD_PARAMETERS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
