"""A store of version 0.2: its checkpoint is measured, and its measurement is named as what it is.

`store-0.2.zip` was written by 0.2: a training of a tiny model on `reviews.csv`, and a measurement of it.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import faithmeter as fm
from faithmeter.config import MeasureConfig
from faithmeter.errors import DamageWarning
from faithmeter.runs.measurements import measure_checkpoint
from faithmeter.store.records import RECORD, read_record

CONFIG = MeasureConfig(methods=("grad-l2",), limit=8, step=50)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> fm.RunStore:
    with zipfile.ZipFile(Path(__file__).with_name("store-0.2.zip")) as archive:
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)  # the training read its data from there
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return fm.RunStore("runs")


@pytest.fixture
def checkpoint(store: fm.RunStore) -> Path:
    [checkpoint] = store.root.glob("train-*")
    return checkpoint


def old_methods(store: fm.RunStore) -> dict[str, Any]:
    [file] = store.root.glob(f"measure-*/{RECORD}")
    methods: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["methods"]
    return methods


def test_a_checkpoint_of_0_2_is_loaded_and_measured_with_the_same_digits(store, checkpoint) -> None:
    assert fm.load(checkpoint).labels == ("a", "b")
    expected = old_methods(store)
    result = measure_checkpoint(checkpoint, CONFIG, store)
    assert result.methods == [*expected] == ["random", "grad-l2"]
    for name, old in expected.items():
        assert [*result.curve(name).values] == old["curve"]["values"]
        assert result.acu(name) == old["acu"]
        assert {test: result.p(name, test) for test in result.tests} == pytest.approx(old["p"])
    assert [file.name for file in store.root.glob("traces/*/*/0-8.parquet")] == ["0-8.parquet"] * 3


def test_the_checkpoint_of_0_2_is_checked(faithmeter, checkpoint) -> None:
    outcome = faithmeter("check", checkpoint, "--limit", 8, "-o", "others")
    assert outcome.code == 0, outcome.err
    assert "Is the model measurable?" in outcome.out


def test_the_measurement_of_0_2_is_named_in_one_line(store, checkpoint, faithmeter) -> None:
    message = r"is a measurement of faithmeter 0\.2, without traces: measure again"
    [file] = store.root.glob(f"measure-*/{RECORD}")
    with pytest.raises(fm.InputError, match=message):
        read_record(file)
    with pytest.warns(DamageWarning, match=f"{message}.*; it is left out"):
        assert [folder for folder, _ in store.records()] == [checkpoint]
    outcome = faithmeter("list", "runs")
    assert outcome.code == 0
    assert "without traces: measure again" in outcome.err


def test_measuring_again_takes_its_place(store, checkpoint, recwarn) -> None:
    measure_checkpoint(checkpoint, CONFIG, store)
    recwarn.clear()
    assert sorted(record.kind for _, record in store.records()) == ["measure", "train"]
    assert not recwarn.list, "nothing of the old format is left"
