"""Figures of the paper, drawn from the frames of a store, for PDF, SVG and PNG files and the report."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from ..aggregate import Frames
from .drawings import ablation, by_epoch, by_strategy, faithfulness, pareto, pvalues, roar
from .styles import config

__all__ = ["FIGURES", "Frames", "config", "save", "spec"]

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

MAX_PANELS_PER_PAGE = 9


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
