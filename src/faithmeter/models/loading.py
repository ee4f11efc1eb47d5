"""Loading and verification of classifiers, encoders and tokenizers from a folder or the hub."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

from ..config import Kind, Precision
from ..data.labeled import LABELED
from ..errors import InputError
from ..files import changes, read_sealed_json
from .classes import MULTI_LABEL, predicts_number
from .classifier import Classifier
from .devices import find_device, require_precision
from .folders import RECORD, config_source, load_model, load_tokenizer, local_copy, reading, resolve
from .mask_token import add_embeddings

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

NEW_PARTS = ("pooler.",)
"""Parts of an encoder that may be missing before fine-tuning, since only the classifier head uses them."""
MAX_NAMED_KEYS = 4
"""Maximum number of weights that an error names; the others are counted."""
SAMPLE_WORDS = 64
"""Approximate number of vocabulary entries that are tokenized to check the tokenizer."""
MAX_UNKNOWN = 0.9
"""Maximum fraction of unknown tokens when a tokenizer encodes entries of its own vocabulary."""


def load(
    path: str | Path,
    *,
    device: str | torch.device = "auto",
    precision: Precision = "auto",
    revision: str | None = None,
    add_mask_token: bool = False,
    label: str | int | None = None,
    overlap: int = 0,
) -> Classifier:
    """Load a classifier and verify its files.

    Args:
        path: A checkpoint folder of `faithmeter train`, a folder of another saved model, or a hub name: a
            classifier of transformers, a sentence encoder with a dense head in the layout of
            sentence-transformers, or a PEFT adapter, which is merged. A checkpoint of faithmeter comes with
            its record and its fitted tests (see `saved_tests`).
        device: `cpu`, `cuda`, `cuda:1`, `mps` or `xpu`; `auto` is the accelerator, or the CPU without one.
        precision: Data type to compute in: `fp32`, `bf16` or `fp16`; `auto` is `fp32`.
        revision: Branch, tag or commit of a hub model.
        add_mask_token: Add a mask token to a model that has none; it means nothing before a training.
        label: For a model that gives several labels at once, the one to explain and measure.
        overlap: Number of tokens that neighboring windows share, at least, if a text is longer than the model
            can read; 0 truncates such a text.

    Returns:
        The classifier, in evaluation mode on the device.

    Raises:
        InputError: The model does not exist, its files are damaged, it has no trained head for exclusive
            classes, its tokenizer has no mask token or vocabulary, it needs code from its repository, windows
            cannot overlap so far, or the device is not available or does not support the precision.

    Example:
        >>> fm.load("no/such/folder")
        Traceback (most recent call last):
        ...
        faithmeter.errors.InputError: there is no folder 'no/such/folder'; expected a folder with ...
    """
    target = find_device(device)
    precision = require_precision(precision, target)
    path = local_copy(path, revision=revision)
    training = read_checkpoint(resolve(path))
    tokenizer = load_tokenizer(path, revision=revision, add_mask_token=add_mask_token)
    model, report = load_model(path, "model", dtype=torch.float32, revision=revision or "main")
    keys = report["mismatched_keys"]
    if keys:
        raise InputError(
            f"weights in {str(path)!r} have other shapes than its config.json says: {list_keys(keys)}"
        )
    keys = encoder_keys(model, report["missing_keys"])
    if keys:
        raise InputError(f"weights of the encoder in {str(path)!r} are missing: {list_keys(keys)}")
    keys = report["missing_keys"]
    if keys:  # transformers initializes them at random
        raise InputError(
            f"{str(path)!r} has no trained classifier head (missing {list_keys(keys)}); fine-tune it first: "
            f"faithmeter train --model {path} …"
        )
    if add_mask_token:
        add_embeddings(model, tokenizer)
    require_finite_weights(model, path)
    require_vocabulary(tokenizer, len(model.get_input_embeddings().weight), path)
    with reading("model", path):
        clf = Classifier(
            model,
            tokenizer,
            takes_pair=training.takes_pair,
            agreement=training.agreement,
            label=label,
            overlap=overlap,
        )
    clf.checkpoint = str(path)
    clf.place(target, precision)
    return clf


def choose_label(path: str | Path, label: str | None) -> str | None:
    """Return the label to load a model with: None for a model that does not give several at once."""
    return label if label is not None and kind_of_model(path) == "multi-label" else None


def kind_of_model(path: str | Path) -> Kind:
    """Return the kind of task that a model's head is for, as its config says."""
    from transformers import AutoConfig

    with reading("config", path):
        config = AutoConfig.from_pretrained(config_source(path), trust_remote_code=False)
    if predicts_number(config):
        return "regression"
    return "multi-label" if config.problem_type == MULTI_LABEL else "single-label"


class Training(NamedTuple):
    """Facts about a checkpoint's training that affect how the model is used."""

    takes_pair: bool | None = None
    """Whether the model takes pairs of texts; None if unknown."""
    agreement: float = math.nan
    """Agreement of an adapted model with the original; NaN for any other model."""


def read_checkpoint(path: str | Path) -> Training:
    """Verify the files of a checkpoint, and return facts about its training.

    Without a training record, nothing is verified, and the result says that the facts are unknown.

    Raises:
        InputError: A file is missing or has changed since it was written.
    """
    folder = Path(path)
    if not (folder / RECORD).is_file():
        return Training()
    record = read_sealed_json(folder / RECORD)
    for name, state in changes(folder, record.get("files", {})).items():
        if (name, state) != (LABELED, "missing"):  # the texts of an adaptation may be private
            raise InputError(f"{folder / name} is {state}; copy that checkpoint again, or train it again")
    columns = record.get("columns")
    agreement = record.get("agreement")
    return Training(
        takes_pair="context" in columns if columns else None,
        agreement=math.nan if agreement is None else agreement,
    )


def require_finite_weights(model: PreTrainedModel, path: str | Path) -> None:
    """Raise an InputError if a model has weights that are NaN or infinite."""
    keys = [name for name, weight in model.named_parameters() if not bool(weight.isfinite().all())]
    if keys:
        raise InputError(
            f"weights in {str(path)!r} are not finite: {list_keys(keys)}; the training diverged or the file "
            "is damaged: train or copy it again"
        )


def require_vocabulary(tokenizer: PreTrainedTokenizerBase, embeddings: int, path: str | Path) -> None:
    """Raise an InputError if a tokenizer knows no words, or more words than there are embeddings."""
    special = {*tokenizer.all_special_ids}
    ids = sorted(number for number in tokenizer.get_vocab().values() if number not in special)
    if ids and ids[-1] >= embeddings:
        raise InputError(
            f"the tokenizer in {str(path)!r} has ids up to {ids[-1]}, the model {embeddings} embeddings; "
            "expected the tokenizer that the model was trained with"
        )
    sample = [tokenizer.decode([number]) for number in ids[:: max(1, len(ids) // SAMPLE_WORDS)]]
    with reading("tokenizer", path):
        tokens = [
            token for text in sample for token in tokenizer(text, add_special_tokens=False)["input_ids"]
        ]
    if not tokens or tokens.count(tokenizer.unk_token_id) > MAX_UNKNOWN * len(tokens):
        raise InputError(
            f"the tokenizer in {str(path)!r} knows no words: every text would be unknown to the model; "
            "expected the tokenizer's files (tokenizer.json or its vocabulary) beside the weights"
        )


def encoder_keys(model: PreTrainedModel, keys: Iterable[str]) -> set[str]:
    """Return the names of the weights that belong to the encoder, not to the classifier head."""
    prefix = f"{model.base_model_prefix}."
    head = tuple(prefix + part for part in NEW_PARTS)
    return {key for key in keys if key.startswith(prefix) and not key.startswith(head)}


def list_keys(keys: Iterable[str]) -> str:
    """Return the first few names of weights and the number of the others, as text."""
    names = sorted(keys)
    more = f" and {len(names) - MAX_NAMED_KEYS} more" if len(names) > MAX_NAMED_KEYS else ""
    return ", ".join(names[:MAX_NAMED_KEYS]) + more
