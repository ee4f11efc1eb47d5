"""Records on disk: whole or not at all, and a finished run is not run again."""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import faithmeter as fm
from faithmeter import files
from faithmeter.errors import DamageWarning
from faithmeter.runs.measured import task_of
from faithmeter.store import run_store as store
from faithmeter.training.inputs import read_inputs
from records import train_result


def test_a_record_is_found_again_by_its_config(tmp_path) -> None:
    runs_folder, config = fm.RunStore(tmp_path), fm.TrainConfig(task="RTE", seed=2)
    assert runs_folder.get(config) is None
    record = runs_folder.put(config, train_result())
    assert runs_folder.get(config) == record
    assert record.config.seed == 2
    assert record.digest == config.digest
    assert record.environment.versions["torch"].startswith("2.")
    assert [folder for folder, _ in runs_folder.records()] == [runs_folder.folder(config)]


def test_the_folder_name_is_readable_and_safe(tmp_path) -> None:
    folder = fm.RunStore(tmp_path).folder(fm.TrainConfig(data="/some where/rëviews.csv"))
    assert folder.parent == tmp_path
    assert folder.name.startswith("train-rëviews.csv-half-0-")


def test_a_full_disk_leaves_the_old_record(tmp_path, monkeypatch) -> None:
    path = tmp_path / "record.json"
    files.write_json(path, {"old": 1})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(fm.InputError, match=r"No space.*free some space"):
        files.write_json(path, {"new": 2})
    assert json.loads(path.read_text()) == {"old": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["record.json"], "no half-written file stays behind"


def test_a_broken_record_is_named(tmp_path) -> None:
    runs_folder, config = fm.RunStore(tmp_path), fm.TrainConfig()
    runs_folder.put(config, train_result())
    (runs_folder.folder(config) / "record.json").write_text('{"config": ')
    with pytest.warns(UserWarning, match=r"record\.json is not readable.*put aside"):
        assert runs_folder.get(config) is None
    assert not runs_folder.folder(config).exists()
    [aside] = (tmp_path / "quarantine").iterdir()
    assert aside.name.startswith(f"{runs_folder.folder(config).name}-")


def test_a_finished_run_is_not_run_again(tmp_path) -> None:
    runs_folder, config = fm.RunStore(tmp_path), fm.TrainConfig(limit=8)
    inputs = read_inputs(config, task_of(config))
    record = runs_folder.put(config, train_result(splits=inputs["splits"], encoder=inputs["encoder"]))
    assert fm.train(config, runs_folder) == record


def test_an_unfinished_run_is_neither_lost_nor_mixed_up(tmp_path) -> None:
    runs_folder, config = fm.RunStore(tmp_path), fm.TrainConfig()
    (runs_folder.folder(config) / "trainer" / "checkpoint-5").mkdir(parents=True)
    with pytest.raises(fm.InputError, match="unfinished run; add --resume to continue or --restart"):
        fm.train(config, runs_folder)
    assert (runs_folder.folder(config) / "trainer" / "checkpoint-5").exists()


@pytest.mark.parametrize("missing", ["text", "label"])
def test_own_data_needs_its_columns(missing: str) -> None:
    columns = {"text": "review", "label": "stars"} | {missing: ""}
    with pytest.raises(fm.InputError, match=f"requires --{missing}"):
        task_of(fm.TrainConfig(data="reviews.csv", **columns))


def test_outside_a_checkout_there_is_no_commit(monkeypatch) -> None:
    monkeypatch.setattr(store, "__file__", str(Path("/nowhere/store.py")))
    assert store.environment()["commit"] is None


def test_what_is_undefined_is_null_in_json(tmp_path) -> None:
    files.write_json(tmp_path / "x.json", {"racu": float("nan"), 30: (1, [float("inf")])})
    assert json.loads((tmp_path / "x.json").read_text()) == {"racu": None, "30": [1, [None]]}


def test_a_flipped_bit_is_noticed_wherever_it_is(tmp_path) -> None:
    """The record, and every file that lay beside it when it was written."""
    runs_folder, config = fm.RunStore(tmp_path), fm.TrainConfig()
    for broken in ("record.json", "model.safetensors"):
        folder = runs_folder.folder(config)
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"weights")
        runs_folder.put(config, train_result(threshold=0.75))
        assert runs_folder.get(config) is not None
        content = (folder / broken).read_bytes()
        (folder / broken).write_bytes(content.replace(b"0.75", b"0.85").replace(b"weights", b"weighty"))
        with pytest.warns(UserWarning, match=rf"{broken} is not .*put aside as .*quarantine"):
            assert runs_folder.get(config) is None
        assert not folder.exists()
    assert len(list((tmp_path / "quarantine").iterdir())) == 2, "the second does not replace the first"
    assert list(runs_folder.records()) == []


def test_a_missing_file_and_a_later_model_card(tmp_path) -> None:
    runs_folder, config = fm.RunStore(tmp_path), fm.TrainConfig()
    folder = runs_folder.folder(config)
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    runs_folder.put(config, train_result())
    (folder / "README.md").write_text("written later")
    assert runs_folder.get(config) is not None
    (folder / "config.json").unlink()
    assert runs_folder.peek(config) is not None, "looks at the record only"
    with pytest.warns(UserWarning, match=r"config\.json is missing"):
        assert runs_folder.get(config) is None


HOLD = """
import sys, time
from faithmeter.config import TrainConfig
from faithmeter.store.run_store import RunStore
with RunStore(sys.argv[1]).claim(TrainConfig()):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_run_that_another_process_works_on_is_left_to_it_until_it_is_killed(tmp_path) -> None:
    runs_folder, config = fm.RunStore(tmp_path), fm.TrainConfig()
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(store.Busy, match="another process is working on"):
            fm.train(config, runs_folder)
        with runs_folder.claim(fm.TrainConfig(seed=1)):
            pass  # another run is free
        process.kill()
    with runs_folder.claim(config):
        pass


def test_writers_of_different_runs_do_not_disturb_each_other(tmp_path) -> None:
    script = """
import sys
from faithmeter.config import TrainConfig
from faithmeter.store.run_store import RunStore
from records import train_result
store = RunStore(sys.argv[1])
for seed in range(int(sys.argv[2]), 40, 2):
    store.put(TrainConfig(seed=seed), train_result(threshold=seed))
"""
    here = Path(__file__).parents[1]  # where `records` is
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path), str(n)], cwd=here) for n in (0, 1)
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert sorted(record.threshold for _, record in fm.RunStore(tmp_path).records()) == list(range(40))


@pytest.mark.parametrize("letter", ["a", "é", "全"])
def test_the_folder_of_a_long_name_can_be_created(tmp_path, letter) -> None:
    folder = fm.RunStore(tmp_path).folder(fm.TrainConfig(data=250 * letter + ".csv"))
    folder.mkdir(parents=True)
    assert folder.name.startswith(f"train-{letter}{letter}")


def test_of_a_copied_folder_the_one_with_its_own_name_counts(tmp_path) -> None:
    runs_folder, config = fm.RunStore(tmp_path), fm.TrainConfig()
    runs_folder.put(config, train_result())
    folder = runs_folder.folder(config)
    for name in ("a copy", "z copy"):
        shutil.copytree(folder, tmp_path / name)
    with pytest.warns(DamageWarning, match=f"a copy is a copy of {folder}; it is left out"):
        assert [place for place, _ in runs_folder.records()] == [folder]
    with pytest.warns(DamageWarning, match="z copy is a copy of"):
        assert set(runs_folder.frame("train")["folder"]) == {str(folder)}


def test_one_bad_folder_blocks_nothing(tmp_path) -> None:
    """Damaged, of another program, half deleted, or a record that is a folder."""
    runs_folder, config = fm.RunStore(tmp_path), fm.TrainConfig()
    runs_folder.put(config, train_result())
    for name, content in (("another program", "{}"), ("no json", "\xff\x00"), ("list", "[1]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "record.json").write_text(content)
    (tmp_path / "folder" / "record.json").mkdir(parents=True)
    (tmp_path / "half" / "trainer").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.warns(DamageWarning, match="another program/record.json .* it is left out"):
        assert [place for place, _ in runs_folder.records()] == [runs_folder.folder(config)]
    assert (tmp_path / "another program").exists(), "what is not named as a run is not moved"


def test_the_same_damage_twice_is_put_aside_once(tmp_path) -> None:
    runs_folder, config = fm.RunStore(tmp_path), fm.TrainConfig()
    for content in ("{", "{", "["):
        runs_folder.put(config, train_result())
        (runs_folder.folder(config) / "record.json").write_text(content)
        with pytest.warns(DamageWarning, match="put aside as"):
            assert runs_folder.get(config) is None
    assert len(list((tmp_path / "quarantine").iterdir())) == 2


def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be created, moved or deleted; permissions would not stop an administrator."""

    def refuse(path: object, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    for name in ("mkdir", "rename", "replace", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, refuse)
    opened = os.open
    monkeypatch.setattr(
        os,
        "open",
        lambda path, flags, *more: refuse(path) if flags & os.O_CREAT else opened(path, flags, *more),
    )


def test_a_store_that_can_only_be_read_gives_its_results(tmp_path, monkeypatch) -> None:
    runs_folder, config, broken = fm.RunStore(tmp_path), fm.TrainConfig(limit=8), fm.TrainConfig(seed=1)
    inputs = read_inputs(config, task_of(config))
    record = runs_folder.put(config, train_result(splits=inputs["splits"], encoder=inputs["encoder"]))
    runs_folder.put(broken, train_result())
    (runs_folder.folder(broken) / "record.json").write_text("{")
    read_only(monkeypatch)
    assert fm.train(config, runs_folder) == record
    with pytest.warns(DamageWarning, match="it is left out, as it could not be put aside: Read-only"):
        assert len(list(runs_folder.records())) == 1
    with pytest.raises(fm.InputError, match=r"cannot write to .*Read-only file system; "):
        fm.train(fm.TrainConfig(seed=2), runs_folder)


def test_runs_at_work_are_listed_with_their_host(tmp_path) -> None:
    runs_folder, config = fm.RunStore(tmp_path), fm.TrainConfig()
    assert runs_folder.running() == []
    with runs_folder.claim(config):
        [note] = runs_folder.running()
        assert note["run"] == runs_folder.folder(config).name
        assert (note["host"], note["process"]) == (platform.node(), os.getpid())
    assert runs_folder.running() == []
    stale = tmp_path / "locks" / "train-a.json"
    stale.write_text('{"run": "train-a"}')
    assert runs_folder.running() == [], "its process was killed"
    assert not stale.exists()


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOLCK, "No locks"), NotImplementedError(), UserWarning("flock not supported on this …")],
)
def test_a_file_system_without_locks_is_told(tmp_path, monkeypatch, error: Exception) -> None:
    def acquire(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(store.FileLock, "acquire", acquire)
    with (
        pytest.raises(fm.InputError, match="has no locks, by which processes share"),
        fm.RunStore(tmp_path).lock("a"),
    ):
        pass
