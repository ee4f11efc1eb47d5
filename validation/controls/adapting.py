"""Adaptations of plain models whose masked rows learn classes, or probabilities: which behaves better?

`python -m validation.controls.adapting` writes `results/validation/adapt-targets.csv` in a few minutes.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

import pandas as pd
import torch

import faithmeter as fm
from faithmeter.files import write_csv

from .cache import FOLDER
from .models import TRAININGS, train
from .planted import Planted, plant

TARGETS = ("class", "probabilities")
NOISES = (0.25,)
"""Shares of training labels that are wrong: they make the original unsure."""
TEXTS = 2500
RATE = 1e-3


def with_noise(planted: Planted, share: float, *, seed: int) -> Planted:
    """Return the texts with a share of the labels, which are 0 or 1, turned around."""
    rng = Random(seed)
    return replace(planted, labels=tuple(label ^ (rng.random() < share) for label in planted.labels))


def adapt_both(noise: float, folder: Path) -> pd.DataFrame:
    """Return a row for each kind of targets, of one plain model on the planted word."""
    planted = with_noise(plant("word", TEXTS, seed=0, training=True), noise, seed=0)
    clf = train("embedded", planted.texts, planted.labels, TRAININGS["plain"], epochs=3, rate=1e-3)
    original, texts = folder / "original", folder / "texts.csv"
    clf.model.save_pretrained(original)
    clf.tokenizer.save_pretrained(original)
    pd.DataFrame({"text": plant("word", TEXTS, seed=1).texts}).to_csv(texts, index=False)
    rows = []
    for targets in TARGETS:
        config = fm.AdaptConfig(
            model=str(original),
            data=str(texts),
            text="text",
            epochs=2,
            learning_rate=RATE,
            masked_targets=targets,
        )
        record = fm.adapt(config, fm.RunStore(folder / "runs"))
        behavior = record.evidence.behavior
        assert behavior is not None, "there are validation texts"
        worst = max(behavior.excess, key=lambda each: each.upper)
        rows.append(
            {
                "wrong_labels": noise,
                "masked_rows_learn": targets,
                "agreement": record.agreement,
                "check": behavior.outcome,
                "excess": worst.mean,
                "excess_lower": worst.lower,
                "excess_upper": worst.upper,
                "rank_correlation": record.rank_agreement,
                "rank_lower": record.rank_lower,
                "rank_upper": record.rank_upper,
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    """Adapt all models, and write the table."""
    torch.set_num_threads(1)
    tables = []
    for noise in NOISES:
        with tempfile.TemporaryDirectory() as folder:
            tables.append(adapt_both(noise, Path(folder)))
    write_csv(pd.concat(tables).round(6), FOLDER.parent / "adapt-targets.csv")


if __name__ == "__main__":
    main()
