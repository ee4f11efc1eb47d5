"""Model, texts and sizes that all contenders share."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from faithmeter.config import EMBEDDED, Precision
from faithmeter.models.classifier import Classifier
from faithmeter.models.devices import find_device, require_precision
from faithmeter.models.evaluator import Evaluator
from faithmeter.models.loading import load, load_tokenizer
from faithmeter.models.tokens import Batch

RANDOM = "roberta-6x384"
"""Name of the default model: RoBERTa with 6 layers of width 384 and random weights. Speed ignores weights."""
WORDS = (
    *("Mary", "John", "Sandra", "Daniel", "went", "to", "the", "garden", "office", "kitchen"),
    *("moved", "travelled", "back", "hallway", "bathroom", "bedroom", "where", "is", "journeyed"),
)


@dataclass(frozen=True)
class Sizes:
    """Sizes of the work: numbers of texts and tokens, rows of MaSF and of training."""

    short: int = 25
    long: int = 250
    occlusion: int = 64
    gradient: int = 64
    integrated: int = 8
    pairs: int = 8
    all_short: int = 16
    all_long: int = 1
    beam: int = 2
    beam_tokens: int = 12
    masf: tuple[int, ...] = (500, 2000, 8000)
    masf_shape: tuple[int, int] = (7, 384)
    training: int = 256
    validation: int = 64
    epochs: int = 2
    lengths: tuple[int, ...] = (16, 32, 64, 128, 256, 512)
    counts: tuple[int, ...] = (64, 256, 1024, 4096, 16384)
    widths: tuple[int, ...] = (1, 2, 5, 10, 20)
    agreement: int = 32
    agreement_rows: int = 3200


FULL = Sizes()
QUICK = Sizes(
    short=12,
    long=40,
    occlusion=4,
    gradient=8,
    integrated=2,
    pairs=2,
    all_short=2,
    all_long=1,
    beam=2,
    beam_tokens=5,
    masf=(50, 100, 200),
    masf_shape=(2, 16),
    training=16,
    validation=4,
    epochs=2,
    lengths=(8, 16, 32),
    counts=(16, 32, 64),
    widths=(1, 2, 4),
    agreement=2,
    agreement_rows=16,
)


@dataclass(frozen=True)
class Setting:
    """Classifier and sizes of a bench."""

    name: str
    clf: Classifier
    sizes: Sizes

    def texts(self, count: int, tokens: int, *, seed: int = 0) -> list[str]:
        """Return texts of common words, each of about this many tokens."""
        rng = random.Random(f"{count} {tokens} {seed}")
        spread = max(1, tokens // 5)
        return [
            " ".join(
                rng.choices(WORDS, k=tokens + (number % (2 * spread + 1)) - spread if count > 1 else tokens)
            )
            for number in range(count)
        ]

    def batch(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> tuple[Batch, Tensor]:
        """Return the encoded texts and their predicted classes."""
        batch = self.clf.encode(texts, pairs)
        return batch, Evaluator(self.clf).logits(batch).argmax(dim=1)


def make_setting(model: str, sizes: Sizes, *, device: str = "auto", precision: Precision = "auto") -> Setting:
    """Return the setting for a saved classifier, the embedded model or a random RoBERTa.

    Raises:
        InputError: The model, device or precision is not available.
    """
    if model not in (RANDOM, EMBEDDED):
        return Setting(model, load(model, device=device, precision=precision), sizes)
    target = find_device(device)
    torch.manual_seed(0)
    clf = (_random_roberta if model == RANDOM else _embedded)()
    clf.place(target, require_precision(precision, target))
    return Setting(model, clf, sizes)


def embedded(sizes: Sizes) -> Setting:
    """Return the setting of the embedded model on the CPU, whose small products let all other costs show."""
    return Setting(EMBEDDED, _embedded(), sizes)


def _embedded() -> Classifier:
    """Return the embedded model with a random head of two classes."""
    from transformers import AutoModelForSequenceClassification

    from faithmeter.models.loading import resolve

    model = AutoModelForSequenceClassification.from_pretrained(resolve(EMBEDDED), num_labels=2)
    return Classifier(model.float(), load_tokenizer(EMBEDDED))


def _random_roberta() -> Classifier:
    """Return RoBERTa with 6 layers of width 384, random weights, and the embedded model's tokenizer."""
    from transformers import RobertaConfig, RobertaForSequenceClassification

    tokenizer = load_tokenizer(EMBEDDED)
    tokenizer.model_max_length = 520
    config = RobertaConfig(
        vocab_size=50_265,
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
        max_position_embeddings=640,
        pad_token_id=tokenizer.pad_token_id,
        num_labels=2,
    )
    return Classifier(RobertaForSequenceClassification(config), tokenizer)
