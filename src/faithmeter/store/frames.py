"""Tidy frames of records, from which tables, figures and reports are made."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import BASELINE, SIGNIFICANCE_LEVEL
from ..errors import unknown
from ..measuring.plausibility import PLAUSIBILITY
from ..stats.curves import Curve, racu_divisor
from ..stats.other_metrics import OTHER_METRICS
from ..verdict import choose_test
from .records import Bounds, MaskedScores, MeasureRecord, MethodResult, Record, RoarRecord, TrainRecord

if TYPE_CHECKING:
    from pandas import DataFrame

Row = dict[str, Any]

NO_BOUNDS = Bounds(lower=math.nan, upper=math.nan)
TRAINING = ("task", "model", "seed", "strategy", "validation", "scope")
"""Columns that identify a fine-tuning."""
SETTINGS = "settings"
"""Column with a digest of all other training settings; only runs with equal settings may be averaged."""
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
        *("racu", "racu_lower", "racu_upper", "share_of_ceiling", "leaders", "texts_needed"),
        *(
            "p_published",
            "p_crossfit",
            "floor_published",
            "floor_crossfit",
            "p_wholly_masked",
            "racu_divisor",
            "outside_share",
        ),
        *(*OTHER_METRICS, *PLAUSIBILITY),
        *("evaluations", "evaluations_alone", "whole", "majority", "converged", "truncated"),
        *("classes_by_number", "precision", "agreement"),
    ),
    "seconds": (*SEEDED, "kind", "method", "phase", "seconds"),
    "roar": (*SEEDED, "method", "step", "percent", "metric", "value"),
}
"""Columns of each frame; `random` is the performance under random erasure of the same texts."""
OF_ROAR = ("method", "code", "step", "percent")
NOT_SETTINGS = {"seed", "strategy", "validation", *OF_ROAR, "data_dir", "report_to", "sweep", "rationale"}


def frame(kind: str, records: Iterable[tuple[Path, Record]], **where: Any) -> DataFrame:
    """Return the rows of one kind from all records, filtered by the column values in `where`.

    If a method was measured more than once on the same checkpoint, the measurement on the most texts counts;
    among equals, one in fp32, and then the newest, as the code of your own method may have changed.
    """
    import pandas as pd

    records = list(records)
    if kind not in COLUMNS:
        raise unknown("frame", kind, COLUMNS)
    for column in where:
        if column not in COLUMNS[kind]:
            raise unknown(f"column of {kind}", column, COLUMNS[kind])
    rows = [row for folder, record in records for row in ROWS[kind](record, _identity(folder, record))]
    chosen = [row for row in rows if all(row[column] == value for column, value in where.items())]
    table = pd.DataFrame(chosen, columns=list(COLUMNS[kind]))
    if kind not in ("measure", "areas"):
        return table
    same = [*TRAINING, SETTINGS, "method"]
    order = {
        record.digest: (getattr(record, "precision", "fp32") == "fp32", record.finished)
        for _, record in records
    }
    ranked = table[[*same, "digest", "texts"]].drop_duplicates()
    ranked = ranked.assign(order=ranked["digest"].map(order)).sort_values(["texts", "order"])
    newest = ranked.drop_duplicates(same, keep="last")
    return table.merge(newest[["digest", "method"]], on=["digest", "method"])


def comparable(frames: Mapping[str, DataFrame]) -> tuple[dict[str, DataFrame], list[str]]:
    """Return the frames restricted to the most frequent settings of each task and model.

    Averages over runs that were trained differently would be misleading. The second result describes the
    runs that are left out.
    """
    import pandas as pd

    trained = pd.concat(
        [frame[["task", "model", SETTINGS, "digest"]] for frame in frames.values()]
    ).drop_duplicates()
    sizes = trained.groupby(["task", "model", SETTINGS]).size().reset_index(name="runs")
    sizes = sizes.sort_values("runs", kind="stable")
    most_frequent = set(sizes.drop_duplicates(["task", "model"], keep="last")[SETTINGS])
    others = sizes[~sizes[SETTINGS].isin(most_frequent)]
    left_out = [
        f"{task}, {Path(str(model)).name}: {runs} runs with other settings"
        for task, model, runs in zip(others["task"], others["model"], others["runs"], strict=True)
    ]
    return {kind: frame[frame[SETTINGS].isin(most_frequent)] for kind, frame in frames.items()}, left_out


def _identity(folder: Path, record: Record) -> Row:
    trained = record.trained
    values = {**trained.to_dict(), "task": trained.task_or_data}
    others = {name: value for name, value in values.items() if name not in NOT_SETTINGS}
    settings = hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()[:8]
    named = {name: values[name] for name in TRAINING}
    if isinstance(record, MeasureRecord):
        named |= {"task": record.task_title, "strategy": record.trained_with}
    return {"digest": record.digest, "folder": str(folder), **named, SETTINGS: settings}


def _train(record: Record, run: Row) -> Iterator[Row]:
    if not isinstance(record, TrainRecord) or isinstance(record, RoarRecord):
        return
    metric, best = record.metric, record.best_epoch
    common = {
        **run,
        "epochs": len(record.epochs),
        "train_rows": record.rows["train"],
        "metric": metric,
        "threshold": record.threshold,
        "converged": record.unmasked > record.threshold,
    }
    tables = [("validation", epoch.epoch, epoch.validation) for epoch in record.epochs]
    for split, epoch, lines in [*tables, ("test", best, record.test)]:
        place = {"split": split, "epoch": epoch, "best": epoch == best}
        for line in _with_all_columns(record, lines):
            texts = line.texts or record.rows[split]
            values = {
                "masking": str(line.masking),
                "rows": texts,
                "value": line.score(metric),
                "loss": line.loss,
            }
            yield {**common, **place, **values, "majority": record.majority[split][metric]}


def _with_all_columns(record: TrainRecord, lines: list[MaskedScores]) -> list[MaskedScores]:
    """Return performance by masking, with a line for the masking of all columns if 100 % was just that.

    Records of version 0.2 lack this line. Of pairs of which they masked one text, nothing replaces it.
    """
    same = record.trained.scope == "all" or record.columns == ["text"]
    if not same or any(line.masking == "all" for line in lines):
        return lines
    return [*lines, *(line.model_copy(update={"masking": "all"}) for line in lines if line.masking == 100)]


def _methods(record: MeasureRecord, run: Row) -> Iterator[tuple[MethodResult, Row]]:
    """Yield the result of each measured method, with the columns that all its rows share."""
    for name, method in record.methods.items():
        converged = method.curve.values[0] > record.threshold
        shared = {"method": name, "texts": record.texts, "metric": record.metric}
        yield method, {**run, **shared, "converged": converged}


def _measure(record: Record, run: Row) -> Iterator[Row]:
    if not isinstance(record, MeasureRecord):
        return
    for method, common in _methods(record, run):
        random = record.methods.get(BASELINE, method)
        ceiling = record.ceiling.curve.values if record.ceiling else [math.nan] * len(method.curve.values)
        erased = zip(method.curve.percents, method.curve.values, random.curve.values, ceiling, strict=True)
        for percent, value, baseline, highest in erased:
            points = {"value": value, "random": baseline, "ceiling": highest}
            points |= _bounds("value", method, f"curve.{percent}")
            points |= _bounds("random", random, f"curve.{percent}")
            steps = {test: steps[percent] for test, steps in method.pvalues.items()}
            pvalues = {f"p_{test}": step.p for test, step in steps.items()}
            below = {f"below_{test}": step.below[SIGNIFICANCE_LEVEL] for test, step in steps.items()}
            yield {**common, "percent": percent, **points, **pvalues, **below}


def _bounds(column: str, method: MethodResult, quantity: str) -> Row:
    """Return the columns of a confidence interval over texts; NaN if the record has none."""
    bounds = method.intervals.get(quantity, NO_BOUNDS)
    return {f"{column}_lower": bounds.lower, f"{column}_upper": bounds.upper}


def _areas(record: Record, run: Row) -> Iterator[Row]:
    if not isinstance(record, MeasureRecord):
        return
    for method, common in _methods(record, run):
        areas: Row = {"acu": method.acu, "racu": method.racu, "evaluations": method.evaluations}
        areas["evaluations_alone"] = method.evaluations_alone or math.nan
        areas["racu_divisor"] = racu_divisor(_curve(record.methods.get(BASELINE, method)))
        highest = record.ceiling.acu if record.ceiling else 0.0
        areas["share_of_ceiling"] = method.acu / highest if highest > 0 else math.nan
        pvalues = {f"p_{test}": p for test, p in method.p.items()}
        pvalues |= {f"floor_{test}": floor for test, floor in record.floors.items()}
        if method.pvalues:
            steps = method.pvalues[choose_test(method.pvalues)]
            pvalues["p_wholly_masked"] = steps[100].p
            shares = [step.below[SIGNIFICANCE_LEVEL] for percent, step in steps.items() if percent < 100]
            pvalues["outside_share"] = max(shares)
        areas |= {name: method.metrics.get(name, math.nan) for name in OTHER_METRICS}
        areas |= {name: method.plausibility.get(name, math.nan) for name in PLAUSIBILITY}
        for name in ("acu", "racu"):
            areas |= _bounds(name, method, name)
        areas |= {"leaders": tuple(record.leaders), "texts_needed": record.texts_needed}
        limits: Row = {"truncated": record.truncated, "classes_by_number": record.classes_by_number}
        limits |= {"precision": record.precision, "agreement": record.agreement}
        performance = {"whole": method.curve.values[0], "majority": record.majority}
        yield {**common, **areas, **pvalues, **limits, **performance}


def _curve(method: MethodResult) -> Curve:
    stored = method.curve
    return Curve(tuple(stored.percents), tuple(stored.values), stored.metric, stored.n)


def _seconds(record: Record, run: Row) -> Iterator[Row]:
    common = {"kind": record.kind, **run}
    method = record.config.method if isinstance(record, RoarRecord) else ""
    for phase, seconds in record.seconds.items():
        yield {**common, "method": method, "phase": phase, "seconds": seconds}
    if isinstance(record, MeasureRecord):
        for measured, shared in _methods(record, run):
            for phase, seconds in measured.seconds.items():
                yield {**common, **shared, "phase": phase, "seconds": seconds}


def _roar(record: Record, run: Row) -> Iterator[Row]:
    if not isinstance(record, RoarRecord):
        return
    config, metric = record.config, record.metric
    series = {**run, "method": config.method, "step": config.step, "metric": metric}
    yield {**series, "percent": config.percent, "value": record.unmasked}
    if config.percent == config.step:  # the first step of a series also stores the starting point
        yield {**series, "percent": 0, "value": record.plain}


ROWS: dict[str, Callable[[Record, Row], Iterator[Row]]] = {
    "train": _train,
    "measure": _measure,
    "areas": _areas,
    "seconds": _seconds,
    "roar": _roar,
}
