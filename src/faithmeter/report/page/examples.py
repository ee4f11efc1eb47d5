"""Example texts for the page, with the scores of each method and the effect of each erasure step."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...config import BASELINE, SIDES
from ...files import plain
from ...measuring.pieces import piece_score, strongest, word_pieces
from ...methods.registry import find_method
from ...store.records import INPUTS, TEXTS, MeasureRecord, Record
from ..seeds_evidence import rank

SCORE_LEVELS = 50
"""Largest absolute score; token scores are rounded to whole numbers, which is enough for a color."""
NEVER = 99
"""Step number that stands for a token that is never masked."""
MAX_STEPS = 21
"""Maximum number of steps on the slider, not counting the last step; further steps are thinned out."""
MAX_UNREAD_CHARACTERS = 200
"""Maximum number of characters shown after the last token that the model read."""
PROBABILITY_DIGITS = 4
TESTS = ("p_crossfit", "p_published")


@dataclass(frozen=True)
class Source:
    """Measurements of one checkpoint, as pairs of a folder and a record."""

    task: str
    model: str
    runs: tuple[tuple[Path, MeasureRecord], ...]


def choose_sources(records: Iterable[tuple[Path, Record]]) -> list[Source]:
    """Return the measurements of one checkpoint for each task and model.

    A checkpoint measured with methods besides the baseline is preferred, then masked fine-tuning, then the
    lowest seed.
    """
    checkpoints: dict[tuple[str, str, str], list[tuple[Path, MeasureRecord]]] = {}
    for folder, record in records:
        if isinstance(record, MeasureRecord) and INPUTS in record.files:
            key = (record.task_title, record.trained.model, record.config.checkpoint)
            checkpoints.setdefault(key, []).append((folder, record))
    best: dict[tuple[str, str], list[tuple[Path, MeasureRecord]]] = {}
    for (task, model, _), runs in checkpoints.items():
        if (task, model) not in best or _preference(runs) < _preference(best[task, model]):
            best[task, model] = runs
    return [Source(task, model, tuple(runs)) for (task, model), runs in best.items()]


def example_groups(sources: Sequence[Source], limit: int, max_bytes: int) -> list[dict[str, Any]]:
    """Return the first texts of each source, up to `limit` texts and `max_bytes` on the page in total."""
    groups = []
    for number, source in enumerate(sources):
        share = (limit + number) // len(sources)  # the last sources get the remainder
        if share:
            groups.append(_group(source, share, max_bytes // len(sources)))
    return [group for group in groups if group["texts"]]


def to_json(value: Any) -> str:
    """Return JSON that is safe inside a script element; NaN becomes null."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def compress_json(value: Any) -> str:
    """Return a value as gzip-compressed JSON in base 64, which the script of the page decodes."""
    return base64.b64encode(gzip.compress(to_json(value).encode(), mtime=0)).decode()


def _preference(runs: Sequence[tuple[Path, MeasureRecord]]) -> tuple[Any, ...]:
    trained, strategy = runs[0][1].trained, runs[0][1].trained_with
    methods = {name for _, record in runs for name in record.methods} - {BASELINE}
    return not methods, *rank(strategy, trained.validation, trained.scope), trained.seed


def _group(source: Source, limit: int, max_bytes: int) -> dict[str, Any]:
    """Return the examples of one checkpoint; methods are in descending order of ACU, the baseline last."""
    import pandas as pd

    runs = sorted(source.runs, key=lambda run: -run[1].texts)
    inputs = pd.concat([pd.read_parquet(folder / INPUTS) for folder, _ in runs])
    inputs = inputs.drop_duplicates("row").sort_values("row").head(limit)
    steps = pd.concat([pd.read_parquet(folder / TEXTS) for folder, _ in runs])
    steps = steps[steps["row"].isin(inputs["row"])].drop_duplicates(["method", "row", "percent"])
    percents = _thin([set(rows["percent"]) for _, rows in steps.groupby("method")])
    areas = {name: result.acu for _, record in runs for name, result in record.methods.items()}
    methods = sorted(areas, key=lambda name: (name == BASELINE, -areas[name]))
    steps_of: dict[tuple[Any, Any], list[Any]] = {}
    for step in steps[steps["percent"].isin(percents)].sort_values("percent").itertuples():
        steps_of.setdefault((step.row, step.method), []).append(step)
    texts = []
    for text in inputs.to_dict("records"):
        rows = (steps_of.get((text["row"], method)) for method in methods)
        texts.append({**_text(text), "by": [row and _by_method(row, text) for row in rows]})
    record = runs[0][1]
    return {
        "task": Path(source.task).name,
        "model": Path(source.model).name,
        "seed": record.trained.seed,
        "strategy": record.trained_with,
        "labels": record.labels,
        "numbers": tuple(record.labels) == SIDES,
        "methods": [_describe(name, numbers=tuple(record.labels) == SIDES) for name in methods],
        "percents": percents,
        "total": max(record.texts for _, record in runs),
        "texts": _fit(texts, max_bytes),
    }


def _fit(texts: list[dict[str, Any]], max_bytes: int) -> list[dict[str, Any]]:
    """Return as many of the first texts as fit into `max_bytes`, compressed and in base 64."""
    compressor, size = zlib.compressobj(), 0
    for number, text in enumerate(texts):
        data = compressor.compress(to_json(text).encode()) + compressor.flush(zlib.Z_SYNC_FLUSH)
        size += len(data)
        if 4 * size > 3 * max_bytes:  # base 64 encodes three bytes as four characters
            return texts[:number]
    return texts


def _text(text: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the values of a text that all methods share.

    `spans` alternates between the gap before a token and its length, in characters.
    """
    starts, ends = (list(map(int, text[name])) for name in ("starts", "ends"))
    start = text["text"][: max(ends, default=0) + MAX_UNREAD_CHARACTERS]
    places = zip(starts, ends, [0, *ends][:-1], strict=True)
    values = {
        "row": int(text["row"]),
        "text": start,
        "left": len(text["text"]) - len(start),
        "label": _round_prediction(text["label"]),
        "spans": [number for start, end, before in places for number in (start - before, end - start)],
    }
    values |= {"side": int(text["side"])} if "side" in text else {}
    return values | ({"context": text["context"]} if isinstance(text["context"], str) else {})


def _by_method(steps: Sequence[Any], text: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the scores of a method relative to its strongest one, and the effect of each step."""
    scores = list(map(float, steps[0].scores))
    largest = max(map(abs, scores), default=0.0)
    values: dict[str, Any] = {
        "largest": _round_score(largest),
        "strongest": _strongest_words(scores, text),
        "scores": [round(SCORE_LEVELS * score / (largest or 1)) for score in scores],
        "masked": _first_masked([step.masked for step in steps], len(scores)),
        "predicted": [_round_prediction(step.prediction) for step in steps],
        "probability": [round(float(step.probability), PROBABILITY_DIGITS) for step in steps],
    }
    for test in TESTS:
        if hasattr(steps[0], test):
            values[test] = [round(float(getattr(step, test)), PROBABILITY_DIGITS) for step in steps]
    return values


def _strongest_words(scores: Sequence[float], text: Mapping[Any, Any]) -> list[tuple[str, float]]:
    spans = list(zip(map(int, text["starts"]), map(int, text["ends"]), strict=True))
    words = word_pieces(text["text"], spans, [int(word) for word in text["words"]])
    values = [piece_score(word, scores) for word in words]
    return [(words[number].text, _round_score(values[number])) for number in strongest(values)]


def _round_prediction(value: float) -> float:
    """Return a class number, or a number rounded to the digits that the page shows."""
    return round(float(value), PROBABILITY_DIGITS) if isinstance(value, float) else int(value)


def _round_score(score: float) -> float:
    return float(f"{score:.3g}")


def _describe(name: str, *, numbers: bool) -> dict[str, Any]:
    """Return the name, sign and unit of a method; a method that is not imported counts as signed.

    Logits of a model that predicts numbers are in the unit of the number.
    """
    method = find_method(name)
    unit = method.score_unit if method else ""
    unit = unit.replace("logit points", "points of the predicted number") if numbers else unit
    return {"name": name, "signed": method is None or method.signed, "unit": unit}


def _first_masked(masks: Sequence[Sequence[int]], tokens: int) -> list[int]:
    """Return for each token the first step that masks it, or `NEVER`; later steps mask it, too."""
    first = [NEVER] * tokens
    for step in reversed(range(len(masks))):
        for token in masks[step]:
            first[token] = step
    return first


def _thin(percents: list[set[int]]) -> list[int]:
    """Return at most `MAX_STEPS` of the percentages that all methods have in common, and the last one."""
    common = sorted(map(int, set.intersection(*percents)))
    return sorted({*common[:: -(-len(common) // MAX_STEPS)], common[-1]})
