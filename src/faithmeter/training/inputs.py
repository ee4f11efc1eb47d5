"""Inputs of a training: its rows and encoder, and their digests, which later show what has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForSequenceClassification, PreTrainedModel, PreTrainedTokenizerBase

from ..config import TrainConfig
from ..errors import InputError
from ..models.classifier import fingerprint_model
from ..models.loading import (
    encoder_keys,
    list_keys,
    load_model,
    load_tokenizer,
    read_checkpoint,
    require_finite_weights,
    require_vocabulary,
    resolve,
)
from ..tasks import Task
from ..tasks.splits import digest

HEAD_SETTINGS = ("id2label", "label2id", "num_labels", "problem_type")
"""Settings of a model that belong to its head, not to the encoder."""
Inputs = dict[str, Any]
"""`source` (kind), `splits` (name → digest), `encoder` and `previous` (fingerprints)."""


def load_splits(config: TrainConfig, task: Task) -> dict[str, Any]:
    """Return the rows of a task that a run uses."""
    splits = task.load()
    return {
        name: rows.select(range(min(config.limit or len(rows), len(rows)))) for name, rows in splits.items()
    }


class Encoder(NamedTuple):
    """A pre-trained encoder with a classification head, and its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    new_weights: set[str]
    """Names of the weights of the new head."""

    @property
    def fingerprint(self) -> str:
        """Digest of the loaded encoder, without new weights, which the seed decides."""
        return fingerprint_model(
            self.model, self.tokenizer, without=self.new_weights, settings_without=HEAD_SETTINGS
        )


def load_encoder(config: TrainConfig, task: Task) -> Encoder:
    """Load the encoder of a config and verify it; only weights of the head may be new.

    Raises:
        InputError: Files are damaged, weights of the encoder are missing, or the tokenizer knows no words.
    """
    read_checkpoint(resolve(config.model))
    tokenizer = load_tokenizer(config.model)
    names = dict(enumerate(task.labels))
    model, report = load_model(
        AutoModelForSequenceClassification,
        config.model,
        "encoder",
        id2label=names,
        label2id={name: number for number, name in names.items()},
        problem_type="single_label_classification",
        dtype=torch.float32,
    )
    mismatched = {key for key, *_ in report["mismatched_keys"]}
    new = {*report["missing_keys"], *mismatched}  # a head for another task is replaced by a new one
    if absent := encoder_keys(model, new):
        state = "have another shape than its config says" if mismatched & absent else "are missing"
        raise InputError(
            f"weights of the encoder in {config.model!r} {state} ({list_keys(absent)}), and training would "
            "begin with random ones; save the model again, with its config"
        )
    require_finite_weights(model, config.model)
    require_vocabulary(tokenizer, len(model.get_input_embeddings().weight), config.model)
    return Encoder(model, tokenizer, new)


def summarize_inputs(task: Task, splits: Mapping[str, Any], encoder: str, previous: str = "") -> Inputs:
    """Return the digests of a training's inputs."""
    return {
        "source": task.source.kind,
        "splits": {name: digest(rows) for name, rows in splits.items()},
        "encoder": encoder,
        "previous": previous,
    }


def read_inputs(config: TrainConfig, task: Task) -> Inputs:
    """Return the digests of the inputs that a training of this config would have now."""
    encoder = load_encoder(config, task)
    return summarize_inputs(task, load_splits(config, task), encoder.fingerprint)


def describe_changes(before: Mapping[str, Any], now: Inputs) -> str:
    """Return the differences between two inputs as words, such as 'rows (train)'; empty if there are none."""
    changes = []
    if before["source"] != now["source"]:
        changes.append(f"source of the data (was {before['source']}, is {now['source']})")
    splits = [name for name, checksum in now["splits"].items() if before["splits"].get(name) != checksum]
    if splits:
        changes.append(f"rows ({', '.join(splits)})")
    if before["encoder"] != now["encoder"]:
        changes.append("encoder (weights, settings or tokenizer)")
    if before["previous"] != now["previous"]:
        changes.append("model of the previous step")
    return ", ".join(changes)
