"""Results side by side: which results a place stands for, and what the page shows of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import fixtures_report
from faithmeter.errors import InputError
from faithmeter.report.beside import methods_table, read_beside, view_beside
from faithmeter.report.blocks import Section
from faithmeter.report.html import render
from faithmeter.store.run_store import RunStore

TEXTS = [{"text": "Mary went to the garden.", "context": "Where?", "label": n % 6} for n in range(30)]
STRONG = {"random": 0.0, "loo-sign": 0.42, "grad-l2": 0.2}
WEAK = {"random": 0.0, "loo-sign": 0.1, "inp-grad-abs": 0.05}


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """Two seeds of a training, each measured by two methods."""
    store = RunStore(tmp_path / "runs")
    for seed, strengths in enumerate((STRONG, WEAK)):
        fixtures_report.measure(store, fixtures_report.train(store, seed=seed), TEXTS, strengths)
    return store


def test_folders_of_models_and_of_measurements_stand_for_the_same_results(store: RunStore) -> None:
    kinds = [
        [folder for folder, record in store.records() if record.kind == kind] for kind in ("train", "measure")
    ]
    for folders in kinds:
        beside = read_beside(folders)
        assert [*beside.results] == [folder.name for folder in folders]
        methods = [{*result.methods} for result in beside.results.values()]
        assert sorted(map(len, methods)) == [3, 3]
        assert methods[0] != methods[1], "each model has its own measurement"


def test_one_table_holds_every_method_of_each_result_and_blanks_where_one_is_missing(store: RunStore) -> None:
    results = read_beside([folder for folder, record in store.records() if record.kind == "train"]).results
    table = methods_table(results)
    assert {row[0].value for row in table.rows} == {*STRONG, *WEAK} - {"random"}
    for row in table.rows:
        for cell, result in zip(row[1:], results.values(), strict=True):
            method = str(row[0].value)
            expected = 100 * result.area(method) if method in result.methods else None
            assert cell.value == (None if expected is None else pytest.approx(expected))


def test_sections_lie_side_by_side_on_the_page(store: RunStore) -> None:
    beside = read_beside([folder for folder, record in store.records() if record.kind == "train"])
    blocks = view_beside(beside)
    assert [type(block) for block in blocks[-2:]] == [Section, Section]
    html = render(blocks)
    assert html.count("<div class='beside'>") == 1
    assert html.count("<section>") == 2


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("runs", "runs"), "have the same name; expected two places"),
        (("runs", "nowhere"), "nowhere is neither a store nor a run"),
    ],
)
def test_places_that_cannot_be_compared_are_named(store: RunStore, names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_beside([store.root.parent / name for name in names])


def test_the_command_writes_one_page_and_prints_one_table(
    store: RunStore, faithmeter, tmp_path: Path
) -> None:
    folders = [folder for folder, record in store.records() if record.kind == "train"]
    outcome = faithmeter("report", *folders, "-o", tmp_path / "both.html")
    assert outcome.code == 0, outcome.err
    for folder in folders:
        assert folder.name in outcome.out
        assert folder.name in (tmp_path / "both.html").read_text(encoding="utf-8")
