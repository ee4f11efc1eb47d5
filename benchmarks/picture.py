"""Picture of a bench: seconds of every contender, and the growth of cost on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from faithmeter.report.figures import save_formats
from faithmeter.report.figures.styles import BLUE, GRAY, ORANGE, config

from .race import OURS
from .run import BenchResult

WIDTH = 240


def save_picture(result: BenchResult, folder: Path, name: str) -> list[Path]:
    """Write the picture as PDF, SVG and PNG, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    return save_formats(draw(result), folder / name)


def draw(result: BenchResult) -> Any:
    """Return the picture as a chart."""
    panels = [*_races(result), *_growths(result)]
    chart: Any = alt.concat(*panels, columns=3).resolve_scale(color="independent")
    return chart.configure(**config() | {"background": "white"})


def _races(result: BenchResult) -> list[Any]:
    """Return a panel of bars for each work, with the ratio to ours beside each bar."""
    charts = []
    for work in dict.fromkeys(entry.work for entry in result.entries):
        rows = pd.DataFrame(
            {
                "contender": entry.contender,
                "seconds": entry.seconds,
                "ratio": f"{entry.ratio:.2f}" + (f", {entry.light:.0%} of light" if entry.light else ""),
                "color": BLUE if entry.contender.startswith(OURS) else GRAY,
            }
            for entry in result.entries
            if entry.work == work
        )
        end = 1.9 * rows["seconds"].max()  # leaves room for the text beside the bars
        base = alt.Chart(rows, title=work, width=WIDTH, height=18 * len(rows)).encode(
            alt.Y("contender:N", sort=None, title=None, axis=alt.Axis(labelLimit=220)),
            alt.X("seconds:Q", scale=alt.Scale(domain=[0, end]), axis=alt.Axis(tickCount=4)),
        )
        bars = base.mark_bar(size=11).encode(color=alt.Color("color:N", scale=None))
        charts.append(bars + base.mark_text(align="left", dx=4, fontSize=10).encode(text="ratio:N"))
    return charts


def _growths(result: BenchResult) -> list[Any]:
    """Return a panel for each growth and amount, seconds and memory, on logarithmic axes."""
    charts = []
    for growth in result.growth:
        amounts: list[tuple[str, Sequence[float | None], float, str]]
        amounts = [("seconds", growth.seconds, growth.exponent, ORANGE)]
        if growth.memory_exponent is not None:
            amounts.append(("MB", growth.peak_mb, growth.memory_exponent, BLUE))
        for amount, values, exponent, color in amounts:
            known = [pair for pair in zip(growth.sizes, values, strict=True) if pair[1]]
            rows = pd.DataFrame(known, columns=["size", amount])
            axes = (
                alt.X(
                    "size:Q",
                    scale=alt.Scale(type="log", base=2, nice=False),
                    title=None,
                    axis=alt.Axis(values=growth.sizes, grid=False),
                ),
                alt.Y(f"{amount}:Q", scale=alt.Scale(type="log"), axis=alt.Axis(tickCount=4, grid=False)),
            )
            title = f"{growth.work}: exponent {exponent:.2f}"
            line = alt.Chart(rows, title=title, width=WIDTH, height=120).encode(*axes)
            charts.append(line.mark_line(color=color) + line.mark_point(color=color, filled=True))
    return charts
