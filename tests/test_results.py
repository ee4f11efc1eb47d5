"""The page of results has only numbers of the committed files, and the files belong to the grids."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from faithmeter.config import BASELINE
from faithmeter.stats.predictions import Predictions

ROOT = Path(__file__).parents[1]
NAMES = r"bAbI-1|SST2|SST-2|F1|MiniLM-L3|granite-30m|95 %|100 %|0\.05|2E|ICML 2024"
"""Digits that are names or levels, not results."""


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """The modules of scripts/results, which import each other by name."""
    folder, names = str(ROOT / "scripts" / "results"), ("evidence", "claims", "tables", "page", "figures")
    sys.path.insert(0, folder)
    try:
        yield {name: __import__(name) for name in names}
    finally:
        sys.path.remove(folder)
        for name in names:
            sys.modules.pop(name, None)


def test_the_page_is_computed_from_the_files(scripts) -> None:
    study = scripts["evidence"].Study(ROOT / "results")
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert scripts["page"].write_page(study) == page, "run `make results`"


def test_the_prose_has_no_numbers_of_its_own() -> None:
    text = (ROOT / "scripts" / "results" / "page.md.jinja").read_text(encoding="utf-8")
    for pattern in (r"\{\{.*?\}\}|\{%.*?%\}", r"`[^`]*`", r"\]\([^)]*\)", NAMES):
        text = re.sub(pattern, "", text)
    assert re.findall(r".*\d.*", text) == []


def test_every_row_belongs_to_a_run_that_a_grid_asks_for() -> None:
    runs = pd.read_csv(ROOT / "results" / "runs.csv")
    files = [
        path for path in (ROOT / "results").glob("*.csv") if "digest" in path.read_text().splitlines()[0]
    ]
    assert len(files) == 6
    for path in files:
        assert set(pd.read_csv(path)["digest"]) <= set(runs["digest"]), path.name
    assert set(pd.read_parquet(ROOT / "results" / "predictions.parquet")["digest"]) <= set(runs["digest"])
    for grid, own in runs[runs["kind"] == "train"].groupby("grid"):
        text = (ROOT / "grids" / "study" / f"{grid}.toml").read_text()
        methods = re.sub(r'"[\w-]+-once", ', "", text)  # registered by grids/study/once.py
        asked = {run.config.digest for run in _read_grid(methods)}
        assert set(own["digest"]) <= asked, grid


def _read_grid(text: str) -> list:
    import tempfile

    from faithmeter.grid.file import read

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grid.toml"
        path.write_text(text)
        return read(path).runs


def test_verdicts_follow_the_rule(scripts) -> None:
    judge, effect = scripts["claims"].judge, scripts["evidence"].Effect
    assert judge(effect(1, 0.5, 2)) == "holds"
    assert judge(effect(-1, -2, -0.5)) == "fails"
    assert judge(effect(1, -0.5, 2)) == judge(effect(5)) == "unclear"
    assert judge(effect(-1, -1.5, 0), -2) == "holds"


def test_intervals_over_seeds_are_those_of_student(scripts) -> None:
    value, lower, upper, over = scripts["evidence"].over_seeds([1.0, 2.0, 3.0])
    margin = 4.302652729749464 / math.sqrt(3)  # quantile of t with two degrees of freedom, deviation 1
    assert (value, over) == (2.0, "3 seeds")
    assert (lower, upper) == pytest.approx((2 - margin, 2 + margin))
    assert math.isnan(scripts["evidence"].over_seeds([1.0]).lower)
    pairs = scripts["evidence"].paired({0: 3.0, 1: 4.0, 5: 9.0}, {0: 1.0, 1: 2.0, 7: 0.0})
    assert pairs == (2.0, 2.0, 2.0, "2 seeds")


def test_rank_correlation_of_areas(scripts) -> None:
    evidence = scripts["evidence"]
    labels = np.zeros(6, np.int64)
    steps = np.arange(3)
    # the k-th method errs on k of the six texts at the middle step, random on none
    curves = {
        name: ((np.arange(6)[:, None] < k) & (steps == 1)).astype(np.int64)
        for k, name in enumerate((BASELINE, *evidence.METHODS[:6]))
    }
    curves |= dict.fromkeys(evidence.METHODS[6:], curves[BASELINE])
    predictions = Predictions(labels, curves, 2, "accuracy", (0, 50, 100))
    same = {name: float(k) for k, name in enumerate(evidence.METHODS)}
    same |= dict.fromkeys(evidence.METHODS[6:], -1.0)
    assert evidence.spearman([(predictions, same)]).value == pytest.approx(1)
    opposite = {name: -value for name, value in same.items()}
    assert evidence.spearman([(predictions, opposite)]).value == pytest.approx(-1)
    both = evidence.spearman([(predictions, same), (predictions, opposite)])
    assert (both.value, both.over) == (pytest.approx(0), "12 texts")


@pytest.mark.slow
def test_figures_are_drawn_from_the_files(scripts, tmp_path: Path) -> None:
    """As the build of the site does; the bytes depend on the version of the renderer."""
    scripts["figures"].draw_figures(tmp_path)
    drawn = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.svg")}
    committed = [*(ROOT / "docs/figures").glob("*.svg"), ROOT / "docs/bench/bench.svg"]
    assert sorted(drawn) == sorted(path.relative_to(ROOT / "docs") for path in committed)
    for name, image in drawn.items():
        assert image == (ROOT / "docs" / name).read_text(), f"{name}: run `make results`"
