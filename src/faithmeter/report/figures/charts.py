"""Charts with a panel for each task, which holds a view for each column (and row) of a facet."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd
from pandas import DataFrame

from ..aggregate import ALL
from .styles import MODEL_NAMES, Style, config, display_names

HEIGHT = 84  # height of a view, in pixels
HEADROOM = 0.06
"""Fraction of the y range left free above the highest value, so that points do not touch the frame."""
PLUS = "M-1,0H1M0,-1V1"  # thinner than Vega's cross
LINE_ENDS = "M-3.4,0H-1.4M1.4,0H3.4"
"""SVG path of the lines beside a symbol; only legends, which outline symbols, make them visible."""
POINTS = {"columns": 4, "symbolOpacity": 1, "symbolStrokeWidth": 0}
LINES = {"columns": 4, "symbolOpacity": 1, "symbolStrokeWidth": 1.3, "symbolOffset": 10, "labelOffset": 16}
P_VALUE = "p-value"
"""Unit of an axis on which small values are spread out, so that the significance level can be read."""
P_TICKS = (0, 0.01, 0.05, 0.2, 0.5, 1)
PERCENT = alt.X(
    "percent:Q",
    title="masked tokens (%)",
    scale=alt.Scale(domain=[0, 100]),
    axis=alt.Axis(
        values=[0, 25, 50, 75, 100],
        labelExpr="datum.value % 50 ? '' : datum.label",
        labelOverlap=False,
        grid=False,
    ),
)
EPOCH = alt.X(
    "epoch:Q",
    title="epoch",
    scale=alt.Scale(zero=False, nice=False),
    axis=alt.Axis(format="d", tickCount=3, labelExpr="datum.value % 1 ? '' : datum.label", grid=False),
)
Draw = Callable[[str, list[float]], list[Any]]
"""Function that returns the layers of a view, given the title and the domain of the y axis."""


def join_parts(**frames: DataFrame) -> DataFrame:
    """Return the frames concatenated; the new column `part` names the layer that draws a row."""
    return pd.concat([frame.assign(part=name) for name, frame in frames.items()], ignore_index=True)


@dataclass(frozen=True)
class Facet:
    """Arrangement of the views of a panel.

    Attributes:
        column: Column whose values are the columns of the facet.
        order: Order of the facet columns; alphabetical by default.
        model_rows: Whether each model has its own row of views.
        width: Width of a view in pixels. If only a few panels are drawn, their views are enlarged.
        views: Maximum number of views side by side.
    """

    column: str
    order: Sequence[str] = ()
    model_rows: bool = False
    width: int = 90
    views: int = 6


def panels(
    rows: DataFrame,
    draw: Draw,
    layout: Facet,
    *,
    floors: Mapping[str, float] | None = None,
    top: float | None = None,
) -> alt.ConcatChart:
    """Return a chart with a panel for each task, the mean over all tasks first.

    Args:
        rows: Rows to draw, of all tasks.
        draw: Function that returns the layers of a view.
        layout: Arrangement of the views.
        floors: Start of the y axis by task, by default 0; lower if a value lies below it (see `_domain`).
        top: End of the y axis; by default just above the highest value.
    """
    names = f"{json.dumps(MODEL_NAMES)}[datum.label] || datum.label"
    sort, head = list(layout.order) or "ascending", alt.Header(labelExpr=names)
    facet: dict[str, Any] = {"column": alt.Column(f"{layout.column}:N", title=None, sort=sort, header=head)}
    if layout.model_rows and rows["model"].nunique() > 1:
        facet["row"] = alt.Row("model:N", title=None, header=alt.Header(orient="right", labelExpr=names))
    tasks = sorted(rows["task"].unique(), key=lambda task: (task != ALL, task.casefold()))
    across = max(1, layout.views // rows[layout.column].nunique())
    stretch = min(2, max(1, across / len(tasks)))
    size = {"width": layout.width * stretch, "height": HEIGHT * stretch**0.5}
    charts = []
    for task in tasks:
        own = rows[rows["task"] == task]
        domain = _domain(own, (floors or {}).get(task, 0.0), top)
        data = alt.InlineData(values=_records(own))
        layers = alt.LayerChart(layer=draw(own["unit"].iloc[0], domain), data=data, **size)
        charts.append(layers.facet(**facet, title=task))
    shared = alt.ScaleResolveMap(color="shared", shape="shared", strokeDash="shared")
    return alt.ConcatChart(
        concat=charts,
        columns=across,
        resolve=alt.Resolve(scale=shared),
        config=alt.Config(**config() | {"background": "white", "aria": False}),
    )


def dots(styles: Mapping[str, Style], field: str, legend: str, *, x: alt.X) -> Draw:
    """Return a function that draws means with intervals, single seeds as "+", and a dashed reference line.

    The column `slot` gives the horizontal offset of a row: "seed" or "mean", preceded by the value of `field`
    in figures that place several groups side by side.
    """
    slots = [f"{style} {part}" for style in styles for part in ("seed", "mean")]
    place = alt.XOffset("slot:N", sort=["seed", "mean", *slots])
    color, shape = (
        channel(f"{field}:N", title=legend, scale=_scale(styles, name), legend=_legend(styles, POINTS))
        for channel, name in ((alt.Color, "color"), (alt.Shape, "shape"))
    )
    base = alt.Chart().encode(x, place, color)
    seeds, mean = (base.transform_filter(alt.datum.part == part) for part in ("seed", "mean"))
    name = _name_tip(field, legend)
    tips = [name, alt.Tooltip("seed:Q"), alt.Tooltip("value:Q", format=".3~r")]

    def draw(unit: str, domain: list[float]) -> list[Any]:
        plus = seeds.mark_point(shape=PLUS, size=50, strokeWidth=1.4, opacity=1)
        point = mean.mark_point(size=40, filled=True, opacity=1).encode(shape)
        return [
            _level(unit, domain),
            plus.encode(_y("value", unit, domain), tooltip=tips),
            mean.mark_rule(strokeWidth=1.6).encode(_y("lower", unit, domain), y2="upper:Q"),
            point.encode(_y("mean", unit, domain), tooltip=[name, *_interval_tips()]),
        ]

    return draw


def curves(
    styles: Mapping[str, Style], field: str, legend: str, *, x: alt.X, marked: str, level: bool = False
) -> Draw:
    """Return a function that draws lines through means, with ribbons for their intervals.

    Points are visible where the Vega expression `marked` is true. With `level`, a dashed reference line is
    added.
    """
    color, dash, shape = (
        channel(f"{field}:N", title=legend, scale=_scale(styles, name), legend=_legend(styles, LINES))
        for channel, name in ((alt.Color, "color"), (alt.StrokeDash, "dash"), (alt.Shape, "shape"))
    )
    shape["scale"]["range"] = [f"{style.shape}{LINE_ENDS}" for style in styles.values()]
    base = alt.Chart().encode(x, color).transform_filter(alt.datum.part == "mean")
    tips = [_name_tip(field, legend), alt.Tooltip(x["shorthand"], title=x["title"]), *_interval_tips()]
    visible = alt.condition(marked, alt.value(1), alt.value(0))  # invisible points have tooltips too

    def draw(unit: str, domain: list[float]) -> list[Any]:
        point = base.mark_point(size=18, filled=True).encode(shape, opacity=visible)
        return [
            base.mark_area(opacity=0.14).encode(_y("lower", unit, domain), y2="upper:Q"),
            *([_level(unit, domain)] if level else []),
            base.mark_line(strokeWidth=1.3).encode(_y("mean", unit, domain), dash),
            point.encode(_y("mean", unit, domain), tooltip=tips),
        ]

    return draw


def scatter(styles: Mapping[str, Style], field: str, legend: str, *, x: alt.X) -> Draw:
    """Return a function that draws means with intervals, and a stepped line through the rows of `front`."""
    color, shape = (
        channel(f"{field}:N", title=legend, scale=_scale(styles, name), legend=_legend(styles, POINTS))
        for channel, name in ((alt.Color, "color"), (alt.Shape, "shape"))
    )
    mean, front = (
        alt.Chart().encode(x).transform_filter(alt.datum.part == part) for part in ("mean", "front")
    )
    cost = alt.Tooltip(x["shorthand"], title=x["title"], format=",.4~r")

    def draw(unit: str, domain: list[float]) -> list[Any]:
        line = front.mark_line(interpolate="step-after", strokeWidth=1, strokeDash=[2, 2], style="baseline")
        bars = mean.mark_rule(strokeWidth=1.2).encode(_y("lower", unit, domain), color, y2="upper:Q")
        point = mean.mark_point(size=45, filled=True, opacity=1).encode(
            _y("mean", unit, domain), shape, color
        )
        tips = [_name_tip(field, legend), cost, *_interval_tips()]
        return [line.encode(_y("mean", unit, domain)), bars, point.encode(tooltip=tips)]

    return draw


def _domain(rows: DataFrame, floor: float, top: float | None) -> list[float]:
    """Return the start and end of the y axis.

    The axis starts at the floor. If a value lies below the floor, it starts at 0, or at the lowest value if
    that is negative. A start just below the values would make small differences look large.
    """
    values = rows[[name for name in ("mean", "lower", "upper", "value", "level") if name in rows]]
    low, high = float(values.min().min()), float(values.max().max())
    start = floor if low >= floor else min(0.0, low)
    return [start, top or high + HEADROOM * (high - start or 1.0)]


def _records(rows: DataFrame) -> list[dict[str, Any]]:
    """Return the rows in half the size: six digits, no missing values, and no constant columns."""
    columns = rows.drop(columns=["task", "unit", "excluded"], errors="ignore")
    return [
        {
            str(key): float(f"{value:.6g}") if isinstance(value, float) else value
            for key, value in row.items()
            if not pd.isna(value)
        }
        for row in columns.to_dict("records")
    ]


def _level(unit: str, domain: list[float]) -> Any:
    level = alt.Chart().transform_filter(alt.datum.part == "level")
    return level.mark_rule(style="baseline", strokeDash=[3, 3], strokeWidth=1).encode(
        _y("level", unit, domain), tooltip=[alt.Tooltip("level:Q", title="baseline", format=".3~r")]
    )


def _y(field: str, unit: str, domain: list[float]) -> alt.Y:
    scale, axis = alt.Scale(domain=domain, nice=False), alt.Axis(tickCount=4, format=".4~r")
    if unit == P_VALUE:  # on a linear axis, 0.05 and 0.001 are the same line
        scale = alt.Scale(domain=domain, nice=False, type="pow", exponent=1 / 3)
        axis = alt.Axis(values=P_TICKS, format=".2~f")
    return alt.Y(f"{field}:Q", title=unit, scale=scale, axis=axis)


def _legend(styles: Mapping[str, Style], options: Mapping[str, Any]) -> alt.Legend:
    """Return a legend with the names that people write; the data keep those of the commands."""
    return alt.Legend(labelExpr=f"{json.dumps(display_names(styles))}[datum.label]", **options)


def _scale(styles: Mapping[str, Style], attribute: str) -> alt.Scale:
    return alt.Scale(domain=list(styles), range=[getattr(style, attribute) for style in styles.values()])


def _name_tip(field: str, legend: str) -> alt.Tooltip:
    return alt.Tooltip(f"{field}:N", title=legend or "method")


def _interval_tips() -> list[Any]:
    numbers = [alt.Tooltip(f"{name}:Q", format=".3~r") for name in ("mean", "lower", "upper")]
    return [*numbers, alt.Tooltip("n:Q", title="seeds")]
