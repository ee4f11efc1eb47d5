"""Masked fine-tuning on the Hugging Face Trainer: task and config → checkpoint and its history."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch.optim.lr_scheduler import LRScheduler
from transformers import Trainer, TrainerCallback, TrainingArguments

from ..config import TrainConfig
from ..errors import InputError
from ..files import timed
from ..metrics import majority
from ..models.classifier import find_max_length
from ..models.loading import load, load_tokenizer
from ..models.token_cache import tokenize
from ..tasks import Task
from ..tasks.splits import digest
from . import UNFINISHED
from .checkpoints import Divergence, SealedCheckpoints, require_best, resume_point
from .collator import MaskingCollator
from .inputs import fingerprint_encoder, load_encoder, load_splits, summarize_inputs
from .masked_eval import CONDITIONS, UNIFORM, Condition, Sweep

SELECTION: dict[str, list[Condition]] = {"both": [0, UNIFORM], "masked": [UNIFORM], "unmasked": [0]}
"""The conditions whose rows, taken together, choose the best epoch."""
Erased = Mapping[str, Sequence[Sequence[int]]]
"""For each split, the positions of the erased tokens of each row."""
SPENT = "seconds_spent"
SMALL = 1_000_000
"""Parameters."""


def finetune(
    config: TrainConfig,
    task: Task,
    folder: Path,
    *,
    resume: bool = False,
    erased: Erased | None = None,
    previous: str = "",
    callbacks: Sequence[TrainerCallback] = (),
) -> dict[str, Any]:
    """Train, restore the best epoch, save it into `folder`, and return history, test metrics and durations.

    Unfinished work lies in `folder/trainer`; with `resume` it goes on from the last whole epoch there and
    ends as if it had never stopped. `erased` tokens are masked in all splits, which are then evaluated
    without further masking; `previous` is the fingerprint of the model that chose them.
    """
    seconds: dict[str, float] = {}
    transformers.set_seed(config.seed)  # the new head and dropout draw from torch's global generator
    with timed(seconds, "load"):
        splits = load_splits(config, task)
        tokenizer = load_tokenizer(config.model)
        model, new_weights = load_encoder(config, task)
        encoder = fingerprint_encoder(model, tokenizer, new_weights)
        inputs = summarize_inputs(task, splits, encoder, previous)
        checkpoint = resume_point(folder / UNFINISHED, inputs, resume=resume)
    with timed(seconds, "tokenize"):
        max_length = find_max_length(model, tokenizer)
        rows = {name: tokenize(split, tokenizer, max_length=max_length) for name, split in splits.items()}
        if erased is not None:
            rows = {name: _erased(part, erased[name], tokenizer.mask_token_id) for name, part in rows.items()}
        masking = {"mask_id": tokenizer.mask_token_id, "scope": config.scope, "rates": config.rates}
        masking |= {"seed": config.seed}
        masking |= {"conditions": CONDITIONS if erased is None else (0,)}
        validation = Sweep(rows["validation"].to_list(), stream="validation", **masking)
        test = Sweep(rows["test"].to_list(), stream="sweep", **masking)
    trainer = _trainer(config, task, model, tokenizer, rows["train"], validation, folder / UNFINISHED)
    for callback in (clock := _Sessions(), *callbacks):
        trainer.add_callback(callback)
    with _fitting_threads(model):
        with timed(seconds, "train"):
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
            require_best(trainer.state)
        seconds["train"] += clock.earlier
        with timed(seconds, "test"):
            trainer.compute_metrics = None  # made for the validation sweep
            logits = np.asarray(trainer.predict(test).predictions)
    with timed(seconds, "save"):
        if trainer.is_world_process_zero():
            trainer.accelerator.unwrap_model(trainer.model).save_pretrained(folder)
            # a fresh one: that above keeps how it was called last, or not, if its tokens were in the cache
            load_tokenizer(config.model).save_pretrained(folder)
    history = _history(trainer.state.log_history)
    return {
        "epochs": history,
        "best_epoch": max(history, key=lambda epoch: (epoch["selection"], -epoch["epoch"]))["epoch"],
        "metric": task.metric,
        "threshold": task.threshold,
        "test": test.table(logits, task.metrics),
        "majority": {
            name: majority(task.metrics, rows["train"]["labels"], rows[name]["labels"], len(task.labels))
            for name in ("validation", "test")
        },
        **inputs,
        "source": asdict(task.source),
        "data": measured_data(task),
        "labels": list(task.labels),
        "fingerprint": load(folder).fingerprint,
        "rows": {name: len(split) for name, split in rows.items()},
        "truncated": {name: float(np.mean(split["truncated"])) for name, split in rows.items()},
        "precision": _precision(config.precision),
        "seconds": seconds,
    }


def measured_data(task: Task) -> str:
    """Digest of the splits that a measurement reads, whole."""
    splits = task.load()
    return f"{digest(splits['validation'])[:16]}-{digest(splits['test'])[:16]}"


def _erased(rows: Any, positions: Sequence[Sequence[int]], mask_id: int) -> Any:
    """Tokenized rows with the mask token at the positions."""

    def mask(row: dict[str, Any], number: int) -> dict[str, Any]:
        gone = set(positions[number])
        return {"input_ids": [mask_id if place in gone else t for place, t in enumerate(row["input_ids"])]}

    return rows.map(mask, with_indices=True, keep_in_memory=True, load_from_cache_file=False)


class _Trainer(Trainer):  # type: ignore[misc]
    released_schedule = False

    def _load_best_model(self) -> None:
        require_best(self.state)
        super()._load_best_model()

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> LRScheduler:
        if self.released_schedule:  # as if every example were an optimizer step
            num_training_steps = int(self.args.num_train_epochs) * len(self.train_dataset)
        scheduler: LRScheduler = super().create_scheduler(num_training_steps, optimizer)
        return scheduler


class _EpochClock(TrainerCallback):  # type: ignore[misc]
    """Tells the collator the epoch, from which, with seed and row number, it draws a row's mask."""

    def __init__(self, collator: MaskingCollator) -> None:
        self.collator = collator

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.collator.epoch = round(state.epoch)


class _Sessions(TrainerCallback):  # type: ignore[misc]
    """Keeps in the Trainer's log what training took, so that a resumed one knows of the sessions before."""

    earlier = 0.0
    """Seconds up to the checkpoint that this session goes on from; what a kill undid is not counted."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.earlier = max((line.get(SPENT, 0.0) for line in state.log_history), default=0.0)
        self.begun = time.perf_counter()

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # a checkpoint comes next
        spent = self.earlier + time.perf_counter() - self.begun
        state.log_history.append({"epoch": state.epoch, "step": state.global_step, SPENT: spent})


def _trainer(
    config: TrainConfig, task: Task, model: Any, tokenizer: Any, train: Any, validation: Sweep, folder: Path
) -> _Trainer:
    def validate(prediction: Any) -> dict[str, float]:
        logits = np.asarray(prediction.predictions)
        selection = validation.scores(logits, SELECTION[config.validation], task.metrics)
        flat = {"selection": selection[task.metric]}
        for row in validation.table(logits, task.metrics):
            flat |= {f"{row['masking']}_{name}": value for name, value in row.items() if name != "masking"}
        return flat

    collator = MaskingCollator(
        tokenizer, strategy=config.strategy, scope=config.scope, rates=config.rates, seed=config.seed
    )
    arguments = _arguments(config, task, folder)
    try:
        trainer = _Trainer(
            model,
            arguments,
            data_collator=collator,
            train_dataset=train,
            eval_dataset=validation,
            processing_class=tokenizer,
            compute_metrics=validate,
            callbacks=[_EpochClock(collator), SealedCheckpoints(), Divergence()],
        )
    except (ValueError, RuntimeError, ImportError) as error:  # unknown, or not installed
        if config.report_to == "none":
            raise
        raise InputError(f"report_to is {config.report_to!r}: {error}") from error
    trainer.released_schedule = config.released_schedule
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


def _arguments(config: TrainConfig, task: Task, folder: Path) -> TrainingArguments:
    """The paper's settings in the words of transformers."""
    devices = int(os.environ.get("WORLD_SIZE", 1))
    if config.batch_size % devices:
        raise InputError(f"batch_size is {config.batch_size}; expected a multiple of the {devices} processes")
    precision = _precision(config.precision)
    return TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=config.epochs or task.epochs,
        per_device_train_batch_size=config.batch_size // devices,
        per_device_eval_batch_size=64,
        learning_rate=config.learning_rate,
        weight_decay=config.weight_decay,
        lr_scheduler_type="linear",
        warmup_steps=config.warmup,
        max_grad_norm=0.0,
        bf16=precision == "bf16",
        fp16=precision == "fp16",
        seed=config.seed,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        logging_nan_inf_filter=False,  # a loss that is not finite ends the training
        load_best_model_at_end=True,
        metric_for_best_model="selection",
        greater_is_better=True,
        remove_unused_columns=False,
        report_to=config.report_to,
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
    )


def _history(log: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The Trainer's log as one entry for each epoch."""
    history: dict[int, dict[str, Any]] = {}
    for line in log:
        epoch = history.setdefault(round(line["epoch"]), {"epoch": round(line["epoch"])})
        if "loss" in line:
            epoch["train_loss"] = line["loss"]
        if "eval_selection" in line:
            epoch["selection"] = line["eval_selection"]
            epoch["validation"] = [
                {"masking": condition, **found}
                for condition in CONDITIONS
                if (found := _with_prefix(line, f"eval_{condition}_"))
            ]
    return [epoch for epoch in history.values() if "selection" in epoch]


def _with_prefix(line: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in line.items() if name.startswith(prefix)}


def _precision(wanted: str) -> str:
    if wanted != "auto":
        return wanted
    if not torch.cuda.is_available():
        return "fp32"
    return "bf16" if torch.cuda.is_bf16_supported() else "fp16"


@contextmanager
def _fitting_threads(model: torch.nn.Module) -> Iterator[None]:
    """One thread for a model so small that sharing its operations among cores costs more than it saves."""
    threads = torch.get_num_threads()
    if sum(parameter.numel() for parameter in model.parameters()) < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
