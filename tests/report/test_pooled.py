"""Measurements of several seeds have intervals over seeds and texts, and are compared over both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fixtures_report as made_up
from faithmeter.measuring.measurement import predictions_of
from faithmeter.report import figures, page
from faithmeter.report.aggregate import over_seeds
from faithmeter.report.pooled import pool_seeds
from faithmeter.report.seeds_evidence import gather_evidence
from faithmeter.stats.curves import absolute_area
from faithmeter.stats.intervals import resample_texts
from faithmeter.store.records import MeasureRecord, read_measurement
from faithmeter.store.run_store import RunStore

TEXTS = 40
PERCENTS = range(0, 101, 10)
FALL = {"random": 1.0, "loo-sign": 0.45, "beam": 0.45, "grad-l2": 0.8}
"""Mean share of a text that must be masked until its prediction changes."""


def steps(texts: Any, name: str, strength: float, classes: int, p: float) -> pd.DataFrame:
    """Each text falls at a share of its own; the seed of the training moves all of them a little."""
    rng = np.random.default_rng([round(1000 * strength), len(name)])
    falls = FALL[name] * rng.uniform(0.5, 1.2, len(texts)) + strength / 100
    rows = [
        (name, row, text["label"], percent, [], None, (text["label"] + (percent / 100 >= fall)) % classes)
        for row, (text, fall) in enumerate(zip(texts, falls, strict=True))
        for percent in PERCENTS
    ]
    columns = ["method", "row", "label", "percent", "masked", "scores", "prediction"]
    return pd.DataFrame(rows, columns=columns).assign(probability=0.5, p_published=p, p_crossfit=p)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    monkeypatch.setattr(made_up, "steps", steps)
    texts = [{"text": f"word {n}", "label": n % 2} for n in range(TEXTS)]
    store = RunStore(tmp_path / "runs")
    for seed in (1, 2, 3):
        trained = made_up.train(store, task="bAbI-1", model="embedded", seed=seed)
        made_up.measure(store, trained, texts, {name: float(seed) for name in FALL})
    return store


def measurements(store: RunStore) -> list[pd.DataFrame]:
    records = [(folder, record) for folder, record in store.records() if isinstance(record, MeasureRecord)]
    records.sort(key=lambda run: run[1].trained.seed)
    return [read_measurement(folder, record).frame for folder, record in records]


def test_bounds_are_those_of_a_bootstrap_over_seeds_and_texts(store: RunStore) -> None:
    pooled = pool_seeds(store.frames(), list(store.records()))
    predictions = predictions_of(measurements(store), classes=6, metric="micro_f1")
    assert predictions.seeds == 3
    assert predictions.texts == TEXTS
    intervals = resample_texts(predictions)
    for _, row in pooled["areas"].iterrows():
        expected = intervals.acu(row["method"])
        assert (row["pooled_acu_lower"], row["pooled_acu_upper"]) == pytest.approx(expected[1:3])
    point = pooled["measure"].query("method == 'beam' and percent == 50").iloc[0]
    expected = intervals.curve("beam")[5]
    assert (point["pooled_value_lower"], point["pooled_value_upper"]) == pytest.approx(expected[1:3])
    expected = intervals.curve("random")[5]
    assert (point["pooled_random_lower"], point["pooled_random_upper"]) == pytest.approx(expected[1:3])


def test_seeds_that_agree_still_have_an_interval(store: RunStore) -> None:
    """Equal areas of all seeds say nothing about other texts."""
    frames = store.frames()
    frames["areas"] = frames["areas"].query("method == 'beam'").assign(acu=0.45)
    by = ["task", "model", "method"]
    [alone] = over_seeds(frames["areas"], by, "acu").to_dict("records")
    assert (alone["lower"], alone["upper"]) == (0.45, 0.45)
    pooled = pool_seeds(frames, list(store.records()))["areas"]
    [together] = over_seeds(pooled, by, "acu").to_dict("records")
    assert (together["mean"], together["n"]) == (0.45, 3)
    assert together["lower"] == pooled["pooled_acu_lower"].iloc[0] < 0.45
    assert together["upper"] == pooled["pooled_acu_upper"].iloc[0] > 0.45


def test_methods_are_compared_over_seeds_and_texts(store: RunStore) -> None:
    rows = pool_seeds(store.frames(), list(store.records()))["areas"]
    evidence = gather_evidence(rows)
    predictions = predictions_of(measurements(store), classes=6, metric="micro_f1")
    curves = predictions.weighted_curves([np.ones((1, TEXTS), np.int64)])
    areas = {
        name: absolute_area(curves[name], curves["random"], predictions.ratios).mean() for name in curves
    }
    assert evidence.group[0] == max(areas, key=lambda name: areas[name])
    assert set(evidence.group) == {"beam", "loo-sign"}, "grad-l2 is clearly worse"


def test_seeds_on_other_data_or_percents_are_not_pooled(store: RunStore, tmp_path: Path) -> None:
    frames, records = store.frames(), list(store.records())
    for change in ({"data": "other"}, {"step": 20}):
        changed = [
            (folder, record.model_copy(update={"config": record.config.replace(**change)}))
            if isinstance(record, MeasureRecord) and record.trained.seed == 2
            else (folder, record)
            for folder, record in records
        ]
        assert "pooled_seeds" not in pool_seeds(frames, changed)["areas"]


def test_a_seed_that_did_not_converge_is_left_out(store: RunStore) -> None:
    frames = store.frames()
    frames["areas"]["converged"] = frames["areas"]["seed"] != 3
    pooled = pool_seeds(frames, list(store.records()))["areas"]
    assert set(pooled["pooled_seeds"]) == {2}
    means = over_seeds(pooled, ["task", "model", "method"], "acu").set_index("method")
    assert means.loc["beam", "n"] == 2
    assert means.loc["beam", "lower"] == pooled.set_index("method").loc["beam", "pooled_acu_lower"].iloc[0]


def test_the_page_says_what_its_intervals_are_over(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("faithfulness", "pvalues-crossfit")
    monkeypatch.setattr(figures, "FIGURES", {name: figures.FIGURES[name] for name in names})
    written = page.write(store, tmp_path / "report.html", examples=0).page.read_text(encoding="utf-8")
    assert "masked; ribbons and bars: 95 % intervals over seeds and texts" in written
    assert written.count("intervals over seeds and texts") == written.count("erformance by percent of tokens")
