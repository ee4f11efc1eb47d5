"""Loading and verification of classifiers, encoders and tokenizers from a folder or the hub."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ..config import EMBEDDED, Kind, Precision
from ..data.labeled import LABELED
from ..errors import InputError
from ..files import changes, read_sealed_json
from .classes import MULTI_LABEL, predicts_number
from .classifier import Classifier, find_mask_id
from .devices import find_device, require_precision
from .mask_token import add_embeddings, add_tokens

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

EXPECTED_SOURCE = (
    f"expected a folder with a saved model and tokenizer, a hub name such as 'roberta-base', or {EMBEDDED!r}"
)
RECORD = "record.json"
"""Name of the training record in a checkpoint folder; it contains the checksums of the files."""
HUB_TIMEOUT = 10.0
"""Seconds to wait for the hub to answer whether it has a model."""
NEW_PARTS = ("pooler.",)
"""Parts of an encoder that may be missing before fine-tuning, since only the classifier head uses them."""
MAX_NAMED_KEYS = 4
"""Maximum number of weights that an error names; the others are counted."""
MAX_REASON = 200
"""Maximum number of characters that an error quotes from a library's message."""
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
        path: A checkpoint folder of `faithmeter train`, a folder of another saved model, or a hub name. A
            checkpoint of faithmeter comes with its record and its fitted tests (see `saved_tests`).
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
    from transformers import AutoModelForSequenceClassification

    target = find_device(device)
    precision = require_precision(precision, target)
    path = local_copy(path, revision=revision)
    training = read_checkpoint(resolve(path))
    tokenizer = load_tokenizer(path, revision=revision, add_mask_token=add_mask_token)
    options = {"dtype": torch.float32, "revision": revision or "main"}
    model, report = load_model(AutoModelForSequenceClassification, path, "model", **options)
    if keys := report["mismatched_keys"]:
        names = list_keys(key for key, *_ in keys)
        raise InputError(f"weights in {str(path)!r} have other shapes than its config.json says: {names}")
    if keys := encoder_keys(model, report["missing_keys"]):
        raise InputError(f"weights of the encoder in {str(path)!r} are missing: {list_keys(keys)}")
    if keys := report["missing_keys"]:  # transformers initializes them at random
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
        config = AutoConfig.from_pretrained(resolve(path), trust_remote_code=False)
    if predicts_number(config):
        return "regression"
    return "multi-label" if config.problem_type == MULTI_LABEL else "single-label"


def load_model(
    auto_class: Any, path: str | Path, part: str, **options: Any
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """Return a pre-trained model and a report of its missing and mismatched weights.

    Only tensors are read from pickled weights, and no code from the model's repository is run.
    """
    with reading(part, path):
        model, report = auto_class.from_pretrained(
            resolve(path),
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # the caller looks at the report
            trust_remote_code=False,
            weights_only=True,
            **options,
        )
    return model, report


def load_tokenizer(
    path: str | Path, *, revision: str | None = None, add_mask_token: bool = False
) -> PreTrainedTokenizerBase:
    """Return the tokenizer of a model; raise an InputError if it has no mask token and none is added."""
    from transformers import AutoTokenizer

    options = {"trust_remote_code": False, "revision": revision or "main"}
    with reading("tokenizer", path):
        tokenizer = AutoTokenizer.from_pretrained(resolve(path), **options)
    if add_mask_token:
        add_tokens(tokenizer, path)
    find_mask_id(tokenizer)
    return tokenizer


def resolve(path: str | Path) -> str:
    """Return the folder or the hub name of a model; raise an InputError if neither exists."""
    name = str(path)
    if name == EMBEDDED:
        return str(Path(__file__).parent / "embedded")
    folder = Path(path)
    if name and folder.is_dir():
        return name
    if folder.is_file():
        raise InputError(f"{name!r} is a file; {EXPECTED_SOURCE}")
    if isinstance(path, Path) or _looks_local(name):
        raise InputError(f"there is no folder {name!r}; {EXPECTED_SOURCE}")
    _require_on_hub(name)
    return name


def local_copy(path: str | Path, *, revision: str | None = None) -> str | Path:
    """Return the folder of a checkpoint of faithmeter on the hub, downloaded; any other path as it is.

    Beside the weights it holds the training record and the fitted tests.
    """
    name = str(path)
    if isinstance(path, Path) or name == EMBEDDED or Path(name).exists() or _looks_local(name):
        return path
    _require_on_hub(name)
    return _download(name, revision) or path


@cache
def _download(name: str, revision: str | None) -> Path | None:
    """Download a repository of the hub with a training record; return None if it has none."""
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError

    try:
        huggingface_hub.hf_hub_download(name, RECORD, revision=revision)
    except EntryNotFoundError:  # also without a network, if the cache has none
        return None
    with reading("checkpoint", name):
        return Path(huggingface_hub.snapshot_download(name, revision=revision))


def _looks_local(name: str) -> bool:
    """Return whether a name looks like a path; hub names have the form `name` or `owner/name`."""
    first, *rest = name.split("/")
    return not first or name[0] in ".~" or "\\" in name or len(rest) > 1 or "" in rest or Path(first).is_dir()


@cache
def _require_on_hub(name: str) -> None:
    """Raise an InputError unless a model is on the hub or in its local cache.

    Loading would check this as well, but without a network it retries for most of a minute.
    """
    import huggingface_hub

    try:
        if not isinstance(huggingface_hub.try_to_load_from_cache(name, "config.json"), str):
            huggingface_hub.model_info(name, timeout=HUB_TIMEOUT)
    except Exception as error:  # no valid name, no such model, no access, no network
        raise InputError(
            f"there is no folder {name!r} here, and the hub gave no model of that name "
            f"({quote_reason(error)}); {EXPECTED_SOURCE}"
        ) from error


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


@contextmanager
def reading(part: str, path: str | Path) -> Iterator[None]:
    """Convert any exception in the block to an InputError about this part of a model."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # libraries raise errors of every type for broken files
        raise InputError(
            f"no {part} could be loaded from {str(path)!r}: {quote_reason(error)}; {EXPECTED_SOURCE}"
        ) from error


def quote_reason(error: Exception) -> str:
    """Return the message of a library's exception as one short line."""
    text = " ".join(str(error).split())
    if isinstance(error, UnpicklingError):
        return "its pickled weights hold more than tensors, and no code is run; save them as safetensors"
    if "custom code" in text or "trust_remote_code" in text:
        return "it needs code from its repository, which is not run"
    if not isinstance(error, OSError | ValueError):
        text = f"{type(error).__name__}: {text}"
    return textwrap.shorten(text, MAX_REASON, placeholder=" …").rstrip(".")


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
