"""Committed results → the figures of the docs: `PYTHONPATH=. python scripts/results/figures.py docs`.

The build of the site draws them anew; those in the repository are for readers of the Markdown.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
from evidence import MASKED, METHODS, ROAR, Study
from pandas import DataFrame
from pydantic import TypeAdapter

from benchmarks.picture import draw
from benchmarks.run import BenchResult
from faithmeter.config import BASELINE
from faithmeter.report.figures import FIGURES, config
from faithmeter.report.figures.styles import BLUE, GRAY, VERMILION

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
    yield "figures/areas", draw_areas(study)
    smoke = {path.stem: pd.read_csv(path) for path in (ROOT / "results" / "smoke").glob("*.csv")}
    for name in OF_SMOKE:
        yield f"figures/{name}", FIGURES[name](smoke)
    for name in ("bench", "growth"):
        bench = (ROOT / "docs" / "bench" / f"{name}.json").read_bytes()
        yield f"bench/{name}", draw(TypeAdapter(BenchResult).validate_json(bench))


def draw_areas(study: Study, method: str = "loo-abs") -> alt.HConcatChart:
    """Draw the paper's figure 6 from real curves: the area of ACU, and the area that RACU divides by."""
    place = study.main_places(MASKED)[0]
    rows = study.frames["measure"]
    rows = rows[(rows["grid"] == place.grid) & (rows["strategy"] == MASKED) & (rows["method"] == method)]
    means = 100 * rows.groupby("percent")[["value", "random"]].mean()
    curves = means.assign(whole=means["random"].iloc[-1]).reset_index()
    records = [{str(name): value for name, value in row.items()} for row in curves.to_dict("records")]
    names = {"faithfulness": ("value", "random"), "normalizer": ("whole", "random")}
    x = alt.X("percent:Q", title="masked tokens (%)", scale=alt.Scale(domain=[0, 100]))
    views = []
    for title, (low, high) in names.items():
        base = alt.Chart(alt.InlineData(values=records)).encode(x)
        level = alt.Y(f"{low}:Q", title="performance (%)", scale=alt.Scale(domain=[0, 100]))
        area = base.mark_area(opacity=0.3, color=BLUE).encode(level, y2=f"{high}:Q")
        random = base.mark_line(color=GRAY).encode(alt.Y("random:Q", title="performance (%)"))
        own = base.mark_line(color=VERMILION).encode(alt.Y("value:Q", title="performance (%)"))
        layers = alt.LayerChart(layer=[area, random, own], width=200, height=130, title=title)
        views.append(layers)
    return alt.HConcatChart(
        hconcat=views, config=alt.Config(**config() | {"background": "white", "aria": False})
    )


def _select(frame: DataFrame, study: Study) -> DataFrame:
    """Return the rows of one grid for each task and model, as others differ in settings, without variants."""
    grids = {study.places[grid][1:]: grid for grid in reversed(study.ranked_grids)}
    rows = frame[frame["grid"].isin([*grids.values(), ROAR])]
    return rows[rows["method"].isin([BASELINE, *METHODS, "beam", "search"])] if "method" in rows else rows


if __name__ == "__main__":
    draw_figures(Path(sys.argv[1]))
