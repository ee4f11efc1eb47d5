"""Masked fine-tuning against a bare Trainer with the same batches and the same validation set."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset

from faithmeter.config import TrainConfig
from faithmeter.data import task
from faithmeter.models.encoding import tokenize
from faithmeter.stats.metrics import score
from faithmeter.training.inputs import Encoder
from faithmeter.training.masking import Masks, Sweep
from faithmeter.training.trainer import SELECTION, judge_epochs, make_trainer, training_arguments

from .light import TRAINING, Flops
from .race import OURS, Contender, Work
from .setting import Setting

MODEL_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "labels")


def work(setting: Setting) -> Work:
    """Return the work of fine-tuning on stories: epochs of training, each followed by validation."""
    sizes = setting.sizes
    config = TrainConfig(epochs=sizes.epochs, learning_rate=1e-4)
    stories = task(config.task)
    clf = setting.clf
    limits = {"train": sizes.training, "validation": sizes.validation}
    rows = {}
    for name, limit in limits.items():
        split = stories.load()[name].select(range(limit))
        tokens = tokenize(split, clf.tokenizer, max_length=clf.max_length).to_list()
        # any head will do: the time does not depend on the labels
        rows[name] = Dataset.from_list([row | {"labels": row["labels"] % len(clf.labels)} for row in tokens])
    validation = Sweep(
        rows["validation"].to_list(),
        Masks(
            mask_id=clf.mask_id,
            scope=config.scope,
            seed=config.seed,
            stream="validation",
            conditions=SELECTION[config.validation],
        ),
    )

    def new_model() -> Any:
        torch.manual_seed(config.seed)
        return copy.deepcopy(clf.model).float()

    def masked() -> None:
        with tempfile.TemporaryDirectory() as folder:
            encoder = Encoder(new_model(), clf.tokenizer, set())
            judge = judge_epochs(config, stories, encoder.model, validation, None)
            arguments = training_arguments(config, stories, Path(folder))
            make_trainer(config, encoder, rows["train"], validation, arguments, judge).train()

    def bare() -> None:
        with tempfile.TemporaryDirectory() as folder:
            _bare_trainer(setting, config, new_model(), rows["train"], validation, Path(folder)).train()

    lengths = [len(ids) for ids in rows["train"]["input_ids"]]
    validated = [len(row["input_ids"]) for row in validation.inputs]
    flops = Flops(clf)
    needed = config.epochs * (TRAINING * flops(lengths) + flops(validated))
    contenders = [Contender(OURS, masked), Contender("bare Trainer", bare)]
    return Work(f"fine-tuning, {config.epochs} epochs of {sizes.training} stories", contenders, needed)


def _bare_trainer(
    setting: Setting, config: TrainConfig, model: Any, train: Any, validation: Sweep, folder: Path
) -> Any:
    """Return a plain Trainer that saves and restores epochs like ours; it neither masks nor seals."""
    from transformers import DataCollatorWithPadding, EvalPrediction, PrinterCallback, Trainer

    stories = task(config.task)
    columns = [name for name in MODEL_INPUTS if name in train.column_names]
    evaluated = [{name: row[name] for name in columns} for row in validation.inputs]

    def accuracy(prediction: EvalPrediction) -> dict[str, float]:
        logits = np.asarray(prediction.predictions)
        labels = np.asarray(prediction.label_ids)
        metric = stories.metric
        return {"selection": score([metric], labels, logits.argmax(axis=1), logits.shape[1])[metric]}

    trainer = Trainer(
        model,
        training_arguments(config, stories, folder),
        data_collator=DataCollatorWithPadding(setting.clf.tokenizer),
        train_dataset=train.select_columns(columns),
        eval_dataset=evaluated,
        compute_metrics=accuracy,
    )
    trainer.remove_callback(PrinterCallback)
    return trainer
