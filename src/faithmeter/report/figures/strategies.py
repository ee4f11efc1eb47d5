"""Figures of the performance of fine-tuned models by strategy and by epoch."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd
from pandas import DataFrame

from ..aggregate import ALL, Frames, over_seeds, over_tasks
from .charts import EPOCH, PANEL, Facet, Legend, curves, dots, join_parts, label_rows, panels
from .styles import MASKED, PLAIN, STRATEGIES, STRATEGY_STYLES, TRAINING, VALIDATION, Style


def by_strategy(frames: Frames, *, masking: str) -> alt.ConcatChart | None:
    """Draw test performance by fine-tuning strategy.

    The dashed line shows plain fine-tuning for whole texts, and the class majority for masked ones. Return
    None if no panel has more than one run; the page then reports the numbers in sentences.
    """
    rows = name_strategies(_best_epochs(frames["train"], masking, "test"))
    if not rows.duplicated(PANEL).any():  # a chart of one point per panel
        return None
    points = _with_level(rows, [*PANEL, "tuning"], masking)
    axis = alt.Axis(labels=False, ticks=False)
    x = alt.X("tuning:N", title="fine-tuning", sort=list(STRATEGY_STYLES), axis=axis)
    draw = dots(_legend("tuning", "fine-tuning", STRATEGY_STYLES, rows), x)
    return panels(points.assign(slot=points["part"]), draw, Facet("model"), floors=_floors(rows))


def ablation(frames: Frames, *, masking: str, split: str) -> alt.ConcatChart | None:
    """Draw performance by training and validation strategy.

    The dashed line shows plain fine-tuning for whole texts, and the class majority for masked ones. Return
    None if all strategies are among those that `by_strategy` draws.
    """
    rows = _best_epochs(frames["train"], masking, split)
    if set(zip(rows["strategy"], rows["validation"], strict=True)) <= set(STRATEGIES):
        return None
    points = _with_level(rows, [*PANEL, "strategy", "validation"], masking)
    axis = alt.Axis(labelAngle=0, labelOverlap=False)
    x = alt.X("validation:N", title="validation texts", sort=list(VALIDATION), axis=axis)
    draw = dots(_legend("strategy", "training", TRAINING, rows), x)
    slot = points["strategy"] + " " + points["part"]
    return panels(points.assign(slot=slot), draw, Facet("model", width=150, views=4), floors=_floors(rows))


def by_epoch(frames: Frames) -> alt.ConcatChart | None:
    """Draw validation performance on whole texts by epoch, for plain and masked fine-tuning."""
    train = frames["train"]
    rows = name_strategies(label_rows(train[(train["split"] == "validation") & (train["masking"] == "0")]))
    rows = rows[rows["tuning"].isin([PLAIN, MASKED])]
    if rows["epoch"].nunique() < 2:
        return None
    legend = _legend("tuning", "fine-tuning", STRATEGY_STYLES, rows)
    draw = curves(legend, EPOCH, marked="datum.epoch % 5 == 1")
    means = over_seeds(rows, [*PANEL, "tuning", "epoch"], unconverged=True)
    return panels(join_parts(mean=means), draw, Facet("model"), floors=_floors(rows))


def name_strategies(frame: DataFrame) -> DataFrame:
    """Return the rows whose training and validation strategy has a name, with the new column `tuning`."""
    pairs = zip(frame["strategy"], frame["validation"], strict=True)
    rows = frame.assign(tuning=[STRATEGIES.get(pair, "") for pair in pairs])
    return rows[rows["tuning"] != ""]


def _floors(rows: DataFrame) -> dict[str, float]:
    """Return the performance of the class majority by task, in percent, at which the y axes start."""
    lowest = rows.groupby("task")["majority"].min()
    return {str(task): 100 * float(value) for task, value in lowest.items()}


def _legend(field: str, title: str, styles: Mapping[str, Style], rows: DataFrame) -> Legend:
    """Return a legend of the styles that occur in a column, in their own order."""
    present = set(rows[field])
    return Legend(field, title, {name: style for name, style in styles.items() if name in present})


def _best_epochs(train: DataFrame, masking: str, split: str) -> DataFrame:
    """Return the rows of the best epochs and, with several tasks, their means over all tasks."""
    rows = train[(train["split"] == split) & train["best"].astype(bool) & (train["masking"] == masking)]
    return label_rows(_add_all_tasks(rows))


def _add_all_tasks(rows: DataFrame) -> DataFrame:
    """Append the means over tasks, which mix metrics as in the paper; a single task is left as it is."""
    if rows["task"].nunique() < 2:
        return rows
    means = over_tasks(rows, ["model", "strategy", "validation"], "value", "majority")
    means = means.assign(task=ALL, metric="performance", converged=True)
    return pd.concat([rows, means], ignore_index=True)


def _with_level(rows: DataFrame, by: list[str], masking: str) -> DataFrame:
    """Return the rows of means, of single seeds, and of the reference level of each panel."""
    # masking whole texts costs nothing if plain fine-tuning is reached; masked ones leave only guessing
    plain = (rows["strategy"] == "none") & (rows["validation"] == "unmasked")
    level = rows["value"].where(plain) if masking == "0" else 100 * rows["majority"]
    levels = rows.assign(level=level).groupby(PANEL)["level"].mean().dropna().reset_index()
    return join_parts(
        mean=over_seeds(rows, by, unconverged=True), seed=rows[[*by, "seed", "value"]], level=levels
    )
