"""Expected times of runs: published ones added up, and those of a store scaled to the runs to come."""

from __future__ import annotations

from pathlib import Path

import pytest

import faithmeter as fm
import fixtures_report as made_up
from benchmarks.costs import seconds
from faithmeter import grid
from faithmeter.paper import published

GRIDS = Path(__file__).parents[2] / "grids"


def read(tmp_path: Path, text: str) -> list[grid.Run]:
    (tmp_path / "grid.toml").write_text(text)
    return grid.read(tmp_path / "grid.toml").runs


def minutes(text: str) -> int:
    hours, minutes = text.split(":")
    return 60 * int(hours) + int(minutes)


def test_published_times_are_added_up(tmp_path) -> None:
    paper = grid.read(GRIDS / "paper.toml").runs
    estimates = seconds(paper, fm.RunStore(tmp_path))
    assert all(found is not None and found[1] == "published" for found in estimates.values())
    of = {run.name: found[0] for run, found in estimates.items() if found}
    assert of["train BoolQ roberta-base half/both seed 0"] == pytest.approx(51 * 60)
    assert of["train BoolQ roberta-large half/both seed 0"] == pytest.approx(123 * 60)
    # explaining, by the table of importance measures, and ten times evaluating (2 min) and checking (4 min)
    rows = published.table("walltime_importance_measures")
    explained = sum(map(minutes, rows[rows["dataset"] == "BoolQ"]["base_hhmm"]))
    assert of["measure BoolQ roberta-base half/both seed 0"] == pytest.approx(60 * (explained + 10 * (2 + 4)))
    # fine-tuning (1:44), and a tenth of explaining 25,000 test texts in ten steps, for all 50,000 texts
    of_imdb = rows[(rows["dataset"] == "IMDB") & (rows["importance_measure"] == "grad-l2")]
    per_step = minutes(of_imdb["base_hhmm"].item()) / 10
    expected = 60 * (104 + per_step * 50_000 / 25_000)
    name = "roar IMDB roberta-base none/unmasked seed 0 grad-l2 30 %"
    assert of[name] == pytest.approx(expected, rel=0.001)


def test_published_times_are_of_all_epochs_and_texts_and_of_known_methods(tmp_path) -> None:
    text = """
    tasks = ["IMDB"]
    models = ["roberta-base"]
    seeds = [0]
    strategies = ["half/both"]
    [train]
    epochs = 1
    limit = 2000
    [measure]
    methods = ["grad-l2", "beam"]
    limit = 100
    step = 5
    """
    train, measure = read(tmp_path, text)
    found = seconds([train, measure], fm.RunStore(tmp_path))
    assert found[train] == (pytest.approx(104 * 60 / 10 * 2000 / 20000), "published"), "of 10 epochs"
    assert found[measure] is None, "beam was too slow for these texts"
    train, measure = read(tmp_path, text.replace(', "beam"', ""))
    # 13 min + 15 min for 25,000 texts at 11 steps, by grad-l2 and by random;
    # grad-l2 explains at 20 steps instead of 10, random once, in a minute
    rows = published.table("walltime_importance_measures")
    of_imdb = rows[(rows["dataset"] == "IMDB") & (rows["importance_measure"] == "grad-l2")]
    explained = minutes(of_imdb["base_hhmm"].item()) * 20 / 10
    expected = 60 * 100 / 25_000 * (1 + explained + 2 * (13 + 15) * 21 / 11)
    assert seconds([measure], fm.RunStore(tmp_path))[measure] == (pytest.approx(expected), "published")


def test_what_was_measured_here_is_scaled_to_the_runs_to_come(tmp_path) -> None:
    """A made-up training took 67.5 s for 2 epochs of 900 rows, its measurement of 2 texts 3 s a method."""
    text = """
    tasks = ["bAbI-1"]
    models = ["embedded"]
    seeds = [3]
    strategies = ["none/unmasked"]
    [train]
    epochs = 200
    limit = 300
    [measure]
    methods = ["beam", "loo-sign"]
    limit = 10
    step = 20
    [roar]
    methods = ["loo-sign"]
    step = 50
    """
    store = fm.RunStore(tmp_path / "runs")
    trained = made_up.train(store)
    two = [{"text": "a b", "label": 0}] * 2
    made_up.measure(store, trained, two, {"random": 0.0, "beam": 0.4, "loo-sign": 0.4})
    runs = read(tmp_path, text)
    found = seconds(runs, store)
    train, measure, *roar = (found[run] for run in runs)
    assert train == (pytest.approx(67.5 * 200 / 2 * 300 / 900), "measured here")
    # 11 steps: 1 s to explain (by loo-sign at 10 of them, by the others once), 2 s for the rest; now 6
    texts, steps = 10 / 2, 6 / 11
    by_method = 1 + 1 + 1 * 5 / 10 + 3 * 2 * steps
    assert measure == (pytest.approx(3 + texts * by_method), "measured here")
    assert roar == [None] * 4, "nothing like that was done here"
