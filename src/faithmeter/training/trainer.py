"""Hugging Face Trainer for masked fine-tuning: its settings, schedule, callbacks and log."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from datasets import Dataset
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from transformers import (
    EvalPrediction,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from ..config import Precision, TrainConfig
from ..errors import InputError
from ..files import writing
from ..tasks import Task
from .checkpoints import Divergence, SealedCheckpoints, require_best
from .collator import MaskingCollator
from .masked_eval import CONDITIONS, UNIFORM, Condition, Sweep

SELECTION: dict[str, list[Condition]] = {"both": [0, UNIFORM], "masked": [UNIFORM], "unmasked": [0]}
"""Conditions whose rows together choose the best epoch."""
SPENT = "seconds_spent"
"""Name of the seconds of training so far in the Trainer's log."""
EVALUATION_BATCH = 64
"""Rows evaluated together, for each device."""


class MaskedTrainer(Trainer):  # type: ignore[misc]
    """Trainer that restores its best epoch or fails, and can follow the released code's schedule."""

    released_schedule = False

    def _load_best_model(self) -> None:
        require_best(self.state)
        super()._load_best_model()

    def _save_checkpoint(self, *arguments: Any) -> None:
        with writing(Path(self.args.output_dir)):
            super()._save_checkpoint(*arguments)

    def create_scheduler(self, num_training_steps: int, optimizer: Optimizer | None = None) -> LRScheduler:
        if self.released_schedule:  # counts each example as an optimizer step
            num_training_steps = int(self.args.num_train_epochs) * len(self.train_dataset)
        scheduler: LRScheduler = super().create_scheduler(num_training_steps, optimizer)
        return scheduler


class _EpochClock(TrainerCallback):  # type: ignore[misc]
    """Sets the collator's epoch, which masks depend on."""

    def __init__(self, collator: MaskingCollator) -> None:
        self.collator = collator

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self.collator.epoch = round(state.epoch)


class Sessions(TrainerCallback):  # type: ignore[misc]
    """Keeps the seconds of training in the Trainer's log, so that a resumed training can add to them."""

    earlier = 0.0
    """Seconds up to the checkpoint that this session continues from; work lost in a kill is not counted."""

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self.earlier = max((line.get(SPENT, 0.0) for line in state.log_history), default=0.0)
        self.begun = time.perf_counter()

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:  # a checkpoint comes next
        spent = self.earlier + time.perf_counter() - self.begun
        state.log_history.append({"epoch": state.epoch, "step": state.global_step, SPENT: spent})


def make_trainer(
    config: TrainConfig,
    task: Task,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    train: Dataset,
    validation: Sweep,
    folder: Path,
) -> MaskedTrainer:
    """Return the trainer of a config; its log and checkpoints go into `folder`."""

    def validate(prediction: EvalPrediction) -> dict[str, float]:
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
        trainer = MaskedTrainer(
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
    """Return the settings of the paper and of the config as arguments of a Trainer."""
    devices = int(os.environ.get("WORLD_SIZE", 1))
    if config.batch_size % devices:
        raise InputError(f"batch_size is {config.batch_size}; expected a multiple of the {devices} processes")
    precision = find_precision(config.precision)
    return TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=config.epochs or task.epochs,
        per_device_train_batch_size=config.batch_size // devices,
        per_device_eval_batch_size=EVALUATION_BATCH,
        learning_rate=config.learning_rate,
        weight_decay=config.weight_decay,
        lr_scheduler_type="linear",
        warmup_steps=config.warmup,
        max_grad_norm=0.0,
        use_cpu=precision == "bf16" and not torch.cuda.is_available(),  # else bf16 is refused on a CPU
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


def read_history(log: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Convert the Trainer's log to one entry for each epoch."""
    history: dict[int, dict[str, Any]] = {}
    for line in log:
        epoch = history.setdefault(round(line["epoch"]), {"epoch": round(line["epoch"])})
        if "loss" in line:
            epoch["train_loss"] = line["loss"]
        if "eval_selection" in line:
            epoch["selection"] = line["eval_selection"]
            epoch["validation"] = [
                {"masking": condition, **scores}
                for condition in CONDITIONS
                if (scores := _with_prefix(line, f"eval_{condition}_"))
            ]
    return [epoch for epoch in history.values() if "selection" in epoch]


def _with_prefix(line: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in line.items() if name.startswith(prefix)}


def find_precision(precision: Precision) -> Precision:
    """Return the precision to train in; raise InputError if the device does not support it.

    `auto` chooses one that it supports.
    """
    on_gpu = torch.cuda.is_available()
    if precision == "auto":
        return "fp32" if not on_gpu else "bf16" if torch.cuda.is_bf16_supported() else "fp16"
    if precision == "fp16" and not on_gpu:
        raise InputError("precision is fp16, and there is no GPU; expected auto, fp32 or bf16")
    if precision == "bf16" and not (torch.cuda.is_bf16_supported() if on_gpu else cpu_has_bf16()):
        device = "GPU" if on_gpu else "CPU"
        raise InputError(f"precision is bf16, which this {device} lacks; expected auto or fp32")
    return precision


def cpu_has_bf16() -> bool:
    """Return whether the CPU can train in bfloat16: some support it in the forward pass only."""
    weight = torch.ones(2, 2, requires_grad=True)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            torch.autograd.grad((torch.ones(1, 2) @ weight).sum(), weight)
    except RuntimeError:
        return False
    return True
