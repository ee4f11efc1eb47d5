"""Performance of fine-tuned models, by strategy and by epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import altair as alt
from pandas import DataFrame

from .charts import EPOCH, curves, dots, panels, parts
from .styles import MASKED, PLAIN, STRATEGY_STYLES, TRAINING, VALIDATION, Style
from .summaries import PLACE, Frames, labeled, means, named, with_all


def by_strategy(frames: Frames, *, masking: str) -> alt.ConcatChart | None:
    """Test performance of the three named strategies; dashed: Plain, or the class majority if masked."""
    rows = named(_chosen(frames["train"], masking, "test"))
    if rows.empty:
        return None
    shown = _with_level(rows, [*PLACE, "tuning"], masking)
    axis = alt.Axis(labels=False, ticks=False)
    x = alt.X("tuning:N", title=None, sort=list(STRATEGY_STYLES), axis=axis)
    draw = dots(_present(STRATEGY_STYLES, rows["tuning"]), "tuning", "fine-tuning", x=x)
    return panels(shown.assign(slot=shown["part"]), draw, column="model")


def ablation(frames: Frames, *, masking: str, split: str) -> alt.ConcatChart | None:
    """Performance by training × validation strategy; dashed: neither masked, or the class majority."""
    rows = _chosen(frames["train"], masking, split)
    if rows.empty:
        return None
    shown = _with_level(rows, [*PLACE, "strategy", "validation"], masking)
    axis = alt.Axis(labelAngle=0, labelOverlap=False)
    x = alt.X("validation:N", title="validation texts", sort=list(VALIDATION), axis=axis)
    draw = dots(_present(TRAINING, rows["strategy"]), "strategy", "masked training texts", x=x)
    slot = shown["strategy"] + " " + shown["part"]
    return panels(shown.assign(slot=slot), draw, column="model", width=150, cells=4)


def by_epoch(frames: Frames) -> alt.ConcatChart | None:
    """Unmasked validation performance by epoch, Plain and Masked fine-tuning."""
    train = frames["train"]
    rows = named(labeled(train[(train["split"] == "validation") & (train["masking"] == "0")]))
    rows = rows[rows["tuning"].isin([PLAIN, MASKED])]
    if rows.empty:
        return None
    looks = _present(STRATEGY_STYLES, rows["tuning"])
    draw = curves(looks, "tuning", "fine-tuning", x=EPOCH, marked="datum.epoch % 5 == 1")
    return panels(parts(mean=means(rows, [*PLACE, "tuning", "epoch"])), draw, column="model")


def _present(looks: Mapping[str, Style], names: Iterable[str]) -> dict[str, Style]:
    """The styles of what is there."""
    present = set(names)
    return {name: style for name, style in looks.items() if name in present}


def _chosen(train: DataFrame, masking: str, split: str) -> DataFrame:
    """Rows of the chosen epochs, with those of All."""
    rows = train[(train["split"] == split) & train["best"].astype(bool) & (train["masking"] == masking)]
    return labeled(with_all(rows))


def _with_level(rows: DataFrame, by: list[str], masking: str) -> DataFrame:
    """Means, seeds, and the level that they are held against."""
    plain = (rows["strategy"] == "none") & (rows["validation"] == "unmasked")
    level = rows["value"].where(plain) if masking == "0" else 100 * rows["majority"]
    levels = rows.assign(level=level).groupby(PLACE)["level"].mean().dropna().reset_index()
    return parts(mean=means(rows, by), seed=rows[[*by, "seed", "value"]], level=levels)
