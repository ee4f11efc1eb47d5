"""Figure of faithfulness against cost: the area of each method by its evaluations per text."""

from __future__ import annotations

import altair as alt
import pandas as pd
from pandas import DataFrame

from ...config import BASELINE
from ..aggregate import Frames, choose_tunings, over_seeds
from .charts import PANEL, Facet, Legend, join_parts, label_methods, label_rows, panels, scatter
from .styles import GROUPS, assign_styles, group

AREAS = dict(zip(GROUPS, ("racu", "acu"), strict=True))
"""Area by group: curves of absolute methods cannot fall below full erasure, to which RACU is relative."""
TITLES = {name: f"{name}: {area.upper()}" for name, area in AREAS.items()}
EVALUATIONS = alt.X(
    "evaluations:Q",
    title="evaluations per text",
    scale=alt.Scale(type="log", nice=False, padding=12),
    axis=alt.Axis(grid=False, tickCount=4, format="~s"),
)


def pareto(frames: Frames) -> alt.ConcatChart | None:
    """Draw the area of each method by its evaluations per text, measured as if it were measured alone.

    The line connects the methods that no other exceeds with fewer evaluations. Bars are intervals over texts.
    """
    rows = label_rows(choose_tunings(frames["areas"]))
    rows = rows[rows["converged"].astype(bool) & (rows["method"] != BASELINE)]
    # methods of one run share evaluations; alone, each pays for all that it needs
    rows = rows.dropna(subset=["evaluations_alone"])
    if rows["method"].nunique() < 2:
        return None
    rows = rows.assign(group=rows["method"].map(group), evaluations=rows["evaluations_alone"] / rows["texts"])
    rows = pd.concat([_with_area(part, str(name)) for name, part in rows.groupby("group")], ignore_index=True)
    by = [*PANEL, "group", "label"]
    means = over_seeds(rows, by)
    means = means.merge(rows.groupby(by, as_index=False)["evaluations"].mean(), on=by)
    fronts = [_front(part) for _, part in means.groupby([*PANEL, "group"])]
    return panels(
        join_parts(mean=means, front=pd.concat(fronts)),
        scatter(Legend("label", "", assign_styles(rows["label"])), EVALUATIONS),
        Facet("group", list(TITLES.values()), model_rows=True, width=170),
    )


def _with_area(rows: DataFrame, name: str) -> DataFrame:
    """Return the rows of one group with its area as the value, and labels as in the other figures."""
    area = AREAS[name]
    values = rows[[area, f"{area}_lower", f"{area}_upper"]]
    named = values.set_axis(["value", "value_lower", "value_upper"], axis=1)
    return label_methods(rows).assign(group=TITLES[name], unit="ACU or RACU (%)", **named)


def _front(means: DataFrame) -> DataFrame:
    """Return the methods whose mean area is higher than that of all cheaper methods, cheapest first."""
    by_cost = means.sort_values(["evaluations", "mean"], ascending=[True, False])
    # a method is on the front if it exceeds the best of all that cost less
    before = by_cost["mean"].cummax().shift(fill_value=float("-inf"))
    front = by_cost[by_cost["mean"] > before]
    return front.drop(columns=["label", "lower", "upper", "n"])
