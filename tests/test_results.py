"""The page of results has only numbers of the committed files, and the files belong to the grids."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from faithmeter.config import BASELINE
from faithmeter.stats.predictions import Predictions
from faithmeter.verdict.formats import format_number

ROOT = Path(__file__).parents[1]
NAMES = r"bAbI-1|SST2|SST-2|F1|MiniLM-L3|granite-30m|95 %|100 %|0\.05|2E|ICML 2024|table \d+"
"""Digits that are names or levels, not results."""


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """The modules of scripts/results, which import each other by name."""
    folder, names = (
        str(ROOT / "scripts" / "results"),
        ("evidence", "rules", "claim", "method_claims", "claims", "tables", "page", "figures", "export"),
    )
    sys.path.insert(0, folder)
    try:
        yield {name: __import__(name) for name in names}
    finally:
        sys.path.remove(folder)
        for name in names:
            sys.modules.pop(name, None)


def test_the_pages_are_computed_from_the_files(scripts) -> None:
    study = scripts["evidence"].Study(ROOT / "results")
    for template, place in scripts["page"].PAGES.items():
        page = (ROOT / place).read_text(encoding="utf-8")
        assert scripts["page"].write_page(study, template) == page, f"{place}: run `make results`"


@pytest.mark.parametrize("template", ["page.md.jinja", "tables.md.jinja"])
def test_the_prose_has_no_numbers_of_its_own(template: str) -> None:
    text = (ROOT / "scripts" / "results" / template).read_text(encoding="utf-8")
    for pattern in (r"\{\{.*?\}\}|\{%.*?%\}", r"`[^`]*`", r"\]\([^)]*\)", NAMES):
        text = re.sub(pattern, "", text)
    assert re.findall(r".*\d.*", text) == []


@pytest.mark.parametrize(("folder", "grids"), [(".", "study"), ("base", "base")])
def test_every_row_belongs_to_a_run_that_a_grid_asks_for(folder: str, grids: str) -> None:
    results = ROOT / "results" / folder
    runs = pd.read_csv(results / "runs.csv")
    files = [path for path in results.glob("*.csv") if "digest" in path.read_text().splitlines()[0]]
    assert len(files) == 6
    for path in files:
        assert set(pd.read_csv(path)["digest"]) <= set(runs["digest"]), path.name
    assert set(pd.read_parquet(results / "predictions.parquet")["digest"]) <= set(runs["digest"])
    for grid, own in runs[runs["kind"] == "train"].groupby("grid"):
        text = (ROOT / "grids" / grids / f"{grid}.toml").read_text()
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
    judge, effect = scripts["rules"].judge, scripts["evidence"].Effect
    assert judge(effect(1, 0.5, 2)) == "holds"
    assert judge(effect(-1, -2, -0.5)) == "fails"
    assert judge(effect(1, -0.5, 2)) == judge(effect(5)) == "unclear"
    assert judge(effect(-1, -1.5, 0), -2) == "holds"
    assert judge(effect(0, 0, 0)) == "fails", "nothing is not above zero"


def test_that_nothing_differs_needs_a_small_interval(scripts) -> None:
    rules, effect = scripts["rules"], scripts["evidence"].Effect
    within, wide, beyond = effect(0.5, -1, 1.9), effect(0.5, -1, 2.1), effect(4, 2.1, 6)
    assert [rules.judge_equivalence(each) for each in (within, wide, beyond)] == ["holds", "unclear", "fails"]
    assert [rules.judge_difference(each) for each in (within, wide, beyond)] == ["fails", "unclear", "holds"]
    assert [rules.judge_gain(each) for each in (within, wide, beyond)] == ["fails", "unclear", "holds"]
    assert rules.judge_equivalence(effect(0.1)) == rules.judge_gain(effect(5)) == "unclear", "no interval"


def test_that_a_test_does_not_reject_is_not_enough(scripts) -> None:
    rules, effect = scripts["rules"], scripts["evidence"].Effect
    few, many = effect(4, 2, 8), effect(4, 1, 20)
    assert rules.judge_no_rejection(0.9, few) == "holds"
    assert rules.judge_no_rejection(0.9, many) == "unclear"
    assert rules.judge_no_rejection(0.04, few) == "fails"
    assert rules.judge_no_rejection(0.9, effect(20, 11, 30)) == "fails"
    assert [rules.judge_rejection(p) for p in (0.04, 0.06)] == ["holds", "unclear"]


def test_the_share_of_rejected_texts_has_binomial_bounds(scripts, tmp_path: Path) -> None:
    study = scripts["evidence"].Study(tmp_path)
    rows = pd.DataFrame({"percent": [0, 10, 90, 100], "below_crossfit": [0.5, 0.0, 0.1, 0.9]})
    rows = rows.assign(grid="g", strategy="half", method=BASELINE, seed=0, texts=20)
    vars(study)["frames"] = {"measure": pd.concat([rows, rows.assign(seed=1)])}
    value, lower, upper, over = study.rejected("g", "half", "crossfit")
    assert (value, over) == (5.0, "2 seeds, 20 texts")  # two of forty; Clopper and Pearson:
    assert lower == pytest.approx(100 * stats.beta.ppf(0.025, 2, 39))
    assert upper == pytest.approx(100 * stats.beta.ppf(0.975, 3, 38))


def test_the_rival_that_is_exceeded_least_surely_decides(scripts) -> None:
    study = scripts["evidence"].Study(ROOT / "results")
    claims = [claim for claim in scripts["method_claims"].leave_one_out(study) if "signed" in claim.statement]
    for claim in claims:
        [place] = [p for p in study.main_places("half") if claim.where.startswith(p.name)]
        rivals = ("int-grad-sign", "inp-grad-sign")
        lowest = min(study.difference(place.grid, "half", "loo-sign", name).lower for name in rivals)
        assert claim.effect.lower == lowest
    assert len(claims) == 3


def test_methods_on_fewer_texts_and_seeds_cut_only_their_own_comparisons(scripts) -> None:
    """Two seeds of four texts; beam was measured apart, in the first seed, on two of them."""
    study = scripts["evidence"].Study(ROOT)
    runs = pd.DataFrame({"digest": ["a", "b", "c"], "seed": [0, 1, 0]})
    runs = runs.assign(grid="g", strategy="half", kind="measure")
    places = [(row, percent) for row in range(4) for percent in (0, 50, 100)]
    steps = pd.DataFrame(places, columns=["row", "percent"]).assign(label=0)
    steps["prediction"] = (steps["percent"] == 50).astype(int)
    measured = [(digest, method) for digest in ("a", "b") for method in (BASELINE, "loo-sign")]
    parts = [steps.assign(digest=digest, method=method) for digest, method in measured]
    few = steps[steps["row"] < 2]
    parts += [few.assign(digest="c", method=method) for method in (BASELINE, "beam", "loo-sign")]
    areas = pd.DataFrame({"digest": ["a"], "metric": ["accuracy"]})
    vars(study).update(runs=runs, _prediction_rows=pd.concat(parts), frames={"areas": areas})
    both = study.predictions("g", "half", "loo-sign")
    assert (both.seeds, both.texts) == (2, 4)
    apart = study.predictions("g", "half", "beam", "loo-sign")
    assert (apart.seeds, apart.texts, set(apart.methods)) == (1, 2, {"beam", "loo-sign", BASELINE})


def test_a_correlation_varies_with_the_seeds(scripts) -> None:
    """Where two seeds have opposite orders, the interval reaches both."""
    evidence, steps = scripts["evidence"], np.arange(3)
    names = (BASELINE, *evidence.METHODS)

    def seed(order: list[int]) -> dict[str, np.ndarray]:
        wrong = [(np.arange(50)[:, None] < 5 * k) & (steps == 1) for k in order]
        return {name: each.astype(np.int64) for name, each in zip(names, wrong, strict=True)}

    one, other = seed([0, *range(1, 9)]), seed([0, *range(8, 0, -1)])
    both = {name: np.stack([one[name], other[name]]) for name in names}
    predictions = Predictions(np.zeros(50, np.int64), both, 2, "accuracy", (0, 50, 100))
    reference = {name: float(k) for k, name in enumerate(evidence.METHODS)}
    _, lower, upper, over = evidence.spearman([(predictions, reference)])
    assert (round(lower, 6), round(upper, 6), over) == (-1, 1, "2 seeds, 50 texts")


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
    assert (both.value, both.over) == (pytest.approx(0), "1 seed, 12 texts")


@pytest.mark.slow
def test_figures_are_drawn_from_the_files(scripts, tmp_path: Path) -> None:
    """As the build of the site does; the bytes depend on the version of the renderer."""
    scripts["figures"].draw_figures(tmp_path)
    drawn = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.svg")}
    committed = [*(ROOT / "docs/figures").glob("*.svg"), *(ROOT / "docs/bench").glob("*.svg")]
    others = {Path("figures/planted.svg")}  # drawn by `validation`, which trains models
    assert {*drawn} | others == {path.relative_to(ROOT / "docs") for path in committed}
    for name, image in drawn.items():
        assert image == (ROOT / "docs" / name).read_text(), f"{name}: run `make results`"


def test_the_page_of_the_guard_quotes_its_audit() -> None:
    folder = ROOT / "results" / "guard"
    audit, text = json.loads((folder / "audit.json").read_text()), (folder / "README.md").read_text()
    assert all(
        audit["reasons"][name] in text for name in ("The check.", "As it is, the model was not accepted.")
    )
    methods = {name: each for name, each in audit["methods"].items() if name != BASELINE}
    for name, each in methods.items():
        bounds = each["intervals"]
        numbers = [
            (each[area], bounds[area]["lower"], bounds[area]["upper"]) for area in ("faithfulness", "acu")
        ]
        cells = ["{} [{}, {}]".format(*(format_number(100 * value) for value in row)) for row in numbers]
        assert f"| `{name}` | {' | '.join(cells)} |" in text
    assert len(methods) == text.count("| `")
    for row in pd.read_csv(folder / "explainers.csv").to_dict("records"):
        values = [
            "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * row[f"{kind}{end}"] for end in ("", "_lower", "_upper")))
            for kind in ("faithfulness", "acu")
        ]
        assert f"| {row['method']} | {' | '.join(values)} |" in text
    for example in json.loads((folder / "examples.json").read_text()):
        ranked = sorted(example["words"], key=lambda word: -word["scores"]["loo-sign"])[:3]
        words = ", ".join(f"{word['text']} {word['scores']['loo-sign']:.2f}" for word in ranked)
        cells = (example["text"], example["prediction"], words, example["summary"]["text"])
        assert f"| {' | '.join(cells)} |" in text


def test_an_export_keeps_the_runs_of_stores_that_are_gone(scripts, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("digest,epoch,value\na,1,0.10\nb,2,0.3333333333333333\n")
    rows = pd.DataFrame({"digest": ["b", "c"], "epoch": [3, 4], "value": [0.5, 0.25], "more": [1, 2]})
    kept = scripts["export"].append(rows, path)
    assert kept.fillna("").to_numpy().tolist() == [
        ["a", "1", "0.10", ""],
        ["b", "3", "0.5", "1"],
        ["c", "4", "0.25", "2"],
    ]


def test_simes_over_layers_misses_what_the_published_test_rejects() -> None:
    """The page of MaSF and the checklist say so."""
    rows = pd.read_csv(ROOT / "results" / "aggregations.csv")
    rows = rows.query("strategy == 'none' and 0 < percent < 100")
    below = rows.groupby("aggregation")["below"].mean()
    assert below["published"] > 0.95 > below["fisher-fisher"] > 0.5
    assert below["simes-simes"] == below["fisher-simes"] == 0
