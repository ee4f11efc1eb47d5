"""What erasure shows: in-distribution p-values, faithfulness curves, and Recursive ROAR beside them."""

from __future__ import annotations

import altair as alt
import pandas as pd
from pandas import DataFrame

from .charts import PERCENT, Draw, curves, panels, parts
from .styles import GROUPS, MASKED, MEASURE_STYLES, METHOD_STYLES, PLAIN, Measure, measure, styles
from .summaries import PLACE, Frames, labeled, means, named

RISK = 0.05
WAYS = ("Recursive ROAR", "Ours")


def pvalues(frames: Frames, *, calibration: str) -> alt.ConcatChart | None:
    """In-distribution p-values of whole test splits as texts are erased, by Plain and Masked fine-tuning."""
    value = f"p_{calibration}"
    rows = _measures(named(labeled(frames["measure"]))).dropna(subset=[value]).assign(unit="p-value")
    rows = rows[rows["tuning"].isin([PLAIN, MASKED])]
    if rows.empty:
        return None
    shown = means(rows, [*PLACE, "tuning", "label", "percent"], value)
    level = rows[[*PLACE, "tuning"]].drop_duplicates().assign(level=RISK)
    draw = _curves(rows, "label", y=alt.Scale(domain=[0, 1]))
    return panels(
        parts(mean=shown, level=level), draw, column="tuning", order=(PLAIN, MASKED), model_rows=True
    )


def faithfulness(frames: Frames) -> alt.ConcatChart | None:
    """Performance after masked fine-tuning as texts are erased: absolute, signed, and in both random."""
    rows = _masked(frames["measure"])
    if rows.empty:
        return None
    shown = means(rows, [*PLACE, "name", "group", "percent"])
    random = shown["name"] == "random"
    groups = [group for group in GROUPS if (shown[~random]["group"] == group).any()] or GROUPS[:1]
    shown = pd.concat([shown[~random], *(shown[random].assign(group=group) for group in groups)])
    draw = _curves(rows, "name")
    return panels(parts(mean=shown), draw, column="group", order=GROUPS, model_rows=True)


def roar(frames: Frames) -> alt.ConcatChart | None:
    """Performance by Recursive ROAR, which trains again at every step, beside ours for the same methods."""
    if frames["roar"].empty:
        return None
    ours = frames["measure"].merge(frames["roar"][["task", "model", "method"]].drop_duplicates())
    found = (_measures(labeled(frames["roar"])), _masked(ours))
    rows = pd.concat([some.assign(way=way) for way, some in zip(WAYS, found, strict=True)], ignore_index=True)
    shown = means(rows, [*PLACE, "way", "label", "percent"])
    return panels(parts(mean=shown), _curves(rows, "label"), column="way", order=WAYS, model_rows=True)


def _curves(rows: DataFrame, field: str, y: alt.Scale | None = None) -> Draw:
    looks = styles(rows[field], MEASURE_STYLES if field == "name" else METHOD_STYLES)
    return curves(looks, field, "", x=PERCENT, marked="datum.percent % 20 == 0", y=y)


def _masked(measured: DataFrame) -> DataFrame:
    """Converged runs of Masked fine-tuning."""
    rows = _measures(named(labeled(measured)))
    return rows[(rows["tuning"] == MASKED) & rows["converged"].astype(bool)]


def _measures(rows: DataFrame) -> DataFrame:
    """Rows with their measure's name, group and label."""
    words = [measure(method) for method in rows["method"]]
    return rows.assign(**DataFrame(words, columns=list(Measure._fields), index=rows.index))
