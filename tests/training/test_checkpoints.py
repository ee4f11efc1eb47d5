"""Trainings that are resumed: from intact checkpoints, with the same inputs, to the best epoch."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import TrainerState

import faithmeter as fm
from faithmeter.errors import DamageWarning
from faithmeter.files import intact, seal
from faithmeter.training import UNFINISHED
from faithmeter.training.checkpoints import last_checkpoint
from trainings import Interrupt, equal, run, weights


def changed(config: fm.TrainConfig, **changes: object) -> fm.TrainConfig:
    return fm.TrainConfig.from_dict({**config.to_dict(), **changes})


@pytest.fixture(scope="module")
def best_first(config: fm.TrainConfig) -> fm.TrainConfig:
    """The first epoch stays the best: nothing is learned, so all are equally good, but weights decay."""
    return changed(config, learning_rate=1e-6, limit=16)  # two steps in an epoch


@pytest.fixture(scope="module")
def short(config: fm.TrainConfig) -> fm.TrainConfig:
    return changed(config, epochs=2, limit=16)


Whole = tuple[dict[str, Any], Path]
"""Result and folder of a training that nothing interrupted."""


@pytest.fixture(scope="module")
def whole_best_first(best_first: fm.TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    return run(best_first, folder), folder


@pytest.fixture(scope="module")
def whole_short(short: fm.TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    return run(short, folder), folder


def flip(file: Path, byte: int = -5) -> None:
    content = bytearray(file.read_bytes())
    content[byte] ^= 1
    file.write_bytes(content)


def made_up(folder: Path, *steps: int, best: int) -> None:
    for step in steps:
        checkpoint = folder / f"checkpoint-{step}"
        checkpoint.mkdir(parents=True)
        (checkpoint / "model.safetensors").write_bytes(b"weights")
        (checkpoint / "trainer_state.json").write_text(json.dumps({"best_global_step": min(best, step)}))
        seal(checkpoint)


class AfterSave(Interrupt):
    """Interrupts after the checkpoint of a step was saved."""

    def on_step_end(self, *_: object, **__: object) -> None:
        pass

    def on_save(self, args: object, state: TrainerState, control: object, **_: object) -> None:
        if state.global_step == self.step:
            raise KeyboardInterrupt


def interrupted(config: fm.TrainConfig, folder: Path, moment: Interrupt) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(config, folder, callbacks=[moment])


@pytest.mark.parametrize("way", ["moved", "from another working directory"])
@pytest.mark.parametrize("moment", [Interrupt(5), AfterSave(6)], ids=["in the last epoch", "after its save"])
def test_the_best_epoch_is_saved_though_the_store_was_moved(
    best_first: fm.TrainConfig,
    whole_best_first: Whole,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    moment: Interrupt,
) -> None:
    whole, whole_folder = whole_best_first
    assert whole["best_epoch"] == 1
    monkeypatch.chdir(tmp_path)
    interrupted(best_first, Path("killed"), moment)
    if way == "moved":
        shutil.move("killed", "elsewhere")
        folder = Path("elsewhere")
    else:
        (tmp_path / "work").mkdir()
        os.chdir(tmp_path / "work")
        folder = Path("../killed")
    resumed = run(best_first, folder, resume=True)
    assert resumed["best_epoch"] == 1
    assert equal(weights(folder), weights(whole_folder))
    assert resumed["fingerprint"] == whole["fingerprint"]


def test_a_training_does_not_end_without_its_best_epoch(best_first: fm.TrainConfig, tmp_path: Path) -> None:
    class Thief(Interrupt):
        def on_step_end(self, args, state, control, **_) -> None:  # type: ignore[no-untyped-def]
            if state.global_step == self.step:
                shutil.rmtree(Path(args.output_dir) / f"checkpoint-{state.best_global_step}")

    with pytest.raises(fm.InputError, match=r"the best epoch \(step 2\) is missing or damaged"):
        run(best_first, tmp_path, callbacks=[Thief(5)])
    assert not (tmp_path / "model.safetensors").exists()


def test_only_intact_checkpoints_with_an_intact_best_one_are_gone_on_from(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path) is None
    made_up(tmp_path, 6, 12, 18, 24, 30, best=12)
    (tmp_path / "checkpoint-30" / "SHA256SUMS").unlink()  # a kill while it was written
    (tmp_path / "checkpoint-24" / "model.safetensors").unlink()  # a kill while it was deleted
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert last_checkpoint(tmp_path) == tmp_path / "checkpoint-18"
    flip(tmp_path / "checkpoint-18" / "trainer_state.json")
    with pytest.warns(DamageWarning, match=r"trainer_state\.json\) is not as it was written; put aside as"):
        assert last_checkpoint(tmp_path) == tmp_path / "checkpoint-12"
    assert (tmp_path / "damaged-checkpoint-18").exists()


def test_without_the_best_one_training_begins_anew(tmp_path: Path) -> None:
    made_up(tmp_path, 6, 12, best=6)
    shutil.rmtree(tmp_path / "checkpoint-6")
    assert last_checkpoint(tmp_path) is None


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.pt"])
def test_a_flipped_bit_in_a_checkpoint_changes_no_digit(
    short: fm.TrainConfig, whole_short: Whole, tmp_path: Path, name: str
) -> None:
    whole, _ = whole_short
    interrupted(short, tmp_path / "killed", Interrupt(3))
    flip(tmp_path / "killed" / UNFINISHED / "checkpoint-2" / name, 40)
    with pytest.warns(DamageWarning, match=f"{name}.*put aside as damaged-checkpoint-2"):
        resumed = run(short, tmp_path / "killed", resume=True)
    assert resumed["epochs"] == whole["epochs"]
    assert resumed["fingerprint"] == whole["fingerprint"]


@pytest.mark.parametrize("what", ["rows (train", "encoder"])
def test_a_run_does_not_go_on_with_other_inputs(config: fm.TrainConfig, tmp_path: Path, what: str) -> None:
    data, model = tmp_path / "reviews.csv", tmp_path / "encoder"
    shutil.copy(config.data, data)
    shutil.copytree(config.model, model)
    own = changed(config, data=str(data), model=str(model), limit=16)
    interrupted(own, tmp_path / "run", Interrupt(3))
    if what == "encoder":
        tensors = load_file(model / "model.safetensors")
        tensors["roberta.embeddings.word_embeddings.weight"] += 0.5
        save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})
    else:
        text = data.read_text()
        data.write_text(text.replace(",pos", ",x").replace(",neg", ",pos").replace(",x", ",neg"))
    with pytest.raises(fm.InputError, match="began with other inputs; changed:") as error:
        run(own, tmp_path / "run", resume=True)
    assert what in str(error.value)
    assert list((tmp_path / "run" / UNFINISHED).glob("checkpoint-*")), "nothing is lost"


def test_a_run_whose_start_is_damaged_begins_anew(
    short: fm.TrainConfig, whole_short: Whole, tmp_path: Path
) -> None:
    whole, _ = whole_short
    interrupted(short, tmp_path / "killed", Interrupt(3))
    flip(tmp_path / "killed" / UNFINISHED / "start.json", 30)
    with pytest.warns(DamageWarning, match="the training starts over"):
        assert run(short, tmp_path / "killed", resume=True)["fingerprint"] == whole["fingerprint"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_training_that_diverges_is_an_error_and_no_result(config: fm.TrainConfig, tmp_path: Path) -> None:
    class Explosion(Interrupt):
        def on_step_end(self, args, state, control, model, **_) -> None:  # type: ignore[no-untyped-def]
            if state.global_step == self.step:
                torch.nn.init.constant_(model.classifier.out_proj.weight, float("nan"))

    short = changed(config, limit=16)
    for step, name in ((3, "loss"), (2, "eval_loss")):  # in an epoch, and at the very end of one
        folder = tmp_path / name
        with pytest.raises(fm.InputError, match=rf"the training diverged: {name} not finite in epoch"):
            run(short, folder, callbacks=[Explosion(step)])
        assert not (folder / "model.safetensors").exists()
        assert all(intact(path) for path in folder.glob("trainer/checkpoint-*"))


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534"),
        RuntimeError("basic_ios::clear: iostream error"),
    ],
)
def test_a_full_disk_is_one_line_and_loses_no_finished_epoch(
    short: fm.TrainConfig,
    whole_short: Whole,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    """The disk is full at the end of the second epoch; torch hides the error number of that."""
    whole, _ = whole_short
    save = torch.save

    def save_or_fail(value: object, path: object, *rest: object, **options: object) -> None:
        if "checkpoint-4" in str(path) and str(path).endswith("optimizer.pt"):
            raise error
        save(value, path, *rest, **options)

    monkeypatch.setattr(torch, "save", save_or_fail)
    with pytest.raises(fm.InputError, match=r"cannot write to .*: No space left on device; free some space"):
        run(short, tmp_path / "full")
    monkeypatch.undo()
    resumed = run(short, tmp_path / "full", resume=True)
    assert resumed["fingerprint"] == whole["fingerprint"]
