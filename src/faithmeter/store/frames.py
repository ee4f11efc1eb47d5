"""Tidy frames of a store: its records and results as rows, from which tables and figures are made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import BASELINE, SIGNIFICANCE_LEVEL
from ..errors import unknown
from ..measuring.plausibility import PLAUSIBILITY
from ..stats.curves import KINDS, racu_divisor
from ..stats.other_metrics import OTHER_METRICS
from ..verdict.evidence import choose_test
from .records import MaskedScores, Record, RoarRecord, TrainRecord
from .results import SETTINGS, TRAINING, Pooled, Run, name_training

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..measuring.result import Result
    from ..stats.intervals import Interval

Row = dict[str, Any]
Runs = Sequence[tuple[Path, Record]]
"""Records with their folders."""

POOLED = "pooled_"
"""Beginning of the names of columns with bounds over seeds and texts."""
POOLED_SEEDS = f"{POOLED}seeds"
"""Column with the number of seeds that the pooled bounds of a row are from."""
SEEDED = ("digest", "folder", *TRAINING, SETTINGS)
COLUMNS = {
    "train": (
        *(*SEEDED, "epochs", "split", "epoch", "best", "masking", "rows", "train_rows"),
        *("metric", "value", "loss", "majority", "threshold", "converged"),
    ),
    "measure": (
        *(*SEEDED, "method", "percent", "texts", "metric", "value", "value_lower", "value_upper"),
        *("random", "random_lower", "random_upper", "ceiling"),
        *("p_published", "p_crossfit", "below_published", "below_crossfit", "converged"),
    ),
    "areas": (
        *(*SEEDED, "method", "texts", "metric", "acu", "acu_lower", "acu_upper"),
        *("racu", "racu_lower", "racu_upper", "share_of_ceiling", "p_published", "p_crossfit"),
        *("floor_published", "floor_crossfit", "p_wholly_masked", "racu_divisor", "outside_share"),
        *(*OTHER_METRICS, *PLAUSIBILITY),
        *("evaluations", "evaluations_alone", "whole", "majority", "converged", "truncated"),
        *("classes_by_number", "precision", "agreement"),
    ),
    "seconds": (*SEEDED, "kind", "method", "phase", "seconds"),
    "roar": (*SEEDED, "method", "step", "percent", "metric", "value"),
}
"""Columns of each frame; `random` is the performance under random erasure of the same texts.

Those of results also have columns with bounds over seeds and texts, if several seeds were measured.
"""


def frame(kind: str, records: Runs, results: Iterable[Pooled] = (), **where: Any) -> DataFrame:
    """Return the rows of one kind, filtered by the column values in `where`.

    Args:
        kind: `train`, `measure`, `areas`, `seconds` or `roar`.
        records: Records of trainings, with their folders.
        results: Results of the measurements.
        where: Values of columns.
    """
    import pandas as pd

    if kind not in COLUMNS:
        raise unknown("frame", kind, COLUMNS)
    for column in where:
        if column not in COLUMNS[kind]:
            raise unknown(f"column of {kind}", column, COLUMNS[kind])
    rows = [*ROWS[kind](records, results)]
    pooled: dict[str, None] = {}
    for row in rows:
        pooled |= dict.fromkeys(filter(_is_pooled_column, row))
    tidy = pd.DataFrame(rows, columns=[*COLUMNS[kind], *pooled])
    for column, value in where.items():
        tidy = tidy[tidy[column] == value]
    return tidy.reset_index(drop=True)


def _is_pooled_column(name: str) -> bool:
    return name.startswith(POOLED)


def comparable(frames: Mapping[str, DataFrame]) -> tuple[dict[str, DataFrame], list[str]]:
    """Return the frames restricted to the most frequent settings of each task and model.

    Averages over runs that were trained differently would be misleading. The second result describes the
    runs that are left out.
    """
    import pandas as pd

    by = ["task", "model", SETTINGS]
    trained = pd.concat([frame[[*by, "digest"]] for frame in frames.values()]).drop_duplicates()
    sizes = trained.groupby(by).size().reset_index(name="runs")
    # of equally frequent settings, the last in the store's order
    sizes = sizes.sort_values("runs", kind="stable")
    most_frequent = set(sizes.drop_duplicates(["task", "model"], keep="last")[SETTINGS])
    left_out = []
    for task, model, settings, runs in sizes.itertuples(index=False):
        if settings not in most_frequent:
            left_out.append(f"{task}, {Path(str(model)).name}: {runs} runs with other settings")
    return {kind: frame[frame[SETTINGS].isin(most_frequent)] for kind, frame in frames.items()}, left_out


def _of_record(folder: Path, record: Record) -> Row:
    """Return the columns that identify a run."""
    return {"digest": record.digest, "folder": str(folder), **name_training(record)}


def _of_run(run: Run, method: str) -> Row:
    """Return the columns that identify a run and the measurement that a method is from, and the method."""
    digest, result = run.sources[method].digest, run.result
    return {
        "digest": digest,
        "folder": str(run.folders[digest]),
        **run.training,
        "method": method,
        "texts": result.texts_of(method),
        "metric": result.metric,
        "converged": result.curve(method).values[0] > result.context.threshold,
    }


def _train_rows(records: Runs, _: object) -> Iterator[Row]:
    for folder, record in records:
        if not isinstance(record, TrainRecord) or isinstance(record, RoarRecord):
            continue
        metric, best = record.metric, record.best_epoch
        tables = [("validation", epoch.epoch, epoch.validation) for epoch in record.epochs]
        for split, epoch, lines in [*tables, ("test", best, record.test)]:
            for line in _with_all_columns(record, lines):
                yield {
                    **_of_record(folder, record),
                    "epochs": len(record.epochs),
                    "train_rows": record.rows["train"],
                    "metric": metric,
                    "threshold": record.threshold,
                    "converged": record.unmasked > record.threshold,
                    "split": split,
                    "epoch": epoch,
                    "best": epoch == best,
                    "masking": str(line.masking),
                    "rows": line.texts or record.rows[split],
                    "value": line.score(metric),
                    "loss": line.loss,
                    "majority": record.majority[split][metric],
                }


def _with_all_columns(record: TrainRecord, lines: list[MaskedScores]) -> list[MaskedScores]:
    """Return performance by masking, with a line for the masking of all columns if 100 % was just that.

    Records of version 0.2 lack this line. Of pairs of which they masked one text, nothing replaces it.
    """
    # only then were all tokens of all columns masked at 100 %
    same = record.trained.scope == "all" or record.columns == ["text"]
    if not same or any(line.masking == "all" for line in lines):
        return lines
    return [*lines, *(line.model_copy(update={"masking": "all"}) for line in lines if line.masking == 100)]


def _roar_rows(records: Runs, _: object) -> Iterator[Row]:
    for folder, record in records:
        if isinstance(record, RoarRecord):
            config = record.config
            series = {**_of_record(folder, record), "method": config.method, "step": config.step}
            series |= {"metric": record.metric}
            yield {**series, "percent": config.percent, "value": record.unmasked}
            if config.percent == config.step:  # the first step of a series also stores the starting point
                yield {**series, "percent": 0, "value": record.plain}


def _second_rows(records: Runs, results: Iterable[Pooled]) -> Iterator[Row]:
    """Yield a row for each phase of a run; those of phases that methods share are in the manifest."""
    for folder, record in records:
        method = record.config.method if isinstance(record, RoarRecord) else ""
        own = {**_of_record(folder, record), "kind": record.kind, "method": method}
        for phase, seconds in record.seconds.items():
            yield {**own, "phase": phase, "seconds": seconds}
    for _, run, method in _methods(results):
        own = {**_of_run(run, method), "kind": "measure"}
        for phase, seconds in run.result.seconds.get(method, {}).items():
            yield {**own, "phase": phase, "seconds": seconds}


def _methods(results: Iterable[Pooled]) -> Iterator[tuple[Pooled, Run, str]]:
    """Yield each method of each seed of each fine-tuning."""
    for pooled in results:
        for run in pooled.runs:
            for method in run.result.methods:
                yield pooled, run, method


def _area_rows(_: object, results: Iterable[Pooled]) -> Iterator[Row]:
    """Yield a row for each seed and method, with bounds over texts and over seeds and texts."""
    for pooled, run, method in _methods(results):
        result, context = run.result, run.result.context
        row = {
            **_of_run(run, method),
            **_check(result, method),
            **result.metrics(method),
            **result.plausibility.get(method, {}),
            "share_of_ceiling": result.share_of_ceiling(method),
            "racu_divisor": racu_divisor(result.random_curve(method)),
            "evaluations": result.evaluations[method],
            # 0 stands for not counted
            "evaluations_alone": result.evaluations_alone[method] or math.nan,
            "whole": result.curve(method).values[0],
            "majority": result.majority,
        }
        for name in ("truncated", "classes_by_number", "precision", "agreement"):
            row[name] = getattr(context, name)
        for kind in KINDS:
            row[kind] = result.area(method, kind)
            row |= _bounds(kind, result.interval(method, kind))
        if _is_pooled(pooled, run, method):
            row[POOLED_SEEDS] = pooled.result.seeds_of(method)
            for kind in KINDS:
                row |= _bounds(f"{POOLED}{kind}", pooled.result.interval(method, kind))
        yield row


def _point_rows(_: object, results: Iterable[Pooled]) -> Iterator[Row]:
    """Yield a row for each seed, method and percentage erased, with bounds as those of areas."""
    for pooled, run, method in _methods(results):
        result, curve = run.result, run.result.curve(method)
        ceilings = result.group_with_more(method).ceilings
        columns: dict[str, Sequence[float]] = {
            "percent": curve.percents,
            "value": curve.values,
            "random": result.random_curve(method).values,
            "ceiling": [math.nan] * len(curve.values) if ceilings is None else ceilings[0].values,
            **_curve_bounds(result, method, ""),
        }
        # the same bounds stand in the rows of all seeds, so that one seed's row tells both
        if _is_pooled(pooled, run, method):
            columns |= _curve_bounds(pooled.result, method, POOLED)
            columns[POOLED_SEEDS] = [pooled.result.seeds_of(method)] * len(curve.percents)
        for test in result.tests:
            steps = result.pvalues(method, test).values()
            columns[f"p_{test}"] = [*map(attrgetter("p"), steps)]
            columns[f"below_{test}"] = [step.below[SIGNIFICANCE_LEVEL] for step in steps]
        for values in zip(*columns.values(), strict=True):
            yield {**_of_run(run, method), **dict(zip(columns, values, strict=True))}


def _is_pooled(pooled: Pooled, run: Run, method: str) -> bool:
    """Return whether a seed is among several whose texts are pooled."""
    counted = any(seed is run.traces for seed in pooled.result.used)
    return counted and pooled.result.seeds_of(method) > 1


def _bounds(name: str, interval: Interval) -> dict[str, float]:
    return {f"{name}_lower": interval.lower, f"{name}_upper": interval.upper}


def _curve_bounds(result: Result, method: str, prefix: str) -> dict[str, list[float]]:
    """Return the bounds of the curve of a method, and of random erasure of its texts."""
    intervals = result.group(method).intervals(result.metric)
    bounds = {}
    for column, name in ((f"{prefix}value", method), (f"{prefix}random", BASELINE)):
        points = intervals.curve(name)
        bounds[f"{column}_lower"] = [*map(attrgetter("lower"), points)]
        bounds[f"{column}_upper"] = [*map(attrgetter("upper"), points)]
    return bounds


def _check(result: Result, method: str) -> Row:
    """Return the p-values by test; the p-value at 100 % and the share of rejections by the deciding one."""
    row: Row = {}
    for test in result.tests:
        row |= {f"p_{test}": result.p(method, test), f"floor_{test}": result.context.floors[test]}
    if result.tests:
        steps = result.pvalues(method, choose_test(result.tests))
        # at 100 % all texts of a length look alike, so that step tells nothing about erased ones
        below = [step.below[SIGNIFICANCE_LEVEL] for percent, step in steps.items() if percent < 100]
        row |= {"p_wholly_masked": steps[100].p, "outside_share": max(below)}
    return row


ROWS: dict[str, Callable[[Runs, Iterable[Pooled]], Iterator[Row]]] = {
    "train": _train_rows,
    "measure": _point_rows,
    "areas": _area_rows,
    "seconds": _second_rows,
    "roar": _roar_rows,
}
