"""Picture of the recovery: ours on masked models against each rival on plain ones."""

from __future__ import annotations

import altair as alt
import pandas as pd

from .rivals import OURS, TITLES

OTHERS = ("acu", "racu")
"""Areas of the paper, which are measured on masked models as ours is."""
OWN, PAPER, RIVAL = (
    "faithfulness, masked model",
    "the paper's areas, masked model",
    "other papers, plain model",
)


def draw_recovery(summary: pd.DataFrame) -> alt.HConcatChart:
    """Return three panels: the truth first or tied, τ with the known ranking, and praise of empty models."""
    masks = summary[summary.way == "mask"]
    ours = masks.metric.isin([OURS, *OTHERS])
    rows = masks[(ours & (masks.training == "masked")) | (~ours & (masks.training == "plain"))]
    kinds = rows.metric.map({OURS: OWN} | dict.fromkeys(OTHERS, PAPER)).fillna(RIVAL)
    rows = rows.assign(title=rows.metric.map(TITLES), kind=kinds)
    share = _panel(rows, ("share", "low", "high"), "truth first or tied", "%")
    tau = _panel(rows, ("tau_truth", "tau_low_truth", "tau_high_truth"), "τ with the known ranking", "")
    praise = _panel(rows, ("praise_share", "praise_low", "praise_high"), "praise of empty models", "%")
    return alt.hconcat(share, tau, praise).resolve_scale(y="shared")


def _panel(rows: pd.DataFrame, columns: tuple[str, str, str], title: str, unit: str) -> alt.LayerChart:
    value, low, high = columns
    own = rows[["title", "kind", *columns]].dropna()
    base = alt.Chart(own).encode(
        y=alt.Y("title:N", title=None, sort=list(TITLES.values())),
        color=alt.Color("kind:N", title=None, sort=[OWN, PAPER, RIVAL]).legend(
            orient="bottom", columns=1, labelLimit=320
        ),
    )
    axis = alt.Axis(format="%") if unit else alt.Axis()
    bounds = base.mark_rule(strokeWidth=2, opacity=0.5).encode(
        x=alt.X(f"{low}:Q", title=title, axis=axis), x2=f"{high}:Q"
    )
    points = base.mark_point(filled=True, size=70, opacity=1).encode(x=f"{value}:Q")
    return (bounds + points).properties(width=190, height=290)
