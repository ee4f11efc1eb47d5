"""Rows are read once for as long as their files stay as they are, and again when they change."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest

import faithmeter as fm
from faithmeter.config import MeasureConfig, TrainConfig
from faithmeter.data import splits, stories, table_files
from faithmeter.files import CLOCK_TICK_NS
from faithmeter.runs import run
from faithmeter.runs.measurements import measure_checkpoint
from faithmeter.store.run_store import RunStore
from fixtures_tasks import write_stories


def settle() -> None:
    """Wait until the files that were just written are older than a tick of the clock."""
    time.sleep(2 * CLOCK_TICK_NS / 1e9)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was read, by name."""
    counts: Counter[str] = Counter()
    lines = table_files.lines

    def count(path: Path):
        counts[path.name] += 1
        return lines(path)

    monkeypatch.setattr(table_files, "lines", count)
    splits._load.cache_clear()
    return counts


def write_official(folder: Path) -> list[str]:
    """Write small files named like the official ones of bAbI-1."""
    names = fm.task("bAbI-1").files.names
    for name, seed in zip(names, (1, 2), strict=True):
        write_stories(stories.generate(1, 120, seed=seed), folder / name)
    settle()
    return list(names)


def test_a_training_and_a_measurement_read_each_file_once(tmp_path: Path, reads: Counter[str]) -> None:
    names = write_official(tmp_path)
    config = TrainConfig(task="bAbI-1", data_dir=str(tmp_path), epochs=1)
    store = RunStore(tmp_path / "runs")
    run.train(config, store)
    assert reads == dict.fromkeys(names, 1)
    splits._load.cache_clear()
    reads.clear()
    measure_checkpoint(store.folder(config), MeasureConfig(methods=("grad-l2",), limit=8), store)
    assert reads == dict.fromkeys(names, 1)


def test_own_files_are_read_once_for_labels_and_once_for_rows(tmp_path: Path, reads: Counter[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t,l\n" + "".join(f"text {n},{n % 2}\n" for n in range(20)))
    settle()
    for _ in range(3):
        assert len(fm.own_task(path, text="t", label="l").load()["train"]) == 16
    assert reads == {"a.csv": 2}


@pytest.mark.parametrize("wait", [False, True])
def test_a_changed_file_is_read_again(tmp_path: Path, wait: bool) -> None:
    """Even if size and time stay the same, and even within one tick of the file system's clock."""
    path = tmp_path / "a.csv"
    text = "t,l\n" + "".join(f"text {n % 10},{n % 2}\n" for n in range(20))
    for word in ("text", "tent", "test"):
        path.write_text(text.replace("text", word))
        os.utime(path, (1, 1))
        if wait:
            settle()
        assert word in fm.own_task(path, text="t", label="l").load()["test"][0]["text"]


def test_a_caller_cannot_change_the_splits_of_another(tmp_path: Path) -> None:
    write_official(tmp_path)
    task = fm.task("bAbI-1", tmp_path)
    del task.load()["test"]
    assert list(task.load()) == ["train", "validation", "test"]
