"""Classifier: any Hugging Face encoder with a mask token, behind the few methods that measuring needs."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..config import EMBEDDED
from ..errors import InputError, unknown
from .tokens import Batch, encode, tokenizer_state

NOT_DECISIVE = ("_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype", "use_cache")
"""Settings of a model that say where it comes from or how it is stored, not what it puts out."""


class Classifier:
    """A sequence classification model with its tokenizer, in evaluation mode.

    Without a tokenizer, `mask_id` must be given, and batches come from `Batch.from_ids`.
    """

    def __init__(self, model: Any, tokenizer: Any = None, *, mask_id: int | None = None) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.mask_id: int = find_mask_id(tokenizer) if mask_id is None else mask_id
        self.max_length = find_max_length(model, tokenizer)

    @property
    def device(self) -> torch.device:
        device: torch.device = next(self.model.parameters()).device
        return device

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes in index order."""
        names = self.model.config.id2label
        return tuple(str(names[i]) for i in range(self.model.config.num_labels))

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of weights, settings and tokenizer: the same wherever the model is saved."""
        return fingerprint_model(self.model, self.tokenizer)

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> Batch:
        """Tokenize texts, and `pairs`, their context column, into one padded batch."""
        if self.tokenizer is None:
            raise InputError(
                "this Classifier has no tokenizer; give it one, or make the batch with Batch.from_ids"
            )
        if isinstance(texts, str) or isinstance(pairs, str):
            raise InputError(
                "texts and pairs are lists of strings; put a single text in brackets: encode([text])"
            )
        if pairs is not None and len(pairs) != len(texts):
            raise InputError(f"{len(texts)} texts with {len(pairs)} pairs; expected one pair for each text")
        if not texts:
            raise InputError("no texts were given; expected at least one")
        columns = encode(self.tokenizer, texts, pairs, max_length=self.max_length, layouts=True)
        rows = [{name: column[i] for name, column in columns.items()} for i in range(len(texts))]
        return Batch.from_rows(rows, pad_id=self.tokenizer.pad_token_id)

    def logits(self, batch: Batch) -> Tensor:
        """[B, C], of one forward pass."""
        logits: Tensor = self.model(**batch.to(self.device).inputs).logits
        return logits

    def embedding_matrix(self) -> Tensor:
        """[V, E]: the word embeddings."""
        matrix: Tensor = self.model.get_input_embeddings().weight
        return matrix

    def embed(self, input_ids: Tensor) -> Tensor:
        """[B, T, E]: word embeddings alone, before positions, token types and normalization."""
        return torch.nn.functional.embedding(input_ids.to(self.device), self.embedding_matrix())

    def logits_at(self, embeddings: Tensor, batch: Batch) -> Tensor:
        """[B, C] with the word embeddings given, differentiable with respect to them."""
        with self._words.replaced_by(embeddings):
            return self.logits(batch)

    def features(self, batch: Batch) -> Tensor:
        """[B, L, H]: what MaSF looks at, see `states`."""
        return self.states(batch)[1]

    def states(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Logits [B, C] and the maximum over tokens of every layer's normalized hidden state, [B, L, H].

        The embeddings are the first layer. A state that is not the output of a normalization itself, as in
        pre-norm encoders, is taken as the next normalization puts it out.
        """
        batch = batch.to(self.device)
        with self._norms.noted() as noted:
            output = self.model(**batch.inputs, output_hidden_states=True)
        attended = batch.attention_mask.bool().unsqueeze(2)  # [B, T, 1]
        layers = [noted.normalized(state) for state in output.hidden_states]  # [B, T, H] each
        features = [state.masked_fill(~attended, -torch.inf).amax(dim=1) for state in layers]
        return output.logits, torch.stack(features, dim=1)

    @cached_property
    def _norms(self) -> _NormalizationHooks:
        return _NormalizationHooks(self.model)

    @cached_property
    def _words(self) -> _WordHook:
        return _WordHook(self.model.get_input_embeddings())


def fingerprint_model(
    model: Any, tokenizer: Any, *, without: Collection[str] = (), settings_without: Collection[str] = ()
) -> str:
    """Return a digest of all that decides a model's outputs, except for some weights and settings."""
    settings = {
        name: value
        for name, value in model.config.to_diff_dict().items()
        if name not in (*NOT_DECISIVE, *settings_without)
    }
    state = None if tokenizer is None else tokenizer_state(tokenizer)
    digest = hashlib.sha256(json.dumps([settings, state], sort_keys=True, default=str).encode())
    for name, tensor in sorted(model.state_dict().items()):
        if name not in without:
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


class _WordHook:
    """Puts given word embeddings in the place of those that a model looks up.

    The model still reads the ids, which some need for more (ESM's token dropout); `inputs_embeds` would hide
    them. Threads that use the model do not see each other.
    """

    def __init__(self, lookup: torch.nn.Module) -> None:
        self._here = threading.local()
        lookup.register_forward_hook(lambda *_: getattr(self._here, "embeddings", None))

    @contextmanager
    def replaced_by(self, embeddings: Tensor) -> Iterator[None]:
        self._here.embeddings = embeddings
        try:
            yield
        finally:
            self._here.embeddings = None


class _NormalizationHooks:
    """Watches every normalization layer of a model; threads that use the model do not see each other."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._here = threading.local()
        for module in model.modules():
            if "norm" in type(module).__name__.lower():
                module.register_forward_hook(self._note)

    @contextmanager
    def noted(self) -> Iterator[_Normalizations]:
        self._here.noted = _Normalizations()
        try:
            yield self._here.noted
        finally:
            self._here.noted = None

    def _note(self, module: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        noted = getattr(self._here, "noted", None)
        if noted is not None:
            noted.add(inputs[0], output)


class _Normalizations:
    """What went in and out of normalization layers in one forward pass, by address.

    Holding on to the tensors keeps an address from being used twice.
    """

    def __init__(self) -> None:
        self._by_input: dict[int, tuple[Tensor, Tensor]] = {}
        self._by_output: dict[int, Tensor] = {}

    def add(self, before: Tensor, after: Tensor) -> None:
        self._by_input.setdefault(before.data_ptr(), (before, after))
        self._by_output[after.data_ptr()] = after

    def normalized(self, state: Tensor) -> Tensor:
        if state.data_ptr() in self._by_output:
            return state
        return self._by_input.get(state.data_ptr(), (state, state))[1]


def load(path: str | Path, *, dtype: torch.dtype = torch.float32, **options: Any) -> Classifier:
    """The classifier of a checkpoint: a folder of `faithmeter train`, another saved model, or a hub name."""
    from transformers import AutoModelForSequenceClassification

    name = resolve(path)
    tokenizer = load_tokenizer(path)
    try:
        model, info = AutoModelForSequenceClassification.from_pretrained(
            name, dtype=dtype, output_loading_info=True, **options
        )
    except (OSError, ValueError) as error:
        raise InputError(f"no model could be loaded from {str(path)!r}: {_first_line(error)}") from error
    if missing := ", ".join(sorted(info["missing_keys"])[:4]):  # transformers makes them up
        raise InputError(
            f"{str(path)!r} has no trained classifier head (missing {missing}); fine-tune it first: "
            f"faithmeter train --model {path} …"
        )
    return Classifier(model, tokenizer)


def class_number(classes: Sequence[str], label: str | int) -> int:
    """The number of a class given by its name or its number."""
    if label in classes:
        return classes.index(str(label))
    if str(label).isdecimal() and int(label) < len(classes):
        return int(label)
    raise unknown("label", str(label), classes)


def load_tokenizer(path: str | Path) -> Any:
    """The tokenizer of a checkpoint; it must know a mask token."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(resolve(path))
    except (OSError, ValueError) as error:
        raise InputError(
            f"no tokenizer could be loaded from {str(path)!r}: {_first_line(error)}; expected a folder with "
            f"a saved model and tokenizer, a hub name such as 'roberta-base', or {EMBEDDED!r}"
        ) from error
    find_mask_id(tokenizer)
    return tokenizer


def resolve(path: str | Path) -> str:
    """Where a model's files are: the embedded one lies in the package, the others where they say."""
    return str(Path(__file__).parent / "embedded") if str(path) == EMBEDDED else str(path)


def find_mask_id(tokenizer: Any) -> int:
    mask_id = getattr(tokenizer, "mask_token_id", None)
    if mask_id is None:
        name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
        raise InputError(
            f"the tokenizer of {name!r} has no mask token; expected a masked language model such as "
            "roberta-base, or mask_id=… of a token that stands for 'nothing'"
        )
    return int(mask_id)


def find_max_length(model: Any, tokenizer: Any = None) -> int:
    """The longest input, in tokens with the special ones, that model and tokenizer allow."""
    limits = [
        getattr(tokenizer, "model_max_length", None),
        getattr(model.config, "max_position_embeddings", None),
    ]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            # RoBERTa-like models number positions from padding_idx + 1
            limits.append(
                module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
            )
    return min((int(limit) for limit in limits if limit is not None and limit > 0), default=512)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")
