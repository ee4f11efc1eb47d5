"""Tables of wall-times for fine-tuning, in-distribution tests, faithfulness and methods, with sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from pandas import DataFrame

from ...report.aggregate import Frames
from ...report.blocks import Cell, Column, Row, Table
from ...report.labels import short_names
from ...report.tables.cells import column, keep_usual_texts, note_fewer_texts
from . import comparison
from .layouts import Layout, parse_minutes

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
    source: str = "areas"  # frame with the counts of a run
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
        source="train",
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


def published_layout(name: str) -> Layout:
    """Return the layout of the table of wall-times as published, with recomputed sums."""
    part = PARTS[name]
    columns = [column(("dataset",), ("Dataset",), "group" if part.by_method else "label")]
    if part.by_method:
        columns.append(column(("importance_measure",), ("IM",), "label", "method"))
    for model, size in comparison.SIZES.items():
        heading = (f"{HEADING} [hh:mm]", model)
        columns.append(column((f"{size}_hhmm",), heading, form="time", side="published"))
    notes = filter(None, (part.note, part.published_note, SUM_NOTE, TRUNCATION_NOTE))
    return Layout(part.title, name, tuple(columns), tuple(notes), total=_totals)


def walltimes_table(frames: Frames, name: str) -> Table:
    """Return a table of the mean wall-time of our runs, beside published wall-times."""
    part = PARTS[name]
    by = ["task", "model", *(["method"] if part.by_method else [])]
    spent, text_notes = _spent(frames, part, by)
    names = short_names(spent["model"].unique())
    reference = comparison.reference_model(names)
    paper = {}
    for row in comparison.published_rows(name):
        paper[row["dataset"], row.get("importance_measure", "")] = row
    datasets, methods = zip(*paper, strict=True)
    groups = {tuple(map(str, key)): runs for key, runs in spent.groupby(by)}
    rows: list[Row] = []
    for key in comparison.sort_keys(groups, *[datasets, comparison.MODELS, methods][: len(by)]):
        task, model, method = (*key, "")[:3]  # a table without rows by method has no third part
        published = paper.get((comparison.strip_options(task), method), {})
        hhmm = published.get(f"{comparison.published_size(reference or model)}_hhmm")
        theirs = Cell(None if hhmm is None else parse_minutes(hhmm))
        labels = (Cell(task), Cell(names[model]), *map(Cell, key[2:]))
        rows.append((*labels, *_values(part, groups[key], theirs, comparable=not reference)))
    columns = tuple(_columns(part))
    totals = []
    for (model,) in comparison.sort_keys(((model,) for model in names), comparison.MODELS):
        totals += _totals(columns, rows, names[model], five_seeds=not reference)
    notes = filter(None, (part.note, part.our_note, SUM_NOTE if totals else "", *text_notes))
    like = (LIKE_NOTE.format(" and ".join(map(str.lower, part.counts.values()))), COMPLETE_NOTE)
    basis = comparison.REFERENCE_NOTES if reference else like
    return Table(
        part.title,
        comparison.name_reference(columns, reference),
        tuple(rows),
        tuple(notes),
        tuple(totals),
        tuple(filter(None, (FORMAT_NOTE, part.published_note, TRUNCATION_NOTE, *basis))),
        reference,
    )


def _spent(frames: Frames, part: Part, by: list[str]) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the seconds of each method in each run, with counts and shared seconds, and notes on texts."""
    counts = frames[part.source][["digest", *part.counts]].drop_duplicates("digest")
    seconds = frames["seconds"]
    shared = seconds[seconds["phase"] == part.shared_phase].groupby("digest").agg(shared=("seconds", "sum"))
    seconds = seconds[(seconds["kind"] == part.kind) & seconds["phase"].isin(part.phases)]
    runs = seconds.groupby(["task", "model", "method", "seed", "digest"])["seconds"].sum().reset_index()
    # a run whose tests were fitted elsewhere has no shared seconds, but is still a run
    runs = runs.merge(counts).merge(shared.reset_index(), how="left")
    if part.kind == "train":  # its counts are epochs and rows, which have columns of their own
        return runs, ()
    usual, left_out = keep_usual_texts(runs, by)
    return usual, (*left_out, *note_fewer_texts(usual))


def _values(part: Part, runs: DataFrame, theirs: Cell, *, comparable: bool) -> Iterator[Cell]:
    """Yield the cells of a group of runs for the columns of `_columns`."""
    task, counts = str(runs["task"].iloc[0]), {name: int(runs[name].iloc[0]) for name in part.counts}
    comparable = comparable and comparison.has_published_counts(task, **counts)
    ours = Cell(round(float(runs["seconds"].mean()), 3))
    yield from comparison.compare_cells(theirs, ours, comparable=comparable)
    each = runs.drop_duplicates("digest")  # shared seconds stand in the row of every method of a run
    if part.shared_phase:
        shared = each["shared"].mean()
        yield Cell() if isnan(shared) else Cell(round(float(shared), 3))
    yield Cell(len(each))
    for name, count in counts.items():
        yield Cell(count)
        published = {} if theirs.missing else comparison.published_counts()[comparison.strip_options(task)]
        yield Cell(published.get(name))


def _columns(part: Part) -> Iterator[Column]:
    yield column(("task",), ("Dataset",), "group")
    yield column(("model",), ("Model",), "group" if part.by_method else "label")
    if part.by_method:
        yield column(("method",), ("Method",), "label", "method")
    yield column(("seconds_ours",), (HEADING, "ours"), form="time", side="ours")
    yield column(("hhmm_published",), (HEADING, "published"), form="time", side="published")
    yield column(("seconds_difference",), (HEADING, "difference"), form="time", side="difference")
    if part.shared_phase:
        yield column((f"{part.shared_phase}_seconds_ours",), ("Fitting", "ours"), form="time", side="ours")
    yield column(("runs",), ("Runs",), form="number", trivial=1)
    for name, heading in part.counts.items():
        yield column((f"{name}_ours",), (heading, "ours"), form="number", side="ours")
        yield column((f"{name}_published",), (heading, "in the paper"), form="number", side="published")


def _totals(
    columns: Sequence[Column], rows: Sequence[Row], model: str = "", *, five_seeds: bool = True
) -> list[Row]:
    """Return a row with the sum of each time column and, if `five_seeds`, a row with five times the sum.

    The sums are over the rows of `model`, or over all rows if it is "". Without `five_seeds`, a single row
    has no sum.
    """
    summed = [row for row in rows if not model or row[1].value == model]
    factors = {"sum": 1} | ({f"x{PAPER_SEEDS} seeds": PAPER_SEEDS} if five_seeds else {})
    totals = []
    if not five_seeds and len(summed) == 1:  # a sum of one row says nothing new
        return []
    for label, factor in factors.items():
        first = [Cell(label), *([Cell(model)] if model else [])]
        rest = [_total(column, [row[at] for row in summed], factor) for at, column in enumerate(columns)]
        totals.append((*first, *rest[len(first) :]))
    return totals


def _total(column: Column, cells: list[Cell], factor: int) -> Cell:
    """Return `factor` times the sum of a time column; the cell is missing if the sum is undefined.

    Differences are summed only if every row has one, because the sum must equal the difference of the sums.
    """
    if column.form != "time":
        return Cell("")
    seconds = [cell.number for cell in cells if cell.number is not None]
    if not seconds or (column.side == "difference" and len(seconds) < len(cells)):
        return Cell()
    return Cell(round(factor * sum(seconds), 3))
