"""Loading and verification of classifiers, encoders and tokenizers from a folder or the hub."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ..config import EMBEDDED, Kind, Precision
from ..data.task import LABELED
from ..errors import InputError, optional
from ..files import changes, read_sealed_json
from .classes import MULTI_LABEL, predicts_number
from .classifier import Classifier, add_embeddings
from .devices import find_device, require_precision
from .encoding import add_tokens, find_mask_id
from .heads import MODULES, OBJECT_FIRST, build, classes_of_head, explain_missing_head, read_layout

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

POOLER = "pooler."
"""Part of an encoder that may be missing before fine-tuning, since only the classifier head uses it."""
MAX_NAMED_KEYS = 4
"""Maximum number of weights that an error names; the others are counted."""
SAMPLE_WORDS = 64
"""Approximate number of vocabulary entries that are tokenized to check the tokenizer."""
MAX_UNKNOWN = 0.9
"""Maximum fraction of unknown tokens when a tokenizer encodes entries of its own vocabulary."""
EXPECTED_SOURCE = (
    f"expected a folder with a saved model and tokenizer, a hub name such as 'roberta-base', or {EMBEDDED!r}"
)
RECORD = "record.json"
"""Name of the training record in a checkpoint folder; it contains the checksums of the files."""
HUB_TIMEOUT = 10.0
"""Seconds to wait for the hub to answer whether it has a model."""
ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
"""Settings and weights of a PEFT adapter."""
HEAD = re.compile(r"(^|\.)(classifier|score)\.(?!.*lora_)")
"""Weights of a head in an adapter's file."""
MARKS = (RECORD, MODULES, ADAPTER)
"""Files that tell that a whole repository of the hub is needed, not what transformers would load."""
OWN_MODULE = "build the module in Python, load its weights, and give it to fm.Classifier"
UNREADABLE = {
    ".onnx": ("an ONNX export", "save the PyTorch model that it was made from with save_pretrained"),
    ".h5": ("weights of TensorFlow", "convert them with a transformers 4 that has from_tf=True"),
    ".msgpack": ("weights of Flax", "convert them with a transformers 4 that has from_flax=True"),
    ".pkl": ("a pickle, which is not run", OBJECT_FIRST),
    ".joblib": ("a pickle, which is not run", OBJECT_FIRST),
    ".pt": ("a pickled module", OWN_MODULE),
    ".pth": ("a pickled module", OWN_MODULE),
}
"""By suffix: what the only files of a folder are, and what to do."""
MAX_REASON = 200
"""Maximum number of characters that an error quotes from a library's message."""


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
    path = local_copy(path, revision)
    training = read_checkpoint(resolve(path))
    tokenizer = load_tokenizer(path, revision=revision, add_mask_token=add_mask_token)
    model, missing, mismatched = load_model(path, "model", revision=revision or "main")
    if mismatched:
        raise InputError(
            f"weights in {str(path)!r} have other shapes than its config.json says: {list_keys(mismatched)}"
        )
    absent = encoder_keys(model, missing)
    if absent:
        raise InputError(f"weights of the encoder in {str(path)!r} are missing: {list_keys(absent)}")
    if missing:  # transformers initializes them at random
        raise InputError(
            f"{str(path)!r} has no trained classifier head (missing {list_keys(missing)}); fine-tune it "
            f"first: faithmeter train --model {path} …"
        )
    complete(model, tokenizer, path, add_mask_token=add_mask_token)
    options: dict[str, Any] = {**training._asdict(), "label": label, "overlap": overlap}
    with reading("model", path):
        clf = Classifier(model, tokenizer, **options)
    clf.checkpoint = str(path)
    clf.place(target, precision)
    return clf


def complete(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, path: str | Path, *, add_mask_token: bool
) -> None:
    """Add the embedding of a mask token if asked to, and verify weights and vocabulary.

    Raises:
        InputError: A weight is not finite, or the tokenizer does not fit the model.
    """
    if add_mask_token:
        add_embeddings(model, tokenizer)
    keys = [name for name, weight in model.named_parameters() if not bool(weight.isfinite().all())]
    if keys:
        raise InputError(
            f"weights in {str(path)!r} are not finite: {list_keys(keys)}; the training diverged or the file "
            "is damaged: train or copy it again"
        )
    require_vocabulary(tokenizer, len(model.get_input_embeddings().weight), path)


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
    columns, agreement = record.get("columns"), record.get("agreement")
    takes_pair = "context" in columns if columns else None
    return Training(takes_pair, math.nan if agreement is None else agreement)


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
    tokens: list[int] = []
    with reading("tokenizer", path):
        for text in sample:
            tokens += tokenizer(text, add_special_tokens=False)["input_ids"]
    if not tokens or tokens.count(tokenizer.unk_token_id) > MAX_UNKNOWN * len(tokens):
        raise InputError(
            f"the tokenizer in {str(path)!r} knows no words: every text would be unknown to the model; "
            "expected the tokenizer's files (tokenizer.json or its vocabulary) beside the weights"
        )


def encoder_keys(model: PreTrainedModel, keys: Iterable[str]) -> set[str]:
    """Return the names of the weights that belong to the encoder, not to the classifier head."""
    prefix = f"{model.base_model_prefix}."
    return {key for key in keys if key.startswith(prefix) and not key.startswith(prefix + POOLER)}


def list_keys(keys: Iterable[str]) -> str:
    """Return the first few names of weights and the number of the others, as text."""
    names = sorted(keys)
    more = f" and {len(names) - MAX_NAMED_KEYS} more" if len(names) > MAX_NAMED_KEYS else ""
    return ", ".join(names[:MAX_NAMED_KEYS]) + more


def load_model(
    path: str | Path, part: str, *, id2label: Mapping[int, str] | None = None, **options: Any
) -> tuple[PreTrainedModel, set[str], set[str]]:
    """Return a pre-trained classifier, and the names of weights that are missing or have other shapes.

    With `id2label`, the classifier is for these classes, and its head is new unless it was for as many. Only
    tensors are read from pickled weights, and no code from the model's repository is run.
    """
    from transformers import AutoModel, AutoModelForSequenceClassification

    folder = Path(resolve(path, options.get("revision")))
    if id2label is not None:
        options |= {"id2label": id2label, "label2id": dict(zip(id2label.values(), id2label, strict=True))}
    with reading(part, path):
        if (folder / ADAPTER).is_file():
            return _load_adapter(folder, part, options)
        layout = read_layout(folder)
        trained = None if layout is None else classes_of_head(layout)
        if layout is None or (trained is None and id2label is not None):
            source = resolve(path) if layout is None else layout.encoder
            return _from_pretrained(AutoModelForSequenceClassification, source, options)
        if trained is None:
            raise InputError(explain_missing_head(folder, layout))
        encoder, missing, mismatched = _from_pretrained(AutoModel, layout.encoder, options)
        model, new = build(encoder, layout.parts, trained)
    # names as in the new model, where the encoder is a part; its pooler is not used
    missing = {f"encoder.{name}" for name in missing if not name.startswith(POOLER)}
    return model, missing | new, mismatched


def _from_pretrained(
    auto_class: Any, source: str | Path, options: Mapping[str, Any]
) -> tuple[PreTrainedModel, set[str], set[str]]:
    model, report = auto_class.from_pretrained(
        source,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # the caller looks at the report
        trust_remote_code=False,
        weights_only=True,
        dtype=torch.float32,
        **options,
    )
    # some versions of transformers tell the shapes, too
    mismatched = {key if isinstance(key, str) else key[0] for key in report["mismatched_keys"]}
    return model, {*report["missing_keys"]}, mismatched


def _load_adapter(
    folder: Path, part: str, options: dict[str, Any]
) -> tuple[PreTrainedModel, set[str], set[str]]:
    """Return the base model of a PEFT adapter with the adapter merged into its weights."""
    with optional():
        from peft import PeftModel
    from safetensors.torch import load_file

    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise InputError(f"no {ADAPTER_WEIGHTS} in {str(folder)!r}; save the adapter with safetensors")
    tensors = load_file(folder / ADAPTER_WEIGHTS)
    heads = [own for name, own in tensors.items() if own.ndim == 2 and HEAD.search(name)]
    if not heads:
        raise InputError(
            f"the adapter in {str(folder)!r} brings no classifier head; train it with task_type SEQ_CLS, or "
            "merge it into its classifier: model.merge_and_unload().save_pretrained(folder)"
        )
    classes = len(heads[-1])
    if len(options.get("id2label", range(classes))) != classes:
        raise InputError(
            f"the adapter in {str(folder)!r} is for {classes} classes, and the task has "
            f"{len(options['id2label'])}; merge it first, and train the merged model"
        )
    names = {} if "id2label" in options else {"num_labels": classes}
    model, missing, _ = load_model(_base_of(folder), part, **{**names, **options, "revision": "main"})
    merged = PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
    saved = {name.removeprefix("base_model.model.") for name in tensors}  # the adapter's own, not the base's
    return merged, missing - saved, set()


def _base_of(folder: Path) -> str:
    """Return the folder or hub name of the model that an adapter was trained on."""
    return str(json.loads((folder / ADAPTER).read_text(encoding="utf-8"))["base_model_name_or_path"])


def config_source(path: str | Path) -> str:
    """Return the folder or the hub name with a model's config.json."""
    source = resolve(path)
    folder = Path(source)
    if (folder / ADAPTER).is_file() and not (folder / "config.json").is_file():
        return config_source(_base_of(folder))
    layout = read_layout(folder)
    return source if layout is None else str(layout.encoder)


def require_weights(folder: Path) -> None:
    """Raise an InputError if a folder holds a model only in a format that is not read."""
    for weights in ("*.safetensors", "*.bin", "*/*.safetensors", "*/*.bin"):
        if any(folder.glob(weights)):
            return
    for suffix, (kind, remedy) in UNREADABLE.items():
        files = sorted([*folder.glob(f"*{suffix}"), *folder.glob(f"onnx/*{suffix}")])
        if files:
            raise InputError(f"{str(folder)!r} holds only {kind} ({files[0].name}); {remedy}")


def load_tokenizer(
    path: str | Path, *, revision: str | None = None, add_mask_token: bool = False
) -> PreTrainedTokenizerBase:
    """Return the tokenizer of a model; raise an InputError if it has no mask token and none is added."""
    from transformers import AutoTokenizer

    source = resolve(path, revision)
    folder = Path(source)
    with reading("tokenizer", path):
        layout = read_layout(folder)
        if layout is not None:
            source = str(layout.encoder)
        elif (folder / ADAPTER).is_file() and not any(folder.glob("tokenizer*")):
            source, revision = resolve(_base_of(folder)), None
        revision = revision or "main"
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False, revision=revision)
    if layout is not None:
        layout.apply_to(tokenizer)
    if add_mask_token:
        add_tokens(tokenizer, path)
    find_mask_id(tokenizer)
    return tokenizer


def resolve(path: str | Path, revision: str | None = None) -> str:
    """Return the folder or the hub name of a model; raise an InputError if there is none that can be read."""
    path = local_copy(path, revision)
    name = str(path)
    if name == EMBEDDED:
        return str(Path(__file__).parent / "embedded")
    folder = Path(path)
    if name and folder.is_dir():
        require_weights(folder)
        return name
    if folder.is_file():
        kind, remedy = UNREADABLE.get(folder.suffix, ("a file", EXPECTED_SOURCE))
        raise InputError(f"{name!r} is {kind}; {remedy}")
    if isinstance(path, Path) or _looks_local(name):
        raise InputError(f"there is no folder {name!r}; {EXPECTED_SOURCE}")
    _require_on_hub(name)
    return name


def local_copy(path: str | Path, revision: str | None = None) -> str | Path:
    """Return the folder of a hub model that is more than one of transformers, downloaded; any other path.

    Such are checkpoints of faithmeter, with their record and their tests, sentence encoders and adapters.
    """
    name = str(path)
    if isinstance(path, Path) or name == EMBEDDED or Path(name).exists() or _looks_local(name):
        return path
    _require_on_hub(name)
    return _download(name, revision) or path


@cache
def _download(name: str, revision: str | None) -> Path | None:
    """Download a repository of the hub if it has one of the `MARKS`; return None if it has none."""
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError

    for mark in MARKS:  # a small file each, asked for before any weights
        try:
            huggingface_hub.hf_hub_download(name, mark, revision=revision)
        except EntryNotFoundError:  # also without a network, if the cache has none
            continue
        with reading("checkpoint", name):
            return Path(huggingface_hub.snapshot_download(name, revision=revision))
    return None


def _looks_local(name: str) -> bool:
    """Return whether a name looks like a path; hub names have the form `name` or `owner/name`."""
    first, *rest = name.split("/")
    return not first or name[0] in ".~" or "\\" in name or len(rest) > 1 or "" in rest or Path(first).is_dir()


@cache
def _require_on_hub(name: str) -> None:
    """Raise an InputError unless a model is on the hub or in its local cache.

    Loading would check this as well, but without a network it retries for most of a minute.
    """
    if set(name) & set("*?["):  # the shell found nothing to put in its place
        raise InputError(f"no folder matches {name!r}; those of a store: faithmeter list runs")
    import huggingface_hub

    try:
        if not isinstance(huggingface_hub.try_to_load_from_cache(name, "config.json"), str):
            huggingface_hub.model_info(name, timeout=HUB_TIMEOUT)
    except Exception as error:  # no valid name, no such model, no access, no network
        raise InputError(
            f"there is no folder {name!r} here, and the hub gave no model of that name "
            f"({quote_reason(error)}); {EXPECTED_SOURCE}"
        ) from error


@contextmanager
def reading(part: str, path: str | Path) -> Iterator[None]:
    """Convert any exception in the block to an InputError about this part of a model."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # libraries raise errors of every type for broken files
        reason = quote_reason(error)
        raise InputError(
            f"no {part} could be loaded from {str(path)!r}: {reason}; {EXPECTED_SOURCE}"
        ) from error


def quote_reason(error: Exception) -> str:
    """Return the message of a library's exception as one short line."""
    text = " ".join(str(error).split())
    first: BaseException = error
    while first.__context__ is not None:  # transformers 4 raises other errors while it handles this one
        first = first.__context__
    if isinstance(first, UnpicklingError):
        return "its pickled weights hold more than tensors, and no code is run; save them as safetensors"
    if "custom code" in text or "trust_remote_code" in text:
        return "it needs code from its repository, which is not run"
    if not isinstance(error, OSError | ValueError):
        text = f"{type(error).__name__}: {text}"
    return textwrap.shorten(text, MAX_REASON, placeholder=" …").rstrip(".")
