"""Hugging Face Trainer for masked fine-tuning: its arguments, schedule, callbacks and log."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from datasets import Dataset
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from transformers import EvalPrediction, PreTrainedModel, Trainer, TrainerCallback
from transformers import TrainerControl as Control
from transformers import TrainerState as State
from transformers import TrainingArguments as Arguments
from transformers.modeling_outputs import ModelOutput

from ..config import AdaptConfig, Precision, TrainConfig
from ..data import Task
from ..errors import InputError, optional
from ..files import writing
from ..models.devices import require_precision, supports
from ..phases import Advance
from . import Enough
from .checkpoints import Divergence, SealedCheckpoints, require_best
from .inputs import Encoder
from .masking import CONDITIONS, UNIFORM, Condition, MaskingCollator, Sweep

with optional():  # the Trainer needs it, and would not name the extra
    import accelerate  # noqa: F401

SELECTION: dict[str, list[Condition]] = {"both": [0, UNIFORM], "masked": [UNIFORM], "unmasked": [0]}
"""Conditions on which the best epoch is selected, by the `validation` option."""
SPENT = "seconds_spent"
"""Key in the Trainer's log of the seconds spent on training so far."""
ENOUGH = "enough"
"""Key in the Trainer's log that tells whether training stops after an epoch."""
EVALUATION_BATCH = 64
"""Batch size of an evaluation on one device."""
ShowSteps = Callable[[int, int, str], object]
"""Function that is called with the optimizer steps done, their total, and a remark."""


class MaskedTrainer(Trainer):  # type: ignore[misc]
    """Trainer that fails if it cannot restore its best epoch.

    With `released_schedule`, it follows the learning-rate schedule of the authors' released code.
    """

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


class _Epochs(TrainerCallback):  # type: ignore[misc]
    """Trainer callback that tells the collator each epoch, and stops after one that was `enough`."""

    def __init__(self, collator: MaskingCollator) -> None:
        self.collator = collator

    def on_epoch_begin(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        self.collator.epoch = round(state.epoch)  # its masks depend on it

    def on_evaluate(self, args: Arguments, state: State, control: Control, **more: Any) -> None:
        control.should_training_stop |= bool(more["metrics"].get(f"eval_{ENOUGH}"))


class Stopwatch(TrainerCallback):  # type: ignore[misc]
    """Trainer callback that logs the training time, so that a resumed run can add to it."""

    earlier = 0.0
    """Training time in seconds up to the checkpoint from which this session continues."""

    def on_train_begin(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        self.earlier = max((line.get(SPENT, 0.0) for line in state.log_history), default=0.0)
        self.begun = time.perf_counter()

    def on_evaluate(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        # the checkpoint that is saved next includes this line
        spent = self.earlier + time.perf_counter() - self.begun
        state.log_history.append({"epoch": state.epoch, "step": state.global_step, SPENT: spent})


class StepReport(TrainerCallback):  # type: ignore[misc]
    """Trainer callback that reports every optimizer step and the last validation result."""

    note = ""

    def __init__(self, show: ShowSteps) -> None:
        self.show = show

    def on_train_begin(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        self.show(state.global_step, state.max_steps, self.note)

    def on_step_end(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        self.show(state.global_step, state.max_steps, "validating" if control.should_evaluate else self.note)

    def on_prediction_step(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        if control.should_evaluate:  # an epoch is validated; sweeps report to `SweepReport`
            self.show(state.global_step, state.max_steps, "validating")

    def on_evaluate(self, args: Arguments, state: State, control: Control, **more: Any) -> None:
        self.note = f"epoch {round(state.epoch)}: validation {more['metrics']['eval_selection']:.3f}"
        self.show(state.global_step, state.max_steps, self.note)

    def on_save(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        self.show(state.global_step, state.max_steps, self.note)


class SweepReport(TrainerCallback):  # type: ignore[misc]
    """Trainer callback that reports how many of a sweep's texts are evaluated."""

    def __init__(self, total: int, advance: Advance) -> None:
        self.left, self.advance = total, advance

    def on_prediction_step(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        done = min(self.left, args.eval_batch_size)  # the last batch is not full
        self.left -= done
        self.advance(done)


def judge_epochs(
    config: TrainConfig, task: Task, model: PreTrainedModel, validation: Sweep, enough: Enough | None
) -> Callable[[EvalPrediction], dict[str, float]]:
    """Return the function that scores an epoch for the Trainer, which restores the one with most `selection`.

    `enough` is called with the model and its performance on whole validation texts. If it returns True,
    training stops, and 1 is added to the epoch's `selection`, so that this epoch is restored.
    """

    def judge(prediction: EvalPrediction) -> dict[str, float]:
        logits = np.asarray(prediction.predictions)
        selection = validation.scores(logits, SELECTION[config.validation], task.metrics)
        stop = False
        if enough is not None:
            stop = enough(model, validation.scores(logits, [0], task.metrics)[task.metric])
        # only an adaptation stops early; its agreement is at most 1, so no other epoch has more
        flat = {"selection": selection[task.metric] + stop, ENOUGH: float(stop)}
        for row in validation.table(logits, task.metrics):  # the log holds only flat names
            masking = row.pop("masking")
            for name, value in row.items():
                flat[f"{masking}_{name}"] = value
        return flat

    return judge


def make_trainer(
    config: TrainConfig,
    encoder: Encoder,
    train: Dataset,
    validation: Sweep,
    arguments: Arguments,
    judge: Callable[[EvalPrediction], dict[str, float]],
) -> MaskedTrainer:
    """Return the Trainer for a config, with the arguments of `training_arguments`.

    Args:
        config: Strategy, scope, rates and seed of the masks.
        encoder: Model and tokenizer.
        train: Tokenized training rows.
        validation: Validation rows, evaluated after each epoch.
        arguments: Arguments of the Trainer.
        judge: Scores an epoch (see `judge_epochs`).
    """
    masking = config.model_dump(include={"strategy", "scope", "rates", "seed"})
    soft = isinstance(config, AdaptConfig) and config.masked_targets == "probabilities"
    collator = MaskingCollator(encoder.tokenizer, soft=soft, **masking)
    try:
        trainer = MaskedTrainer(
            encoder.model,
            arguments,
            data_collator=collator,
            train_dataset=train,
            eval_dataset=validation,
            processing_class=encoder.tokenizer,
            compute_metrics=judge,
            compute_loss_func=_cross_entropy if "targets" in train.column_names else None,
            callbacks=[_Epochs(collator), SealedCheckpoints(), Divergence()],
        )
    except (ValueError, RuntimeError, ImportError) as error:  # an unknown or missing integration
        if config.report_to == "none":
            raise
        raise InputError(f"report_to is {config.report_to!r}: {error}") from error
    trainer.released_schedule = config.released_schedule
    trainer.remove_callback(transformers.PrinterCallback)  # it would print to standard output
    return trainer


def _cross_entropy(outputs: ModelOutput, labels: Tensor, num_items_in_batch: object = None) -> Tensor:
    """Return the cross-entropy for labels given as classes [B] or as class probabilities [B, C]."""
    return torch.nn.functional.cross_entropy(outputs.logits.float(), labels)


def training_arguments(config: TrainConfig, task: Task, folder: Path) -> Arguments:
    """Return the arguments of the Trainer: options of the config and fixed settings of the paper."""
    devices = int(os.environ.get("WORLD_SIZE", 1))
    if config.batch_size % devices:
        raise InputError(f"batch_size is {config.batch_size}; expected a multiple of the {devices} processes")
    precision = find_precision(config.precision)
    # transformers 4 has an option of its own for a share of the steps
    warmup = "warmup_ratio" if transformers.__version__ < "5" else "warmup_steps"
    arguments = Arguments(
        output_dir=str(folder),
        num_train_epochs=config.epochs or task.epochs,
        per_device_train_batch_size=config.batch_size // devices,
        per_device_eval_batch_size=EVALUATION_BATCH,
        learning_rate=config.learning_rate,
        weight_decay=config.weight_decay,
        adam_beta2=config.adam_beta2,
        adam_epsilon=config.adam_epsilon,
        lr_scheduler_type="linear",
        **{warmup: config.warmup},
        max_grad_norm=0.0,  # no clipping, as in the released code
        # otherwise bf16 is rejected on a CPU, and several processes would not be joined
        use_cpu=(precision == "bf16" or devices > 1) and not torch.cuda.is_available(),
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
        average_tokens_across_devices=False,  # losses are means over rows
        report_to=config.report_to,
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    if arguments.world_size != devices:
        raise RuntimeError(f"{devices} processes were started, but {arguments.world_size} are joined")
    # Otherwise one process would use all GPUs that it sees, each with a batch of this size.
    arguments._n_gpu = min(1, arguments.n_gpu)
    return arguments


def epochs_until_stop(checkpoint: Path) -> int | None:
    """Return the epoch after which `enough` stopped the training of a checkpoint; None if it did not."""
    state = State.load_from_json(str(checkpoint / "trainer_state.json"))
    return next((round(line["epoch"]) for line in state.log_history if line.get(f"eval_{ENOUGH}")), None)


def read_history(log: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Convert the Trainer's log to one entry per evaluated epoch: losses, metrics and selection score."""
    history: dict[int, dict[str, Any]] = {}
    for line in log:
        epoch = history.setdefault(round(line["epoch"]), {"epoch": round(line["epoch"])})
        if "loss" in line:
            epoch["train_loss"] = line["loss"]
        if "eval_selection" in line:
            epoch["selection"] = line["eval_selection"]
            epoch["validation"] = _read_table(line)
    # an epoch that was interrupted before its evaluation is trained again
    return [epoch for epoch in history.values() if "selection" in epoch]


def _read_table(line: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the table of an evaluation, which `judge_epochs` wrote as flat names, by condition."""
    rows: dict[str, dict[str, Any]] = {}
    for name, value in line.items():
        condition, _, metric = name.removeprefix("eval_").partition("_")
        rows.setdefault(condition, {})[metric] = value
    return [{"masking": one, **rows[str(one)]} for one in CONDITIONS if str(one) in rows]


def find_precision(precision: Precision) -> Precision:
    """Return the precision to train in, with `auto` resolved for the device.

    Raises:
        InputError: The device does not support the precision.
    """
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if on_gpu else "cpu")
    if precision == "auto" and on_gpu:
        return "bf16" if supports("bf16", device) else "fp16"
    return require_precision(precision, device)
