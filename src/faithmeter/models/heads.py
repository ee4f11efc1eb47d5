"""Sentence encoders with a head, as sentence-transformers saves them: states → one vector a text → logits."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from tokenizers import normalizers
from torch import Tensor

from ..errors import InputError
from ..files import write_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MODULES = "modules.json"
"""File that lists the modules of a sentence encoder, in the order of their work."""
SETTINGS = "config.json"
WEIGHTS = "model.safetensors"
PICKLED_WEIGHTS = "pytorch_model.bin"
POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cls": lambda states, attended: states[:, 0],
    "mean": lambda states, attended: (states * attended).sum(dim=1) / attended.sum(dim=1),
    "max": lambda states, attended: states.masked_fill(attended == 0, -torch.inf).amax(dim=1),
}
"""Functions from states [B, T, H] and the attention mask [B, T, 1] to a vector for each text [B, H]."""
FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
}
"""Names of the poolings in settings of sentence-transformers before version 5.4."""
IGNORED = ("Dropout",)
"""Modules that do nothing in evaluation."""
HEAD_FILES = ("model_head.pkl", "model_head.joblib")
"""Files with a pickled head, such as SetFit's, which could run any code."""
OBJECT_FIRST = (
    "load the object in Python, if you trust the file, then clf = fm.Classifier(object), "
    "clf.model.save_pretrained(folder) and clf.tokenizer.save_pretrained(folder) save what can be read"
)


class Part(NamedTuple):
    """Module of a sentence encoder: its kind, settings and weights."""

    kind: str
    settings: Mapping[str, Any]
    weights: Mapping[str, Tensor]


class Layout(NamedTuple):
    """Sentence encoder as its folder describes it.

    Attributes:
        encoder: Folder of the transformer.
        parts: What follows it: the pooling, then dense layers and normalizations.
        max_length: Maximum number of tokens; None if nothing is said.
        lower_case: Whether texts are put in lower case before they are tokenized.
    """

    encoder: Path
    parts: tuple[Part, ...]
    max_length: int | None
    lower_case: bool

    def apply_to(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Limit a tokenizer's length, and make it put texts in lower case, as the settings say."""
        if self.max_length is not None:
            tokenizer.model_max_length = min(tokenizer.model_max_length, self.max_length)
        if self.lower_case:
            backend = tokenizer.backend_tokenizer
            steps = [normalizers.Lowercase(), *([backend.normalizer] if backend.normalizer else [])]
            backend.normalizer = normalizers.Sequence(steps)


class Dense(torch.nn.Module):
    """Linear layer with an activation."""

    def __init__(self, linear: torch.nn.Linear, activation: torch.nn.Module | None = None) -> None:
        super().__init__()
        self.linear = linear
        self.activation = activation or torch.nn.Identity()

    def forward(self, vectors: Tensor) -> Tensor:
        result: Tensor = self.activation(self.linear(vectors))
        return result

    @property
    def settings(self) -> dict[str, Any]:
        activation = type(self.activation)
        return {
            "in_features": self.linear.in_features,
            "out_features": self.linear.out_features,
            "bias": self.linear.bias is not None,
            "activation_function": f"{activation.__module__}.{activation.__qualname__}",
        }


class Normalize(torch.nn.Module):
    """Scaling of each vector to length 1."""

    settings: Mapping[str, Any] = {}

    def forward(self, vectors: Tensor) -> Tensor:
        return torch.nn.functional.normalize(vectors, dim=1)


class SentenceClassifier(torch.nn.Module):
    """Transformer, pooling and layers, of which the last one gives the logits.

    It has the interface of a classifier of transformers, and `save_pretrained` writes the layout that
    sentence-transformers and `load` read.
    """

    base_model_prefix = "encoder"
    accepts_loss_kwargs = False
    """What a Trainer asks; otherwise it passes on what the encoders of transformers 4 do not take."""

    def __init__(self, encoder: PreTrainedModel, pooling: str, layers: Sequence[torch.nn.Module]) -> None:
        super().__init__()
        if getattr(encoder, "pooler", None) is not None:  # unused, and often new, hence random, weights
            encoder = copy.copy(encoder)  # the user's own object keeps its pooler
            encoder._modules = {**encoder._modules, "pooler": None}
        self.encoder = encoder
        self.pooling = pooling
        self.layers = torch.nn.ModuleList(layers)

    @property
    def config(self) -> Any:
        return self.encoder.config

    @property
    def head_settings(self) -> list[Any]:
        """Values that the output depends on besides weights and config, ready for JSON."""
        return [self.pooling, *([type(layer).__name__, layer.settings] for layer in self.layers)]

    def get_input_embeddings(self) -> torch.nn.Module:
        embeddings: torch.nn.Module = self.encoder.get_input_embeddings()
        return embeddings

    def resize_token_embeddings(self, *arguments: Any, **options: Any) -> None:
        self.encoder.resize_token_embeddings(*arguments, **options)

    def set_attn_implementation(self, name: str) -> None:
        self.encoder.set_attn_implementation(name)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None, **options: Any
    ) -> Any:
        """Return the output that a classifier of transformers has, with a loss if `labels` are given."""
        from transformers.loss.loss_utils import ForSequenceClassificationLoss
        from transformers.modeling_outputs import SequenceClassifierOutput

        output = self.encoder(input_ids=input_ids, attention_mask=attention_mask, **options)
        states = output.last_hidden_state  # [B, T, H]
        vectors = POOLINGS[self.pooling](states, attention_mask[:, :, None].to(states))
        head: Any = self.layers[-1]
        vectors = vectors.to(head.linear.weight)  # a user's encoder may be in half precision, its head not
        for layer in self.layers:
            vectors = layer(vectors)
        loss = None if labels is None else ForSequenceClassificationLoss(labels, vectors, self.config)
        return SequenceClassifierOutput(loss, vectors, output.hidden_states, output.attentions)

    def save_pretrained(self, folder: str | Path) -> None:
        """Save the model in the layout of sentence-transformers, with safetensors only."""
        from safetensors.torch import save_file

        folder = Path(folder)
        self.encoder.save_pretrained(folder)
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        # transformers leaves out names that are its defaults, and without names a layer is no head
        settings["id2label"] = self.config.id2label
        write_json(folder / SETTINGS, settings)
        pooling = {"word_embedding_dimension": self.config.hidden_size}
        pooling |= {flag: name == self.pooling for flag, name in FLAGS.items()}
        parts = [Part("Pooling", pooling, {})]
        layers: list[Any] = [*self.layers]
        parts += [Part(type(layer).__name__, layer.settings, layer.state_dict()) for layer in layers]
        entries = [_entry(0, "Transformer", "")]
        for number, part in enumerate(parts, 1):
            place = folder / f"{number}_{part.kind}"
            place.mkdir(exist_ok=True)
            write_json(place / SETTINGS, part.settings)
            if part.weights:
                tensors = {key: tensor.contiguous() for key, tensor in part.weights.items()}
                save_file(tensors, place / WEIGHTS)
            entries.append(_entry(number, part.kind, place.name))
        write_json(folder / MODULES, entries)


def _entry(number: int, kind: str, path: str) -> dict[str, Any]:
    """Return what `MODULES` says of a module."""
    return {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}


def read_layout(folder: Path) -> Layout | None:
    """Return what the folder of a sentence encoder describes; None if it holds no sentence encoder.

    Raises:
        InputError: The folder lists a module that cannot be used.
    """
    if not (folder / MODULES).is_file():
        return None
    first, *others = json.loads((folder / MODULES).read_text(encoding="utf-8"))
    if _kind(first) != "Transformer":
        raise InputError(
            f"{str(folder)!r} begins with a module of the kind {_kind(first)}; expected a transformer"
        )
    encoder = folder / first["path"]
    limits = encoder / "sentence_bert_config.json"
    settings = json.loads(limits.read_text(encoding="utf-8")) if limits.is_file() else {}
    parts = tuple(_read_part(_kind(entry), folder / entry["path"]) for entry in others)
    return Layout(
        encoder, parts, settings.get("max_seq_length"), lower_case=bool(settings.get("do_lower_case"))
    )


def build(
    encoder: PreTrainedModel, parts: Sequence[Part], trained: int
) -> tuple[SentenceClassifier, set[str]]:
    """Return a classifier of the classes in the encoder's config, and the names of the weights made anew.

    `trained` is the number of classes of the last dense layer, which is new if there are other classes now.
    """
    pooling, layers = pooling_and_layers(parts)
    linear, classes, new = layers[-1].linear, encoder.config.num_labels, set()
    if trained != classes:
        layers[-1] = Dense(torch.nn.Linear(linear.in_features, classes))
        head = f"layers.{len(layers) - 1}.linear"
        new = {f"{head}.weight", f"{head}.bias"}
    elif (linear.out_features, classes) == (1, 2):  # one logit for two classes, as of a binary head
        layers[-1] = Dense(linear_layer(*two_logits(linear.weight, linear.bias)))
    return SentenceClassifier(encoder, pooling, layers), new


def classes_of_head(layout: Layout) -> int | None:
    """Return the number of classes of a layout's last dense layer; None if it gives features, not classes.

    It is a head if the transformer's config names as many classes, or two classes for one logit.
    """
    settings = json.loads((layout.encoder / SETTINGS).read_text(encoding="utf-8"))
    names = settings.get("id2label") or {}
    if not layout.parts or layout.parts[-1].kind != "Dense":
        return None
    outputs = int(layout.parts[-1].settings["out_features"])
    return len(names) if names and (outputs == len(names) or (outputs, len(names)) == (1, 2)) else None


def explain_missing_head(folder: Path, layout: Layout) -> str:
    """Return the line for a sentence encoder whose folder holds no head that can be read."""
    pickles = [name for name in HEAD_FILES if (folder / name).is_file()]
    if pickles:
        return f"the head in {str(folder)!r} is pickled ({pickles[0]}), and no pickle is run; {OBJECT_FIRST}"
    if layout.parts and layout.parts[-1].kind == "Dense":
        return (
            f"the last layer in {str(folder)!r} gives {layout.parts[-1].settings['out_features']} numbers, "
            "and config.json does not name as many classes; if they are classes, name them there (id2label)"
        )
    return (
        f"{str(folder)!r} is a sentence encoder without a classifier head; give its fitted linear head: "
        f"fm.Classifier(SentenceTransformer({str(folder)!r}), head=…), or fine-tune it with faithmeter train"
    )


def _kind(entry: Mapping[str, Any]) -> str:
    return str(entry["type"]).rpartition(".")[2]


def _read_part(kind: str, folder: Path) -> Part:
    from safetensors.torch import load_file

    file, weights = folder / SETTINGS, {}
    settings = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if (folder / WEIGHTS).is_file():
        weights = load_file(folder / WEIGHTS)
    elif (folder / PICKLED_WEIGHTS).is_file():
        if torch.__version__ < "2.6":
            raise InputError(
                f"{folder / PICKLED_WEIGHTS} is a pickle, from which torch {torch.__version__} may run code "
                "(CVE-2025-32434); install torch 2.6, or save the weights as safetensors"
            )
        weights = torch.load(folder / PICKLED_WEIGHTS, map_location="cpu", weights_only=True)
    return Part(kind, settings, weights)


def pooling_and_layers(parts: Sequence[Part]) -> tuple[str, list[Any]]:
    """Return the name of the pooling and the layers after it; raise an InputError if one cannot be used."""
    used = [part for part in parts if part.kind not in IGNORED]
    if not used or used[0].kind != "Pooling":
        raise InputError("the transformer is not followed by a pooling; expected mean, cls or max pooling")
    settings = used[0].settings
    modes = settings.get("pooling_mode")  # since sentence-transformers 5.4; before, a flag for each mode
    if not modes:
        flags = [name for name, on in settings.items() if on is True and name.startswith("pooling_mode")]
        modes = [*map(FLAGS.get, flags, flags)]
    modes = [modes] if isinstance(modes, str) else [*modes]
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise InputError(
            f"the pooling is {' and '.join(map(str, modes))}; expected one of {', '.join(POOLINGS)}"
        )
    return modes[0], [*map(_layer, used[1:])]


def _layer(part: Part) -> Dense | Normalize:
    if part.kind == "Normalize":
        return Normalize()
    name = str(part.settings.get("activation_function", "torch.nn.modules.linear.Identity"))
    activation = getattr(torch.nn, name.rpartition(".")[2], None) if name.startswith("torch.nn.") else None
    if part.kind != "Dense" or activation is None or part.settings.get("use_residual"):
        raise InputError(
            f"a module of the kind {part.kind} ({dict(part.settings)!s:.80}) follows the pooling; expected "
            "dense layers with an activation of torch.nn, and normalizations"
        )
    weight = part.weights["linear.weight"].float()
    bias = part.weights.get("linear.bias", weight.new_zeros(len(weight))).float()
    return Dense(linear_layer(weight, bias), activation())


def linear_layer(weight: Tensor, bias: Tensor) -> torch.nn.Linear:
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
    linear.load_state_dict({"weight": weight, "bias": bias})
    return linear


def two_logits(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Return weights and biases of the logits 0 and z from those of one logit z for the second class."""
    return torch.cat([weight * 0, weight]), torch.cat([bias * 0, bias])
