"""Wall-times of fine-tuning, of the in-distribution check, of faithfulness and of the methods, with sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pandas import DataFrame

from .cells import Cell, Column
from .estimates import (
    MODELS,
    Frames,
    compared,
    in_order,
    model_names,
    plain,
    quoted,
    same_texts,
    size,
)
from .table import Row, Table

DETAILED = ("walltime_importance_measures",)  # a row for each method
SEEDS = 5
TIME = "Walltime"
SUMS = "Sums are ours, of the values shown in each column."
CUT = "The published minutes are cut off, not rounded: the true sum is up to a minute for each row higher."


@dataclass(frozen=True)
class Part:
    """A part of the work: what it is called, what is added up, and what to know about either side."""

    title: str
    phases: tuple[str, ...]
    note: str
    ours: str = ""
    published: str = ""
    kind: str = "measure"  # of run
    source: str = "areas"  # the frame that knows how large a run is, and by what
    size: str = "texts"
    each: bool = True  # the methods of a run count on their own


PARTS = {
    "walltime_fine_tune": Part(
        "Wall-time of fine-tuning",
        ("load", "tokenize", "train", "test", "save"),
        "Mean over seeds and strategies.",
        published="The sum that the paper prints is its row of bAbI-3.",
        kind="train",
        source="train",
        size="epochs",
        each=False,
    ),
    "walltime_in_distribution": Part(
        "Wall-time of in-distribution validation",
        ("fit", "check"),
        "Importance measures are not included.",
        ours="Ours: fitting, and the check of all measures of a run.",
        published="Published: the check of one measure, without fitting.",
        each=False,
    ),
    "walltime_faithfulness": Part(
        "Wall-time of faithfulness evaluation",
        ("evaluate",),
        "Importance measures are not included; mean over them.",
    ),
    "walltime_importance_measures": Part(
        "Wall-time of importance measures",
        ("explain",),
        "All steps of one measure.",
        published="Beam search was too slow for long texts.",
    ),
}


def published(name: str) -> Table:
    """As in the paper, but with sums that are right."""
    detailed, part = name in DETAILED, PARTS[name]
    columns = (
        Column(("dataset",), ("Dataset",), "group" if detailed else "label"),
        *([Column(("importance_measure",), ("IM",), "label", "method")] if detailed else []),
        *(Column((f"{size(model)}_hhmm",), (f"{TIME} [hh:mm]", model)) for model in MODELS),
    )
    rows = tuple(
        tuple(_hhmm(value) if key.endswith("_hhmm") else Cell(value) for key, value in row.items())
        for row in quoted(name)
    )
    totals, notes = tuple(_totals(columns, rows)), filter(None, (part.note, part.published, SUMS, CUT))
    return Table(f"{part.title}, published", columns, rows, totals, tuple(notes))


def beside_ours(frames: Frames, name: str) -> Table:
    """Mean seconds of our runs by task and model (and method), beside the published hours and minutes."""
    part, detailed = PARTS[name], name in DETAILED
    known = {(row["dataset"], row.get("importance_measure", "")): row for row in quoted(name)}
    datasets, methods = zip(*known, strict=True)
    spent, left_out = _spent(frames, part)
    names = model_names(spent["model"].unique())
    by = ["task", "model", *(["method"] if detailed else [])]
    found = {tuple(map(str, key)): runs for key, runs in spent.groupby(by)}
    rows: list[Row] = []
    for key in in_order(found, *[datasets, MODELS, methods][: len(by)]):
        task, model, method = (*key, "")[:3]
        theirs = known.get((plain(task), method), {}).get(f"{size(model)}_hhmm")
        times = compared(_hhmm(theirs), Cell(mean=round(float(found[key]["seconds"].mean()), 3)))
        runs, size_of_run = found[key]["digest"].nunique(), int(found[key][part.size].iloc[0])
        labels = (Cell(task), Cell(names[model]), *map(Cell, key[2:]))
        rows.append((*labels, *times, Cell(mean=runs), Cell(mean=size_of_run)))
    columns = (
        Column(("task",), ("Dataset",), "group"),
        Column(("model",), ("Model",), "group" if detailed else "label"),
        *([Column(("method",), ("IM",), "label", "method")] if detailed else []),
        Column(("hhmm_published",), (TIME, "published"), side="published"),
        Column(("seconds_ours",), (TIME, "ours"), form="time", side="ours"),
        Column(("seconds_difference",), (TIME, "difference"), form="time", side="difference"),
        Column(("runs",), ("Runs",), form="number"),
        Column((part.size,), (part.size.capitalize(),), form="number"),
    )
    models = [names[model] for (model,) in in_order(((name,) for name in names), MODELS)]
    totals = [total for model in models for total in _totals(columns, rows, model)]
    notes = filter(None, (part.note, part.ours, SUMS, *left_out))
    comparison = filter(None, ("Published times are hh:mm, ours h:mm:ss.", part.published, CUT))
    return Table(part.title, columns, tuple(rows), tuple(totals), tuple(notes), tuple(comparison))


def _spent(frames: Frames, part: Part) -> tuple[DataFrame, tuple[str, ...]]:
    """Seconds of each run (of each of its methods if they count on their own), and what is left out."""
    sizes = frames[part.source].drop_duplicates("digest").set_index("digest")[part.size]
    spent = frames["seconds"]
    spent = spent[(spent["kind"] == part.kind) & spent["phase"].isin(part.phases)]
    among = ["task", "model", *(["method"] if part.each else [])]
    runs = spent.groupby([*among, "seed", "digest"])["seconds"].sum().reset_index()
    runs = runs[runs["digest"].isin(sizes.index)]
    runs[part.size] = runs["digest"].map(sizes)
    return (runs, ()) if part.kind == "train" else same_texts(runs, among)


def _totals(columns: Sequence[Column], rows: Sequence[Row], model: str = "") -> list[Row]:
    """The sum of each column of times, of the rows of one model if one is named, and five times that."""
    mine = [row for row in rows if not model or row[1].text == model]
    totals = []
    for label, times in (("sum", 1), (f"x{SEEDS} seeds", SEEDS)):
        first = [Cell(label), *([Cell(model)] if model else [])]
        rest = (_total(column, [row[at] for row in mine], times) for at, column in enumerate(columns))
        totals.append((*first, *list(rest)[len(first) :]))
    return totals


def _total(column: Column, cells: list[Cell], times: int) -> Cell:
    seconds = [cell.mean for cell in cells if cell.mean is not None]
    if not column.heading[0].startswith(TIME):
        return Cell("")
    if not seconds:
        return Cell()
    total = times * sum(seconds)
    if column.form == "time":
        return Cell(mean=round(total, 3))
    return Cell(f"{total // 3600:02.0f}:{total % 3600 // 60:02.0f}", total)


def _hhmm(text: str | None) -> Cell:
    """A published time, which is shown as it is and counted in seconds."""
    if text is None:
        return Cell()
    hours, minutes = text.split(":")
    return Cell(text, 3600 * int(hours) + 60 * int(minutes))
