"""What erasure shows: in-distribution p-values, faithfulness curves, and Recursive ROAR beside them."""

from __future__ import annotations

import altair as alt
import pandas as pd
from pandas import DataFrame

from ...config import BASELINE, SIGNIFICANCE_LEVEL
from .charts import PERCENT, Draw, curves, panels, parts
from .styles import GROUPS, MASKED, PLAIN, counted, group, styles
from .summaries import PLACE, Frames, labeled, means, named

WAYS = ("Recursive ROAR", "Ours")


def pvalues(frames: Frames, *, calibration: str) -> alt.ConcatChart | None:
    """In-distribution p-values of whole test splits as texts are erased, by Plain and Masked fine-tuning."""
    value = f"p_{calibration}"
    rows = named(labeled(frames["measure"])).dropna(subset=[value]).assign(unit="p-value")
    rows = rows[rows["tuning"].isin([PLAIN, MASKED])]
    if rows.empty:
        return None
    rows = _counted(rows, "tuning")
    shown = means(rows, [*PLACE, "tuning", "label", "percent"], value)
    level = rows[[*PLACE, "tuning"]].drop_duplicates().assign(level=SIGNIFICANCE_LEVEL)
    draw = _curves(rows, y=alt.Scale(domain=[0, 1]))
    return panels(
        parts(mean=shown, level=level), draw, column="tuning", order=(PLAIN, MASKED), model_rows=True
    )


def faithfulness(frames: Frames) -> alt.ConcatChart | None:
    """Performance after masked fine-tuning as texts are erased: absolute, signed, and in both random."""
    rows = _masked(frames["measure"])
    if rows.empty:
        return None
    rows = _with_random(rows.assign(group=rows["method"].map(group)), "group")
    shown = means(rows, [*PLACE, "label", "group", "percent"])
    return panels(parts(mean=shown), _curves(rows), column="group", order=GROUPS, model_rows=True)


def roar(frames: Frames) -> alt.ConcatChart | None:
    """Performance by Recursive ROAR, which trains again at every step, beside ours for the same methods."""
    if frames["roar"].empty:
        return None
    methods = frames["roar"][["task", "model", "method"]].drop_duplicates()
    theirs, ours = labeled(frames["roar"]), _masked(frames["measure"].merge(methods))
    theirs = theirs.assign(label=theirs["method"], way=WAYS[0])
    rows = pd.concat([theirs, _with_random(ours.assign(way=WAYS[1]), "way")], ignore_index=True)
    shown = means(rows, [*PLACE, "way", "label", "percent"])
    return panels(parts(mean=shown), _curves(rows), column="way", order=WAYS, model_rows=True)


def _curves(rows: DataFrame, y: alt.Scale | None = None) -> Draw:
    return curves(styles(rows["label"]), "label", "", x=PERCENT, marked="datum.percent % 20 == 0", y=y)


def _masked(measured: DataFrame) -> DataFrame:
    """Converged runs of Masked fine-tuning."""
    rows = named(labeled(measured))
    return rows[(rows["tuning"] == MASKED) & rows["converged"].astype(bool)]


def _with_random(rows: DataFrame, column: str) -> DataFrame:
    """The methods of each cell and random, of the same texts as they; that alone if there are no methods."""
    methods = rows[rows["method"] != BASELINE]
    random = (rows if methods.empty else methods).drop_duplicates(
        [*PLACE, column, "seed", "texts", "percent"]
    )
    random = random.assign(method=BASELINE, value=100 * random["random"])
    return _counted(pd.concat([methods, random], ignore_index=True), column)


def _counted(rows: DataFrame, column: str) -> DataFrame:
    """Rows with a label: the method, with the number of texts if others in the cell are of more."""
    most = rows.groupby([*PLACE, column])["texts"].transform("max")
    both = zip(rows["method"], rows["texts"], rows["texts"] < most, strict=True)
    return rows.assign(label=[counted(name, texts) if fewer else name for name, texts, fewer in both])
