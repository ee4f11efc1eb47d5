"""Expected times of runs: amounts of work times the seconds per unit, measured in the store or published."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from faithmeter.config import BASELINE, Config, MeasureConfig, RoarConfig
from faithmeter.data import TASKS
from faithmeter.grid.execution import Run
from faithmeter.paper.published import read_counts
from faithmeter.runs.measured import task_of
from faithmeter.store.records import Manifest, Record, RoarRecord
from faithmeter.store.results import Pooled
from faithmeter.store.run_store import RunStore

Work = dict[tuple[str, str], float]
"""Amounts of work, seconds, or seconds per unit of work, by part and method.

The parts are train, roar, fit, explain and evaluate; the method is empty where there is none.
"""

HERE, PUBLISHED = "measured here", "published"
COLUMNS = {"roberta-base": "base_hhmm", "roberta-large": "large_hhmm"}
STEPS = len(MeasureConfig().percents)
"""Number of steps of an erasure in the paper."""


def seconds(runs: Sequence[Run], store: RunStore) -> dict[Run, tuple[float, str] | None]:
    """Return the expected seconds of each run and the source of the estimate; None if they are unknown.

    Times measured in the store take precedence over published ones.
    """
    records = [record for _, record in store.records()]
    here, seen = _rates(records, store.results()), _rows(records)
    estimates: dict[Run, tuple[float, str] | None] = {}
    for run in runs:
        trained = run.trained
        task, model = trained.task_or_data, Path(trained.model).name
        limit = run.config.limit if isinstance(run.config, MeasureConfig) else trained.limit
        rows = _published_rows(task, limit) | seen.get((task, limit), {})
        methods = [BASELINE, *run.config.methods] if isinstance(run.config, MeasureConfig) else []
        known = {PUBLISHED: _published_rates(task, model), HERE: here.get((task, model), {})}
        estimates[run] = None
        for source, rates in known.items():  # rates measured here come last and take precedence
            try:
                work = _work(run.config, trained.epochs or task_of(trained).epochs, rows, methods)
                estimates[run] = sum(amount * rates[part] for part, amount in work.items()), source
            except KeyError:  # the number of rows, or the rate of a part of the work, is not known
                continue
    return estimates


def _work(config: Config, epochs: int, rows: Mapping[str, int], methods: Iterable[str]) -> Work:
    """Return the amount of each part of a run's work, such as rows × epochs or texts × steps."""
    if isinstance(config, MeasureConfig):
        texts, steps = rows["test"], len(config.percents)
        explained: Work = {("explain", method): texts * _explanations(method, steps) for method in methods}
        return {("fit", ""): 1, **explained, **{("evaluate", method): texts * steps for method in methods}}
    work: Work = {(config.kind, ""): epochs * rows["train"]}
    if isinstance(config, RoarConfig):  # each text is explained once
        work["explain", config.method] = rows["train"] + rows["validation"] + rows["test"]
    return work


def _explanations(method: str, steps: int) -> int:
    """Return how often a method explains each text; an unknown method is assumed to be recursive."""
    from faithmeter.methods.registry import METHODS

    known = METHODS.get(method.partition("(")[0])
    return max(1, steps - 1) if known is None else known.explanations(steps)


def _rates(records: Iterable[Record], results: Iterable[Pooled]) -> dict[tuple[str, str], Work]:
    """Return the mean seconds per amount of each part, by task and model."""
    spent: dict[tuple[str, str], Work] = defaultdict(lambda: defaultdict(float))
    amounts: dict[tuple[str, str], Work] = defaultdict(lambda: defaultdict(float))
    for place, work, seconds in [*_trained(records), *_measured(results)]:
        for part, value in seconds.items():
            spent[place][part] += value
            amounts[place][part] += work[part]
    return {
        place: {part: value / amounts[place][part] for part, value in parts.items()}
        for place, parts in spent.items()
    }


Spent = tuple[tuple[str, str], Work, Work]
"""Task and model, the amount of each part of the work, and the seconds that it took."""


def _trained(records: Iterable[Record]) -> Iterator[Spent]:
    for record in records:
        if isinstance(record, Manifest):
            continue
        own, explained = dict(record.seconds), Work()
        if isinstance(record, RoarRecord):
            explained["explain", record.config.method] = own.pop("explain")
        work = _work(record.config, len(record.epochs), record.rows, [])
        yield _place(record), work, {(record.kind, ""): sum(own.values()), **explained}


def _measured(results: Iterable[Pooled]) -> Iterator[Spent]:
    for run in (run for pooled in results for run in pooled.runs):
        for method, seconds in run.result.seconds.items():
            manifest = run.sources[method]
            work = _work(manifest.config, 0, {"test": run.result.texts_of(method)}, [method])
            spent: Work = {
                ("explain", method): seconds["explain"],
                ("evaluate", method): seconds["evaluate"] + seconds["check"],
            }
            if "fit" in manifest.seconds:  # tests that were there already took no time
                spent["fit", ""] = manifest.seconds["fit"]
            yield _place(manifest), work, spent


def _rows(records: Iterable[Record]) -> dict[tuple[str, int], dict[str, int]]:
    """Return the number of rows of each split, by task and limit, as far as the records contain it."""
    seen: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    for record in records:
        seen[_place(record)[0], record.config.limit] |= _rows_of(record)
    return seen


def _rows_of(record: Record) -> dict[str, int]:
    return {"test": record.texts} if isinstance(record, Manifest) else record.rows


def _place(record: Record) -> tuple[str, str]:
    return record.trained.task_or_data, Path(record.trained.model).name


def _published_rows(task: str, limit: int) -> dict[str, int]:
    counts = read_counts().get(task.partition("(")[0], {}).get("class_counts", {})
    return {split: min(limit or sum(rows), sum(rows)) for split, rows in counts.items()}


@cache
def _published_rates(task: str, model: str) -> Work:
    """Return the paper's seconds per unit of each part of the work, measured on one V100.

    The result is empty if the paper does not cover the task or the model. It reports no time for fitting the
    tests, which counts as 0.
    """
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
        if dataset == task:  # a published time covers all steps
            rates["explain", method] = explained / (rows["test"] * _explanations(method, STEPS))
            rates["evaluate", method] = evaluated / (rows["test"] * STEPS)
    return rates


@cache
def _published(name: str, column: str) -> Work:
    """Return a column of a published table in seconds, by task and method ("" if it has no methods)."""
    from faithmeter.paper.published import table

    times = table(name).dropna(subset=[column])
    methods = times.get("importance_measure", [""] * len(times))
    parts = [cell.split(":") for cell in times[column]]
    return {
        (task, method): 3600.0 * int(hours) + 60.0 * int(minutes)
        for task, method, (hours, minutes) in zip(times["dataset"], methods, parts, strict=True)
    }
