"""Tidy files → `docs/results.md`: `python scripts/results/page.py`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import tables
from claims import CORRELATION, MARGIN, QUESTIONS, VARIANTS, Claim, gather_claims
from evidence import Study
from jinja2 import Environment, StrictUndefined

from faithmeter.verdict.formats import format_number

ROOT = Path(__file__).parents[2]
TEMPLATE = Path(__file__).with_name("page.md.jinja")


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


if __name__ == "__main__":
    page = write_page(Study(ROOT / "results"))
    (ROOT / "docs" / "results.md").write_text(page, encoding="utf-8")
