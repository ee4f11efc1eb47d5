"""Picture of the planted word: the same erasures as accuracy and as the label's probability."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from .cache import Control, read
from .definitions import DEFINITIONS

PANELS = {"accuracy": "right answers", "probability": "mean probability of the label"}
SHOWN = {
    "random": "random words",
    "truth": "the planted word first",
    "loo-sign": "loo-sign",
    "grad-l2": "grad-l2",
}
COLORS = ("#888888", "#000000", "#d95f02", "#1b6ca8")


def draw_planted(control: Control) -> alt.HConcatChart:
    """Return both curves of some methods, side by side."""
    erasures, rows = read(control), []
    for panel, title in PANELS.items():
        for method, name in SHOWN.items():
            logits = erasures.methods[method].astype(np.float64)
            values = DEFINITIONS[panel].of_logits(logits, erasures.test_labels[: len(logits)]).mean(axis=0)
            rows += [
                {"panel": title, "method": name, "percent": percent, "value": 100 * value}
                for percent, value in zip(erasures.percents, values.tolist(), strict=True)
            ]
    frame = pd.DataFrame(rows)
    charts = [_panel(frame[frame.panel == title], title) for title in PANELS.values()]
    chart: alt.HConcatChart = alt.hconcat(*charts)
    return chart


def _panel(frame: pd.DataFrame, title: str) -> alt.Chart:
    chart: alt.Chart = (
        alt.Chart(frame)
        .mark_line(point=True)
        .encode(
            x=alt.X("percent:Q", title="words erased in %"),
            y=alt.Y("value:Q", title=f"{title} in %").scale(domain=(0, 100)),
            color=alt.Color("method:N", title=None, sort=list(SHOWN.values()))
            .scale(domain=list(SHOWN.values()), range=list(COLORS))
            .legend(orient="bottom"),
        )
        .properties(width=300, height=240)
    )
    return chart
