"""Files of a model in a folder or on the hub: of transformers, of a sentence encoder, or of an adapter."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from ..config import EMBEDDED
from ..errors import InputError, optional
from .classifier import find_mask_id
from .heads import MODULES, OBJECT_FIRST, build, classes_of_head, explain_missing_head, read_layout
from .mask_token import add_tokens

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

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
PICKLED_MODULE = (
    "a pickled module",
    "build the module in Python, load its weights, and give it to fm.Classifier",
)
UNREADABLE = {
    ".onnx": ("an ONNX export", "save the PyTorch model that it was made from with save_pretrained"),
    ".h5": ("weights of TensorFlow", "convert them with a transformers 4 that has from_tf=True"),
    ".msgpack": ("weights of Flax", "convert them with a transformers 4 that has from_flax=True"),
    ".pkl": ("a pickle, which is not run", OBJECT_FIRST),
    ".joblib": ("a pickle, which is not run", OBJECT_FIRST),
    ".pt": PICKLED_MODULE,
    ".pth": PICKLED_MODULE,
}
"""By suffix: what the only files of a folder are, and what to do."""
MAX_REASON = 200
"""Maximum number of characters that an error quotes from a library's message."""


def load_model(
    path: str | Path, part: str, *, id2label: Mapping[int, str] | None = None, **options: Any
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """Return a pre-trained classifier and a report of its missing and mismatched weights.

    With `id2label`, the classifier is for these classes, and its head is new unless it was for as many. Only
    tensors are read from pickled weights, and no code from the model's repository is run.
    """
    from transformers import AutoModel, AutoModelForSequenceClassification

    folder = Path(resolve(local_copy(path, revision=options.get("revision"))))
    if id2label is not None:
        options |= {"id2label": id2label, "label2id": {name: number for number, name in id2label.items()}}
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
        encoder, report = _from_pretrained(AutoModel, layout.encoder, options)
        model, new = build(encoder, layout.parts, trained)
    # names as in the new model, where the encoder is a part; its pooler is not used
    missing = {f"encoder.{name}" for name in report["missing_keys"] if not name.startswith("pooler.")}
    return model, {**report, "missing_keys": missing | new}


def _from_pretrained(
    auto_class: Any, source: str | Path, options: Mapping[str, Any]
) -> tuple[PreTrainedModel, dict[str, Any]]:
    model, report = auto_class.from_pretrained(
        source,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # the caller looks at the report
        trust_remote_code=False,
        weights_only=True,
        **options,
    )
    # some versions of transformers tell the shapes, too
    mismatched = {key if isinstance(key, str) else key[0] for key in report["mismatched_keys"]}
    return model, {**report, "mismatched_keys": mismatched}


def _load_adapter(folder: Path, part: str, options: dict[str, Any]) -> tuple[PreTrainedModel, dict[str, Any]]:
    """Return the base model of a PEFT adapter with the adapter merged into its weights."""
    with optional():
        from peft import PeftModel
    from safetensors.torch import load_file

    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise InputError(
            f"there is no {ADAPTER_WEIGHTS} in {str(folder)!r}; save the adapter with safetensors"
        )
    tensors = load_file(folder / ADAPTER_WEIGHTS)
    saved = {
        name.removeprefix("base_model.model.") for name in tensors
    }  # not missing, though not in the base
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
    model, report = load_model(_base_of(folder), part, **{**names, **options, "revision": "main"})
    merged = PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
    return merged, {**report, "missing_keys": {*report["missing_keys"]} - saved, "mismatched_keys": set()}


def _base_of(folder: Path) -> str:
    """Return the folder or hub name of the model that an adapter was trained on."""
    return str(json.loads((folder / ADAPTER).read_text(encoding="utf-8"))["base_model_name_or_path"])


def config_source(path: str | Path) -> str:
    """Return the folder or the hub name with a model's config.json."""
    source = resolve(local_copy(path))
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

    source = resolve(local_copy(path, revision=revision))
    folder = Path(source)
    with reading("tokenizer", path):
        layout = read_layout(folder)
        if layout is not None:
            source = str(layout.encoder)
        elif (folder / ADAPTER).is_file() and not any(folder.glob("tokenizer*")):
            source, revision = resolve(_base_of(folder)), None
        options = {"trust_remote_code": False, "revision": revision or "main"}
        tokenizer = AutoTokenizer.from_pretrained(source, **options)
    if layout is not None:
        layout.apply_to(tokenizer)
    if add_mask_token:
        add_tokens(tokenizer, path)
    find_mask_id(tokenizer)
    return tokenizer


def resolve(path: str | Path) -> str:
    """Return the folder or the hub name of a model; raise an InputError if there is none that can be read."""
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


def local_copy(path: str | Path, *, revision: str | None = None) -> str | Path:
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
        raise InputError(
            f"no {part} could be loaded from {str(path)!r}: {quote_reason(error)}; {EXPECTED_SOURCE}"
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
