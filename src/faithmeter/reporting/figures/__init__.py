"""Frames of a store → the paper's figures: one definition each for PDF, SVG, PNG and the report's page."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from .faithfulness import faithfulness, pvalues, roar
from .performance import ablation, by_epoch, by_strategy
from .styles import config
from .summaries import Frames, means, with_all

__all__ = ["FIGURES", "Frames", "config", "means", "save", "spec", "with_all"]

FIGURES: dict[str, Callable[[Frames], alt.ConcatChart | None]] = {
    "performance-unmasked": partial(by_strategy, masking="0"),
    "performance-masked": partial(by_strategy, masking="100"),
    "ablation-unmasked-test": partial(ablation, masking="0", split="test"),
    "ablation-masked-test": partial(ablation, masking="100", split="test"),
    "ablation-unmasked-validation": partial(ablation, masking="0", split="validation"),
    "ablation-masked-validation": partial(ablation, masking="100", split="validation"),
    "epochs": by_epoch,
    "pvalues-crossfit": partial(pvalues, calibration="crossfit"),
    "pvalues-published": partial(pvalues, calibration="published"),
    "faithfulness": faithfulness,
    "roar": roar,
}
"""None where the frames hold nothing for a figure. For some tasks or one model, give frames of those; frames
should be `comparable`, or means mix settings."""


PAGE = 9
"""Panels that fit a printed page."""


def save(chart: alt.ConcatChart, folder: str | Path, name: str) -> list[Path]:
    """The files that were written: name.pdf, name.svg and name.png, on white.

    With more panels than are legible on a printed page, also name-1.pdf and so on.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    panels = chart.concat
    pages = range(0, len(panels), PAGE) if len(panels) > PAGE else ()
    written = _save(chart, Path(folder) / name)
    for number, start in enumerate(pages, start=1):
        page = chart.copy(deep=False)
        page.concat = panels[start : start + PAGE]
        written += _save(page, Path(folder) / f"{name}-{number}")
    return written


def _save(chart: alt.ConcatChart, path: Path) -> list[Path]:
    pdf, svg, png = (path.with_name(f"{path.name}.{ending}") for ending in ("pdf", "svg", "png"))
    chart.save(svg)
    drawn = svg.read_text(encoding="utf-8")  # laid out once for all three
    pdf.write_bytes(vl_convert.svg_to_pdf(drawn))
    png.write_bytes(vl_convert.svg_to_png(drawn, ppi=216))
    return [pdf, svg, png]


def spec(chart: alt.ConcatChart) -> dict[str, Any]:
    """The Vega-Lite spec with its data, for a page that brings the `config` of its own theme."""
    found = chart.to_dict()
    del found["config"]
    return found
