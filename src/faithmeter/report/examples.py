"""Texts of a store, packed for the page: what each method says of them and what erasing them does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..frames import trained_config
from ..steps import BASELINE
from .answers import rank

Record = Mapping[str, Any]

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
TOP = 4095
"""Numbers from 0 to 1 become 0 … TOP, two letters: three digits survive."""
NEVER = len(ALPHABET) - 1
"""The step of a token that no step masks."""
STEPS = 21
"""More steps than a slider needs are thinned out."""
TAIL = 200
"""Characters shown of what the model did not read."""
BUDGET = 8_000_000
"""Bytes for all texts: with the scripts, the page stays below 10 MB."""


@dataclass(frozen=True)
class Source:
    """The measurements of one checkpoint: their folders and records."""

    task: str
    model: str
    runs: tuple[tuple[Path, Record], ...]


def sources(records: Iterable[tuple[Path, Record]]) -> list[Source]:
    """For each task and model one checkpoint: masked rather than plain, the lowest seed, the most methods."""
    checkpoints: dict[tuple[Any, ...], list[tuple[Path, Record]]] = {}
    for folder, record in records:
        if record["kind"] == "measure" and (folder / "inputs.parquet").exists():
            trained = trained_config(record)
            key = (trained["task"], trained["model"], record["config"]["checkpoint"])
            checkpoints.setdefault(key, []).append((folder, record))
    best: dict[tuple[str, str], list[tuple[Path, Record]]] = {}
    for (task, model, _), runs in checkpoints.items():
        if (task, model) not in best or _order(runs) < _order(best[task, model]):
            best[task, model] = runs
    return [Source(task, model, tuple(runs)) for (task, model), runs in best.items()]


def pack(found: Sequence[Source], limit: int) -> list[dict[str, Any]]:
    """The first texts of each source, `limit` over all and no more than BUDGET allows."""
    groups = []
    for number, source in enumerate(found):
        share = (limit + number) // len(found)  # what does not divide goes to the last ones
        if share:
            groups.append(_group(source, share, BUDGET // len(found)))
    return [group for group in groups if group["texts"]]


def letters(numbers: Iterable[int], width: int) -> str:
    """Whole numbers as `width` letters each, base 64."""
    return "".join(ALPHABET[n >> 6 * place & 63] for n in numbers for place in reversed(range(width)))


def levels(values: Iterable[float]) -> list[int]:
    """0 … 1 → 0 … TOP."""
    return [round(TOP * value) for value in values]


def _order(runs: Sequence[tuple[Path, Record]]) -> tuple[Any, ...]:
    trained = trained_config(runs[0][1])
    methods = {name for _, record in runs for name in record["methods"]} - {BASELINE}
    return not methods, *rank(trained["strategy"], trained["validation"], trained["scope"]), trained["seed"]


def _group(source: Source, limit: int, budget: int) -> dict[str, Any]:
    """What the page shows of one checkpoint, the most faithful method first."""
    import pandas as pd

    runs = sorted(source.runs, key=lambda run: -run[1]["texts"])
    inputs = pd.concat([pd.read_parquet(folder / "inputs.parquet") for folder, _ in runs])
    inputs = inputs.drop_duplicates("row").sort_values("row").head(limit)
    steps = pd.concat([pd.read_parquet(folder / "texts.parquet") for folder, _ in runs])
    steps = steps[steps["row"].isin(inputs["row"])].drop_duplicates(["method", "row", "percent"])
    percents = _thinned([set(rows["percent"]) for _, rows in steps.groupby("method")])
    areas = {name: found["acu"] for _, record in runs for name, found in record["methods"].items()}
    methods = sorted(areas, key=lambda name: (name == BASELINE, -areas[name]))
    rows: dict[tuple[Any, Any], list[Any]] = {}
    for step in steps[steps["percent"].isin(percents)].sort_values("percent").itertuples():
        rows.setdefault((step.row, step.method), []).append(step)
    texts: list[dict[str, Any]] = []
    for text in inputs.to_dict("records"):
        by = [rows.get((text["row"], method)) for method in methods]
        packed = {**_text(text), "by": [step and _method(step) for step in by]}
        budget -= len(json.dumps(packed, ensure_ascii=False, separators=(",", ":")).encode())
        if budget < 0:
            break
        texts.append(packed)
    record = runs[0][1]
    trained = trained_config(record)
    return {
        "task": Path(source.task).name,
        "model": Path(source.model).name,
        "seed": trained["seed"],
        "strategy": trained["strategy"],
        "labels": record["labels"],
        "methods": methods,
        "percents": percents,
        "total": max(record["texts"] for _, record in runs),
        "texts": texts,
    }


def _text(text: Mapping[Any, Any]) -> dict[str, Any]:
    """What all methods share. Tokens are gaps and lengths in turn; `joined` ones go on with a word."""
    starts, ends, words = (list(map(int, text[name])) for name in ("starts", "ends", "words"))
    shown = text["text"][: max(ends, default=0) + TAIL]
    places = zip(starts, ends, [0, *ends][:-1], strict=True)
    packed = {
        "row": int(text["row"]),
        "text": shown,
        "left": len(text["text"]) - len(shown),
        "label": int(text["label"]),
        "spans": [number for start, end, before in places for number in (start - before, end - start)],
        "joined": [token for token in range(1, len(words)) if words[token] == words[token - 1]],
    }
    return packed | ({"context": text["context"]} if isinstance(text["context"], str) else {})


def _method(steps: Sequence[Any]) -> dict[str, Any]:
    """Scores as shares of the strongest, and what each step does to the prediction."""
    scores = list(map(float, steps[0].scores))
    strongest = max(map(abs, scores), default=0.0)
    shares = levels((score / strongest + 1) / 2 if strongest else 0.5 for score in scores)
    packed = {
        "most": float(f"{strongest:.4g}"),
        "scores": letters(shares, 2),
        "masked": letters(_first_masked([step.masked for step in steps], len(scores)), 1),
        "predicted": letters((step.prediction for step in steps), 2),
        "chance": letters(levels(step.probability for step in steps), 2),
    }
    tests = [test for test in ("p_crossfit", "p_published") if hasattr(steps[0], test)]
    return packed | {test: letters(levels(getattr(step, test) for step in steps), 2) for test in tests}


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
