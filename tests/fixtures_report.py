"""A store of made-up runs, with numbers that can be checked by hand: what a report is written from."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithmeter.config import MeasureConfig, TrainConfig
from faithmeter.measuring.trace import Trace
from faithmeter.store.run_store import RunStore
from records import masked_scores, train_result
from traces import keep, trace

PERCENTS = tuple(range(0, 101, 10))
PLACES = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
STRENGTH = {"loo-sign": 0.42, "beam": 0.45, "grad-l2": 0.2, "inp-grad-abs": 0.05, "random": 0.0}
"""How fast each method brings the performance down."""


def train(store: RunStore, *, value: float = 0.99, task_name: str = "", **options: Any) -> TrainConfig:
    """A fine-tuning whose performance falls to a fifth, in a straight line, by masking."""
    config = TrainConfig(**options)
    lines = [line(percent, value - (value - 0.2 * value) * percent / 100) for percent in PERCENTS]
    lines.append(line("all", 0.2 * value))
    result = train_result(
        metric="micro_f1",
        rows={"train": 900, "validation": 100, "test": 200},
        threshold=0.5,
        majority={"validation": {"micro_f1": 0.2}, "test": {"micro_f1": 0.2}},
        test=lines,
        fingerprint=fingerprint(config),
        seconds={"load": 1.0, "tokenize": 2.0, "train": 60.0, "test": 4.0, "save": 0.5},
        task_name=task_name,
    )
    store.put(config, result)
    return config


def fingerprint(config: TrainConfig) -> str:
    return f"weights-{config.digest}"


def line(percent: int | str, value: float) -> dict[str, Any]:
    return masked_scores(percent, micro_f1=value, accuracy=value, loss=1 - value)


def measure(
    store: RunStore,
    trained: TrainConfig,
    texts: Sequence[Mapping[str, Any]],
    strengths: Mapping[str, float],
    *,
    labels: Sequence[str] = PLACES,
    p: Mapping[str, float] | None = None,
    top: float = 0.99,
    **changes: Any,
) -> MeasureConfig:
    """A measurement: curves fall by each method's strength, `p` has p-values other than 0.6."""
    known, names = p or {}, dict.fromkeys(["random", *strengths])
    seed = {
        name: erased(texts, name, strengths[name], len(labels), known.get(name, 0.6), top) for name in names
    }
    return keep(store, trained, seed, texts=inputs(texts), labels=labels, metric="micro_f1", **changes)


def erased(
    texts: Sequence[Mapping[str, Any]], name: str, strength: float, classes: int, p: float, top: float
) -> Trace:
    """Random falls in a straight line from `top` to 0.2; a method is lower by its strength at 10 … 90 %.

    Tokens are masked in the order of scores drawn from (method, text). The last third of the texts stays
    right longest.
    """
    labels, scores, steps = np.array([text["label"] for text in texts]), [], []
    for number, starts in enumerate(inputs(texts)["starts"]):
        generator = random.Random(f"{name} {number}")
        scores.append(np.array([round(generator.gauss(0, 1) ** 3, 6) for _ in starts]))
        ranks = np.argsort(np.argsort(-scores[-1], kind="stable"))
        masked = [len(starts) * percent // 100 for percent in PERCENTS]
        steps.append(np.searchsorted(masked, ranks, side="right").astype(np.uint8))
    base = top - (top - 0.2) * np.array(PERCENTS) / 100
    inner = (np.array(PERCENTS) > 0) & (np.array(PERCENTS) < 100)
    right = np.round((base - strength * inner) * len(texts)).astype(int)
    order = (np.arange(len(texts)) + int(0.3 * len(texts))) % len(texts)
    predicted = (labels[:, None] + (order[:, None] >= right)) % classes
    pvalues = np.where(np.array(PERCENTS) < 100, p, p / 20)
    tests = {"published": pvalues, "crossfit": pvalues}
    falls = np.array([max(0.02, 0.98 - percent / 100 * (0.6 + strength)) for percent in PERCENTS])
    chance = np.where(
        predicted != labels[:, None], np.minimum(falls, 0.49), np.maximum(falls, 0.51)
    )  # of the label
    made = {
        "logits": logits_of(chance, labels, predicted, classes),
        "scores": tuple(scores),
        "steps": tuple(steps),
        "evaluations": 11 * len(texts),
    }
    return trace(name, predicted, labels, classes=classes, p=tests, **made)


def logits_of(chance: Any, labels: Any, predicted: Any, classes: int) -> Any:
    """Logits that give the label this probability, and most of the rest to what is predicted instead."""
    rest = np.where(predicted == labels[:, None], 1 / (classes - 1), 0.02 / max(classes - 2, 1))
    shares = np.repeat((rest * (1 - chance))[:, :, None], classes, axis=2)
    np.put_along_axis(shares, predicted[:, :, None], (0.98 * (1 - chance))[:, :, None], axis=2)
    np.put_along_axis(
        shares, np.broadcast_to(labels[:, None, None], (*chance.shape, 1)), chance[:, :, None], axis=2
    )
    return np.log(shares / shares.sum(axis=2, keepdims=True)).astype(np.float32)


def spans(text: str) -> list[tuple[int, int]]:
    return [found.span() for found in re.finditer(r"\w+|[^\w\s]", text)]


def inputs(texts: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Each word and each mark is a token; texts are read up to their key `read`, if they have one."""
    rows = []
    for number, text in enumerate(texts):
        places = [place for place in spans(text["text"]) if place[1] <= text.get("read", len(text["text"]))]
        starts, ends = [start for start, _ in places], [end for _, end in places]
        context = text.get("context")
        words = list(range(len(places)))
        rows.append((number, text["text"], context, text["label"], starts, ends, words, "read" in text))
    columns = ["row", "text", "context", "label", "starts", "ends", "words", "truncated"]
    return pd.DataFrame(rows, columns=columns)
