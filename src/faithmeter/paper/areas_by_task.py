"""Table of faithfulness: ACU, RACU and the RACU of Recursive ROAR, by task and over all tasks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import PurePath
from typing import Any

import pandas as pd
from pandas import DataFrame

from ..config import BASELINE
from ..methods.registry import find_method
from ..report import aggregate
from ..report.aggregate import Frames, Key, MeanCells
from ..report.blocks import Cell, Column, Table, file_column
from ..report.values import short_names
from ..stats.curves import Curve, racu
from ..store.frames import POOLED_SEEDS
from . import comparison, published

TITLE = "Faithfulness of importance measures"
BOUNDS = {"acu": "acu", "racu": "racu", "rroar_racu": "rroar"}  # score → the published name of its bounds
GREY_NOTE = "The less relevant score is set back: RACU of signed methods, ACU of absolute ones."
SHARE = "share_of_ceiling"
CEILING_NOTE = (
    "Ceiling: the ACU of a method in percent of that of the best order of each text by any method, where a "
    "search was among the methods."
)
HIGHER_NOTE = "Higher is better; below 0 a method is not faithful."
ALL_NOTE = "All: for each seed that was run on all of these tasks, the mean over those on which it converged."
BY = ["model", "task", "method"]


def faithfulness_table(frames: Frames, task: str | None = None) -> Table:
    """Return a table of the methods measured on the preferred fine-tunings, beside published values."""
    if task is not None:
        own = {}
        for kind, frame in frames.items():
            own[kind] = frame[frame["task"].map(comparison.strip_options) == task]
        frames = own
    paper = published.rows("faithfulness")
    roar, areas = recursive_roar(frames), aggregate.choose_tunings(frames["areas"])
    areas, left_out = aggregate.keep_usual_texts(areas[areas["method"] != BASELINE], BY)
    groups = task_groups(areas, roar) if task is None else []
    means = {SHARE: aggregate.mean_cells(areas, BY, SHARE)}
    texts: dict[str, Any] = {}
    for score, frame in zip(BOUNDS, (areas, areas, roar), strict=True):
        means[score] = aggregate.mean_cells(frame, BY, score) | over_task_groups(frame, score, groups)
        texts[score] = frame.dropna(subset="texts").set_index(BY)["texts"].astype(int).to_dict()
    masked = areas[(areas["strategy"] == "half") & (areas["validation"] == "both")]
    like_published = set(pd.concat([masked, roar])[BY].itertuples(index=False, name=None))
    reference = comparison.reference_model({*areas["model"], *roar["model"]})
    names, rows = short_names([*areas["model"], *roar["model"]]), []
    _, datasets, methods = zip(*paper, strict=True)
    keys = set().union(*means.values())
    last = list(map(attrgetter("name"), groups))
    for key in comparison.sort_keys(keys, comparison.MODELS, datasets, methods, last=last):
        model, place, method = key
        # the paper publishes areas of masked fine-tuning only; areas of other ones stand alone
        theirs = (PurePath(reference or model).name, comparison.strip_options(place), method)
        published_row = paper.get(theirs, {}) if key in like_published else {}
        labels = map(Cell, (names[model], place, method))
        rows.append((*labels, *_values(means, texts, key, published_row, comparable=not reference)))
    columns = tuple(_columns())
    notes = (
        HIGHER_NOTE,
        GREY_NOTE,
        *aggregate.interval_notes(rows, columns),
        *([CEILING_NOTE] if areas[SHARE].notna().any() else []),
        *([aggregate.POOLED_NOTE] if POOLED_SEEDS in areas and areas[POOLED_SEEDS].notna().any() else []),
        *_group_notes(groups),
        *left_out,
        *aggregate.note_fewer_texts(areas),
    )
    title = TITLE if task is None else f"{TITLE} on {task}"
    return comparison.beside_published(Table(title, columns, tuple(rows), notes), reference)


def recursive_roar(frames: Frames) -> DataFrame:
    """Return the RACU of Recursive ROAR by task, model, seed and method, as a fraction.

    It is computed over the percents at which both the method and random erasure were run. Methods without
    results at 0 and 100 % are left out. The column `texts` is the number of test texts of the model.
    """
    by, rows = ["task", "model", "seed"], []
    train = frames["train"]
    thresholds = train.groupby("task")["threshold"].first().to_dict()
    tested = train[train["split"] == "test"].groupby(["task", "model"])["rows"].max().to_dict()
    for key, runs in frames["roar"].groupby(by):
        curves = runs.pivot_table("value", "percent", "method")
        for method in curves.columns.drop(BASELINE, errors="ignore"):
            # a step that only one of both was run at has no difference; the trapezoids then get wider
            both = curves.reindex(columns=[method, BASELINE]).dropna()
            if not {0, 100} <= set(both.index):
                continue
            curve, random = (Curve(tuple(both.index), tuple(both[name]), "", 1) for name in both)
            # at 0 % nothing is erased: it is the model of the first step that must have learned the task
            reached = curve.values[0] > thresholds.get(key[0], float("-inf"))
            rows.append((*key, method, racu(curve, random), reached, tested.get(key[:2])))
    return DataFrame(rows, columns=[*by, "method", "rroar_racu", "converged", "texts"])


@dataclass(frozen=True)
class TaskGroup:
    """Set of tasks to average over, and the models with a method that was run on exactly these tasks."""

    name: str
    tasks: frozenset[str]
    models: set[str]


def task_groups(*frames: DataFrame) -> list[TaskGroup]:
    """Return every set of two or more tasks on which a method of a model was run, the largest set first."""
    models: dict[frozenset[str], set[str]] = defaultdict(set)
    for frame in frames:
        for (model, _), names in frame.groupby(["model", "method"])["task"]:
            models[frozenset(names)].add(str(model))
    groups: list[TaskGroup] = []
    sizes: Counter[int] = Counter()
    for tasks in sorted(models, key=lambda tasks: (-len(tasks), sorted(tasks))):
        if len(tasks) > 1:
            sizes[len(tasks)] += 1
            # a second group of as many tasks needs another name
            suffix = f" {sizes[len(tasks)]}" if sizes[len(tasks)] > 1 else ""
            groups.append(TaskGroup(f"{aggregate.ALL} ({len(tasks)} tasks){suffix}", tasks, models[tasks]))
    return groups


def over_task_groups(frame: DataFrame, score: str, groups: Sequence[TaskGroup]) -> dict[Key, MeanCells]:
    """Return means over tasks and seeds, of each group for the methods that were run on all its tasks."""
    cells: dict[Key, MeanCells] = {}
    for group in groups:
        rows = frame[frame["task"].isin(group.tasks) & frame["model"].isin(group.models)]
        # a score without bounds: those of a task are not those of the mean
        rows = rows.assign(**{score: 100 * rows[score]})
        rows = rows[rows.groupby(["model", "method"])["task"].transform("nunique") == len(group.tasks)]
        means = aggregate.over_tasks(rows, ["model", "method"], score).assign(task=group.name, converged=True)
        cells |= aggregate.mean_row_cells(aggregate.over_seeds(means, BY, score).drop(columns="excluded"), BY)
    return cells


def _group_notes(groups: list[TaskGroup]) -> Iterator[str]:
    """Yield notes that define "All" and name the tasks missing from each group."""
    every = frozenset().union(*map(attrgetter("tasks"), groups))
    if groups:
        yield ALL_NOTE
    for group in groups:
        if group.tasks != every:
            yield f"{group.name}: without {', '.join(sorted(every - group.tasks))}."


def _columns() -> Iterator[Column]:
    yield file_column(("model",), ("Model",), "section")
    yield file_column(("task",), ("Dataset",), "group")
    yield file_column(("method",), ("Method",), "label", "method")
    for score, heading in zip(BOUNDS, ("ACU [%]", "RACU [%]", "R-ROAR RACU [%]"), strict=True):
        yield from comparison.comparison_columns(score, heading, decimals=(1, 1))
    yield file_column((SHARE,), ("Ceiling", "share [%]"), form="number", decimals=(1, 1))
    yield from aggregate.SEED_COLUMNS
    yield file_column(("texts",), ("Texts",), form="number")
    for column in aggregate.SEED_COLUMNS:
        yield replace(column, names=(f"rroar_{column.names[0]}",), heading=("R-ROAR", column.heading[-1]))
    yield file_column(("rroar_texts",), ("R-ROAR", "texts"), form="number")


def _values(
    means: Mapping[str, Mapping[Key, MeanCells]],
    texts: Mapping[str, Mapping[Key, int]],
    key: Key,
    theirs: Mapping[str, Any],
    *,
    comparable: bool,
) -> Iterator[Cell]:
    """Yield the cells of a model, task and method for the columns of `_columns`, except for its labels."""
    for score, bounds in BOUNDS.items():
        ours = means[score].get(key, MeanCells()).value
        cells = comparison.compare_cells(
            comparison.published_cell(theirs, score, bounds), ours, comparable=comparable
        )
        grey = "grey " * _is_grey(score, key[-1])
        for cell in cells:
            yield replace(cell, mark=f"{grey}{cell.mark}")
    yield Cell(means[SHARE].get(key, MeanCells()).value.value)
    for score in ("acu", "rroar_racu"):
        yield from (*means[score].get(key, MeanCells()).seeds, Cell(texts[score].get(key)))


def _is_grey(score: str, method: str) -> bool:
    """Return whether a score (ACU or RACU) is less relevant for a method; False for an unknown method.

    RACU is less relevant for signed methods because their curves may fall below the fully erased level.
    """
    # of a method that is not imported nothing is known, so nothing of it is set back
    known = find_method(method)
    return known is not None and known.directed == (score != "acu")
