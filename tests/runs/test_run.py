"""Runs that build on others: damaged files are not built on, and a kill costs only what it undid."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from transformers import TrainerCallback

import faithmeter as fm
import fixtures_report as made_up
from faithmeter.config import MeasureConfig, RoarConfig
from faithmeter.errors import DamageWarning
from faithmeter.files import seal, write_json
from faithmeter.paper import roar
from faithmeter.report import page as report
from faithmeter.runs import run as runs
from faithmeter.runs.measurements import measure_checkpoint
from faithmeter.store.run_store import Unready

SMALL: dict[str, Any] = {"limit": 32, "epochs": 2, "strategy": "none", "validation": "unmasked"}
PLAIN = fm.TrainConfig(**SMALL)


class Killed(TrainerCallback):
    """In the second epoch, when the first is saved."""

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == 3:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> fm.RunStore:
    """A store with one training, whose first session was killed: it took 1000 s, as its log says."""
    store = fm.RunStore(tmp_path_factory.mktemp("runs"))
    with pytest.raises(KeyboardInterrupt):
        runs.train(PLAIN, store, callbacks=[Killed()])
    [state] = store.folder(PLAIN).glob("trainer/checkpoint-*/trainer_state.json")
    said = json.loads(state.read_text())
    [spent] = [line for line in said["log_history"] if "seconds_spent" in line]
    assert 0 < spent["seconds_spent"] < 600
    spent["seconds_spent"] = 1000.0
    state.write_text(json.dumps(said))
    seal(state.parent)
    runs.train(PLAIN, store, resume=True)
    return store


def copy(store: fm.RunStore, folder: Path) -> fm.RunStore:
    shutil.copytree(store.root, folder)
    return fm.RunStore(folder)


def test_a_resumed_training_remembers_what_the_sessions_before_took(plain: fm.RunStore) -> None:
    record = plain.get(PLAIN)
    assert record is not None
    assert 1000 < record.seconds["train"] < 1600
    assert record.seconds["load"] < 600, "what is done again in each session counts once"
    assert [epoch.epoch for epoch in record.epochs] == [1, 2]


def rot(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)


def test_a_damaged_checkpoint_is_put_aside_and_not_measured(plain: fm.RunStore, tmp_path: Path) -> None:
    store = copy(plain, tmp_path / "runs")
    folder = store.folder(PLAIN)
    rot(folder / "model.safetensors")
    with (
        pytest.warns(DamageWarning, match=r"model\.safetensors is not as it was written; put aside"),
        pytest.raises(Unready, match="was damaged and is put aside; train it again"),
    ):
        measure_checkpoint(folder, MeasureConfig(methods=("grad-l2",)), store)
    assert not folder.exists()
    assert not list(store.root.glob("measure-*"))


def test_a_damaged_checkpoint_elsewhere_is_refused_and_left_there(plain: fm.RunStore, tmp_path: Path) -> None:
    folder = copy(plain, tmp_path / "runs").folder(PLAIN)
    rot(folder / "model.safetensors")
    with pytest.raises(fm.InputError, match=r"model\.safetensors is not as it was written; copy"):
        measure_checkpoint(folder, MeasureConfig(methods=("grad-l2",)), fm.RunStore(tmp_path / "others"))
    assert folder.exists()


def test_weights_that_are_not_those_of_the_record_are_refused(plain: fm.RunStore, tmp_path: Path) -> None:
    """Files as written, but not what the record tells of: its measurement would have another name."""
    store = copy(plain, tmp_path / "runs")
    record = store.get(PLAIN)
    assert record is not None
    store.put(PLAIN, {**record.to_dict(), "fingerprint": "another"})
    with pytest.raises(fm.InputError, match="its record expects another: train it again"):
        measure_checkpoint(store.folder(PLAIN), MeasureConfig(methods=("grad-l2",)), store)


def test_roar_explains_once_though_it_is_killed(plain: fm.RunStore, tmp_path: Path, monkeypatch) -> None:
    store, config = copy(plain, tmp_path / "runs"), RoarConfig(**SMALL, percent=50, step=50)
    moved: list[tuple[str, int, int]] = []
    with pytest.raises(KeyboardInterrupt):
        roar.roar(config, store, callbacks=[Killed()], progress=lambda *done: moved.append(done))
    assert moved[0] == ("explain", 0, 96)
    assert moved[-1] == ("explain", 96, 96), "all rows of all splits"
    file = store.folder(config) / roar.ERASED
    before = file.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(roar, "erase_splits", lambda *_, **__: pytest.fail("explained again"))
        record = roar.roar(config, store)
    assert file.read_bytes() == before
    assert record.seconds["explain"] > 0
    assert roar.ERASED in record.files


def test_what_another_model_erased_is_erased_again(tmp_path: Path) -> None:
    erased = {"train": [[0, 2], []], "test": [[1]]}
    assert roar.stored_positions(tmp_path / "run", "one", lambda: erased)[0] == erased
    assert roar.read_positions(tmp_path / "run") == erased
    assert roar.stored_positions(tmp_path / "run", "one", lambda: {})[0] == erased
    (tmp_path / "run" / "trainer" / "checkpoint-3").mkdir()
    assert roar.stored_positions(tmp_path / "run", "other", lambda: {"train": [[1]]})[0] == {"train": [[1]]}
    assert not (tmp_path / "run" / "trainer" / "checkpoint-3").exists(), (
        "it was trained on what the first one erased"
    )
    assert roar.read_positions(tmp_path / "none") == {}
    sums = tmp_path / "run" / f".{roar.ERASED}.sha256"
    sums.write_text(sums.read_text().replace(roar.ERASED, "erazed.parquet"))
    with pytest.raises(fm.InputError, match=r"erased\.parquet is not as it was written; delete"):
        roar.read_positions(tmp_path / "run")


@pytest.mark.parametrize("name", ["texts/0-2.parquet", "random-*/0-2.parquet"])
@pytest.mark.parametrize("damage", ["cut", "rewritten", "missing"])
def test_a_report_uses_nothing_of_a_damaged_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, damage: str
) -> None:
    monkeypatch.setattr("faithmeter.report.figures.FIGURES", {})
    store = fm.RunStore(tmp_path)
    texts = [{"text": "Mary is here.", "label": 0}, {"text": "John is not.", "label": 1}]
    made_up.measure(store, made_up.train(store), texts, {"grad-l2": 0.4, "random": 0.0})
    [file] = store.root.glob(f"traces/*/{name}")
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    elif damage == "rewritten":
        write_json(file, "as good as any")
    else:
        file.unlink()
    with pytest.warns(DamageWarning, match=r"measure again, which computes what is missing; it is left out"):
        done = report.write(store, tmp_path / "report.html")
    assert "trained but not measured" in done.answers[0].text
    assert not file.exists()
