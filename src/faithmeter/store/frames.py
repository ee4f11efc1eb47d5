"""Tidy frames of records, from which tables, figures and reports are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import unknown
from ..measuring.plausibility import PLAUSIBILITY
from ..stats.other_metrics import OTHER_METRICS
from .records import MaskedScores, Record, RoarRecord, TrainRecord
from .result_frames import POOLED, Row, area_rows, point_rows, second_rows
from .results import SETTINGS, TRAINING, Pooled, name_training

if TYPE_CHECKING:
    from pandas import DataFrame

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
        *("racu", "racu_lower", "racu_upper", "share_of_ceiling"),
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
"""Columns of each frame; `random` is the performance under random erasure of the same texts.

Those of results also have columns with bounds over seeds and texts, if several seeds were measured.
"""


def frame(
    kind: str, records: Iterable[tuple[Path, Record]], results: Iterable[Pooled] = (), **where: Any
) -> DataFrame:
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
    rows: list[Row] = []
    if kind in OF_RECORDS:
        for folder, record in records:
            identity = {"digest": record.digest, "folder": str(folder), **name_training(record)}
            rows += OF_RECORDS[kind](record, identity)
    if kind in OF_RESULTS:
        for result in results:
            rows += OF_RESULTS[kind](result)
    # filtered after computing: rows are few, and every column may be asked for
    chosen = [row for row in rows if all(row[column] == value for column, value in where.items())]
    pooled = dict.fromkeys(name for row in chosen for name in row if name.startswith(POOLED))
    return pd.DataFrame(chosen, columns=[*COLUMNS[kind], *pooled])


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
    # of equally frequent settings, the last in the store's order
    sizes = sizes.sort_values("runs", kind="stable")
    most_frequent = set(sizes.drop_duplicates(["task", "model"], keep="last")[SETTINGS])
    others = sizes[~sizes[SETTINGS].isin(most_frequent)]
    left_out = [
        f"{task}, {Path(str(model)).name}: {runs} runs with other settings"
        for task, model, runs in zip(others["task"], others["model"], others["runs"], strict=True)
    ]
    return {kind: frame[frame[SETTINGS].isin(most_frequent)] for kind, frame in frames.items()}, left_out


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
    # only then were all tokens of all columns masked at 100 %
    same = record.trained.scope == "all" or record.columns == ["text"]
    if not same or any(line.masking == "all" for line in lines):
        return lines
    return [*lines, *(line.model_copy(update={"masking": "all"}) for line in lines if line.masking == 100)]


def _seconds(record: Record, run: Row) -> Iterator[Row]:
    common = {"kind": record.kind, **run}
    method = record.config.method if isinstance(record, RoarRecord) else ""
    for phase, seconds in record.seconds.items():
        yield {**common, "method": method, "phase": phase, "seconds": seconds}


def _roar(record: Record, run: Row) -> Iterator[Row]:
    if not isinstance(record, RoarRecord):
        return
    config, metric = record.config, record.metric
    series = {**run, "method": config.method, "step": config.step, "metric": metric}
    yield {**series, "percent": config.percent, "value": record.unmasked}
    if config.percent == config.step:  # the first step of a series also stores the starting point
        yield {**series, "percent": 0, "value": record.plain}


OF_RECORDS: dict[str, Callable[[Record, Row], Iterator[Row]]] = {
    "train": _train,
    "seconds": _seconds,
    "roar": _roar,
}
OF_RESULTS: dict[str, Callable[[Pooled], Iterator[Row]]] = {
    "measure": point_rows,
    "areas": area_rows,
    "seconds": second_rows,
}
