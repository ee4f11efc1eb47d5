"""Faithfulness of methods: ACU, RACU and the RACU of Recursive ROAR, by task and over all tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from pandas import DataFrame

from ...config import BASELINE
from ...faithfulness.curves import Curve, racu
from .cells import Cell, Column
from .estimates import NONE, SEEDS, Estimate, Frames, estimates, fewer_texts, same_texts
from .over_tasks import over_all, remarks, together
from .published_columns import (
    CHANGED,
    MODELS,
    OURS,
    REFERENCE,
    Key,
    beside,
    compared,
    in_order,
    model_names,
    plain,
    quoted,
    quoted_cell,
    stand_in,
    told,
)
from .table import Row, Table

LABELS = ("model", "dataset", "importance_measure")
BOUNDS = {"acu": "acu", "racu": "racu", "rroar_racu": "rroar"}  # score → the published name of its bounds
SCORES = tuple(BOUNDS)
TITLES, UNDER = "Faithfulness [%]", (("Our", "ACU"), ("Our", "RACU"), ("R-ROAR", "RACU"))
GREY = "The less relevant score is set back: RACU of signed methods, ACU of absolute ones."
HIGHER = "Higher is better; below 0 a method is not faithful."
BY = ["model", "task", "method"]


def published(task: str | None = None) -> Table:
    """As in the paper; of one task, or of all."""
    rows = [row for row in quoted("faithfulness") if task in (None, row["dataset"])]
    columns = (
        Column(("model",), ("Model",), "section"),
        Column(("dataset",), ("", "Dataset"), "group"),
        Column(("importance_measure",), ("", "IM"), "label", "method"),
        *(
            Column((score, f"{name}_minus", f"{name}_plus"), (TITLES, *under), form="number", decimals=(1, 1))
            for (score, name), under in zip(BOUNDS.items(), UNDER, strict=True)
        ),
    )
    return Table(_title(task) + ", published", columns, tuple(map(_published_row, rows)), (), (HIGHER, GREY))


def beside_ours(frames: Frames, task: str | None = None) -> Table:
    """The methods, tasks and models that were measured after masked fine-tuning, beside what is published."""
    if task is not None:
        frames = {kind: frame[frame["task"].map(plain) == task] for kind, frame in frames.items()}
    areas, roar = frames["areas"], recursive_roar(frames)
    masked = (areas["strategy"] == "half") & (areas["validation"] == "both")
    areas, left_out = same_texts(areas[masked & (areas["method"] != BASELINE)], BY)
    measured = {"acu": areas, "racu": areas, "rroar_racu": roar}
    groups = together(areas, roar) if task is None else []
    found = {
        score: estimates(frame, BY, score) | over_all(frame, score, groups)
        for score, frame in measured.items()
    }
    other = stand_in({*areas["model"], *roar["model"]})
    columns = (
        Column(("model",), ("Model",), "section"),
        Column(("task",), ("Dataset",), "group"),
        Column(("method",), ("IM",), "label", "method"),
        *beside("acu", "ACU [%]"),
        *beside("racu", "RACU [%]"),
        *beside("rroar_racu", "R-ROAR RACU [%]"),
        Column(("n",), ("Seeds", "n"), form="number"),
        Column(("excluded",), ("Seeds", "excl."), form="number"),
        Column(("texts",), ("Texts",), form="number"),
        Column(("rroar_n",), ("R-ROAR", "n"), form="number"),
        Column(("rroar_excluded",), ("R-ROAR", "excl."), form="number"),
        Column(("rroar_texts",), ("R-ROAR", "texts"), form="number"),
    )
    rows = tuple(_our_rows(measured, found, other, [group.name for group in groups]))
    notes = (HIGHER, GREY, SEEDS, *remarks(groups), *left_out, *fewer_texts(areas))
    comparison = (REFERENCE,) if other else (OURS, CHANGED)
    return Table(_title(task), told(columns, other), rows, (), notes, comparison)


def recursive_roar(frames: Frames) -> DataFrame:
    """The RACU of each method and seed against random erasing, over the percents that both have.

    A curve that does not reach 100 % yet has none. Its texts are those that the model was tested on.
    """
    train = frames["train"]
    thresholds = train.groupby("task")["threshold"].first().to_dict()
    tested = train[train["split"] == "test"].groupby(["task", "model"])["rows"].max().to_dict()
    by, rows = ["task", "model", "seed"], []
    for key, runs in frames["roar"].groupby(by):
        curves = runs.pivot_table("value", "percent", "method")
        for method in curves.columns.drop(BASELINE, errors="ignore"):
            both = curves.reindex(columns=[method, BASELINE]).dropna()
            if not {0, 100} <= set(both.index):
                continue
            curve, random = (Curve(tuple(both.index), tuple(both[name]), "", 1) for name in both)
            reached = curve.values[0] > thresholds.get(key[0], float("-inf"))
            rows.append((*key, method, racu(curve, random), reached, tested.get(key[:2])))
    return DataFrame(rows, columns=[*by, "method", "rroar_racu", "converged", "texts"])


def _texts(frame: DataFrame) -> dict[Key, int]:
    known = frame[[*BY, "texts"]].dropna()
    return {tuple(key): int(texts) for *key, texts in known.itertuples(index=False)}


def _our_rows(
    measured: dict[str, DataFrame], found: dict[str, dict[Key, Estimate]], other: str, last: list[str]
) -> Iterator[Row]:
    known = {tuple(row[name] for name in LABELS): row for row in quoted("faithfulness")}
    _, datasets, methods = zip(*known, strict=True)
    texts = {score: _texts(frame) for score, frame in measured.items()}
    keys = {key for scores in found.values() for key in scores}
    names = model_names({model for model, _, _ in keys})
    for key in in_order(keys, MODELS, datasets, methods, last=last):
        model, task, method = key
        theirs = known.get((PurePath(other or model).name, plain(task), method), {})
        ours = {score: found[score].get(key, NONE) for score in SCORES}
        seen = {score: texts[score].get(key) for score in SCORES}
        cells = []
        for score in SCORES:
            three = compared(quoted_cell(theirs, score, BOUNDS[score]), ours[score].cell, like=not other)
            cells += [replace(cell, grey=_grey(score, method)) for cell in three]
        counts = [
            cell
            for score in ("acu", "rroar_racu")
            for cell in (*ours[score].counts(), Cell(mean=seen[score]))
        ]
        yield (Cell(names[model]), Cell(task), Cell(method), *cells, *counts)


def _published_row(row: dict[str, Any]) -> Row:
    labels, method = (Cell(row[name]) for name in LABELS), row[LABELS[-1]]
    scores = (replace(quoted_cell(row, score, BOUNDS[score]), grey=_grey(score, method)) for score in SCORES)
    return (*labels, *scores)


def _grey(score: str, method: str) -> bool:
    """Signed methods may fall below the fully erased level, to which RACU relates; unknown ones show both."""
    name = plain(method)
    signed = name.endswith("-sign") or name == "beam"
    absolute = name.endswith("-abs") or name.startswith("grad-")
    return absolute if score == "acu" else signed


def _title(task: str | None) -> str:
    return "Faithfulness of importance measures" + ("" if task is None else f" on {task}")
