"""A store of made-up runs, with numbers that can be checked by hand: what a report is written from."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from faithmeter.config import MeasureConfig, TrainConfig
from faithmeter.files import write_parquet
from faithmeter.store.run_store import RunStore
from records import masked_scores, measure_result, method_result, train_result

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
) -> MeasureConfig:
    """A measurement: curves fall by each method's strength, `p` has p-values other than 0.6."""
    names = tuple(name for name in strengths if name != "random")
    config = MeasureConfig(
        checkpoint=fingerprint(trained),
        data="data",
        task=trained.task,
        methods=names or ("random",),
        limit=len(texts),
        strategy=trained.strategy,
        scope=trained.scope,
    )
    folder = store.folder(config)
    known_p = p or {}
    frames = [steps(texts, name, strengths[name], len(labels), known_p.get(name, 0.6)) for name in strengths]
    write_parquet(folder / "texts.parquet", pd.concat(frames, ignore_index=True))
    write_parquet(folder / "inputs.parquet", inputs(texts))
    methods = {name: method(name, strengths[name], len(texts), p or {}, top) for name in strengths}
    limits = {"threshold": 0.5, "majority": 0.2, "seconds": {"fit": 3.0}}
    store.put(config, measure_result(trained, methods, labels=list(labels), **limits))
    return config


def method(name: str, strength: float, texts: int, p: Mapping[str, float], top: float) -> dict[str, Any]:
    """Random falls in a straight line from `top` to 0.2; a method is lower by its strength at 10 … 90 %."""
    base = [top - (top - 0.2) * percent / 100 for percent in PERCENTS]
    values = {percent: b - strength * (0 < percent < 100) for b, percent in zip(base, PERCENTS, strict=True)}
    areas = {"acu": 0.9 * strength, "racu": 0.9 * strength / ((top - 0.2) / 2)}
    measured = {"metric": "micro_f1", "texts": texts, "evaluations": 11 * texts}
    return method_result(values, p=p.get(name, 0.6), **areas, **measured)


def spans(text: str) -> list[tuple[int, int]]:
    return [found.span() for found in re.finditer(r"\w+|[^\w\s]", text)]


def inputs(texts: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Each word and each mark is a token; texts are read up to their key `read`, if they have one."""
    rows = []
    for number, text in enumerate(texts):
        places = [place for place in spans(text["text"]) if place[1] <= text.get("read", len(text["text"]))]
        starts, ends = [start for start, _ in places], [end for _, end in places]
        context = text.get("context")
        rows.append((number, text["text"], context, text["label"], starts, ends, list(range(len(places)))))
    columns = ["row", "text", "context", "label", "starts", "ends", "words"]
    return pd.DataFrame(rows, columns=columns)


def steps(
    texts: Sequence[Mapping[str, Any]], name: str, strength: float, classes: int, p: float
) -> pd.DataFrame:
    """Tokens are masked in the order of scores drawn from (method, text); the label's probability falls."""
    rows = []
    for number, starts in enumerate(inputs(texts)["starts"]):
        label = texts[number]["label"]
        generator = random.Random(f"{name} {number}")
        scores = [round(generator.gauss(0, 1) ** 3, 6) for _ in starts]
        order = sorted(range(len(scores)), key=lambda token: -scores[token])
        for percent in PERCENTS:
            masked = sorted(order[: len(order) * percent // 100])
            chance = max(0.02, 0.98 - percent / 100 * (0.6 + strength))
            prediction = label if chance > 0.4 else (label + 1) % classes
            first = scores if percent == 0 else None
            shown = p if percent < 100 else p / 20
            rows.append((name, number, label, percent, masked, first, prediction, chance, shown, shown))
    columns = ["method", "row", "label", "percent", "masked", "scores", "prediction", "probability"]
    return pd.DataFrame(rows, columns=[*columns, "p_published", "p_crossfit"])
