"""Intervals over seeds and texts together, from measurements that were repeated with several seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame

from ..config import BASELINE
from ..measuring.measurement import predictions_of
from ..stats.comparisons import rank_methods
from ..stats.intervals import Interval, resample_texts
from ..stats.predictions import Predictions
from ..store.frames import SETTINGS, TRAINING
from ..store.records import MeasureRecord, Record, read_measurement
from .aggregate import POOLED_SEEDS, pooled_columns

TUNING = [*(name for name in TRAINING if name != "seed"), SETTINGS]
"""Columns that name a fine-tuning, whatever its seed."""
KEYS = [*TUNING, "texts", "method"]

Frames = Mapping[str, DataFrame]


def pool_seeds(frames: Frames, records: Sequence[tuple[Path, Record]]) -> dict[str, DataFrame]:
    """Return the frames with intervals over seeds and texts added to `areas` and `measure`.

    The added columns are `pooled_seeds` (the number of seeds), the bounds of each value, and in `areas`
    the methods in the lead. They are NaN for rows that cannot be pooled: a single converged seed, or seeds
    that were measured on different texts or at different percentages.
    """
    measured = {record.digest: (folder, record) for folder, record in records}
    areas, points = [], []
    converged = frames["areas"][frames["areas"]["converged"].astype(bool)]
    for key, rows in converged.groupby([*TUNING, "texts"], sort=False):
        predictions = _gather_predictions(rows, measured)
        if predictions is not None:
            group = dict(zip([*TUNING, "texts"], key, strict=True)) | {POOLED_SEEDS: predictions.seeds}
            own_areas, own_points = _pool(predictions)
            areas += [{**group, **row} for row in own_areas]
            points += [{**group, **row} for row in own_points]
    return {
        **frames,
        "areas": _merge(frames["areas"], areas, KEYS),
        "measure": _merge(frames["measure"], points, [*KEYS, "percent"]),
    }


def _gather_predictions(rows: DataFrame, measured: Mapping[str, tuple[Path, Record]]) -> Predictions | None:
    """Return the predictions of all seeds on their common texts; None if they cannot be pooled."""
    by_seed, settings = [], set()
    for _, own in rows.groupby("seed"):
        parts = []
        for digest, methods in own.groupby("digest")["method"]:
            folder, record = measured[str(digest)]
            assert isinstance(record, MeasureRecord)
            frame = read_measurement(folder, record).frame
            parts.append(frame[frame["method"].isin({*methods, BASELINE})])
            settings.add((record.config.data, record.config.step, record.metric, len(record.labels)))
        by_seed.append(pd.concat(parts).drop_duplicates(["method", "row", "percent"]))
    if len(by_seed) < 2 or len(settings) > 1:
        return None
    [(_, _, metric, classes)] = settings
    predictions = predictions_of(by_seed, classes=classes, metric=metric)
    return predictions if predictions.texts == rows["texts"].iloc[0] else None


def _pool(predictions: Predictions) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the added columns of `areas`, by method, and of `measure`, by method and percent."""
    intervals, areas, points = resample_texts(predictions), [], []
    ranking = rank_methods(predictions)
    lead = {"pooled_leaders": ranking.leaders, "pooled_texts_needed": ranking.texts_needed}
    random = intervals.curve(BASELINE)
    for name in predictions.methods:
        bounds = _bounds("acu", intervals.acu(name)) | _bounds("racu", intervals.racu(name))
        areas.append({"method": name, **bounds, **lead})
        curve = zip(predictions.percents, intervals.curve(name), random, strict=True)
        for percent, value, baseline in curve:
            columns = _bounds("value", value) | _bounds("random", baseline)
            points.append({"method": name, "percent": percent, **columns})
    return areas, points


def _bounds(value: str, interval: Interval) -> dict[str, float]:
    return dict(zip(pooled_columns(value), (interval.lower, interval.upper), strict=True))


def _merge(frame: DataFrame, rows: list[dict[str, Any]], keys: list[str]) -> DataFrame:
    return frame.merge(DataFrame(rows), on=keys, how="left") if rows else frame
