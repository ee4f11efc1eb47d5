"""Results of made-up runs, complete as records must be: a test changes only what it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def train_result(**changes: Any) -> dict[str, Any]:
    """Values of a training on three splits, two epochs, for `RunStore.put`."""
    lines = changes.get("test", [masked_scores(0, accuracy=0.9), masked_scores(100, accuracy=0.5)])
    return {
        "epochs": [epoch(number, lines) for number in (1, 2)],
        "best_epoch": 2,
        "metric": "accuracy",
        "threshold": 0.6,
        "test": lines,
        "majority": {split: {"accuracy": 0.5} for split in ("validation", "test")},
        "source": {"kind": "generated", "place": "built-in", "available": True, "published": False},
        "splits": {split: split * 5 for split in ("train", "validation", "test")},
        "encoder": "e",
        "previous": "",
        "data": "d",
        "labels": ["no", "yes"],
        "fingerprint": "f",
        "rows": {"train": 300, "validation": 40, "test": 20},
        "truncated": {"train": 0.0, "validation": 0.0, "test": 0.0},
        "precision": "fp32",
        "seconds": {"train": 2.0, "test": 1.0},
        **changes,
    }


def masked_scores(masking: int | str, *, loss: float = 0.7, **metrics: float) -> dict[str, Any]:
    return {"masking": masking, "loss": loss, **metrics}


def epoch(number: int, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"epoch": number, "train_loss": 1 / number, "selection": number / 10, "validation": lines}
