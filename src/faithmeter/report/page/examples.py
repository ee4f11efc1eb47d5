"""Example texts for the page, with the scores of each method and the effect of each erasure step."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...config import BASELINE, SIDES
from ...files import plain
from ...measuring.explanation import piece_score, strongest, word_pieces
from ...measuring.trace import Trace
from ...methods.registry import find_method
from ...store.results import Pooled, Run, preferred

SCORE_LEVELS = 50
"""Largest absolute score; token scores are rounded to whole numbers, which is enough for a color."""
NEVER = 99
"""Step number that stands for a token that is never masked."""
MAX_STEPS = 21
"""Maximum number of steps on the slider, not counting the last step; further steps are thinned out."""
MAX_UNREAD_CHARACTERS = 200
"""Maximum number of characters shown after the last token that the model read."""
PROBABILITY_DIGITS = 4
TESTS = ("crossfit", "published")


def choose_sources(measured: Iterable[Pooled]) -> list[tuple[Pooled, Run]]:
    """Return the measurement of one checkpoint for each task and model: the preferred one's first seed."""
    return [(pooled, pooled.runs[0]) for pooled in preferred(measured).values()]


def example_groups(sources: Sequence[tuple[Pooled, Run]], limit: int, max_bytes: int) -> list[dict[str, Any]]:
    """Return the first texts of each source, up to `limit` texts and `max_bytes` on the page in total."""
    groups = []
    for number, source in enumerate(sources):
        share = (limit + number) // len(sources)  # the last sources get the remainder
        if share:
            groups.append(_group(*source, share, max_bytes // len(sources)))
    return list(filter(itemgetter("texts"), groups))


def to_json(value: Any) -> str:
    """Return JSON that is safe inside a script element; NaN becomes null."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")  # "</script>" in a text would end the element


def compress_json(value: Any) -> str:
    """Return a value as gzip-compressed JSON in base 64, which the script of the page decodes."""
    return base64.b64encode(gzip.compress(to_json(value).encode(), mtime=0)).decode()


def _group(pooled: Pooled, run: Run, limit: int, max_bytes: int) -> dict[str, Any]:
    """Return the examples of one checkpoint; methods are in descending order of ACU, the baseline last."""
    result, manifest = run.result, run.newest
    numbers = tuple(manifest.labels) == SIDES
    percents = run.traces[BASELINE].percents
    places = _thin(len(percents))
    texts = []
    for text in run.texts.head(limit).to_dict("records"):
        by = [_by_method(run.traces[name], places, text) for name in result.ranked]
        texts.append({**_text(text), "by": by})
    return {
        "task": Path(pooled.task).name,
        "model": Path(pooled.model).name,
        "seed": run.training["seed"],
        "strategy": manifest.trained_with,
        "labels": manifest.labels,
        "numbers": numbers,
        "methods": [_describe(name, numbers=numbers) for name in result.ranked],
        "percents": list(map(percents.__getitem__, places)),
        "total": result.texts,
        "texts": _fit(texts, max_bytes),
    }


def _fit(texts: list[dict[str, Any]], max_bytes: int) -> list[dict[str, Any]]:
    """Return as many of the first texts as fit into `max_bytes`, compressed and in base 64."""
    # one stream for all texts, as on the page: a method's name is compressed away from the second text on
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
    starts, ends = np.asarray(text["starts"], int), np.asarray(text["ends"], int)
    start = text["text"][: ends.max(initial=0) + MAX_UNREAD_CHARACTERS]
    gaps = starts - np.concatenate([[0], ends[:-1]])[: len(starts)]
    values: dict[str, Any] = {
        "row": int(text["row"]),
        "text": start,
        "left": len(text["text"]) - len(start),  # characters that are not on the page
        "label": _round_prediction(text["label"]),
        "spans": np.stack([gaps, ends - starts], axis=1).ravel().tolist(),
    }
    values |= {"side": int(text["side"])} if "side" in text else {}
    return values | ({"context": text["context"]} if isinstance(text["context"], str) else {})


def _by_method(trace: Trace, places: Sequence[int], text: Mapping[Any, Any]) -> dict[str, Any] | None:
    """Return the scores of a method relative to its strongest one, and the effect of each step that is shown.

    The result is None if the method was not measured on the text.
    """
    own = np.flatnonzero(trace.rows == text["row"])
    if not len(own):
        return None
    here = int(own[0])
    scores = np.asarray(trace.scores[here], float)  # of the whole text, [T]
    largest = float(np.abs(scores).max(initial=0.0))
    # the first step that is shown at which a token is masked; a step after the last one shown means never
    visible = np.searchsorted(places, trace.steps[here])
    values: dict[str, Any] = {
        "largest": _round_score(largest),
        "strongest": _strongest_words(scores.tolist(), text),
        "scores": np.rint(SCORE_LEVELS * scores / (largest or 1)).astype(int).tolist(),
        "masked": np.where(visible < len(places), visible, NEVER).tolist(),
        "predicted": list(map(_round_prediction, trace.predictions[here, places].tolist())),
        "probability": _rounded(trace.probabilities[here, places]),
    }
    for test in TESTS:
        if test in trace.pvalues:
            values[f"p_{test}"] = _rounded(trace.pvalues[test][here, places])
    return values


def _rounded(values: NDArray[np.float64]) -> list[float]:
    return [round(value, PROBABILITY_DIGITS) for value in values.tolist()]


def _strongest_words(scores: Sequence[float], text: Mapping[Any, Any]) -> list[tuple[str, float]]:
    spans = list(zip(map(int, text["starts"]), map(int, text["ends"]), strict=True))
    words = word_pieces(text["text"], spans, list(map(int, text["words"])))
    values = list(map(partial(piece_score, scores=scores), words))
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


def _thin(steps: int) -> list[int]:
    """Return at most `MAX_STEPS` places of steps, and the last one."""
    return sorted({*range(0, steps, -(-steps // MAX_STEPS)), steps - 1})
