"""Records → tidy rows, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import faithmeter as fm
from faithmeter.runs import frames
from faithmeter.config import MeasureConfig, RoarConfig, TrainConfig


def trained(value: float, seed: int = 0, **options: object) -> tuple[TrainConfig, dict[str, object]]:
    line = {"accuracy": value, "macro_f1": 0.0, "loss": 0.7}
    lines = [{"masking": masking, **line} for masking in (0, 100, "uniform")]
    history = [{"epoch": n, "selection": n / 10, "validation": lines, "train_loss": 1.0} for n in (1, 2)]
    majority = {split: {"accuracy": 0.5, "macro_f1": 0.3} for split in ("validation", "test")}
    result = {"epochs": history, "best_epoch": 2, "test": lines, "majority": majority, "metric": "accuracy"}
    sizes = {"rows": {"train": 300, "validation": 40, "test": 20}}
    extra = {"threshold": 0.6, "seconds": {"train": 2.0, "test": 1.0}, **sizes}
    return TrainConfig(seed=seed, **options), {**result, **extra}  # type: ignore[arg-type]


def measured(texts: int, acu: float, of: TrainConfig) -> tuple[MeasureConfig, dict[str, object]]:
    below = {"0.05": 0.25}
    method = {
        "curve": {"percents": [0, 50, 100], "values": [0.9, 0.6, 0.5], "metric": "accuracy", "n": texts},
        **{"acu": acu, "racu": None, "p": {"published": 0.1, "crossfit": 0.2}, "evaluations": 7},
        "pvalues": {
            t: {str(p): {"p": p / 100, "below": below} for p in (0, 50, 100)}
            for t in ("published", "crossfit")
        },
        "seconds": {"explain": 3.0, "evaluate": 1.0, "check": 0.5},
    }
    shared = {"trained": of.to_dict(), "train_digest": of.digest, "threshold": 0.6, "metric": "accuracy"}
    judged = {"floors": {"crossfit": 0.02}, "majority": 0.5}
    result = {**shared, **judged, "texts": texts, "methods": {"loo-sign": method}, "seconds": {"fit": 4.0}}
    return MeasureConfig(checkpoint=of.digest, limit=texts), result


@pytest.fixture
def store(tmp_path: Path) -> fm.RunStore:
    runs = fm.RunStore(tmp_path)
    config, result = trained(0.9)
    runs.put(config, result)
    runs.put(*trained(0.6, seed=1))
    runs.put(*measured(10, 0.1, config))
    runs.put(*measured(30, 0.3, config))
    plain = {"strategy": "none", "validation": "unmasked"}
    for percent, value in ((50, 0.7), (100, 0.5)):
        roar = RoarConfig(**plain, method="grad-l2", percent=percent, step=50)
        found = {"metric": "accuracy", "plain": 0.95, "test": [{"masking": 0, "accuracy": value}]}
        runs.put(roar, {**found, "seconds": {"explain": 1.0, "train": 2.0}})
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


def test_of_two_measurements_the_one_of_more_texts_counts(store: fm.RunStore) -> None:
    areas = store.frame("areas")
    assert list(areas["acu"]) == [0.3]
    assert areas["racu"].isna().all()
    assert list(areas["p_crossfit"]) == [0.2]
    steps = store.frame("measure")
    assert list(steps["percent"]) == [0, 50, 100]
    assert list(steps["value"]) == [0.9, 0.6, 0.5]
    assert list(steps["p_published"]) == [0.0, 0.5, 1.0]
    assert list(steps["below_crossfit"]) == [0.25] * 3
    assert set(steps["texts"]) == {30}
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
    assert rows[(rows["kind"] == "measure") & (rows["method"] == "loo-sign")]["seconds"].sum() == 9
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
    assert len(kept["measure"]) == 3
    assert left == ["bAbI-1, embedded: 1 runs with other settings"]


def test_unknown_frames_and_columns(store: fm.RunStore) -> None:
    with pytest.raises(fm.InputError, match="unknown frame 'tain'; did you mean 'train'"):
        store.frame("tain")
    with pytest.raises(fm.InputError, match="unknown column of train 'sed'; did you mean 'seed'"):
        store.frame("train", sed=1)
