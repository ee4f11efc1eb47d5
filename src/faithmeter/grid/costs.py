"""Expected seconds of runs: amount of work × seconds per unit, as measured in the store or as published."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from ..config import BASELINE, Config, MeasureConfig, RoarConfig
from ..published import read_counts
from ..runs.measured import task_of
from ..runs.record import MeasureRecord, Record, RoarRecord
from ..runs.store import RunStore
from ..tasks import TASKS
from .planned import Run

Work = dict[tuple[str, str], float]
"""Amount of work, or seconds per unit, by part (train, roar, fit, explain, evaluate) and method."""

HERE, PUBLISHED = "measured here", "published"
COLUMNS = {"roberta-base": "base_hhmm", "roberta-large": "large_hhmm"}
STEPS = len(MeasureConfig().percents)
"""Steps of an erasure, as in the paper."""


def seconds(runs: Sequence[Run], store: RunStore) -> dict[Run, tuple[float, str] | None]:
    """Return the expected seconds of each run with their source; None if they are not known."""
    records = [record for _, record in store.records()]
    here, seen = _rates(records), _rows(records)
    estimates: dict[Run, tuple[float, str] | None] = {}
    for run in runs:
        trained = run.trained
        task, model = trained.task_or_data, Path(trained.model).name
        limit = run.config.limit if isinstance(run.config, MeasureConfig) else trained.limit
        rows = _published_rows(task, limit) | seen.get((task, limit), {})
        methods = [BASELINE, *run.config.methods] if isinstance(run.config, MeasureConfig) else []
        known = {PUBLISHED: _published_rates(task, model), HERE: here.get((task, model), {})}
        estimates[run] = None
        for source, rates in known.items():  # our own rates come last and take precedence
            try:
                work = _work(run.config, trained.epochs or task_of(trained).epochs, rows, methods)
                estimates[run] = sum(amount * rates[part] for part, amount in work.items()), source
            except KeyError:  # the number of rows, or the rate of a part of the work, is not known
                continue
    return estimates


def _work(config: Config, epochs: int, rows: Mapping[str, int], methods: Iterable[str]) -> Work:
    """Return the amounts of work: rows × epochs, texts × steps, and one fit of the check."""
    if isinstance(config, MeasureConfig):
        texts, steps = rows["test"], len(config.percents)
        explained: Work = {("explain", method): texts * _explanations(method, steps) for method in methods}
        return {("fit", ""): 1, **explained, **{("evaluate", method): texts * steps for method in methods}}
    work: Work = {(config.kind, ""): epochs * rows["train"]}
    if isinstance(config, RoarConfig):  # every text, at one step
        work["explain", config.method] = rows["train"] + rows["validation"] + rows["test"]
    return work


def _explanations(method: str, steps: int) -> int:
    """Return how often one text is explained; an unknown method is assumed to explain at every step."""
    from ..methods.registry import METHODS

    known = METHODS.get(method.partition("(")[0])
    return max(1, steps - 1) if known is None else known.explanations(steps)


def _rates(records: Iterable[Record]) -> dict[tuple[str, str], Work]:
    """Return the seconds per unit of each part of the work, by task and model, over all runs of the store."""
    spent: dict[tuple[str, str], Work] = defaultdict(lambda: defaultdict(float))
    amounts: dict[tuple[str, str], Work] = defaultdict(lambda: defaultdict(float))
    for record in records:
        place, epochs, methods = _place(record), 0, list[str]()
        if isinstance(record, MeasureRecord):
            methods = list(record.methods)
        else:
            epochs = len(record.epochs)
        work = _work(record.config, epochs, _rows_of(record), methods)
        for part, value in _spent(record).items():
            spent[place][part] += value
            amounts[place][part] += work[part]
    return {
        place: {part: value / amounts[place][part] for part, value in parts.items()}
        for place, parts in spent.items()
    }


def _spent(record: Record) -> Work:
    """Return the seconds of a run by the parts of its work."""
    own = dict(record.seconds)
    if isinstance(record, MeasureRecord):
        spent: Work = {("fit", ""): own["fit"]}
        for method, result in record.methods.items():
            spent["explain", method] = result.seconds["explain"]
            spent["evaluate", method] = result.seconds["evaluate"] + result.seconds["check"]
        return spent
    explained: Work = {}
    if isinstance(record, RoarRecord):
        explained["explain", record.config.method] = own.pop("explain")
    return {(record.kind, ""): sum(own.values()), **explained}


def _rows(records: Iterable[Record]) -> dict[tuple[str, int], dict[str, int]]:
    """Return the rows of each split by task and limit, as far as the records know them."""
    seen: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    for record in records:
        seen[_place(record)[0], record.config.limit] |= _rows_of(record)
    return seen


def _rows_of(record: Record) -> dict[str, int]:
    return {"test": record.texts} if isinstance(record, MeasureRecord) else record.rows


def _place(record: Record) -> tuple[str, str]:
    return record.trained.task_or_data, Path(record.trained.model).name


def _published_rows(task: str, limit: int) -> dict[str, int]:
    counts = read_counts().get(task.partition("(")[0], {}).get("class_counts", {})
    return {split: min(limit or sum(rows), sum(rows)) for split, rows in counts.items()}


@cache
def _published_rates(task: str, model: str) -> Work:
    """Return the rates of the paper's wall-times, on one V100; fitting the check is not among them."""
    task, column = task.partition("(")[0], COLUMNS.get(model, "")
    if task not in TASKS or not column:
        return {}
    rows = _published_rows(task, 0)
    trained = _published("walltime_fine_tune", column)[task, ""] / (TASKS[task].epochs * rows["train"])
    evaluated = sum(
        _published(f"walltime_{part}", column)[task, ""] for part in ("faithfulness", "in_distribution")
    )
    rates: Work = {("train", ""): trained, ("roar", ""): trained, ("fit", ""): 0.0}
    for (dataset, method), explained in _published("walltime_importance_measures", column).items():
        if dataset == task:  # a time is of all steps together
            rates["explain", method] = explained / (rows["test"] * _explanations(method, STEPS))
            rates["evaluate", method] = evaluated / (rows["test"] * STEPS)
    return rates


@cache
def _published(name: str, column: str) -> Work:
    """Return the published seconds by task and method, if the table has methods."""
    from ..published import table

    times = table(name).dropna(subset=[column])
    methods = times.get("importance_measure", [""] * len(times))
    parts = [cell.split(":") for cell in times[column]]
    return {
        (task, method): 3600.0 * int(hours) + 60.0 * int(minutes)
        for task, method, (hours, minutes) in zip(times["dataset"], methods, parts, strict=True)
    }
