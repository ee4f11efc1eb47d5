"""Committed results → the figures of the docs: `PYTHONPATH=. python scripts/results/figures.py docs`.

The build of the site draws them anew; those in the repository are for readers of the Markdown.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from evidence import METHODS, ROAR, Study
from pandas import DataFrame
from pydantic import TypeAdapter

from benchmarks.picture import draw
from benchmarks.run import BenchResult
from faithmeter.config import BASELINE
from faithmeter.report.figures import FIGURES

ROOT = Path(__file__).parents[2]
OF_STUDY = {
    "faithfulness": "study-faithfulness",
    "pvalues-crossfit": "study-pvalues",
    "roar": "study-roar",
}
"""Figures of the report that docs/results.md shows, and the names of their files."""
OF_SMOKE = (
    *("faithfulness", "pvalues-crossfit", "performance-unmasked", "ablation-unmasked-test", "epochs", "roar"),
)
"""Figures of the report that docs/results.md and results/trials.md show."""


def draw_figures(folder: Path) -> None:
    """Write all figures that are drawn from committed results, as SVG, under the names that the docs use."""
    for name, chart in _charts():
        path = folder / f"{name}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        chart.save(path)


def _charts() -> Iterator[tuple[str, Any]]:
    """Yield the path of each figure below docs, without its ending, and its chart."""
    study = Study(ROOT / "results")
    frames = {kind: _select(frame, study) for kind, frame in study.frames.items()}
    for name, file in OF_STUDY.items():
        yield f"figures/{file}", FIGURES[name](frames)
    search = pd.read_csv(ROOT / "results" / "search.csv")  # from `search.py`
    yield "figures/search-pareto", FIGURES["pareto"]({"areas": search})
    smoke = {path.stem: pd.read_csv(path) for path in (ROOT / "results" / "smoke").glob("*.csv")}
    for name in OF_SMOKE:
        yield f"figures/{name}", FIGURES[name](smoke)
    bench = (ROOT / "docs" / "bench" / "bench.json").read_bytes()
    yield "bench/bench", draw(TypeAdapter(BenchResult).validate_json(bench))


def _select(frame: DataFrame, study: Study) -> DataFrame:
    """Return the rows of one grid for each task and model, as others differ in settings, without variants."""
    grids = {study.places[grid][1:]: grid for grid in reversed(study.ranked_grids)}
    rows = frame[frame["grid"].isin([*grids.values(), ROAR])]
    return rows[rows["method"].isin([BASELINE, *METHODS, "beam", "search"])] if "method" in rows else rows


if __name__ == "__main__":
    draw_figures(Path(sys.argv[1]))
