"""Rows of a store as figures draw them: short names, values in percent, names of strategies."""

from __future__ import annotations

from pandas import DataFrame

from ..labels import metric_name, short_names
from .styles import STRATEGIES

PANEL = ["task", "model", "unit"]
"""Columns that determine the panel in which a row is drawn."""
PERCENT_COLUMNS = ("value", "value_lower", "value_upper", "random", "random_lower", "random_upper")


def label_rows(frame: DataFrame) -> DataFrame:
    """Return rows with short names of task and model, values in percent, and the unit of the axis."""
    task, model = (frame[name].map(short_names(frame[name])) for name in ("task", "model"))
    unit = frame["metric"].map(metric_name) + " (%)"
    columns = [name for name in PERCENT_COLUMNS if name in frame]
    percents = {name: 100 * frame[name].astype(float) for name in columns}
    return frame.assign(task=task, model=model, unit=unit, **percents)


def name_strategies(frame: DataFrame) -> DataFrame:
    """Return the rows of strategies that have a name, with the name in the column `tuning`."""
    pairs = zip(frame["strategy"], frame["validation"], strict=True)
    rows = frame.assign(tuning=[STRATEGIES.get(pair, "") for pair in pairs])
    return rows[rows["tuning"] != ""]
