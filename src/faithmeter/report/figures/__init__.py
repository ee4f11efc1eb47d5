"""Figures of the paper, drawn from the frames of a store, for PDF, SVG and PNG files and the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import vl_convert
from pandas import DataFrame

from ...config import BASELINE, SIGNIFICANCE_LEVEL
from ..aggregate import ALL, Frames, bound_columns, choose_tunings, over_seeds, over_tasks
from . import charts, styles
from .styles import config

__all__ = ["FIGURES", "Frames", "config", "save", "spec"]

MAX_PANELS_PER_PAGE = 9
TESTED = (styles.PLAIN, styles.MASKED, styles.UNKNOWN)
WAYS = ("Recursive ROAR", "Ours")
AREA_TITLES = {styles.GROUPS[0]: f"{styles.GROUPS[0]}: RACU", styles.GROUPS[1]: f"{styles.GROUPS[1]}: ACU"}
EVALUATIONS = alt.X(
    "evaluations:Q",
    title="evaluations per text",
    scale=alt.Scale(type="log", nice=False, padding=12),
    axis=alt.Axis(grid=False, tickCount=4, format="~s"),
)


def by_strategy(frames: Frames, *, masking: str) -> alt.ConcatChart | None:
    """Draw test performance by fine-tuning strategy.

    The dashed line shows plain fine-tuning for whole texts, and the class majority for masked ones. Return
    None if no panel has more than one run; the page then reports the numbers in sentences.
    """
    rows = name_strategies(_best_epochs(frames["train"], masking, "test"))
    if not rows.duplicated(charts.PANEL).any():  # a chart of one point per panel
        return None
    axis = alt.Axis(labels=False, ticks=False)
    x = alt.X("tuning:N", title="fine-tuning", sort=list(styles.STRATEGY_STYLES), axis=axis)
    points = _with_level(rows, [*charts.PANEL, "tuning"], masking)
    draw = charts.dots(_legend("tuning", "fine-tuning", styles.STRATEGY_STYLES, rows), x)
    return charts.panels(
        points.assign(slot=points["part"]), draw, charts.Facet("model"), floors=_floors(rows)
    )


def ablation(frames: Frames, *, masking: str, split: str) -> alt.ConcatChart | None:
    """Draw performance by training and validation strategy.

    The dashed line is that of `by_strategy`. Return None if all strategies are among those that it draws.
    """
    rows = _best_epochs(frames["train"], masking, split)
    if set(zip(rows["strategy"], rows["validation"], strict=True)) <= set(styles.STRATEGIES):
        return None
    axis = alt.Axis(labelAngle=0, labelOverlap=False)
    x = alt.X("validation:N", title="validation texts", sort=list(styles.VALIDATION), axis=axis)
    points = _with_level(rows, [*charts.PANEL, "strategy", "validation"], masking)
    draw = charts.dots(_legend("strategy", "training", styles.TRAINING, rows), x)
    slot = points["strategy"] + " " + points["part"]
    return charts.panels(
        points.assign(slot=slot), draw, charts.Facet("model", width=150, views=4), floors=_floors(rows)
    )


def by_epoch(frames: Frames) -> alt.ConcatChart | None:
    """Draw validation performance on whole texts by epoch, for plain and masked fine-tuning."""
    train = frames["train"]
    rows = name_strategies(
        charts.label_rows(train[(train["split"] == "validation") & (train["masking"] == "0")])
    )
    rows = rows[rows["tuning"].isin([styles.PLAIN, styles.MASKED])]
    if rows["epoch"].nunique() < 2:
        return None
    legend = _legend("tuning", "fine-tuning", styles.STRATEGY_STYLES, rows)
    means = over_seeds(rows, [*charts.PANEL, "tuning", "epoch"], unconverged=True)
    draw = charts.curves(legend, charts.EPOCH, marked="datum.epoch % 5 == 1")
    return charts.panels(charts.join_parts(mean=means), draw, charts.Facet("model"), floors=_floors(rows))


def pvalues(frames: Frames, *, calibration: str) -> alt.ConcatChart | None:
    """Draw in-distribution p-values of the test split by percent erased, for each fine-tuning strategy."""
    value = f"p_{calibration}"
    rows = (
        name_strategies(charts.label_rows(frames["measure"]))
        .dropna(subset=[value])
        .assign(unit=charts.P_VALUE)
    )
    rows = rows[rows["tuning"].isin(TESTED)]
    if rows.empty:
        return None
    rows = charts.label_methods(rows, "tuning")
    means = over_seeds(rows, [*charts.PANEL, "tuning", "label", "percent"], value, unconverged=True)
    level = rows[[*charts.PANEL, "tuning"]].drop_duplicates().assign(level=SIGNIFICANCE_LEVEL)
    points, layout = (
        charts.join_parts(mean=means, level=level),
        charts.Facet("tuning", TESTED, model_rows=True),
    )
    return charts.panels(points, _curves(rows, level=True), layout, top=1.0)


def faithfulness(frames: Frames) -> alt.ConcatChart | None:
    """Draw performance by percent erased, for absolute and for signed methods.

    For each task and model, only the preferred fine-tuning is drawn: the masked one if there is one.
    """
    rows = _learned(frames["measure"])
    if rows.empty:
        return None
    rows = rows.assign(group=rows["method"].map(styles.group))
    rows = pd.concat([_with_random(rows, "group"), _ceilings(rows)], ignore_index=True)
    means = over_seeds(rows, [*charts.PANEL, "label", "group", "percent"])
    return charts.panels(
        charts.join_parts(mean=means), _curves(rows), charts.Facet("group", styles.GROUPS, model_rows=True)
    )


def roar(frames: Frames) -> alt.ConcatChart | None:
    """Draw performance by percent erased, beside that of Recursive ROAR, which retrains at every step."""
    if frames["roar"].empty:
        return None
    methods = frames["roar"][["task", "model", "method"]].drop_duplicates()
    theirs, ours = charts.label_rows(frames["roar"]), _learned(frames["measure"].merge(methods))
    theirs = theirs.assign(label=theirs["method"], way=WAYS[0], converged=True)
    rows = pd.concat([theirs, _with_random(ours.assign(way=WAYS[1]), "way")], ignore_index=True)
    means = over_seeds(rows, [*charts.PANEL, "way", "label", "percent"])
    return charts.panels(
        charts.join_parts(mean=means), _curves(rows), charts.Facet("way", WAYS, model_rows=True)
    )


def pareto(frames: Frames) -> alt.ConcatChart | None:
    """Draw the area of each method by its evaluations per text, measured as if it were measured alone.

    The line connects the methods that no other exceeds with fewer evaluations. Bars are intervals over texts.
    """
    # methods of one run share evaluations; alone, each pays for all that it needs
    rows = _learned(frames["areas"]).dropna(subset=["evaluations_alone"])
    rows = rows[rows["method"] != BASELINE]
    if rows["method"].nunique() < 2:
        return None
    rows = charts.label_methods(rows.assign(group=rows["method"].map(styles.group)), "group")
    rows = rows.assign(unit="ACU or RACU (%)", evaluations=rows["evaluations_alone"] / rows["texts"])
    absolute = rows["group"] == styles.GROUPS[0]
    for end in ("", "_lower", "_upper"):
        # signed methods may fall below full erasure, which RACU divides by
        rows[f"value{end}"] = rows[f"racu{end}"].where(absolute, rows[f"acu{end}"])
    rows["group"] = rows["group"].map(AREA_TITLES)
    by = [*charts.PANEL, "group", "label"]
    means = over_seeds(rows, by).merge(rows.groupby(by, as_index=False)["evaluations"].mean(), on=by)
    fronts = [_front(part) for _, part in means.groupby([*charts.PANEL, "group"])]
    draw = charts.scatter(charts.Legend("label", "", styles.assign_styles(rows["label"])), EVALUATIONS)
    layout = charts.Facet("group", list(AREA_TITLES.values()), model_rows=True, width=170)
    return charts.panels(charts.join_parts(mean=means, front=pd.concat(fronts)), draw, layout)


def name_strategies(frame: DataFrame) -> DataFrame:
    """Return the rows whose training and validation strategy has a name, with the new column `tuning`."""
    pairs = pd.Series(zip(frame["strategy"], frame["validation"], strict=True), frame.index, dtype=object)
    return frame.assign(tuning=pairs.map(styles.STRATEGIES)).dropna(subset=["tuning"])


def _floors(rows: DataFrame) -> dict[str, float]:
    """Return the performance of the class majority by task, in percent, at which the y axes start."""
    lowest: Any = (100 * rows.groupby("task")["majority"].min().astype(float)).to_dict()
    return dict(lowest)


def _legend(field: str, title: str, looks: Mapping[str, styles.Style], rows: DataFrame) -> charts.Legend:
    """Return a legend of the styles that occur in a column, in their own order."""
    present = filter(set(rows[field]).__contains__, looks)
    return charts.Legend(field, title, {name: looks[name] for name in present})


def _best_epochs(train: DataFrame, masking: str, split: str) -> DataFrame:
    """Return the rows of the best epochs and, with several tasks, their means over all tasks."""
    rows = train[(train["split"] == split) & train["best"].astype(bool) & (train["masking"] == masking)]
    if rows["task"].nunique() > 1:
        # means over tasks mix metrics, as in the paper
        means = over_tasks(rows, ["model", "strategy", "validation"], "value", "majority")
        means = means.assign(task=ALL, metric="performance", converged=True)
        rows = pd.concat([rows, means], ignore_index=True)
    return charts.label_rows(rows)


def _with_level(rows: DataFrame, by: list[str], masking: str) -> DataFrame:
    """Return the rows of means, of single seeds, and of the reference level of each panel."""
    # masking whole texts costs nothing if plain fine-tuning is reached; masked ones leave only guessing
    plain = (rows["strategy"] == "none") & (rows["validation"] == "unmasked")
    level = rows["value"].where(plain) if masking == "0" else 100 * rows["majority"]
    levels = rows.assign(level=level).groupby(charts.PANEL)["level"].mean().dropna().reset_index()
    means = over_seeds(rows, by, unconverged=True)
    return charts.join_parts(mean=means, seed=rows[[*by, "seed", "value"]], level=levels)


def _curves(rows: DataFrame, *, level: bool = False) -> charts.Draw:
    legend = charts.Legend("label", "", styles.assign_styles(rows["label"]))
    return charts.curves(legend, charts.PERCENT, marked="datum.percent % 20 == 0", level=level)


def _learned(measured: DataFrame) -> DataFrame:
    """Return the converged runs of the preferred fine-tuning of each task and model."""
    rows = charts.label_rows(choose_tunings(measured))
    return rows[rows["converged"].astype(bool)]


def _with_random(rows: DataFrame, column: str) -> DataFrame:
    """Return the rows of the methods, and rows of random erasure on the same texts, with labels."""
    methods = rows[rows["method"] != BASELINE]
    by = [*charts.PANEL, column, "seed", "texts", "percent"]
    random = (rows if methods.empty else methods).drop_duplicates(by)
    # each row has the value of random erasure on the same texts beside that of the method
    columns = ["value", *bound_columns(random, "value")]
    baseline = random[[name.replace("value", "random") for name in columns]].set_axis(columns, axis=1)
    random = random.assign(method=BASELINE, **baseline)
    return charts.label_methods(pd.concat([methods, random], ignore_index=True), column)


def _ceilings(rows: DataFrame) -> DataFrame:
    """Return rows of the best order of each text by any method, beside the signed methods."""
    if "ceiling" not in rows:
        return rows[:0]
    known = rows[rows["ceiling"].notna() & (rows["group"] == styles.GROUPS[1])].sort_values("texts")
    # the ceiling is of the texts that all methods share: the largest group of them stands for the panel
    most = known.groupby(charts.PANEL)["texts"].transform("max")
    highest = known[known["texts"] == most].drop_duplicates([*charts.PANEL, "seed", "texts", "percent"])
    # the bounds of these rows are those of a method, not of the ceiling
    bounds = dict.fromkeys(bound_columns(highest, "value"), float("nan"))
    return highest.assign(method=styles.CEILING, label=styles.CEILING, value=highest["ceiling"], **bounds)


def _front(means: DataFrame) -> DataFrame:
    """Return the methods whose mean area is higher than that of all cheaper methods, cheapest first."""
    by_cost = means.sort_values(["evaluations", "mean"], ascending=[True, False])
    # a method is on the front if it exceeds the best of all that cost less
    before = by_cost["mean"].cummax().shift(fill_value=float("-inf"))
    return by_cost[by_cost["mean"] > before].drop(columns=["label", "lower", "upper", "n"])


def save(chart: alt.ConcatChart, folder: str | Path, name: str) -> list[Path]:
    """Write name.pdf, name.svg and name.png with a white background, and return their paths.

    A chart with more than `MAX_PANELS_PER_PAGE` panels is also written page by page, as name-1.pdf and so on.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    panels = chart.concat
    pages = range(0, len(panels), MAX_PANELS_PER_PAGE) if len(panels) > MAX_PANELS_PER_PAGE else ()
    paths = save_formats(chart, Path(folder) / name)
    for number, start in enumerate(pages, start=1):
        page = chart.copy(deep=False)  # the data of a large store would be copied for every page
        page.concat = panels[start : start + MAX_PANELS_PER_PAGE]
        paths += save_formats(page, Path(folder) / f"{name}-{number}")
    return paths


def save_formats(chart: alt.ConcatChart, path: Path) -> list[Path]:
    """Write path.pdf, path.svg and path.png, and return their paths."""
    pdf, svg, png = (path.with_name(f"{path.name}.{ending}") for ending in ("pdf", "svg", "png"))
    chart.save(svg)
    image = svg.read_text(encoding="utf-8")  # the layout is computed once for all three formats
    pdf.write_bytes(vl_convert.svg_to_pdf(image))
    png.write_bytes(vl_convert.svg_to_png(image, ppi=216))
    return [pdf, svg, png]


def spec(chart: alt.ConcatChart) -> dict[str, Any]:
    """Return the Vega-Lite spec of a chart with its data but without its config, as pages set a theme."""
    definition: dict[str, Any] = chart.to_dict(validate=False)  # the tests do, which takes ten times as long
    del definition["config"]
    return definition


FIGURES: dict[str, Callable[[Frames], alt.ConcatChart | None]] = {
    "performance-unmasked": partial(by_strategy, masking="0"),
    "performance-masked": partial(by_strategy, masking="all"),
    "ablation-unmasked-test": partial(ablation, masking="0", split="test"),
    "ablation-masked-test": partial(ablation, masking="all", split="test"),
    "ablation-unmasked-validation": partial(ablation, masking="0", split="validation"),
    "ablation-masked-validation": partial(ablation, masking="all", split="validation"),
    "epochs": by_epoch,
    "pvalues-crossfit": partial(pvalues, calibration="crossfit"),
    "pvalues-published": partial(pvalues, calibration="published"),
    "faithfulness": faithfulness,
    "pareto": pareto,
    "roar": roar,
}
"""Functions by figure name; each returns a chart, or None if the frames hold no data for it.

To draw some tasks or models only, pass frames restricted to them. Pass frames from `comparable`; otherwise
means mix different settings.
"""
