"""Picture of the searches: share of the exact optimum by evaluations."""

from __future__ import annotations

import altair as alt
import pandas as pd

FAMILIES = {
    "beam": "beam, without duplicates (ours)",
    "search": "search (ours; it maximizes changed predictions)",
    "authors' beam": "beam of the authors",
}
"""Titles of the searches that are drawn, by the start of their names."""


def draw_pareto(summary: pd.DataFrame) -> alt.Chart:
    """Return a chart of the share of the exact AOPC by evaluations, of all files together.

    Beams search the probabilities, which are counted; `search` has all its rounds of exchanges.
    """
    rows = summary[(summary.dataset == "all") & (summary.words == "all")]
    family = rows.method.str.extract("^(authors' beam|beam|search)")[0].map(FAMILIES)
    reads = rows.method.str.startswith("search") | (rows["values"] == "probabilities")
    rows = rows.assign(family=family)[reads & family.notna() & ~rows.method.str.contains("exchanges")]
    chart: alt.Chart = (
        alt.Chart(rows)
        .mark_line(point=True)
        .encode(
            x=alt.X("evaluations:Q", title="evaluations per text"),
            y=alt.Y("share:Q", title="share of the exact optimum").scale(zero=False).axis(format="%"),
            color=alt.Color("family:N", title=None).legend(orient="bottom", columns=1, labelLimit=400),
            tooltip=["method", "evaluations", "share"],
        )
        .properties(width=420, height=280)
    )
    return chart
