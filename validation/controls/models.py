"""Small encoders trained on planted truths: with masks, and in the ways that a check must notice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from faithmeter.models.classifier import Classifier
from faithmeter.models.loading import load_tokenizer, resolve
from faithmeter.models.masks import generator
from faithmeter.models.tokens import Batch

BATCH = 16
WARMUP = 0.06


@dataclass(frozen=True)
class Training:
    """How a control is trained.

    Attributes:
        highest: Masking rates are drawn uniformly from 0 to this; 0 trains without masks.
        share: Share of the planned steps that are taken; 0 keeps the random weights of the head and, with
            `fresh`, of the whole model.
        fresh: Whether training starts from random weights instead of the pretrained ones.
    """

    highest: float = 1.0
    share: float = 1.0
    fresh: bool = False


TRAININGS = {
    "masked": Training(),
    "plain": Training(highest=0.0),
    "few-masks": Training(highest=0.15),
    "half-trained": Training(share=0.25),
    "random": Training(share=0.0, fresh=True),
}
"""Trainings by name. `few-masks` masks at most 15 %, as the pretraining of language models does."""


def train(
    source: str,
    texts: Sequence[str],
    labels: Sequence[int],
    training: Training,
    *,
    epochs: int,
    rate: float,
    seed: int = 0,
    pairs: Sequence[str] | None = None,
) -> Classifier:
    """Return an encoder fine-tuned on texts, every other row of a batch masked as the package does it.

    The loop is spelled out because one control needs masking rates that the package does not offer.
    """
    torch.manual_seed(seed)
    model = AutoModelForSequenceClassification.from_pretrained(
        resolve(source), num_labels=max(labels) + 1, dtype=torch.float32
    )
    if training.fresh:
        model = AutoModelForSequenceClassification.from_config(model.config)
    clf = Classifier(model, load_tokenizer(source))
    batch, targets = clf.encode(list(texts), pairs and list(pairs)), torch.tensor(list(labels))
    planned = epochs * (len(texts) // BATCH)
    steps = round(planned * training.share)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / (WARMUP * planned), (planned - step) / (planned * (1 - WARMUP))),
    )
    model.train()
    for step, rows in zip(range(steps), _rows(len(texts), epochs, seed), strict=False):
        inputs = _masked(batch[rows], clf.mask_id, training.highest, seed, step)
        loss = torch.nn.functional.cross_entropy(model(**inputs.inputs).logits, targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    return clf


def _rows(count: int, epochs: int, seed: int) -> list[Tensor]:
    """Return the rows of each mini-batch; every epoch has another order."""
    rng = np.random.default_rng(seed)
    orders = [torch.from_numpy(rng.permutation(count)) for _ in range(epochs)]
    return [part for order in orders for part in order.split(BATCH) if len(part) == BATCH]


def _masked(batch: Batch, mask_id: int, highest: float, seed: int, step: int) -> Batch:
    """Return a mini-batch, as narrow as its texts, with every other row masked at rates up to `highest`."""
    batch = batch.narrowed(int(batch.attention_mask.sum(dim=1).max()))
    rng = generator(seed, "train", step)
    rates = highest * rng.random((len(batch), 1))
    rates[::2] = 0
    where = torch.from_numpy(rng.random(batch.input_ids.shape) < rates) & batch.explained
    return batch.masked(where, mask_id)
