"""Results of made-up runs, complete as records must be: a test changes only what it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from faithmeter.config import TrainConfig
from faithmeter.stats.pvalues import LEVELS

TESTS = ("published", "crossfit")


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


def measure_result(
    trained: TrainConfig, methods: Mapping[str, Mapping[str, Any]], **changes: Any
) -> dict[str, Any]:
    """Values of a measurement, for `RunStore.put`."""
    first = next(iter(methods.values()))["curve"]
    return {
        "trained": trained.to_dict(),
        "train_digest": trained.digest,
        "trained_with": trained.strategy,
        "labels": ["no", "yes"],
        "threshold": 0.6,
        "metric": first["metric"],
        "texts": first["n"],
        "majority": 0.5,
        "floors": dict.fromkeys(TESTS, 0.001),
        "methods": methods,
        "seconds": {"fit": 4.0},
        **changes,
    }


def method_result(values: Mapping[int, float], **changes: Any) -> dict[str, Any]:
    """Values of one method, from its performance at each percent; `p` is given as one number."""
    p = changes.pop("p", 0.6)
    step = {"p": p, "below": dict.fromkeys(LEVELS, 0.0)}
    curve = {"percents": list(values), "values": list(values.values())}
    return {
        "curve": {**curve, "metric": changes.pop("metric", "accuracy"), "n": changes.pop("texts", 20)},
        "acu": 0.0,
        "racu": 0.0,
        "others": {},
        "p": dict.fromkeys(TESTS, p),
        "pvalues": {test: dict.fromkeys(values, step) for test in TESTS},
        "evaluations": 10,
        "seconds": {"explain": 2.0, "evaluate": 1.0, "check": 0.5},
        **changes,
    }
