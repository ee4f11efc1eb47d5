"""Figures by percent erased: in-distribution p-values, faithfulness curves and Recursive ROAR."""

from __future__ import annotations

import altair as alt
import pandas as pd
from pandas import DataFrame

from ...config import BASELINE, SIGNIFICANCE_LEVEL
from ..aggregate import Frames, bound_columns, choose_tunings, over_seeds
from .charts import (
    P_VALUE,
    PANEL,
    PERCENT,
    Draw,
    Facet,
    Legend,
    curves,
    join_parts,
    label_methods,
    label_rows,
    panels,
)
from .strategies import name_strategies
from .styles import CEILING, GROUPS, MASKED, PLAIN, UNKNOWN, assign_styles, group

TESTED = (PLAIN, MASKED, UNKNOWN)
WAYS = ("Recursive ROAR", "Ours")


def pvalues(frames: Frames, *, calibration: str) -> alt.ConcatChart | None:
    """Draw in-distribution p-values of the test split by percent erased, for each fine-tuning strategy."""
    value = f"p_{calibration}"
    rows = name_strategies(label_rows(frames["measure"])).dropna(subset=[value]).assign(unit=P_VALUE)
    rows = rows[rows["tuning"].isin(TESTED)]
    if rows.empty:
        return None
    rows = label_methods(rows, "tuning")
    means = over_seeds(rows, [*PANEL, "tuning", "label", "percent"], value, unconverged=True)
    level = rows[[*PANEL, "tuning"]].drop_duplicates().assign(level=SIGNIFICANCE_LEVEL)
    return panels(
        join_parts(mean=means, level=level),
        _curves(rows, level=True),
        Facet("tuning", TESTED, model_rows=True),
        top=1.0,
    )


def faithfulness(frames: Frames) -> alt.ConcatChart | None:
    """Draw performance by percent erased, for absolute and for signed methods.

    For each task and model, only the preferred fine-tuning is drawn: the masked one if there is one.
    """
    rows = _learned(frames["measure"])
    if rows.empty:
        return None
    rows = rows.assign(group=rows["method"].map(group))
    rows = pd.concat([_with_random(rows, "group"), _ceilings(rows)], ignore_index=True)
    means = over_seeds(rows, [*PANEL, "label", "group", "percent"])
    return panels(join_parts(mean=means), _curves(rows), Facet("group", GROUPS, model_rows=True))


def roar(frames: Frames) -> alt.ConcatChart | None:
    """Draw performance by percent erased, beside that of Recursive ROAR, which retrains at every step."""
    if frames["roar"].empty:
        return None
    methods = frames["roar"][["task", "model", "method"]].drop_duplicates()
    theirs, ours = label_rows(frames["roar"]), _learned(frames["measure"].merge(methods))
    theirs = theirs.assign(label=theirs["method"], way=WAYS[0], converged=True)
    rows = pd.concat([theirs, _with_random(ours.assign(way=WAYS[1]), "way")], ignore_index=True)
    means = over_seeds(rows, [*PANEL, "way", "label", "percent"])
    return panels(join_parts(mean=means), _curves(rows), Facet("way", WAYS, model_rows=True))


def _curves(rows: DataFrame, *, level: bool = False) -> Draw:
    legend = Legend("label", "", assign_styles(rows["label"]))
    return curves(legend, PERCENT, marked="datum.percent % 20 == 0", level=level)


def _learned(measured: DataFrame) -> DataFrame:
    """Return the converged runs of the preferred fine-tuning of each task and model."""
    rows = label_rows(choose_tunings(measured))
    return rows[rows["converged"].astype(bool)]


def _with_random(rows: DataFrame, column: str) -> DataFrame:
    """Return the rows of the methods, and rows of random erasure on the same texts, with labels."""
    methods = rows[rows["method"] != BASELINE]
    random = (rows if methods.empty else methods).drop_duplicates(
        [*PANEL, column, "seed", "texts", "percent"]
    )
    # each row has the value of random erasure on the same texts beside that of the method
    columns = ["value", *bound_columns(random, "value")]
    baseline = random[[name.replace("value", "random") for name in columns]].set_axis(columns, axis=1)
    random = random.assign(method=BASELINE, **baseline)
    return label_methods(pd.concat([methods, random], ignore_index=True), column)


def _ceilings(rows: DataFrame) -> DataFrame:
    """Return rows of the best order of each text by any method, beside the signed methods."""
    if "ceiling" not in rows:
        return rows[:0]
    by = [*PANEL, "seed", "texts", "percent"]
    known = rows[rows["ceiling"].notna() & (rows["group"] == GROUPS[1])].sort_values("texts")
    # the ceiling is of the texts that all methods share: the largest group of them stands for the panel
    most = known.groupby(PANEL)["texts"].transform("max")
    highest = known[known["texts"] == most].drop_duplicates(by)
    # the bounds of these rows are those of a method, not of the ceiling
    bounds = dict.fromkeys(bound_columns(highest, "value"), float("nan"))
    return highest.assign(method=CEILING, label=CEILING, value=highest["ceiling"], **bounds)
