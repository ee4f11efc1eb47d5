"""Table of faithfulness: ACU, RACU and the RACU of Recursive ROAR, by task and over all tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from pandas import DataFrame

from ...config import BASELINE
from ...methods.registry import find_method
from ...report.aggregate import Frames, TaskGroup, choose_tunings, over_task_groups, task_groups
from ...report.blocks import Cell, Column, Row, Table
from ...report.labels import short_names
from ...report.tables.cells import (
    POOLED_NOTE,
    SEED_COLUMNS,
    Key,
    MeanCells,
    column,
    interval_notes,
    keep_usual_texts,
    mean_cells,
    mean_row_cells,
    note_fewer_texts,
)
from ...stats.curves import Curve, racu
from ...store.result_frames import POOLED_SEEDS
from . import comparison
from .layouts import Layout, number, replace_mark

TITLE = "Faithfulness of importance measures"
LABELS = ("model", "dataset", "importance_measure")
BOUNDS = {"acu": "acu", "racu": "racu", "rroar_racu": "rroar"}  # score → the published name of its bounds
PUBLISHED_HEADINGS = (("Our", "ACU"), ("Our", "RACU"), ("R-ROAR", "RACU"))
GREY_NOTE = "The less relevant score is set back: RACU of signed methods, ACU of absolute ones."
SHARE = "share_of_ceiling"
CEILING_NOTE = (
    "Ceiling: the ACU of a method in percent of that of the best order of each text by any method, where a "
    "search was among the methods."
)
HIGHER_NOTE = "Higher is better; below 0 a method is not faithful."
ALL_NOTE = "All: for each seed that was run on all of these tasks, the mean over those on which it converged."
BY = ["model", "task", "method"]


def _mark(row: Mapping[str, Any], one: Column) -> str:
    return "grey" if one.names[0] in BOUNDS and _is_grey(one.names[0], row["importance_measure"]) else ""


PUBLISHED = Layout(
    TITLE,
    "faithfulness",
    (
        column(("model",), ("Model",), "section"),
        column(("dataset",), ("", "Dataset"), "group"),
        column(("importance_measure",), ("", "IM"), "label", "method"),
        *(
            number(score, ("Faithfulness [%]", *heading), bounds, decimals=(1, 1))
            for (score, bounds), heading in zip(BOUNDS.items(), PUBLISHED_HEADINGS, strict=True)
        ),
    ),
    (HIGHER_NOTE, GREY_NOTE),
    _mark,
)


def faithfulness_table(frames: Frames, task: str | None = None) -> Table:
    """Return a table of the methods measured on the preferred fine-tunings, beside published values."""
    if task is not None:
        own = {}
        for kind, frame in frames.items():
            own[kind] = frame[frame["task"].map(comparison.strip_options) == task]
        frames = own
    roar, areas = recursive_roar(frames), choose_tunings(frames["areas"])
    areas, left_out = keep_usual_texts(areas[areas["method"] != BASELINE], BY)
    # the paper publishes areas of masked fine-tuning only; areas of other ones stand alone
    masked = areas[(areas["strategy"] == "half") & (areas["validation"] == "both")]
    like_published = {*_keys(masked), *_keys(roar)}
    scores = {"acu": areas, "racu": areas, "rroar_racu": roar}
    groups = task_groups(areas, roar) if task is None else []
    means, texts = {SHARE: mean_cells(areas, BY, SHARE)}, {}
    for score, frame in scores.items():
        means[score] = mean_cells(frame, BY, score) | _all_tasks_cells(frame, score, groups)
        texts[score] = _texts(frame)
    reference = comparison.reference_model({*areas["model"], *roar["model"]})
    rows = tuple(_rows(means, texts, reference, like_published, [group.name for group in groups]))
    columns = comparison.name_reference(_columns(), reference)
    notes = (
        HIGHER_NOTE,
        GREY_NOTE,
        *interval_notes(rows, columns),
        *([CEILING_NOTE] if areas[SHARE].notna().any() else []),
        *([POOLED_NOTE] if POOLED_SEEDS in areas and areas[POOLED_SEEDS].notna().any() else []),
        *_group_notes(groups),
        *left_out,
        *note_fewer_texts(areas),
    )
    comparison_notes = comparison.REFERENCE_NOTES if reference else comparison.DIFFERENCE_NOTES
    title = TITLE if task is None else f"{TITLE} on {task}"
    return Table(title, columns, rows, notes, comparison_notes=comparison_notes, reference=reference)


def recursive_roar(frames: Frames) -> DataFrame:
    """Return the RACU of Recursive ROAR by task, model, seed and method, as a fraction.

    It is computed over the percents at which both the method and random erasure were run. Methods without
    results at 0 and 100 % are left out. The column `texts` is the number of test texts of the model.
    """
    by, rows = ["task", "model", "seed"], []
    columns = [*by, "method", "rroar_racu", "converged", "texts"]
    if frames["roar"].empty:
        return DataFrame(columns=columns)
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
    return DataFrame(rows, columns=columns)


def _all_tasks_cells(frame: DataFrame, score: str, groups: list[TaskGroup]) -> dict[Key, MeanCells]:
    percents = frame.assign(**{score: 100 * frame[score]})
    return mean_row_cells(over_task_groups(percents, score, groups), BY)


def _columns() -> tuple[Column, ...]:
    roar_seeds = (replace(column, names=(f"rroar_{column.names[0]}",)) for column in SEED_COLUMNS)
    return (
        column(("model",), ("Model",), "section"),
        column(("task",), ("Dataset",), "group"),
        column(("method",), ("Method",), "label", "method"),
        *comparison.comparison_columns("acu", "ACU [%]"),
        *comparison.comparison_columns("racu", "RACU [%]"),
        *comparison.comparison_columns("rroar_racu", "R-ROAR RACU [%]"),
        column((SHARE,), ("Ceiling", "share [%]"), form="number", decimals=(1, 1)),
        *SEED_COLUMNS,
        column(("texts",), ("Texts",), form="number"),
        *(replace(column, heading=("R-ROAR", column.heading[-1])) for column in roar_seeds),
        column(("rroar_texts",), ("R-ROAR", "texts"), form="number"),
    )


def _rows(
    means: dict[str, dict[Key, MeanCells]],
    texts: dict[str, dict[Key, int]],
    reference: str,
    like_published: set[Key],
    last: list[str],
) -> Iterator[Row]:
    """Yield a row for each model, task and method.

    Published values are shown only for keys in `like_published`, which were fine-tuned as in the paper.
    """
    paper = {tuple(row[name] for name in LABELS): row for row in comparison.published_rows("faithfulness")}
    _, datasets, methods = zip(*paper, strict=True)
    keys = {key for scores in means.values() for key in scores}
    names = short_names({model for model, _, _ in keys})
    for key in comparison.sort_keys(keys, comparison.MODELS, datasets, methods, last=last):
        model, task, method = key
        published_key = (PurePath(reference or model).name, comparison.strip_options(task), method)
        theirs = paper.get(published_key, {}) if key in like_published else {}
        cells: list[Cell] = []  # in the order of `_columns`
        for score, bounds in BOUNDS.items():
            ours = means[score].get(key, MeanCells()).value
            published = comparison.published_cell(theirs, score, bounds)
            triple = comparison.compare_cells(published, ours, comparable=not reference)
            mark = "grey" if _is_grey(score, method) else ""
            cells += [replace_mark(cell, mark) for cell in triple]
        cells.append(Cell(means[SHARE].get(key, MeanCells()).value.value))
        for score in ("acu", "rroar_racu"):
            cells += [*means[score].get(key, MeanCells()).seeds, Cell(texts[score].get(key))]
        yield (Cell(names[model]), Cell(task), Cell(method), *cells)


def _keys(frame: DataFrame) -> Iterator[Key]:
    return frame[BY].itertuples(index=False, name=None)


def _texts(frame: DataFrame) -> dict[Key, int]:
    rows = frame[[*BY, "texts"]].dropna()
    return {tuple(key): int(texts) for *key, texts in rows.itertuples(index=False)}


def _group_notes(groups: list[TaskGroup]) -> list[str]:
    """Return notes that define "All" and name the tasks missing from each group."""
    every = frozenset().union(*(group.tasks for group in groups))
    notes = [ALL_NOTE] if groups else []
    for group in groups:
        if group.tasks != every:
            notes.append(f"{group.name}: without {', '.join(sorted(every - group.tasks))}.")
    return notes


def _is_grey(score: str, method: str) -> bool:
    """Return whether a score (ACU or RACU) is less relevant for a method; False for an unknown method.

    RACU is less relevant for signed methods because their curves may fall below the fully erased level.
    """
    # of a method that is not imported nothing is known, so nothing of it is set back
    known = find_method(method)
    return known is not None and known.directed == (score != "acu")
