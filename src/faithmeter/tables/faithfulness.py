"""Faithfulness of methods: ACU, RACU and the RACU of Recursive ROAR, by task and over all tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from pandas import DataFrame

from ..curves import Curve, racu
from .cells import Cell, Column
from .estimates import (
    ALL,
    CHANGED,
    MODELS,
    NONE,
    SEEDS,
    Estimate,
    Frames,
    Key,
    beside,
    compared,
    estimate,
    estimates,
    in_order,
    model_names,
    plain,
    quoted,
    quoted_cell,
    same_texts,
)
from .table import Row, Table

BASELINE = "random"
LABELS = ("model", "dataset", "importance_measure")
BOUNDS = {"acu": "acu", "racu": "racu", "rroar_racu": "rroar"}  # score → the published name of its bounds
SCORES = tuple(BOUNDS)
TITLES, UNDER = "Faithfulness [%]", (("Our", "ACU"), ("Our", "RACU"), ("R-ROAR", "RACU"))
GREY = "The less relevant score is set back: RACU of signed methods, ACU of absolute ones."
HIGHER = "Higher is better; below 0 a method is not faithful."
TOGETHER = "All: the mean over tasks, of the seeds that converged on every one."


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
    areas, roar, by = frames["areas"], recursive_roar(frames), ["model", "task", "method"]
    masked = (areas["strategy"] == "half") & (areas["validation"] == "both")
    areas, left_out = same_texts(areas[masked & (areas["method"] != BASELINE)], by)
    found = {}
    for score, frame, other in (("acu", areas, roar), ("racu", areas, roar), ("rroar_racu", roar, areas)):
        found[score] = estimates(frame, by, score)
        if task is None:
            found[score] |= over_tasks(frame, score, {*zip(other["model"], other["task"], strict=True)})
    texts = {tuple(key): int(texts) for *key, texts in areas[[*by, "texts"]].itertuples(index=False)}
    columns = (
        Column(("model",), ("Model",), "section"),
        Column(("task",), ("Dataset",), "group"),
        Column(("method",), ("IM",), "label", "method"),
        *beside("acu", "ACU [%]"),
        *beside("racu", "RACU [%]"),
        *beside("rroar_racu", "R-ROAR RACU [%]"),
        Column(("n",), ("Seeds", "n"), form="number"),
        Column(("excluded",), ("Seeds", "excl."), form="number"),
        Column(("rroar_n",), ("R-ROAR seeds", "n"), form="number"),
        Column(("rroar_excluded",), ("R-ROAR seeds", "excl."), form="number"),
        Column(("texts",), ("Texts",), form="number"),
    )
    notes = (HIGHER, GREY, SEEDS, *([TOGETHER] if task is None else []), *left_out)
    return Table(_title(task), columns, tuple(_our_rows(found, texts)), (), notes, (CHANGED,))


def recursive_roar(frames: Frames) -> DataFrame:
    """The RACU of each method and seed against random erasing, over the percents that both have.

    A curve that does not reach 100 % yet has none.
    """
    thresholds = frames["train"].groupby("task")["threshold"].first().to_dict()
    by, rows = ["task", "model", "seed"], []
    for key, runs in frames["roar"].groupby(by):
        curves = runs.pivot_table("value", "percent", "method")
        for method in curves.columns.drop(BASELINE, errors="ignore"):
            both = curves.reindex(columns=[method, BASELINE]).dropna()
            if not {0, 100} <= set(both.index):
                continue
            curve, random = (Curve(tuple(both.index), tuple(both[name]), "", 1) for name in both)
            reached = curve.values[0] > thresholds.get(key[0], float("-inf"))
            rows.append((*key, method, racu(curve, random), reached))
    return DataFrame(rows, columns=[*by, "method", "rroar_racu", "converged"])


def over_tasks(frame: DataFrame, value: str, also: set[tuple[str, str]]) -> dict[Key, Estimate]:
    """By model and method the mean over all tasks of the model, of the seeds that converged on every one.

    `also` has models and tasks that this frame may lack, but the table has.
    """
    found: dict[Key, Estimate] = {}
    for model, runs in frame.groupby("model"):
        tasks = sorted({*runs["task"], *(task for of, task in also if of == model)})
        for method, rows in runs.groupby("method"):
            if len(tasks) > 1:
                grid = rows[rows["converged"]].pivot_table(value, "seed", "task").reindex(columns=tasks)
                means = grid.dropna().mean(axis=1)
                found[str(model), ALL, str(method)] = estimate(means, rows["seed"].nunique())
    return found


def _our_rows(found: dict[str, dict[Key, Estimate]], texts: dict[Key, int]) -> Iterator[Row]:
    known = {tuple(row[name] for name in LABELS): row for row in quoted("faithfulness")}
    _, datasets, methods = zip(*known, strict=True)
    keys = {key for scores in found.values() for key in scores}
    names = model_names({model for model, _, _ in keys})
    for model, task, method in in_order(keys, MODELS, datasets, methods):
        theirs = known.get((PurePath(model).name, plain(task), method), {})
        ours = {score: found[score].get((model, task, method), NONE) for score in SCORES}
        cells = []
        for score in SCORES:
            three = compared(quoted_cell(theirs, score, BOUNDS[score]), ours[score].cell)
            cells += [replace(cell, grey=_grey(score, method)) for cell in three]
        counts = (*ours["acu"].counts(), *ours["rroar_racu"].counts())
        labels = (Cell(names[model]), Cell(task), Cell(method))
        yield (*labels, *cells, *counts, Cell(mean=texts.get((model, task, method))))


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
