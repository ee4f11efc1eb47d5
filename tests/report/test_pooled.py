"""Measurements of several seeds have intervals over seeds and texts, and are compared over both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fixtures_report as made_up
from faithmeter.report import figures, page
from faithmeter.report.aggregate import over_seeds
from faithmeter.stats.curves import absolute_area
from faithmeter.stats.intervals import resample_texts
from faithmeter.stats.predictions import Predictions
from faithmeter.store.results import describe_others
from faithmeter.store.run_store import RunStore
from traces import keep, traces

TEXTS = 40
PERCENTS = range(0, 101, 10)
FALL = {"random": 1.0, "loo-sign": 0.45, "loo-abs": 0.45, "grad-l2": 0.8}
"""Mean share of a text that must be masked until its prediction changes."""


def predictions(seed: int, texts: int = TEXTS) -> dict[str, NDArray[Any]]:
    """Each text falls at a share of its own; the seed of the training moves all of them a little."""
    labels, methods = np.arange(texts) % 2, {}
    for name, mean in FALL.items():
        rng = np.random.default_rng([1000 * seed, len(name)])
        falls = mean * rng.uniform(0.5, 1.2, texts) + seed / 100
        wrong = np.array(PERCENTS) / 100 >= falls[:, None]
        methods[name] = np.where(wrong, 1 - labels[:, None], labels[:, None])
    return methods


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    store = RunStore(tmp_path / "runs")
    for seed in (1, 2, 3):
        add(store, seed)
    return store


def add(store: RunStore, seed: int, *, texts: int = TEXTS, **changes: Any) -> None:
    trained = made_up.train(store, task="bAbI-1", model="embedded", seed=seed)
    labels = np.arange(texts) % 2
    measured = traces(predictions(seed, texts), labels, p={"crossfit": 0.5, "published": 0.5})
    keep(store, trained, measured, **{"metric": "micro_f1", **changes})


def all_predictions() -> Predictions:
    each = [predictions(seed) for seed in (1, 2, 3)]
    arrays = {name: np.stack([one[name] for one in each]) for name in FALL}
    return Predictions(np.arange(TEXTS) % 2, arrays, 2, "micro_f1", tuple(PERCENTS))


def test_bounds_are_those_of_a_bootstrap_over_seeds_and_texts(store: RunStore) -> None:
    frames, intervals = store.frames(), resample_texts(all_predictions())
    assert set(frames["areas"]["pooled_seeds"]) == {3}
    for _, row in frames["areas"].iterrows():
        expected = intervals.acu(row["method"])
        assert (row["pooled_acu_lower"], row["pooled_acu_upper"]) == expected[1:3]
    point = frames["measure"].query("method == 'loo-abs' and percent == 50").iloc[0]
    expected = intervals.curve("loo-abs")[5]
    assert (point["pooled_value_lower"], point["pooled_value_upper"]) == expected[1:3]
    expected = intervals.curve("random")[5]
    assert (point["pooled_random_lower"], point["pooled_random_upper"]) == expected[1:3]


def test_seeds_that_agree_still_have_an_interval(store: RunStore) -> None:
    """Equal areas of all seeds say nothing about other texts."""
    areas = store.frame("areas").query("method == 'loo-abs'").assign(acu=0.45)
    by = ["task", "model", "method"]
    [together] = over_seeds(areas, by, "acu").to_dict("records")
    assert (together["mean"], together["n"]) == (0.45, 3)
    assert together["lower"] == areas["pooled_acu_lower"].iloc[0] < 0.45
    assert together["upper"] == areas["pooled_acu_upper"].iloc[0] > 0.45
    alone = areas.drop(columns=[name for name in areas if name.startswith("pooled_")])
    [alone] = over_seeds(alone, by, "acu").to_dict("records")
    assert (alone["lower"], alone["upper"]) == (0.45, 0.45)


def test_methods_are_compared_over_seeds_and_texts(store: RunStore) -> None:
    [pooled] = store.results()
    predicted = all_predictions()
    curves = predicted.weighted_curves([np.ones((1, TEXTS), np.int64)])
    areas = {name: absolute_area(curves[name], curves["random"], predicted.ratios).mean() for name in curves}
    evidence = pooled.result.evidence
    assert evidence.group[0] == max(areas, key=lambda name: areas[name])
    assert set(evidence.group) == {"loo-abs", "loo-sign"}, "grad-l2 is clearly worse"


@pytest.mark.parametrize("change", [{"data": "other"}, {"metric": "accuracy"}, {"precision": "bf16"}])
def test_seeds_that_were_measured_otherwise_are_not_pooled_and_named(
    store: RunStore, change: dict[str, str]
) -> None:
    add(store, 4, **change)
    [pooled] = store.results()
    assert [run.training["seed"] for run in pooled.runs] == [1, 2, 3]
    assert "1 of 4 seeds were measured on other texts and are left out" in {
        doubt.text for doubt in pooled.result.doubts
    }
    [line] = describe_others([pooled])
    assert line.startswith("bAbI-1, embedded: 1 measurements on other data, at other steps")


def test_of_a_seed_that_was_measured_twice_the_most_texts_count(store: RunStore) -> None:
    add(store, 2, texts=2 * TEXTS, checkpoint="trained again")
    [pooled] = store.results()
    assert [run.result.texts for run in pooled.runs] == [TEXTS, 2 * TEXTS, TEXTS]
    assert pooled.result.texts == TEXTS, "of which all seeds have the first"


def test_a_seed_that_did_not_converge_is_left_out(store: RunStore) -> None:
    labels, half = np.arange(TEXTS) % 2, np.zeros((TEXTS, len(PERCENTS)), int)
    trained = made_up.train(store, task="bAbI-1", model="embedded", seed=4)
    guessing = traces(dict.fromkeys(FALL, half), labels, p={"crossfit": 0.5, "published": 0.5})
    keep(store, trained, guessing, metric="micro_f1")
    areas = store.frame("areas")
    assert set(areas["pooled_seeds"].dropna()) == {3}
    assert set(areas[areas["pooled_seeds"].isna()]["seed"]) == {4}
    means = over_seeds(areas, ["task", "model", "method"], "acu").set_index("method")
    assert means.loc["loo-abs", "n"] == 3
    assert (
        means.loc["loo-abs", "lower"] == areas.set_index("method").loc["loo-abs", "pooled_acu_lower"].iloc[0]
    )
    [pooled] = store.results()
    assert "1 of 4 seeds did not learn the task and are left out" in {d.text for d in pooled.result.doubts}


def test_the_page_says_what_its_intervals_are_over(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("faithfulness", "pvalues-crossfit")
    monkeypatch.setattr(figures, "FIGURES", {name: figures.FIGURES[name] for name in names})
    written = page.write(store, tmp_path / "report.html", examples=0).page.read_text(encoding="utf-8")
    assert "masked; ribbons and bars: 95 % intervals over seeds and texts" in written
    assert written.count("intervals over seeds and texts") == written.count("erformance by percent of tokens")
