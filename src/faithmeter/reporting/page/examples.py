"""Texts of a store, packed for the page: what each method says of them and what erasing them does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...config import BASELINE
from ...files import plain
from ...runs.record import INPUTS, TEXTS, MeasureRecord, Record
from .answers import rank
from .provenance import known

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
TOP = 4095
"""Numbers from 0 to 1 become 0 … TOP, two letters: three digits survive."""
HALF = 31
"""Scores from -1 to 1 become 0 … 2 * HALF, one letter: enough for a color."""
NEVER = len(ALPHABET) - 1
"""The step of a token that no step masks."""
STEPS = 21
"""More steps than a slider needs are thinned out."""
STRONGEST = 3
"""So many words of a text are told with their scores."""
TAIL = 200
"""Characters shown of what the model did not read."""


@dataclass(frozen=True)
class Source:
    """The measurements of one checkpoint: their folders and records."""

    task: str
    model: str
    runs: tuple[tuple[Path, MeasureRecord], ...]


def sources(records: Iterable[tuple[Path, Record]]) -> list[Source]:
    """For each task and model one checkpoint: masked rather than plain, the lowest seed, the most methods."""
    checkpoints: dict[tuple[Any, ...], list[tuple[Path, MeasureRecord]]] = {}
    for folder, record in records:
        if isinstance(record, MeasureRecord) and INPUTS in record.files:
            trained = record.trained
            key = (trained.task_or_data, trained.model, record.config.checkpoint)
            checkpoints.setdefault(key, []).append((folder, record))
    best: dict[tuple[str, str], list[tuple[Path, MeasureRecord]]] = {}
    for (task, model, _), runs in checkpoints.items():
        if (task, model) not in best or _order(runs) < _order(best[task, model]):
            best[task, model] = runs
    return [Source(task, model, tuple(runs)) for (task, model), runs in best.items()]


def pack(found: Sequence[Source], limit: int, room: int) -> list[dict[str, Any]]:
    """The first texts of each source, `limit` over all and in no more bytes than there is room for."""
    groups = []
    for number, source in enumerate(found):
        share = (limit + number) // len(found)  # what does not divide goes to the last ones
        if share:
            groups.append(_group(source, share, room // len(found)))
    return [group for group in groups if group["texts"]]


def as_json(value: Any) -> str:
    """For a script element: no text can end it."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def letters(numbers: Iterable[int], width: int) -> str:
    """Whole numbers as `width` letters each, base 64."""
    return "".join(ALPHABET[n >> 6 * place & 63] for n in numbers for place in reversed(range(width)))


def levels(values: Iterable[float]) -> list[int]:
    """0 … 1 → 0 … TOP."""
    return [round(TOP * value) for value in values]


def _order(runs: Sequence[tuple[Path, MeasureRecord]]) -> tuple[Any, ...]:
    trained, strategy = runs[0][1].trained, runs[0][1].trained_with
    methods = {name for _, record in runs for name in record.methods} - {BASELINE}
    return not methods, *rank(strategy, trained.validation, trained.scope), trained.seed


def _group(source: Source, limit: int, room: int) -> dict[str, Any]:
    """What the page shows of one checkpoint, the most faithful method first."""
    import pandas as pd

    runs = sorted(source.runs, key=lambda run: -run[1].texts)
    inputs = pd.concat([pd.read_parquet(folder / INPUTS) for folder, _ in runs])
    inputs = inputs.drop_duplicates("row").sort_values("row").head(limit)
    steps = pd.concat([pd.read_parquet(folder / TEXTS) for folder, _ in runs])
    steps = steps[steps["row"].isin(inputs["row"])].drop_duplicates(["method", "row", "percent"])
    percents = _thinned([set(rows["percent"]) for _, rows in steps.groupby("method")])
    areas = {name: result.acu for _, record in runs for name, result in record.methods.items()}
    methods = sorted(areas, key=lambda name: (name == BASELINE, -areas[name]))
    rows: dict[tuple[Any, Any], list[Any]] = {}
    for step in steps[steps["percent"].isin(percents)].sort_values("percent").itertuples():
        rows.setdefault((step.row, step.method), []).append(step)
    texts: list[dict[str, Any]] = []
    for text in inputs.to_dict("records"):
        by = [rows.get((text["row"], method)) for method in methods]
        packed = {**_text(text), "by": [found and _method(found, text) for found in by]}
        room -= len(as_json(packed).encode()) + 1  # for the comma
        if room < 0:
            break
        texts.append(packed)
    record = runs[0][1]
    trained = record.trained
    return {
        "task": Path(source.task).name,
        "model": Path(source.model).name,
        "seed": trained.seed,
        "strategy": record.trained_with,
        "labels": record.labels,
        "methods": methods,
        "signed": [_signed(name) for name in methods],
        "percents": percents,
        "total": max(record.texts for _, record in runs),
        "texts": texts,
    }


def _text(text: Mapping[Any, Any]) -> dict[str, Any]:
    """What all methods share. Tokens are gaps and lengths in turn."""
    starts, ends = (list(map(int, text[name])) for name in ("starts", "ends"))
    shown = text["text"][: max(ends, default=0) + TAIL]
    places = zip(starts, ends, [0, *ends][:-1], strict=True)
    packed = {
        "row": int(text["row"]),
        "text": shown,
        "left": len(text["text"]) - len(shown),
        "label": int(text["label"]),
        "spans": [number for start, end, before in places for number in (start - before, end - start)],
    }
    return packed | ({"context": text["context"]} if isinstance(text["context"], str) else {})


def _method(steps: Sequence[Any], text: Mapping[Any, Any]) -> dict[str, Any]:
    """Scores as shares of the strongest, and what each step does to the prediction."""
    scores = list(map(float, steps[0].scores))
    most = max(map(abs, scores), default=0.0)
    packed = {
        "most": _short(most),
        "strongest": _strongest(scores, text),
        "scores": letters((round(HALF * (1 + score / (most or 1))) for score in scores), 1),
        "masked": letters(_first_masked([step.masked for step in steps], len(scores)), 1),
        "predicted": letters((step.prediction for step in steps), 2),
        "chance": letters(levels(step.probability for step in steps), 2),
    }
    tests = [test for test in ("p_crossfit", "p_published") if hasattr(steps[0], test)]
    return packed | {test: letters(levels(getattr(step, test) for step in steps), 2) for test in tests}


def _strongest(scores: Sequence[float], text: Mapping[Any, Any]) -> list[tuple[str, float]]:
    """The strongest words with their scores; a word scores as its strongest token."""
    words: dict[int, list[int]] = {}
    for token, word in enumerate(text["words"]):
        words.setdefault(int(word), []).append(token)
    best = {max(tokens, key=lambda token: abs(scores[token])): tokens for tokens in words.values()}
    first = sorted(best, key=lambda token: -abs(scores[token]))[:STRONGEST]
    spans = {token: (text["starts"][best[token][0]], text["ends"][best[token][-1]]) for token in first}
    return [(text["text"][slice(*spans[token])], _short(scores[token])) for token in first]


def _short(score: float) -> float:
    return float(f"{score:.3g}")


def _signed(method: str) -> bool:
    """Whether a method's scores speak for and against; what is not known here may."""
    found = known(method)
    return found is None or found.signed


def _first_masked(masks: Sequence[Sequence[int]], tokens: int) -> list[int]:
    """For each token the first step that masks it: masks only grow, so this tells all of them."""
    first = [NEVER] * tokens
    for step in reversed(range(len(masks))):
        for token in masks[step]:
            first[token] = step
    return first


def _thinned(percents: list[set[int]]) -> list[int]:
    """Those that all methods have, but at most STEPS of them, the last one included."""
    common = sorted(map(int, set.intersection(*percents)))
    return sorted({*common[:: -(-len(common) // STEPS)], common[-1]})
