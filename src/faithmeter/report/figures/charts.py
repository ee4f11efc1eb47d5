"""Charts with a panel for each task, which holds a view for each column (and row) of a facet."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import altair as alt
import pandas as pd
from pandas import DataFrame

from ...verdict.formats import format_metric
from ..aggregate import ALL
from ..values import short_names
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
PANEL = ["task", "model", "unit"]
"""Columns that determine the panel in which a row is drawn."""
PERCENT_COLUMNS = [
    *("value", "value_lower", "value_upper", "random", "random_lower", "random_upper"),
    *("ceiling", "acu", "acu_lower", "acu_upper", "racu", "racu_lower", "racu_upper"),
]
Y = Callable[[str], alt.Y]
"""Function that returns the y axis of a panel for a column."""
Draw = Callable[[Y], list[Any]]
"""Function that returns the layers of a view, which share the y axis."""


def label_rows(frame: DataFrame) -> DataFrame:
    """Return the rows with short names of tasks and models, values in percent, and the unit of the y axis."""
    task, model = (frame[name].map(short_names(frame[name])) for name in ("task", "model"))
    columns = frame.columns.intersection(PERCENT_COLUMNS)
    percents = 100 * frame[columns].astype(float)
    unit = frame["metric"].map(format_metric) + " (%)"
    return frame.assign(task=task, model=model, unit=unit, **percents)


def label_methods(rows: DataFrame, *by: str) -> DataFrame:
    """Add the column `label`: the method, with its number of texts if others in the panel have more.

    Curves and areas on different texts cannot be compared, which their labels must tell.
    """
    most = rows.groupby([*PANEL, *by])["texts"].transform("max")
    fewer = rows["method"] + " (" + rows["texts"].astype(int).astype(str) + " texts)"
    return rows.assign(label=rows["method"].where(rows["texts"] == most, fewer))


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
    stretch = min(2, max(1, across / len(tasks)))  # few panels may be larger, many are never smaller
    size = {"width": layout.width * stretch, "height": HEIGHT * stretch**0.5}
    charts = []
    for task in tasks:
        own = rows[rows["task"] == task]
        y = partial(_y, unit=own["unit"].iloc[0], domain=_domain(own, (floors or {}).get(task, 0.0), top))
        layers = alt.LayerChart(layer=draw(y), data=alt.InlineData(values=_records(own)), **size)
        charts.append(layers.facet(**facet, title=task))
    # one legend for all panels: a method has the same color in each
    shared = alt.ScaleResolveMap(color="shared", shape="shared", strokeDash="shared")
    return alt.ConcatChart(
        concat=charts,
        columns=across,
        resolve=alt.Resolve(scale=shared),
        config=alt.Config(**config() | {"background": "white", "aria": False}),
    )


class Legend(NamedTuple):
    """Meaning of colors, dashes and shapes: values of a column, with their styles."""

    field: str
    title: str
    styles: Mapping[str, Style]

    def encode(self, channel: Any, attribute: str, look: Mapping[str, Any]) -> Any:
        """Return the encoding of the column by one attribute of its styles.

        The legend has the names that people write; the data keep those of the commands.
        """
        values = list(map(attrgetter(attribute), self.styles.values()))
        names = json.dumps(display_names(self.styles))
        return channel(
            f"{self.field}:N",
            title=self.title,
            scale=alt.Scale(domain=list(self.styles), range=values),
            legend=alt.Legend(labelExpr=f"{names}[datum.label]", **look),
        )

    @property
    def tip(self) -> alt.Tooltip:
        return alt.Tooltip(f"{self.field}:N", title=self.title or "method")


def dots(legend: Legend, x: alt.X) -> Draw:
    """Return a function that draws means with intervals, single seeds as "+", and a dashed reference line.

    The column `slot` gives the horizontal offset of a row: "seed" or "mean", preceded by the value of the
    legend's column in figures that place several groups side by side.
    """
    slots = [f"{style} {part}" for style in legend.styles for part in ("seed", "mean")]
    place = alt.XOffset("slot:N", sort=["seed", "mean", *slots])
    shape = legend.encode(alt.Shape, "shape", POINTS)
    base = alt.Chart().encode(x, place, legend.encode(alt.Color, "color", POINTS))
    seeds, mean = _part(base, "seed"), _part(base, "mean")
    tips = [legend.tip, alt.Tooltip("seed:Q"), alt.Tooltip("value:Q", format=".3~r")]

    def draw(y: Y) -> list[Any]:
        plus = seeds.mark_point(shape=PLUS, size=50, strokeWidth=1.4, opacity=1)
        point = mean.mark_point(size=40, filled=True, opacity=1).encode(shape)
        return [
            _level(y),
            plus.encode(y("value"), tooltip=tips),
            mean.mark_rule(strokeWidth=1.6).encode(y("lower"), y2="upper:Q"),
            point.encode(y("mean"), tooltip=[legend.tip, *_interval_tips()]),
        ]

    return draw


def curves(legend: Legend, x: alt.X, *, marked: str, level: bool = False) -> Draw:
    """Return a function that draws lines through means, with ribbons for their intervals.

    Points are visible where the Vega expression `marked` is true. With `level`, a dashed reference line is
    added.
    """
    color, dash = legend.encode(alt.Color, "color", LINES), legend.encode(alt.StrokeDash, "dash", LINES)
    shape = legend.encode(alt.Shape, "shape", LINES)
    shape["scale"]["range"] = [f"{style.shape}{LINE_ENDS}" for style in legend.styles.values()]
    base = _part(alt.Chart().encode(x, color), "mean")
    tips = [legend.tip, alt.Tooltip(x["shorthand"], title=x["title"]), *_interval_tips()]
    visible = alt.condition(marked, alt.value(1), alt.value(0))  # invisible points have tooltips too

    def draw(y: Y) -> list[Any]:
        point = base.mark_point(size=18, filled=True).encode(shape, opacity=visible)
        return [
            base.mark_area(opacity=0.14).encode(y("lower"), y2="upper:Q"),
            *([_level(y)] if level else []),
            base.mark_line(strokeWidth=1.3).encode(y("mean"), dash),
            point.encode(y("mean"), tooltip=tips),
        ]

    return draw


def scatter(legend: Legend, x: alt.X) -> Draw:
    """Return a function that draws means with intervals, and a stepped line through the rows of `front`."""
    color, shape = legend.encode(alt.Color, "color", POINTS), legend.encode(alt.Shape, "shape", POINTS)
    base = alt.Chart().encode(x)
    mean, front = _part(base, "mean"), _part(base, "front")
    tips = [legend.tip, alt.Tooltip(x["shorthand"], title=x["title"], format=",.4~r"), *_interval_tips()]

    def draw(y: Y) -> list[Any]:
        line = front.mark_line(interpolate="step-after", strokeWidth=1, strokeDash=[2, 2], style="baseline")
        bars = mean.mark_rule(strokeWidth=1.2).encode(y("lower"), color, y2="upper:Q")
        point = mean.mark_point(size=45, filled=True, opacity=1).encode(y("mean"), shape, color)
        return [line.encode(y("mean")), bars, point.encode(tooltip=tips)]

    return draw


def _part(chart: Any, part: str) -> Any:
    return chart.transform_filter(alt.datum.part == part)


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
    records = []
    for row in columns.to_dict("records"):
        record = {}
        for key, value in row.items():
            if not pd.isna(value):
                record[str(key)] = float(f"{value:.6g}") if isinstance(value, float) else value
        records.append(record)
    return records


def _level(y: Y) -> Any:
    tip = alt.Tooltip("level:Q", title="baseline", format=".3~r")
    rule = _part(alt.Chart(), "level").mark_rule(style="baseline", strokeDash=[3, 3], strokeWidth=1)
    return rule.encode(y("level"), tooltip=[tip])


def _y(field: str, *, unit: str, domain: list[float]) -> alt.Y:
    scale, axis = alt.Scale(domain=domain, nice=False), alt.Axis(tickCount=4, format=".4~r")
    if unit == P_VALUE:  # on a linear axis, 0.05 and 0.001 are the same line
        scale = alt.Scale(domain=domain, nice=False, type="pow", exponent=1 / 3)
        axis = alt.Axis(values=P_TICKS, format=".2~f")
    return alt.Y(f"{field}:Q", title=unit, scale=scale, axis=axis)


def _interval_tips() -> list[Any]:
    mean, lower, upper = (alt.Tooltip(f"{name}:Q", format=".3~r") for name in ("mean", "lower", "upper"))
    return [mean, lower, upper, alt.Tooltip("n:Q", title="seeds")]
