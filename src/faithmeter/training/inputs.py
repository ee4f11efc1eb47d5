"""Inputs of a training run: its rows and encoder, and digests that show whether they have changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..config import AdaptConfig, Kind, TrainConfig
from ..data import Task
from ..data.splits import digest
from ..errors import InputError
from ..models.classes import MULTI_LABEL, REGRESSION
from ..models.classifier import fingerprint_model, set_padding
from ..models.loading import (
    complete,
    encoder_keys,
    list_keys,
    load_model,
    load_tokenizer,
    read_checkpoint,
    resolve,
)
from ..stats.masf import MIN_ROWS
from ..stats.metrics import metric_code

PROBLEMS: dict[Kind, str] = {
    "single-label": "single_label_classification",
    "multi-label": MULTI_LABEL,
    "regression": REGRESSION,
}
"""Names that transformers has for the kinds of tasks."""
HEAD_SETTINGS = ("id2label", "label2id", "num_labels", "problem_type")
"""Config settings that belong to the head of a model, not to its encoder."""
MIN_OWN_ROWS = 40
"""Smallest number of the user's own rows, in all splits, that a training makes sense with."""
CHANGES = {
    "encoder": "encoder (weights, settings or tokenizer)",
    "previous": "model of the previous step",
    "metric_code": "source of the metric",
}
"""By digest of an input, what has changed if it differs."""
Inputs = dict[str, Any]
"""Digests of a training run's inputs: `source`, `splits`, `encoder`, `previous` and `metric_code`."""


def load_splits(config: TrainConfig, task: Task) -> dict[str, Any]:
    """Return the splits of a task, each cut to the first `config.limit` rows if that is not 0.

    `config.validation_limit`, if not 0, is the limit of the validation split.

    Raises:
        InputError: There are too few rows of the user's own, or too few validation texts for an adaptation.
    """
    limits = {"validation": config.validation_limit or config.limit}
    task.split("train")
    loaded = task.load()
    # before the encoder is loaded; named tasks are large enough
    total = sum(len(rows) for rows in loaded.values())
    if task.own is not None and total < MIN_OWN_ROWS:
        raise InputError(
            f"{task.source.place}: {total} rows in all; expected at least {MIN_OWN_ROWS} to train, validate "
            "and test with: add rows"
        )
    splits = {}
    for name, rows in loaded.items():
        limit = limits.get(name, config.limit) or len(rows)
        splits[name] = rows.select(range(min(limit, len(rows))))
    if isinstance(config, AdaptConfig) and len(splits["validation"]) < MIN_ROWS:
        raise InputError(
            f"{task.source.place}: {len(splits['validation'])} validation texts; expected at least "
            f"{MIN_ROWS}, which both models are checked with: give more texts, or a file of them with --valid"
        )
    return splits


class Encoder(NamedTuple):
    """Pre-trained encoder with a classification head, and its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    new_weights: set[str]
    """Names of the randomly initialized weights of the head."""

    @property
    def fingerprint(self) -> str:
        """Digest of encoder and tokenizer, without the new weights, which depend on the seed."""
        return fingerprint_model(
            self.model, self.tokenizer, without=self.new_weights, settings_without=HEAD_SETTINGS
        )


def load_encoder(config: TrainConfig, task: Task) -> Encoder:
    """Load and verify the encoder of a config, with a new head if it has none that fits the task.

    Raises:
        InputError: Files are damaged, weights of the encoder are missing, or the tokenizer knows no words.
    """
    read_checkpoint(resolve(config.model))
    tokenizer = load_tokenizer(config.model, add_mask_token=config.add_mask_token)
    kind = PROBLEMS[task.kind]
    model, missing, mismatched = load_model(
        config.model, "encoder", id2label=dict(enumerate(task.labels)), problem_type=kind
    )
    new = missing | mismatched  # a head for another task is replaced by a new one
    # transformers only warns of these
    absent = encoder_keys(model, new)
    if absent:
        state = "have another shape than its config says" if mismatched & absent else "are missing"
        raise InputError(
            f"weights of the encoder in {config.model!r} {state} ({list_keys(absent)}), and training would "
            "begin with random ones; save the model again, with its config"
        )
    set_padding(model, tokenizer)
    complete(model, tokenizer, config.model, add_mask_token=config.add_mask_token)
    return Encoder(model, tokenizer, new)


def summarize_inputs(task: Task, splits: Mapping[str, Any], encoder: str, previous: str = "") -> Inputs:
    """Return the digests of a training run's inputs; `encoder` and `previous` are model fingerprints."""
    return {
        "source": task.source.kind,
        "splits": {name: digest(rows) for name, rows in splits.items()},
        "encoder": encoder,
        "previous": previous,
        "metric_code": metric_code(task.metric),
    }


def read_inputs(config: TrainConfig, task: Task) -> Inputs:
    """Load the inputs that training with this config would use now, and return their digests."""
    encoder = load_encoder(config, task)
    return summarize_inputs(task, load_splits(config, task), encoder.fingerprint)


def describe_changes(before: Mapping[str, Any], now: Inputs) -> str:
    """Return the differences between two inputs as text, such as 'rows (train)'; empty if there are none."""
    changes = []
    if before["source"] != now["source"]:
        changes.append(f"source of the data (was {before['source']}, is {now['source']})")
    splits = [name for name, checksum in now["splits"].items() if before["splits"].get(name) != checksum]
    if splits:
        changes.append(f"rows ({', '.join(splits)})")
    for name, words in CHANGES.items():
        if before.get(name, "") != now[name]:  # records of 0.2 have no code of a metric
            changes.append(words)
    return ", ".join(changes)
