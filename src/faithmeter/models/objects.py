"""Python objects as classifiers: sentence encoders with a fitted head, and torch modules that give logits."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError
from .classes import MULTI_LABEL
from .heads import (
    FLAGS,
    Dense,
    Normalize,
    Part,
    SentenceClassifier,
    linear_layer,
    pooling_and_layers,
    two_logits,
)
from .hooks import Switch

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PROBE = 4
"""Tokens of the input that shows what a module returns."""


def as_model(
    model: Any, tokenizer: PreTrainedTokenizerBase | None, head: Any, labels: Sequence[str] | None
) -> tuple[Any, PreTrainedTokenizerBase | None]:
    """Return a model with the interface of transformers, and its tokenizer, made from what a user brings.

    Args:
        model: A classifier of transformers, one with PEFT adapters, a `SentenceTransformer`, a `SetFitModel`,
            or a torch module.
        tokenizer: Its tokenizer; None takes that of the model, if it has one.
        head: Fitted linear classifier of scikit-learn, for a `SentenceTransformer`.
        labels: Names of the classes; None takes those of model or head.

    Raises:
        InputError: The model or the head cannot be used.
    """
    if hasattr(model, "model_body") or _is_sentence_encoder(model):
        model, own = _sentence_classifier(model, head, labels)
        return model, tokenizer or own
    if head is not None:
        raise InputError(
            f"head was given with a {type(model).__name__}; expected a SentenceTransformer, or leave it out"
        )
    if hasattr(model, "merge_and_unload"):  # adapters, which stay in the user's object
        model = copy.deepcopy(model).merge_and_unload()
    if not isinstance(model, torch.nn.Module):
        raise InputError(
            f"model is a {type(model).__name__}; expected a torch module, or load it with fm.load"
        )
    if not (hasattr(model, "config") and hasattr(model, "get_input_embeddings")):
        return TorchClassifier(model, tokenizer, labels), tokenizer
    if labels is not None:
        config: Any = model.config
        _name_classes(config, labels, config.num_labels)
    return model, tokenizer


def _is_sentence_encoder(model: Any) -> bool:
    return isinstance(model, torch.nn.Sequential) and len(model) > 0 and hasattr(model[0], "auto_model")


def _name_classes(config: Any, labels: Sequence[str], outputs: int) -> None:
    if isinstance(labels, str) or len(labels) != outputs:
        raise InputError(
            f"labels are {labels!r}, and the model gives {outputs} logits; expected as many names"
        )
    config.id2label = dict(enumerate(map(str, labels)))
    config.label2id = dict(zip(config.id2label.values(), config.id2label, strict=True))


def _sentence_classifier(
    body: Any, head: Any, labels: Sequence[str] | None
) -> tuple[SentenceClassifier, PreTrainedTokenizerBase]:
    """Return the classifier and the tokenizer of a `SentenceTransformer` with a head, or a `SetFitModel`.

    Coefficients are read from the objects; their libraries are not needed.
    """
    scaled = []
    if hasattr(body, "model_body"):  # SetFit
        head = body.model_head if head is None else head
        labels = body.labels if labels is None else labels
        scaled = [Normalize()] if getattr(body, "normalize_embeddings", False) else []
        body = body.model_body
    first, *others = body
    # classes are told by name, so that neither library needs to be installed
    parts = [Part(type(module).__name__, _settings(module), module.state_dict()) for module in others]
    pooling, layers = pooling_and_layers(parts)
    problem = None
    if head is not None:
        weight, bias, labels, problem = read_linear(head, labels)
        layers += [*scaled, Dense(linear_layer(weight, bias))]
    elif not (labels and layers and isinstance(layers[-1], Dense)):
        raise InputError(
            "the SentenceTransformer has no head; give its fitted linear head with head=…, or the names of "
            "the classes that its last dense layer gives with labels=…"
        )
    config, device = first.auto_model.config, next(first.auto_model.parameters()).device
    _name_classes(config, labels or (), layers[-1].linear.out_features)
    config.problem_type = problem
    return SentenceClassifier(first.auto_model, pooling, layers).to(device), first.tokenizer


def read_linear(head: Any, labels: Sequence[str] | None) -> tuple[Tensor, Tensor, list[str], str | None]:
    """Return weights [C, H], biases [C], class names and problem type of a fitted linear classifier.

    The logits are its decision values; one value z for two classes becomes the logits 0 and z.

    Raises:
        InputError: The head is not linear, or not fitted.
    """
    linear = getattr(head, "linear", None)
    if isinstance(linear, torch.nn.Linear):  # SetFit's own head
        scale = getattr(head, "temperature", 1.0) + getattr(head, "eps", 0.0)
        weight = linear.weight.detach().cpu() / scale
        bias = weight.new_zeros(len(weight)) if linear.bias is None else linear.bias.detach().cpu() / scale
        several, classes = bool(getattr(head, "multitarget", False)), [*range(len(weight))]
    else:
        several = hasattr(head, "estimators_")
        members = head.estimators_ if several else [head]
        try:
            weight = torch.from_numpy(np.concatenate([np.atleast_2d(own.coef_) for own in members])).float()
            bias = torch.from_numpy(np.concatenate([np.ravel(own.intercept_) for own in members])).float()
            classes = [*range(len(weight))] if several else [*head.classes_]
        except (AttributeError, ValueError):
            raise InputError(
                f"head is a {type(head).__name__}; expected a fitted linear classifier of scikit-learn, with "
                "coef_, intercept_ and classes_, such as LogisticRegression"
            ) from None
        bias = bias.expand(len(weight)).clone()  # [C]; intercept_ is 0.0 without one
    if len(weight) == 1 and len(classes) == 2:
        weight, bias = two_logits(weight, bias)
    names = [*map(str, classes)]
    if labels is not None and all(map(str.isdecimal, names)):  # numbers stand for the names of the labels
        names = [str(labels[int(name)]) for name in names]
    return weight, bias, names, MULTI_LABEL if several else None


def _settings(module: Any) -> dict[str, Any]:
    """Return the attributes of a module of sentence-transformers that decide its output."""
    names = ("pooling_mode", *FLAGS, "in_features", "out_features", "use_residual")
    settings = {name: getattr(module, name) for name in names if hasattr(module, name)}
    if hasattr(module, "activation_function"):
        activation = type(module.activation_function)
        settings["activation_function"] = f"{activation.__module__}.{activation.__qualname__}"
    return settings


class TorchClassifier(torch.nn.Module):
    """Any torch module from token ids to logits, with the interface of a classifier of transformers.

    Its word embeddings are the embedding layer with a row for each token. Its hidden states are what the
    items of its longest list of layers read and give, or else the embeddings. `save_pretrained` is missing:
    nothing would tell how to build the module again.
    """

    base_model_prefix = "module"

    def __init__(
        self, module: torch.nn.Module, tokenizer: PreTrainedTokenizerBase | None, labels: Sequence[str] | None
    ) -> None:
        from transformers import PretrainedConfig

        super().__init__()
        self.module = module.eval()
        self.accepted = _parameters(module)
        tokens = 0 if tokenizer is None else len(tokenizer)
        self._lookup = [_find_embeddings(module, tokens)]  # in a list, so that its weights have one name
        with torch.inference_mode():
            lookup = self._lookup[0]
            ids = torch.arange(PROBE, device=lookup.weight.device)[None] % lookup.num_embeddings  # [1, T]
            logits = self._logits({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
        config = PretrainedConfig(num_labels=logits.shape[1])
        if tokenizer is not None:
            config.pad_token_id = tokenizer.pad_token_id
        if labels is not None:
            _name_classes(config, labels, logits.shape[1])
        self.config = config
        self._states = hook_states(module, self._lookup[0])

    @property
    def head_settings(self) -> str:
        """Values that the output depends on besides weights and config."""
        return f"{type(self.module).__module__}.{type(self.module).__qualname__}"

    def get_input_embeddings(self) -> torch.nn.Embedding:
        return self._lookup[0]

    def forward(
        self, output_hidden_states: bool = False, output_attentions: bool = False, **inputs: Any
    ) -> Any:
        from transformers.modeling_outputs import SequenceClassifierOutput

        if not output_hidden_states:
            return SequenceClassifierOutput(logits=self._logits(inputs))
        states: list[Tensor] = []
        with self._states.set_to(states):
            logits = self._logits(inputs)
        shape = tuple(inputs["input_ids"].shape)
        for state in states:
            if state.shape[:2] != shape:
                raise InputError(
                    f"a layer of the {type(self.module).__name__} reads or gives states {tuple(state.shape)} "
                    f"for {shape[0]} texts of {shape[1]} tokens, expected [texts, tokens, width]: batch_first"
                )
        return SequenceClassifierOutput(logits=logits, hidden_states=tuple(states))

    def _logits(self, inputs: dict[str, Tensor]) -> Tensor:
        if self.accepted is not None:
            inputs = {name: value for name, value in inputs.items() if name in self.accepted}
        output = self.module(**inputs)
        if isinstance(output, dict):
            output = output.get("logits")
        output = getattr(output, "logits", output)
        logits = output[0] if isinstance(output, tuple) else output
        if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(inputs["input_ids"]):
            shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise InputError(
                f"the {type(self.module).__name__} returns {shape}; expected logits [texts, classes]"
            )
        return logits


def hook_states(module: torch.nn.Module, lookup: torch.nn.Module) -> Switch:
    """Return the switch whose value, a list, receives the states that enter and leave the layers."""
    states = Switch()

    def add(output: Any) -> None:
        if states.value is not None:
            states.value.append(output[0] if isinstance(output, tuple) else output)

    lists = [own for own in module.modules() if isinstance(own, torch.nn.ModuleList) and len(own)]
    layers: Any = max(lists, key=len, default=[])
    if layers:
        layers[0].register_forward_pre_hook(
            lambda own, inputs, options: add(next(iter((*inputs, *options.values())))), with_kwargs=True
        )
    for layer in layers or [lookup]:
        layer.register_forward_hook(lambda own, inputs, output: add(output))
    return states


def _parameters(module: torch.nn.Module) -> set[str] | None:
    """Return the names of the inputs that a module takes; None if it takes any."""
    parameters = inspect.signature(module.forward).parameters
    anything = any(own.kind is own.VAR_KEYWORD for own in parameters.values())
    if "input_ids" not in parameters and not anything:
        raise InputError(
            f"forward of the {type(module).__name__} takes {', '.join(parameters) or 'nothing'}; expected "
            "input_ids and attention_mask, as the tokenizers of transformers give them"
        )
    return None if anything else {*parameters}


def _find_embeddings(module: torch.nn.Module, tokens: int) -> torch.nn.Embedding:
    """Return the layer that looks up word embeddings: the one with the fewest rows that suffice."""
    lookups = [own for own in module.modules() if isinstance(own, torch.nn.Embedding)]
    fitting = [own for own in lookups if own.num_embeddings >= tokens]
    if not fitting:
        sizes = ", ".join(str(own.num_embeddings) for own in lookups) or "none"
        raise InputError(
            f"the {type(module).__name__} has embedding layers of the sizes {sizes}; expected one with a row "
            f"for each of the tokenizer's {tokens} tokens"
        )
    # positions and token types have fewer rows than the vocabulary; without a tokenizer its size is unknown
    choose = min if tokens else max
    return choose(fitting, key=lambda own: own.num_embeddings)
