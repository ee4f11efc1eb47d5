"""A tiny encoder and reviews to train it on."""

from __future__ import annotations

import random

import pytest
import torch

import faithmeter as fm
from toy import WORDS, tiny

EPOCHS, ROWS = 3, 60  # 48 training rows: 6 steps of 8 in an epoch


@pytest.fixture(scope="session")
def encoder(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("encoder")
    clf = tiny(dtype=torch.float32)
    clf.model.save_pretrained(folder)
    clf.tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def reviews(tmp_path_factory) -> str:
    """Random words; the label says whether 'good' is among the first ones."""
    path, rng = tmp_path_factory.mktemp("data") / "reviews.csv", random.Random(0)
    rows = [rng.choices([w for w in WORDS if w != "good"], k=rng.randint(3, 9)) for _ in range(ROWS)]
    labels = [i % 2 for i in range(ROWS)]
    rows = [["good", *words] if label else words for words, label in zip(rows, labels, strict=True)]
    lines = [
        f"{' '.join(words)},{'pos' if label else 'neg'}" for words, label in zip(rows, labels, strict=True)
    ]
    path.write_text("\n".join(["review,stars", *lines]))
    return str(path)


@pytest.fixture(scope="session")
def config(encoder: str, reviews: str) -> fm.TrainConfig:
    own = {"data": reviews, "text": "review", "label": "stars"}
    return fm.TrainConfig(model=encoder, epochs=EPOCHS, batch_size=8, learning_rate=3e-3, **own)
