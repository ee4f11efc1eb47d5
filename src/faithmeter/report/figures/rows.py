"""Rows for figures, with short names, values in percent and named strategies."""

from __future__ import annotations

from pandas import DataFrame

from ...verdict.formats import format_metric
from ..labels import short_names
from .styles import STRATEGIES

PANEL = ["task", "model", "unit"]
"""Columns that determine the panel in which a row is drawn."""
PERCENT_COLUMNS = (
    *("value", "value_lower", "value_upper", "random", "random_lower", "random_upper"),
    *("ceiling", "acu", "acu_lower", "acu_upper", "racu", "racu_lower", "racu_upper"),
)


def label_rows(frame: DataFrame) -> DataFrame:
    """Return the rows with short names of tasks and models, values in percent, and the unit of the y axis."""
    task, model = (frame[name].map(short_names(frame[name])) for name in ("task", "model"))
    unit = frame["metric"].map(format_metric) + " (%)"
    columns = [name for name in PERCENT_COLUMNS if name in frame]
    percents = {name: 100 * frame[name].astype(float) for name in columns}
    return frame.assign(task=task, model=model, unit=unit, **percents)


def name_strategies(frame: DataFrame) -> DataFrame:
    """Return the rows whose training and validation strategy has a name, with the new column `tuning`."""
    pairs = zip(frame["strategy"], frame["validation"], strict=True)
    rows = frame.assign(tuning=[STRATEGIES.get(pair, "") for pair in pairs])
    return rows[rows["tuning"] != ""]
