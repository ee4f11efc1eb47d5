"""Tidy files → `docs/results.md`, and the figures of the docs: `python scripts/results/page.py`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pandas as pd
import tables
from claims import CORRELATION, MARGIN, QUESTIONS, ROAR, VARIANTS, Claim, gather_claims
from evidence import METHODS, Study
from jinja2 import Environment, StrictUndefined
from pandas import DataFrame

from faithmeter.config import BASELINE
from faithmeter.faithfulness.formats import format_number
from faithmeter.reporting.figures import FIGURES

ROOT = Path(__file__).parents[2]
TEMPLATE = Path(__file__).with_name("page.md.jinja")
DRAWN = {
    "faithfulness": "study-faithfulness",
    "pvalues-crossfit": "study-pvalues",
    "roar": "study-roar",
}
"""Figures of the report that the page shows, and the names of their files."""
SEARCH = "search.csv"
"""File with the areas of docs/order-search.md, from `search.py`."""


def write_page(study: Study) -> str:
    """Return the page as Markdown."""
    questions = {letter: statement for letter, (_, statement) in QUESTIONS.items()}
    claims = gather_claims(study)
    letters = {claim.letter for claim in claims}
    claims += [Claim(letter, statement) for letter, statement in questions.items() if letter not in letters]
    claims.sort(key=lambda claim: (claim.letter, claim.statement))
    values = {
        "study": study,
        "grids": [grid for grid in study.measured_grids if grid not in VARIANTS],
        "margin": format_number(MARGIN, 0),
        "correlation": format_number(CORRELATION),
        "claims": partial(tables.claims_table, claims),
        "summary": partial(tables.summary_table, claims, questions),
        **{name: partial(getattr(tables, f"{name}_table"), study) for name in STUDY_TABLES},
    }
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(values) + "\n"


STUDY_TABLES = ("performance", "pvalues", "areas", "decisions", "options", "costs", "runs")


def write_figures(study: Study, folder: Path) -> None:
    """Draw figures of the report from the tidy files, as SVG: those of the study, then that of the search."""
    frames = {kind: _select(frame, study) for kind, frame in study.frames.items()}
    for name, file in DRAWN.items():
        if (chart := FIGURES[name](frames)) is not None:
            chart.save(folder / f"{file}.svg")
    areas = pd.read_csv(study.folder / SEARCH)
    if (chart := FIGURES["pareto"]({"areas": areas})) is not None:
        chart.save(folder / "search-pareto.svg")


def _select(frame: DataFrame, study: Study) -> DataFrame:
    """Return the rows of one grid for each task and model, as others differ in settings, without variants."""
    grids = {study.places[grid][1:]: grid for grid in reversed(study.ranked_grids)}
    rows = frame[frame["grid"].isin([*grids.values(), ROAR])]
    return rows[rows["method"].isin([BASELINE, *METHODS, "beam", "search"])] if "method" in rows else rows


if __name__ == "__main__":
    results = Study(ROOT / "results")
    (ROOT / "docs" / "results.md").write_text(write_page(results), encoding="utf-8")
    write_figures(results, ROOT / "docs" / "figures")
