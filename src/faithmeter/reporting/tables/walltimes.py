"""Wall-times of fine-tuning, of the in-distribution check, of faithfulness and of the methods, with sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from pandas import DataFrame

from .cells import Cell, Column
from .estimates import Frames, fewer_texts, same_texts
from .published_columns import (
    LIKE,
    MODELS,
    REFERENCE,
    as_many,
    compared,
    in_order,
    model_names,
    plain,
    published_counts,
    quoted,
    size,
    stand_in,
    told,
)
from .table import Row, Table

DETAILED = ("walltime_importance_measures",)  # a row for each method
SEEDS = 5
TIME = "Walltime"
SUMS = "Sums are made here, of the values shown in each column."
EVERY = "Differences are summed only if every row has one."
CUT = "The published minutes are cut off, not rounded: the true sum is up to a minute for each row higher."
HOURS = "Published times are hh:mm on one V100, ours h:mm:ss."


@dataclass(frozen=True)
class Part:
    """A part of the work: what it is called, what is added up, and what to know about either side."""

    title: str
    phases: tuple[str, ...]
    note: str
    ours: str = ""
    published: str = ""
    kind: str = "measure"  # of run
    source: str = "areas"  # the frame that knows how large a run is
    counts: Mapping[str, str] = field(default_factory=lambda: {"texts": "Texts"})  # in what, and its heading
    once: str = ""  # a phase that the methods of a run share: it has a column of its own


PARTS = {
    "walltime_fine_tune": Part(
        "Wall-time of fine-tuning",
        ("load", "tokenize", "train", "test", "save"),
        "Mean over seeds and strategies.",
        published="The sum that the paper prints is its row of bAbI-3.",
        kind="train",
        source="train",
        counts={"epochs": "Epochs", "train_rows": "Training rows"},
    ),
    "walltime_in_distribution": Part(
        "Wall-time of in-distribution validation",
        ("check",),
        "Importance measures are not included; mean over them.",
        ours="Ours: both tests (as published, cross-fitted), on features that the faithfulness evaluation "
        "gives; they are fitted once for all measures.",
        published="Published: without fitting.",
        once="fit",
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
        ours="Ours: measures of a run share evaluations, so one that comes after others, as LOO (abs) after "
        "LOO (sign), takes less time than alone.",
        published="Beam search was too slow for long texts.",
    ),
}


def published(name: str) -> Table:
    """As in the paper, but with sums that are right."""
    detailed, part = name in DETAILED, PARTS[name]
    columns = (
        Column(("dataset",), ("Dataset",), "group" if detailed else "label"),
        *([Column(("importance_measure",), ("IM",), "label", "method")] if detailed else []),
        *(
            Column((f"{size(model)}_hhmm",), (f"{TIME} [hh:mm]", model), form="time", side="published")
            for model in MODELS
        ),
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
    by = ["task", "model", *(["method"] if detailed else [])]
    spent, on_texts = _spent(frames, part, by)
    names = model_names(spent["model"].unique())
    other = stand_in(names)
    known = {(row["dataset"], row.get("importance_measure", "")): row for row in quoted(name)}
    datasets, methods = zip(*known, strict=True)
    found = {tuple(map(str, key)): runs for key, runs in spent.groupby(by)}
    rows: list[Row] = []
    for key in in_order(found, *[datasets, MODELS, methods][: len(by)]):
        task, model, method = (*key, "")[:3]
        theirs = _hhmm(known.get((plain(task), method), {}).get(f"{size(other or model)}_hhmm"))
        labels = (Cell(task), Cell(names[model]), *map(Cell, key[2:]))
        rows.append((*labels, *_values(part, found[key], theirs, like=not other)))
    columns = (
        Column(("task",), ("Dataset",), "group"),
        Column(("model",), ("Model",), "group" if detailed else "label"),
        *([Column(("method",), ("IM",), "label", "method")] if detailed else []),
        *_columns(part),
    )
    models = [names[model] for (model,) in in_order(((name,) for name in names), MODELS)]
    totals = [total for model in models for total in _totals(columns, rows, model)]
    notes = filter(None, (part.note, part.ours, SUMS, *on_texts))
    like = (LIKE.format(" and ".join(map(str.lower, part.counts.values()))), EVERY)
    comparison = filter(None, (HOURS, part.published, CUT, *([REFERENCE] if other else like)))
    return Table(
        part.title, told(columns, other), tuple(rows), tuple(totals), tuple(notes), tuple(comparison)
    )


def _spent(frames: Frames, part: Part, by: list[str]) -> tuple[DataFrame, tuple[str, ...]]:
    """Seconds of each method of each run, with what they share, and what to know about their texts."""
    counts = frames[part.source][["digest", *part.counts]].drop_duplicates("digest")
    seconds = frames["seconds"]
    once = seconds[seconds["phase"] == part.once].groupby("digest").agg(once=("seconds", "sum")).reset_index()
    seconds = seconds[(seconds["kind"] == part.kind) & seconds["phase"].isin(part.phases)]
    runs = seconds.groupby(["task", "model", "method", "seed", "digest"])["seconds"].sum().reset_index()
    runs = runs.merge(counts).merge(once, how="left")
    if part.kind == "train":
        return runs, ()
    same, left_out = same_texts(runs, by)
    return same, (*left_out, *fewer_texts(same))


def _values(part: Part, runs: DataFrame, theirs: Cell, *, like: bool) -> Iterator[Cell]:
    """What stands in the columns of `_columns`."""
    task, counts = str(runs["task"].iloc[0]), {name: int(runs[name].iloc[0]) for name in part.counts}
    like = like and as_many(task, **counts)
    yield from compared(theirs, Cell(mean=round(float(runs["seconds"].mean()), 3)), like=like)
    each = runs.drop_duplicates("digest")
    if part.once:
        shared = each["once"].mean()
        yield Cell() if isnan(shared) else Cell(mean=round(float(shared), 3))
    yield Cell(mean=len(each))
    for name, count in counts.items():
        yield Cell() if theirs.missing else Cell(mean=published_counts()[plain(task)][name])
        yield Cell(mean=count)


def _columns(part: Part) -> Iterator[Column]:
    yield Column(("hhmm_published",), (TIME, "published"), form="time", side="published")
    yield Column(("seconds_ours",), (TIME, "ours"), form="time", side="ours")
    yield Column(("seconds_difference",), (TIME, "difference"), form="time", side="difference")
    if part.once:
        yield Column((f"{part.once}_seconds_ours",), ("Fitting", "ours"), form="time", side="ours")
    yield Column(("runs",), ("Runs",), form="number")
    for name, heading in part.counts.items():
        yield Column((f"{name}_published",), (heading, "in the paper"), form="number", side="published")
        yield Column((f"{name}_ours",), (heading, "ours"), form="number", side="ours")


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
    """A sum of differences that not every row has would not be the difference of the sums beside it."""
    if column.form != "time":
        return Cell("")
    seconds = [cell.mean for cell in cells if cell.mean is not None]
    if not seconds or (column.side == "difference" and len(seconds) < len(cells)):
        return Cell()
    total = times * sum(seconds)
    if column.side != "published":
        return Cell(mean=round(total, 3))
    return Cell(f"{total // 3600:02.0f}:{total % 3600 // 60:02.0f}", total)


def _hhmm(text: str | None) -> Cell:
    """A published time, which is shown as it is and counted in seconds."""
    if text is None:
        return Cell()
    hours, minutes = text.split(":")
    return Cell(text, 3600 * int(hours) + 60 * int(minutes))
