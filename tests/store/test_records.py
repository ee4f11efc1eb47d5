"""Records as typed values: what is undefined, unknown keys, and other formats."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from jsonschema import validate

import faithmeter as fm
from faithmeter.config import MeasureConfig, RoarConfig, TrainConfig
from faithmeter.errors import DamageWarning
from faithmeter.files import write_sealed_json
from faithmeter.store.records import MANIFEST, MANIFEST_FORMAT, RECORD, RoarRecord, read_record, record_schema
from records import train_result
from traces import manifest_values


def test_an_undefined_number_is_null_in_the_file_and_nan_in_the_record(tmp_path: Path) -> None:
    store, config = fm.RunStore(tmp_path), MeasureConfig()
    record = store.put(config, manifest_values(TrainConfig(), {}, agreement=math.nan))
    values = json.loads((store.folder(config) / MANIFEST).read_text())
    assert values["agreement"] is None
    assert values["format"] == MANIFEST_FORMAT
    assert math.isnan(record.agreement)
    assert store.get(config) == record, "nan included"
    assert record.to_dict() == values


def test_a_measurement_of_version_0_2_is_named_as_such(tmp_path: Path) -> None:
    store, config = fm.RunStore(tmp_path), MeasureConfig()
    place = store.folder(config) / RECORD
    write_sealed_json(place, {"format": 1, "kind": "measure", "digest": config.digest})
    with pytest.warns(DamageWarning, match="measurement of faithmeter 0.2.*measure again.* it is left out"):
        assert list(store.records()) == []
    assert store.find(config) is None


def test_the_training_of_every_kind_of_record_has_one_name(tmp_path: Path) -> None:
    store, erased = fm.RunStore(tmp_path), RoarConfig(percent=50)
    own = TrainConfig(data="a.csv", text="t", label="l")
    assert store.put(own, train_result()).trained.task_or_data == "a.csv"
    record = store.put(erased, train_result(plain=0.8))
    assert isinstance(record, RoarRecord)
    assert record.trained == erased
    measured = store.put(MeasureConfig(), manifest_values(erased, {}))
    assert measured.trained == erased


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, r"of format 2, kind train; this version of faithmeter reads format 1: run it again"),
        ({"format": None}, "format None"),
        ({"kind": "distil"}, "kind distil"),
        ({"verdict": "good"}, r"is not a record as .*\(verdict: Extra inputs are not permitted\); run it"),
        ({"rows": {"train": "many"}}, r"rows\.train: Input should be a valid integer"),
    ],
)
def test_a_foreign_record_is_refused_by_itself_and_left_out_of_a_store(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    store, config, other = fm.RunStore(tmp_path), TrainConfig(), TrainConfig(seed=1)
    values = store.put(config, train_result()).to_dict()
    store.put(other, train_result())
    path = store.folder(config) / RECORD
    write_sealed_json(path, values | changes)
    for read in (lambda: read_record(path), lambda: store.get(config), lambda: fm.train(config, store)):
        with pytest.raises(fm.InputError, match=message):
            read()
    with pytest.warns(DamageWarning, match=message + ".* it is left out"):
        assert [folder for folder, _ in store.records()] == [store.folder(other)]
    assert path.exists(), "it is intact: nothing to put aside"


def test_the_schema_describes_the_files(tmp_path: Path) -> None:
    store = fm.RunStore(tmp_path)
    for record in (
        store.put(TrainConfig(), train_result()),
        store.put(RoarConfig(), train_result(plain=0.9)),
        store.put(MeasureConfig(methods=("random",)), manifest_values(TrainConfig(), {})),
    ):
        validate(record.to_dict(), record_schema())
