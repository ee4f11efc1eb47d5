"""Tidy files → `docs/results.md` and `results/tables.md`: `python scripts/results/page.py`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import tables
from claim import Claim
from claims import QUESTIONS, gather_claims
from evidence import VARIANTS, Study
from jinja2 import Environment, StrictUndefined
from rules import CORRELATION, MARGIN, REJECTED

from faithmeter.verdict.formats import format_number

ROOT = Path(__file__).parents[2]
PAGES = {"page.md.jinja": "docs/results.md", "tables.md.jinja": "results/tables.md"}
"""Templates beside this file, and the pages that they become."""


def write_page(study: Study, template: str) -> str:
    """Return a page as Markdown."""
    questions = {letter: statement for letter, (_, statement) in QUESTIONS.items()}
    base = Study(study.folder / "base")
    claims = gather_claims(study, base, Study(study.folder / "smoke", "smoke grid"))
    letters = {claim.letter for claim in claims}
    claims += [Claim(letter, statement) for letter, statement in questions.items() if letter not in letters]
    claims.sort(key=lambda claim: (claim.letter, claim.statement))
    values = {
        "study": study,
        "base": base,
        "grids": [grid for grid in study.measured_grids if grid not in VARIANTS],
        "margin": format_number(MARGIN, 0),
        "rejected": format_number(REJECTED, 0),
        "correlation": format_number(CORRELATION),
        "claims": partial(tables.claims_table, claims),
        "summary": partial(tables.summary_table, claims, questions),
        **{name: getattr(tables, f"{name}_table") for name in STUDY_TABLES},
    }
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return (
        environment.from_string(Path(__file__).with_name(template).read_text(encoding="utf-8")).render(values)
        + "\n"
    )


STUDY_TABLES = (
    "performance",
    "pvalues",
    "areas",
    "decisions",
    "options",
    "costs",
    "runs",
    "measures",
    "strategies",
    "hardware",
    "overview",
)


if __name__ == "__main__":
    for name, place in PAGES.items():
        (ROOT / place).write_text(write_page(Study(ROOT / "results"), name), encoding="utf-8")
