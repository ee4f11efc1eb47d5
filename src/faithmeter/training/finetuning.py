"""Masked fine-tuning from a config and a task to a saved checkpoint and its results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from ..config import TrainConfig
from ..data import Task
from ..data.splits import digest
from ..files import timed, writing
from ..models.classifier import find_max_length
from ..models.encoding import tokenize
from ..models.folders import load_tokenizer
from ..models.loading import load
from ..phases import Progress, start_phase
from ..stats.metrics import majority
from . import UNFINISHED
from .checkpoints import require_best, resume_point
from .inputs import load_encoder, load_splits, summarize_inputs
from .masked_eval import CONDITIONS, SAMPLE, Sweep
from .steps import SweepReport
from .trainer import (
    SELECTION,
    Enough,
    MaskedTrainer,
    Sessions,
    epochs_until_stop,
    find_precision,
    make_trainer,
    read_history,
)

Erased = Mapping[str, Sequence[Sequence[int]]]
"""Positions of the erased tokens in each row of each split."""
ONE_THREAD_PARAMETERS = 1_000_000
"""Models with fewer parameters than this train on one thread."""


def finetune(
    config: TrainConfig,
    task: Task,
    folder: Path,
    *,
    resume: bool = False,
    erased: Erased | None = None,
    previous: str = "",
    targets: np.ndarray[Any, Any] | None = None,
    enough: Enough | None = None,
    callbacks: Sequence[TrainerCallback] = (),
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Fine-tune a model, save its best epoch in `folder`, and return the results for its record.

    Args:
        config: Config of the run.
        task: Task to train on.
        folder: Folder for the checkpoint; an unfinished run is kept in its subfolder `trainer`.
        resume: True to continue an unfinished run from its last intact epoch. The results are the same
            as without the interruption.
        erased: Tokens to mask in all splits, which are then evaluated without further masking.
        previous: Fingerprint of the model that chose the erased tokens.
        targets: Class probabilities [N, C] that unmasked training rows learn instead of their class.
        enough: Called after each epoch; training stops if it returns True. None trains all epochs.
        callbacks: Additional callbacks for the Trainer.
        progress: Called with a phase after the last epoch (`validate`, `test`), the number of masked texts
            evaluated so far, and the total.

    Returns:
        JSON-ready results: history of the epochs, test metrics, facts about the data, digests of the inputs,
        and durations in seconds.
    """
    seconds: dict[str, float] = {}
    precision = find_precision(config.precision)
    transformers.set_seed(config.seed)  # the new head and dropout draw from torch's global generator
    with timed(seconds, "load"):
        splits = load_splits(config, task)
        encoder = load_encoder(config, task)
        model, tokenizer = encoder.model, encoder.tokenizer
        inputs = summarize_inputs(task, splits, encoder.fingerprint, previous)
    with timed(seconds, "tokenize"):
        rows = _tokenized(splits, model, tokenizer, erased)
        if targets is not None:
            rows["train"] = rows["train"].add_column("targets", targets.tolist())
        conditions = CONDITIONS if erased is None else (0,)
        masking = {name: getattr(config, name) for name in ("scope", "rates", "seed")}
        masking["mask_id"] = tokenizer.mask_token_id
        # after an epoch only that is evaluated which chooses the epoch, unless every sweep is wanted
        whole = [] if enough is None else [0]
        selecting = (
            conditions
            if config.sweep == "every-epoch"
            else [*dict.fromkeys([*whole, *SELECTION[config.validation]])]
        )
        validation = Sweep(rows["validation"].to_list(), stream="validation", conditions=selecting, **masking)
    trainer = make_trainer(
        config, task, model, tokenizer, rows["train"], validation, folder / UNFINISHED, enough
    )
    with trainer.args.main_process_first(local=False):  # of several processes
        checkpoint = resume_point(folder / UNFINISHED, inputs, resume=resume)
    if checkpoint is not None and (epochs := epochs_until_stop(checkpoint)):
        trainer.args.num_train_epochs = epochs  # it was stopped there; another epoch would change the weights
    for callback in (sessions := Sessions(), *callbacks):
        trainer.add_callback(callback)
    with _fitting_threads(model):
        with timed(seconds, "train"):
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
            require_best(trainer.state)
        seconds["train"] += sessions.earlier
        trainer.compute_metrics = None  # the current function only fits the validation of an epoch
        history = read_history(trainer.state.log_history)
        best = max(history, key=lambda epoch: (epoch["selection"], -epoch["epoch"]))
        masking["limit"] = SAMPLE if config.sweep == "sample" else 0
        others = [condition for condition in conditions if condition not in selecting]
        if others:
            with timed(seconds, "sweep"):
                masking["conditions"] = others
                best["validation"] += _sweep(
                    trainer, task, rows["validation"], "validation", masking, "validate", progress
                )
                best["validation"].sort(key=lambda row: conditions.index(row["masking"]))
        with timed(seconds, "test"):
            masking["conditions"] = conditions
            test = _sweep(trainer, task, rows["test"], "sweep", masking, "test", progress)
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


def _sweep(
    trainer: MaskedTrainer,
    task: Task,
    rows: Dataset,
    stream: str,
    masking: Mapping[str, Any],
    phase: str,
    progress: Progress | None,
) -> list[dict[str, Any]]:
    """Return the performance of the trainer's model on tokenized rows under each condition."""
    if progress is not None:  # before the texts are masked, which takes time; equal ones are dropped
        masked = min(len(rows), masking["limit"] or len(rows))
        progress(phase, 0, sum(masked if condition else len(rows) for condition in masking["conditions"]))
    sweep = Sweep(rows.to_list(), stream=stream, **masking)
    report = SweepReport(len(sweep), start_phase(progress, phase, len(sweep)))
    trainer.add_callback(report)
    logits = np.asarray(trainer.predict(sweep).predictions)
    trainer.remove_callback(report)
    return sweep.table(logits, task.metrics)


def _tokenized(
    splits: Mapping[str, Dataset],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    erased: Erased | None,
) -> dict[str, Dataset]:
    """Return the tokenized rows of all splits, with erased tokens masked."""
    max_length = find_max_length(model, tokenizer)
    rows = {name: tokenize(split, tokenizer, max_length=max_length) for name, split in splits.items()}
    if erased is None:
        return rows
    return {name: _erased(part, erased[name], tokenizer.mask_token_id) for name, part in rows.items()}


def _save(trainer: MaskedTrainer, config: TrainConfig, folder: Path) -> None:
    if trainer.is_world_process_zero():
        with writing(folder):
            trainer.accelerator.unwrap_model(trainer.model).save_pretrained(folder)
            # load it again, because the trainer's tokenizer keeps the settings of its last call
            load_tokenizer(config.model, add_mask_token=config.add_mask_token).save_pretrained(folder)
    trainer.accelerator.wait_for_everyone()


def _describe(task: Task, rows: Mapping[str, Dataset]) -> dict[str, Any]:
    """Return the results that depend only on the task and its tokenized rows."""
    return {
        "metric": task.metric,
        "threshold": task.threshold,
        "majority": {
            name: majority(task.metrics, rows["train"]["labels"], rows[name]["labels"], len(task.labels))
            for name in ("validation", "test")
        },
        "data": measured_data(task),
        "labels": list(task.labels),
        "rows": {name: len(split) for name, split in rows.items()},
        "truncated": {name: float(np.mean(split["truncated"])) for name, split in rows.items()},
    }


def measured_data(task: Task) -> str:
    """Return a digest of the complete validation and test splits, which a measurement reads.

    It covers a rationale column of your own data, too: plausibility depends on it.
    """
    splits = task.load()
    parts = [digest(splits[role])[:16] for role in ("validation", "test") if role in splits]
    if task.rationale:
        parts.append(sha256(json.dumps(splits["test"]["supporting"][:]).encode()).hexdigest()[:16])
    return "-".join(parts)


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
