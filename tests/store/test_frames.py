"""Records → tidy rows, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import faithmeter as fm
from faithmeter.config import RoarConfig, TrainConfig
from faithmeter.store import frames
from records import masked_scores, train_result
from traces import keep, trace


def trained(value: float, seed: int = 0, **options: Any) -> tuple[TrainConfig, dict[str, Any]]:
    lines = [masked_scores(masking, accuracy=value, macro_f1=0.0) for masking in (0, 100, "uniform")]
    return TrainConfig(seed=seed, **options), train_result(test=lines)


def measured(store: fm.RunStore, texts: int, right: int, of: TrainConfig) -> None:
    """Random keeps nine of ten texts right at 50 %, the method so many; a quarter of p-values is small."""
    labels, row = np.arange(texts) % 2, np.arange(texts)[:, None]
    seed = {}
    for name, at_half in (("random", 0.9), ("loo-sign", right / texts)):
        wrong = row >= np.round(np.array([0.9, at_half, 0.5]) * texts)
        p = np.where(row < texts // 4, 0.04, 0.2) * np.ones((1, 3))
        predictions = np.where(wrong, 1 - labels[:, None], labels[:, None])
        seconds = {"explain": 3.0, "evaluate": 1.0, "check": 0.5}
        seed[name] = trace(
            name, predictions, labels, percents=(0, 50, 100), p={"crossfit": p}, seconds=seconds
        )
    keep(store, of, seed, checkpoint=of.digest, step=50, seconds={"fit": 4.0})


@pytest.fixture
def store(tmp_path: Path) -> fm.RunStore:
    runs = fm.RunStore(tmp_path)
    config, result = trained(0.9)
    runs.put(config, result)
    runs.put(*trained(0.6, seed=1))
    measured(runs, 10, 6, config)
    measured(runs, 40, 20, config)
    plain = {"strategy": "none", "validation": "unmasked"}
    for percent, value in ((50, 0.7), (100, 0.5)):
        roar = RoarConfig(**plain, method="grad-l2", percent=percent, step=50)
        seconds = {"explain": 1.0, "train": 2.0}
        runs.put(roar, train_result(test=[masked_scores(0, accuracy=value)], plain=0.95, seconds=seconds))
    return runs


def test_a_training_gives_a_row_for_each_split_epoch_and_masking(store: fm.RunStore) -> None:
    rows = store.frame("train", seed=0)
    assert len(rows) == 2 * 3 + 3  # two epochs of validation, one test
    assert list(rows["masking"])[:3] == ["0", "100", "uniform"]
    assert list(rows[rows["split"] == "test"]["epoch"]) == [2, 2, 2]
    assert rows["best"].sum() == 6
    assert set(rows[rows["split"] == "validation"]["rows"]) == {40}
    assert set(rows["train_rows"]) == {300}
    assert set(rows["value"]) == {0.9}
    assert rows["converged"].all()
    assert not store.frame("train", seed=1)["converged"].any(), "not above the threshold"


def test_texts_with_all_columns_masked_are_those_of_100_percent_only_if_they_are_the_same(
    tmp_path: Path,
) -> None:
    runs, pair = fm.RunStore(tmp_path), ["text", "context"]
    for seed, (scope, columns) in enumerate((("explained", ["text"]), ("all", pair), ("explained", pair))):
        config, result = trained(0.9, seed=seed, scope=scope)
        runs.put(config, result | {"columns": columns})
    config, result = trained(0.9, seed=3)
    lines = [*result["test"], masked_scores("all", accuracy=0.4, macro_f1=0.0)]
    runs.put(config, train_result(test=lines) | {"columns": pair})
    rows = runs.frame("train", split="test", masking="all")
    assert dict(zip(rows["seed"], rows["value"], strict=True)) == {0: 0.9, 1: 0.9, 3: 0.4}


def test_of_two_measurements_the_one_of_more_texts_counts(store: fm.RunStore) -> None:
    areas = store.frame("areas", method="loo-sign")
    assert list(areas["acu"]) == pytest.approx([0.2])  # a triangle of height 0.9 - 0.5
    assert list(areas["racu"]) == pytest.approx([2 / 3])  # of 0.3, as random falls from 50 % on only
    assert list(areas["p_crossfit"]) == pytest.approx([0.16])  # 0.04 · 40 / 10 at each step
    assert list(areas["outside_share"]) == [0.25]
    assert areas["acu_lower"].item() < 0.2 < areas["acu_upper"].item()
    steps = store.frame("measure", method="loo-sign")
    assert list(steps["percent"]) == [0, 50, 100]
    assert list(steps["value"]) == [0.9, 0.5, 0.5]
    assert list(steps["random"]) == [0.9, 0.9, 0.5]
    assert steps["p_published"].isna().all(), "a test that was not made"
    assert list(steps["below_crossfit"]) == [0.25] * 3
    assert set(steps["texts"]) == {40}
    assert (steps["strategy"] == "half").all(), "what the checkpoint was trained with"


def test_roar_begins_with_the_plain_model(store: fm.RunStore) -> None:
    rows = store.frame("roar").sort_values("percent")
    assert list(rows["percent"]) == [0, 50, 100]
    assert list(rows["value"]) == [0.95, 0.7, 0.5]
    assert set(rows["step"]) == {50}


def test_seconds_by_phase(store: fm.RunStore) -> None:
    rows = store.frame("seconds")
    assert rows[rows["kind"] == "train"]["seconds"].sum() == 6
    assert rows[(rows["kind"] == "measure") & (rows["phase"] == "fit")]["seconds"].sum() == 8
    assert rows[(rows["kind"] == "measure") & (rows["method"] == "loo-sign")]["seconds"].sum() == 4.5
    assert set(rows[rows["kind"] == "roar"]["method"]) == {"grad-l2"}


def test_frames_are_tables_even_when_empty(tmp_path, store: fm.RunStore) -> None:
    for kind, frame in fm.RunStore(tmp_path / "nothing").frames().items():
        assert list(frame.columns) == list(frames.COLUMNS[kind])
        assert frame.empty
    for frame in store.frames().values():
        frame.to_parquet(tmp_path / "frame.parquet")


def test_runs_of_other_settings_are_not_averaged_with(store: fm.RunStore) -> None:
    store.put(*trained(0.1, epochs=50))
    kept, left = frames.comparable(store.frames())
    assert 0.1 not in set(kept["train"]["value"])
    assert len(kept["measure"]) == 2 * 3
    assert left == ["bAbI-1, embedded: 1 runs with other settings"]


def test_unknown_frames_and_columns(store: fm.RunStore) -> None:
    with pytest.raises(fm.InputError, match="unknown frame 'tain'; did you mean 'train'"):
        store.frame("tain")
    with pytest.raises(fm.InputError, match="unknown column of train 'sed'; did you mean 'seed'"):
        store.frame("train", sed=1)
