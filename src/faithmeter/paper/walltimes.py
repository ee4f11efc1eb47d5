"""Tables of wall-times for fine-tuning, in-distribution tests, faithfulness and methods, with sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from operator import attrgetter
from typing import Any

from pandas import DataFrame

from ..report.aggregate import Frames, keep_usual_texts, note_fewer_texts
from ..report.blocks import Cell, Column, Row, Table, file_column
from ..report.values import short_names
from . import comparison, published

PAPER_SEEDS = 5
HEADING = "Walltime"
SUM_NOTE = "Sums are computed here from the values in each column."
COMPLETE_NOTE = "Differences are summed only if every row has one."
TRUNCATION_NOTE = "Published minutes are cut off, not rounded: the true sum is up to a minute per row higher."
FORMAT_NOTE = "Published times are hh:mm on one V100, ours h:mm:ss."
LIKE_NOTE = "A difference is shown only for the paper's models with as many {} as there."


@dataclass(frozen=True)
class Part:
    """Definition of one table: its title, the phases whose seconds are summed, and its notes."""

    title: str
    phases: tuple[str, ...]
    note: str
    our_note: str = ""
    published_note: str = ""
    kind: str = "measure"  # kind of the runs
    counts: Mapping[str, str] = field(default_factory=lambda: {"texts": "Texts"})  # column → heading
    shared_phase: str = ""  # phase shared by all methods of a run, shown in its own column
    by_method: bool = False  # whether there is a row for each method


PARTS = {
    "walltime_fine_tune": Part(
        "Wall-time of fine-tuning",
        ("load", "tokenize", "train", "sweep", "test", "save"),
        "Mean over seeds and strategies.",
        published_note="The sum that the paper prints is its row of bAbI-3.",
        kind="train",
        counts={"epochs": "Epochs", "train_rows": "Training rows"},
    ),
    "walltime_in_distribution": Part(
        "Wall-time of in-distribution validation",
        ("check",),
        "Importance measures are not included; mean over them.",
        our_note="Ours: both tests (published and cross-fitted) on features that the faithfulness evaluation "
        "computed; they are fitted once for all measures.",
        published_note="Published: without fitting.",
        shared_phase="fit",
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
        our_note="Ours: measures of a run share evaluations, so one that runs after another, such as "
        "LOO (abs) after LOO (sign), takes less time than alone.",
        published_note="Beam search was too slow for long texts.",
        by_method=True,
    ),
}


def walltimes_table(frames: Frames, name: str) -> Table:
    """Return a table of the mean wall-time of our runs, beside published wall-times."""
    part, paper = PARTS[name], published.rows(name)
    by = ["task", "model", *(["method"] if part.by_method else [])]
    means, text_notes = _mean_times(frames, part, by)
    names = short_names(means["model"])
    reference = comparison.reference_model(names)
    by_key = dict(zip(means[by].itertuples(index=False, name=None), means.to_dict("records"), strict=True))
    datasets, *methods = zip(*paper, strict=True)
    rows: list[Row] = []
    for key in comparison.sort_keys(by_key, datasets, comparison.MODELS, *methods):
        task, model, *method = key
        theirs = paper.get((comparison.strip_options(task), *method), {})
        hhmm = theirs.get(f"{comparison.published_size(reference or model)}_hhmm")
        labels = map(Cell, (task, names[model], *method))
        times = _cells(part, by_key[key], Cell(published.parse_minutes(hhmm)), comparable=not reference)
        rows.append((*labels, *times))
    columns = tuple(_columns(part))
    totals: list[Row] = []
    for (model,) in comparison.sort_keys(zip(names), comparison.MODELS):
        totals += sum_times(columns, rows, names[model], five_seeds=not reference)
    notes = filter(None, (part.note, part.our_note, SUM_NOTE if totals else "", *text_notes))
    their_notes = filter(None, (FORMAT_NOTE, part.published_note, TRUNCATION_NOTE))
    table = Table(part.title, columns, tuple(rows), tuple(notes), tuple(totals), tuple(their_notes))
    like = LIKE_NOTE.format(" and ".join(map(str.lower, part.counts.values())))
    return comparison.beside_published(table, reference, (like, COMPLETE_NOTE))


def _mean_times(frames: Frames, part: Part, by: list[str]) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the mean seconds of each group of runs with their counts, and notes on runs on other texts."""
    # the frames of trainings and of areas have a row for each epoch or method
    source = frames["train" if part.kind == "train" else "areas"]
    counts = source[["digest", *part.counts]].drop_duplicates("digest")
    seconds = frames["seconds"]
    shared = seconds[seconds["phase"] == part.shared_phase].groupby("digest").agg(shared=("seconds", "sum"))
    seconds = seconds[(seconds["kind"] == part.kind) & seconds["phase"].isin(part.phases)]
    runs = seconds.groupby(["task", "model", "method", "seed", "digest"])["seconds"].sum().reset_index()
    # a run whose tests were fitted elsewhere has no shared seconds, but is still a run
    runs = runs.merge(counts).merge(shared.reset_index(), how="left")
    notes: tuple[str, ...] = ()
    if part.kind != "train":  # a training has counts of its own: epochs and rows
        runs, left_out = keep_usual_texts(runs, by)
        notes = (*left_out, *note_fewer_texts(runs))
    # shared seconds stand in the row of every method of a run
    runs["shared"] = runs["shared"].mask(runs.duplicated("digest"))
    columns: Any = {"seconds": "mean", "shared": "mean", "digest": "nunique"}
    columns |= dict.fromkeys(part.counts, "first")
    return runs.groupby(by, as_index=False).agg(columns), notes


def _cells(part: Part, mean: Mapping[Any, Any], theirs: Cell, *, comparable: bool) -> Iterator[Cell]:
    """Yield the cells of a group of runs for the columns of `_columns`, except for its labels."""
    task, counts = str(mean["task"]), {name: int(mean[name]) for name in part.counts}
    comparable = comparable and comparison.has_published_counts(task, **counts)
    ours = Cell(round(float(mean["seconds"]), 3))
    yield from comparison.compare_cells(theirs, ours, comparable=comparable)
    if part.shared_phase:
        yield Cell() if isnan(mean["shared"]) else Cell(round(float(mean["shared"]), 3))
    yield Cell(mean["digest"])
    in_paper = {} if theirs.missing else published.counts()[comparison.strip_options(task)]
    for name, count in counts.items():
        yield from (Cell(count), Cell(in_paper.get(name)))


def _columns(part: Part) -> Iterator[Column]:
    yield file_column(("task",), ("Dataset",), "group")
    yield file_column(("model",), ("Model",), "group" if part.by_method else "label")
    if part.by_method:
        yield file_column(("method",), ("Method",), "label", "method")
    yield file_column(("seconds_ours",), (HEADING, "ours"), form="time", side="ours")
    yield file_column(("hhmm_published",), (HEADING, "published"), form="time", side="published")
    yield file_column(("seconds_difference",), (HEADING, "difference"), form="time", side="difference")
    if part.shared_phase:
        name = f"{part.shared_phase}_seconds_ours"
        yield file_column((name,), ("Fitting", "ours"), form="time", side="ours")
    yield file_column(("runs",), ("Runs",), form="number", trivial=1)
    for name, heading in part.counts.items():
        yield file_column((f"{name}_ours",), (heading, "ours"), form="number", side="ours")
        yield file_column((f"{name}_published",), (heading, "in the paper"), form="number", side="published")


def sum_times(
    columns: Sequence[Column], rows: Sequence[Row], model: str = "", *, five_seeds: bool = True
) -> Iterator[Row]:
    """Yield a row with the sum of each time column and, if `five_seeds`, a row with five times the sum.

    The sums are over the rows of `model`, or over all rows if it is "". Without `five_seeds`, a single row
    has no sum. A table without times has no sums.
    """
    summed = [row for row in rows if model in ("", row[1].value)]
    has_times = "time" in map(attrgetter("form"), columns)
    if not has_times or (not five_seeds and len(summed) == 1):  # a sum of one row says nothing new
        return
    for label, factor in {"sum": 1, f"x{PAPER_SEEDS} seeds": PAPER_SEEDS}.items():
        if factor == 1 or five_seeds:
            names = [Cell(label), *([Cell(model)] if model else [])]
            sums = map(_sum, columns, zip(*summed, strict=True), [factor] * len(columns))
            yield (*names, *list(sums)[len(names) :])


def _sum(column: Column, cells: Sequence[Cell], factor: int) -> Cell:
    """Return `factor` times the sum of a time column; the cell is missing if the sum is undefined.

    Differences are summed only if every row has one, because the sum must equal the difference of the sums.
    """
    if column.form != "time":
        return Cell("")
    seconds = [cell.number for cell in cells if cell.number is not None]
    if not seconds or (column.side == "difference" and len(seconds) < len(cells)):
        return Cell()
    return Cell(round(factor * sum(seconds), 3))
