"""`Classifier`: an encoder with a mask token, and the operations that a measurement needs."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..config import SIDES, Precision
from ..errors import InputError
from .classes import class_names, class_number, list_classes, predicts_number, require_classes
from .devices import PRECISION_OF, place, send
from .encoding import PAD_TOKEN, encode, find_mask_id, tokenizer_state
from .hooks import Switch, hook_embeddings, hook_last_layer, hook_normalizations, largest_attended
from .objects import as_model
from .tokens import Batch
from .windows import Windows, average, largest, require_overlap, split_windows

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

NOT_DECISIVE = ("_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype", "use_cache")
"""Settings that describe a model's origin or storage and do not affect its output."""
PROBE_LENGTH = 8
"""Tokens of the input that shows which layers a model has, and whether the last one can be shortened."""
DEFAULT_MAX_LENGTH = 512
"""Maximum input length, in tokens, of a model that states no limit."""


class Classifier:
    """Sequence classification model with its tokenizer, in evaluation mode.

    Args:
        model: A Hugging Face model for sequence classification, or for regression if it has one output; a
            `SentenceTransformer` or a `SetFitModel`; or any torch module from `input_ids` and
            `attention_mask` to logits.
        tokenizer: Its tokenizer, which must have a mask token. If None, batches come from `Batch.from_ids`.
        mask_id: Id of the mask token; required without a tokenizer.
        takes_pair: True if the model was trained on pairs of texts, False if on single texts, None if
            unknown. If it is known, `encode` raises an InputError for texts of the other kind.
        agreement: For an adapted model, the share of held-out texts on which it predicts the same class as
            the original; NaN for any other model.
        label: For a model that gives several labels at once, the one to explain and measure. The classifier
            then has the two classes `not label` and `label`, with the logits -z/2 and z/2 for the label's z.
        overlap: Number of tokens that neighboring windows share, at least, if a text is longer than the model
            can read; 0 truncates such a text. Logits are the mean over the windows.
        head: Fitted linear classifier of scikit-learn on the vectors of a `SentenceTransformer`.
        labels: Names of the classes; None takes those of the model or the head.

    A model that predicts a number z has the classes `lower value` and `higher value`, with the logits -z and
    z: the scores for `higher value` say what raises the number, in its own unit.

    Raises:
        InputError: There is no mask token, the head predicts several numbers, it gives several labels and
            `label` is missing, or windows cannot overlap so far.

    Example:
        >>> clf = fm.Classifier(clf.model, clf.tokenizer)
        >>> clf.logits(batch).shape[1] == len(clf.labels)
        True
    """

    def __init__(
        self,
        model: PreTrainedModel | torch.nn.Module,
        tokenizer: PreTrainedTokenizerBase | None = None,
        *,
        head: object = None,
        labels: Sequence[str] | None = None,
        mask_id: int | None = None,
        takes_pair: bool | None = None,
        agreement: float = math.nan,
        label: str | int | None = None,
        overlap: int = 0,
    ) -> None:
        model, tokenizer = as_model(model, tokenizer, head, labels)
        require_classes(model.config, label)
        self.label = None if label is None else class_number(class_names(model.config), label)
        if tokenizer is not None:
            set_padding(model, tokenizer)
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.mask_id: int = find_mask_id(tokenizer) if mask_id is None else mask_id
        self.max_length = find_max_length(model, tokenizer)
        # each window has its own special tokens, which leave less room for the text
        special = tokenizer.num_special_tokens_to_add(pair=True) if overlap and tokenizer is not None else 0
        self.overlap = require_overlap(overlap, size=self.max_length, special=special)
        self.takes_pair = takes_pair
        self.agreement = agreement
        self.checkpoint = ""
        """Folder or hub name that the classifier was loaded from; empty if it was not loaded."""

    def __repr__(self) -> str:
        size = f"{sum(map(torch.numel, self.model.parameters())) / 1e6:.1f} M parameters"
        classes = f"{len(self.labels)} classes: {list_classes(self.labels)}"
        if self.predicts_number:
            classes = "predicts a number"
        return f"<Classifier {type(self.model).__name__}, {size}, {classes}>"

    @property
    def device(self) -> torch.device:
        """Device of the model's weights."""
        device: torch.device = next(self.model.parameters()).device
        return device

    @property
    def precision(self) -> str:
        """Data type that the model computes in, such as `fp32`."""
        dtype: torch.dtype = next(self.model.parameters()).dtype
        return PRECISION_OF.get(dtype, str(dtype).removeprefix("torch."))

    def place(self, device: torch.device, precision: Precision) -> None:
        """Move the model to a device and a precision; its fingerprint stays that of the saved weights."""
        if precision != self.precision:
            _ = self.fingerprint  # of the saved weights: a run is the same model in any precision
        place(self.model, device, precision)

    @property
    def predicts_number(self) -> bool:
        """Whether the model predicts a number instead of choosing a class."""
        return predicts_number(self.model.config)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes in index order."""
        names = class_names(self.model.config)
        if self.predicts_number:
            return SIDES
        return names if self.label is None else (f"not {names[self.label]}", names[self.label])

    @cached_property
    def fingerprint(self) -> str:
        """Digest of weights, settings and tokenizer; it does not depend on where the model is saved."""
        return fingerprint_model(self.model, self.tokenizer)

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> Batch:
        """Tokenize texts, each with its second text if `pairs` is given, into one padded batch.

        Raises:
            InputError: There are no texts, the numbers of texts and pairs differ, the model needs the other
                kind of input, or a text has no tokens.
        """
        if self.tokenizer is None:
            raise InputError("this Classifier has no tokenizer; give it one, or use Batch.from_ids")
        if isinstance(texts, str) or isinstance(pairs, str):
            raise InputError("texts and pairs are lists of strings; put one text in brackets: encode([text])")
        if pairs is not None and len(pairs) != len(texts):
            raise InputError(f"{len(texts)} texts with {len(pairs)} pairs; expected one pair for each text")
        if not texts:
            raise InputError("no texts were given; expected at least one")
        self.require_pairs(pairs)
        if self.tokenizer.pad_token_id is None:
            raise InputError(
                "the tokenizer has no padding token, which texts of several lengths need; set its pad_token, "
                "or pad_token in tokenizer_config.json"
            )
        rows = encode(self.tokenizer, texts, pairs, max_length=self.max_length, windows=self.overlap > 0)
        return Batch.from_rows(rows, pad_id=self.tokenizer.pad_token_id)

    def require_pairs(self, pairs: Sequence[str] | None) -> None:
        """Raise an InputError if a model trained on pairs is given single texts, or the reverse."""
        if self.takes_pair and pairs is None:
            raise InputError(
                "the model was trained on pairs of texts, and only one text was given; give the second one, "
                "too (pairs= in Python, behind the first on the command line)"
            )
        if self.takes_pair is False and pairs is not None:
            raise InputError("the model was trained on single texts, and a second text was given: omit it")

    def logits(self, batch: Batch) -> Tensor:
        """Return the logits of one forward pass, Tensor [B, C]."""
        windows = self.windows(batch)
        if windows is not None:
            return average(self.logits(windows.batch), windows.counts)
        return self._choose(self.model(**batch.inputs_on(self.device)).logits)

    def windows(self, batch: Batch) -> Windows | None:
        """Return the windows in which the model reads the texts; None if it can read each of them whole."""
        if not self.overlap or int(batch.attention_mask.sum(dim=1).max()) <= self.max_length:
            return None
        pad_id = self.model.config.pad_token_id if self.tokenizer is None else self.tokenizer.pad_token_id
        return split_windows(batch, size=self.max_length, overlap=self.overlap, pad_id=pad_id or 0)

    def _choose(self, logits: Tensor) -> Tensor:
        """Return the logits [B, C] of the classes: all of the model's, or two of a label or a number."""
        if self.predicts_number:
            return torch.cat([-logits, logits], dim=1)
        if self.label is None:
            return logits
        # the softmax of -z/2 and z/2 is the sigmoid of z
        chosen = logits[:, self.label] / 2
        return torch.stack([-chosen, chosen], dim=1)

    def embedding_matrix(self) -> Tensor:
        """Return the word embeddings of the whole vocabulary, Tensor [V, E]."""
        matrix: Tensor = self.model.get_input_embeddings().weight
        return matrix

    def embed(self, input_ids: Tensor) -> Tensor:
        """Return the word embeddings of tokens, Tensor [B, T, E], without position and type embeddings."""
        return torch.nn.functional.embedding(send(input_ids, self.device), self.embedding_matrix())

    def logits_at(self, embeddings: Tensor, batch: Batch) -> Tensor:
        """Return the logits [B, C] of a batch with its word embeddings replaced by `embeddings` [B, T, E].

        They are differentiable with respect to the embeddings.
        """
        windows = self.windows(batch)
        if windows is not None:
            return average(self.logits_at(windows.take(embeddings), windows.batch), windows.counts)
        with self._embeddings.set_to(embeddings):
            return self.logits(batch)

    def features(self, batch: Batch) -> Tensor:
        """Return the features that MaSF tests, Tensor [B, L, H]; see `states`."""
        return self.states(batch)[1]

    def states(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return logits [B, C] and features [B, L, H], the maximum of each layer's states over the tokens.

        The embeddings are the first layer. States are normalized: if a hidden state is not the output of a
        normalization layer, as in pre-norm encoders, the output of the next such layer takes its place. The
        tokens are those of all windows of a text.
        """
        windows = self.windows(batch)
        if windows is not None:
            logits, features = self.states(windows.batch)
            return average(logits, windows.counts), largest(features, windows.counts)
        inputs = batch.inputs_on(self.device)
        attended = inputs["attention_mask"].bool().unsqueeze(2)  # [B, T, 1]
        calls = self._calls
        reduced: list[Any] = []

        def reduce(before: Tensor, after: Tensor) -> None:
            # as soon as it is computed: states that are kept take as much memory as all else in a pass
            reduced.append(largest_attended(after, attended) if len(reduced) in calls else None)

        with self._norms.set_to(reduce):
            output = self.model(**inputs, output_hidden_states=None in calls)
        maxima = []
        for layer, call in enumerate(calls):
            if call is None:
                maxima.append(largest_attended(output.hidden_states[layer], attended))
            else:
                maxima.append(reduced[call])
        return self._choose(output.logits), torch.stack(maxima, dim=1)

    @cached_property
    def _calls(self) -> list[int | None]:
        """Call of a normalization layer that gives each layer's state, or else reads it; None without one."""
        seen: list[tuple[Tensor, Tensor]] = []  # keeps all tensors alive, so that no address is used twice
        with torch.no_grad(), self._norms.set_to(lambda *states: seen.append(states)):
            states = self.model(**self._probe, output_hidden_states=True).hidden_states
        calls: dict[int, int] = {}
        # several norms may read a state: the first of them is that of the next layer
        for call, (before, _) in enumerate(seen):
            calls.setdefault(before.data_ptr(), call)
        calls |= {after.data_ptr(): call for call, (_, after) in enumerate(seen)}
        return [calls.get(state.data_ptr()) for state in states]

    @cached_property
    def classified_only(self) -> Callable[[], AbstractContextManager[None]]:
        """Context in which forward passes skip what the logits do not depend on, if the model allows it."""
        skipping = hook_last_layer(self.model, lambda: self.model(**self._probe).logits)
        return partial(skipping.set_to, True)

    @property
    def _probe(self) -> dict[str, Tensor]:
        """Inputs that show what a forward pass does."""
        ids = torch.arange(PROBE_LENGTH)[None] % len(self.embedding_matrix())  # [1, T], in any vocabulary
        return {"input_ids": send(ids, self.device), "attention_mask": send(ids * 0 + 1, self.device)}

    @cached_property
    def _norms(self) -> Switch:
        return hook_normalizations(self.model)

    @cached_property
    def _embeddings(self) -> Switch:
        return hook_embeddings(self.model.get_input_embeddings())


def fingerprint_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    *,
    without: Collection[str] = (),
    settings_without: Collection[str] = (),
) -> str:
    """Return a digest of a model's weights, settings and tokenizer.

    `without` names weights to leave out, and `settings_without` settings.
    """
    settings = model.config.to_diff_dict()
    for name in (*NOT_DECISIVE, *settings_without):
        settings.pop(name, None)
    if hasattr(model, "head_settings"):
        settings["head"] = model.head_settings
    # the tokenizer belongs to the model: other tokens of a text are other inputs
    state = None if tokenizer is None else tokenizer_state(tokenizer)
    digest = hashlib.sha256(json.dumps([settings, state], sort_keys=True, default=str).encode())
    for name, tensor in sorted(model.state_dict().items()):
        if name not in without:
            digest.update(name.encode())
            # as bytes, since NumPy has no bfloat16
            digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def find_max_length(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None = None) -> int:
    """Return the maximum input length that model and tokenizer allow, in tokens with special tokens."""
    stated = getattr(model.config, "max_position_embeddings", None)
    limits = [getattr(tokenizer, "model_max_length", None), stated]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            unused = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - unused)  # RoBERTa numbers positions from padding_idx + 1
    # tokenizers that state no limit have a huge one, and some configs -1
    positive = (int(limit) for limit in limits if limit is not None and limit > 0)
    return min(positive, default=DEFAULT_MAX_LENGTH)


def add_embeddings(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Give a model an embedding for each token that `add_tokens` added: the mean of all others."""
    added = [tokenizer.mask_token_id]
    if tokenizer.pad_token == PAD_TOKEN and tokenizer.pad_token_id >= min(added) - 1:
        added.append(tokenizer.pad_token_id)
    matrix = model.get_input_embeddings().weight
    mean = matrix[: min(added)].detach().mean(dim=0)
    if max(added) >= len(matrix):
        model.resize_token_embeddings(max(added) + 1, mean_resizing=False)
    with torch.no_grad():
        model.get_input_embeddings().weight[added] = mean


def reads_last_token(model: PreTrainedModel) -> bool:
    """Return whether a classifier is a decoder, which reads its output at the last token before padding."""
    return hasattr(model, "score")


def set_padding(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Set the id of padding in a decoder, which must find its last token before padding."""
    if reads_last_token(model) and tokenizer.pad_token_id is not None:
        model.config.get_text_config().pad_token_id = tokenizer.pad_token_id
