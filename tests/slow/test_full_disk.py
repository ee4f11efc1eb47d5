"""A disk that is full at 53 random moments: one clear line each time, and the same results in the end."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import faithmeter as fm
from faithmeter.config import MeasureConfig
from faithmeter.data import stories

pytestmark = pytest.mark.slow
MOMENTS = 53
MAX_ROOM = 3000
"""Kilobytes that are free at most when a command begins: more than one checkpoint, less than a training."""
MAX_ATTEMPTS = 60
"""Attempts after which a command should have ended, however little each of them could keep."""
QUESTIONS = 240
DATA = {"data": "stories.csv", "text": "story", "pair": "question", "label": "place"}
CONFIG = fm.TrainConfig(**DATA, limit=32, epochs=2)
OPTIONS = [part for name, value in DATA.items() for part in (f"--{name}", value)]
TRAIN = ("train", *OPTIONS, "--limit", "32", "--epochs", "2", "--resume")
TIMES = ("seconds", "finished", "environment", "checksum")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """An empty folder in memory, to which `leave_room` gives room."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs an administrator, who may mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def leave_room(disk: Path, kilobytes: int) -> None:
    size = shutil.disk_usage(disk).used // 1024 + kilobytes
    subprocess.run(["mount", "-o", f"remount,size={size}k", str(disk)], check=True)


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in TIMES}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def results(store: fm.RunStore) -> dict[str, Any]:
    return {folder.name: timeless(record.to_dict()) for folder, record in store.records()}


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stories in the working directory."""
    monkeypatch.chdir(tmp_path)
    rows = [(q.paragraph, q.question, q.answer) for s in stories.generate(1, QUESTIONS, seed=0) for q in s]
    pd.DataFrame(rows, columns=["story", "question", "place"]).to_csv("stories.csv", index=False)


def test_a_full_disk_costs_nothing_but_time(
    faithmeter, capsys, disk: Path, rows: None, tmp_path: Path
) -> None:
    def commands(store: Path) -> list[tuple[object, ...]]:
        measure = ("measure", fm.RunStore(store).folder(CONFIG), "-m", "grad-l2")
        report = ("report", store, "--page-only", "-o", store / "page" / "report.html")
        return [(*TRAIN, "-o", store), (*measure, "-o", store), report]

    def count_full(command: tuple[object, ...]) -> int:
        """Give a command random room until it ends; return how often the disk was full."""
        for number in range(MAX_ATTEMPTS):
            leave_room(disk, chance.randrange(4, MAX_ROOM))
            outcome = faithmeter(*command)
            if outcome.code == 0:
                return number
            assert outcome.code == 2, outcome.err
            assert "Traceback" not in outcome.err
            assert "free some space" in outcome.err
            with capsys.disabled():
                print(f"full, attempt {number} of {command[0]}", flush=True)
        raise AssertionError(f"no end after {MAX_ATTEMPTS} attempts: {command}")

    for command in commands(tmp_path / "whole"):
        assert faithmeter(*command).code == 0
    whole = results(fm.RunStore(tmp_path / "whole"))
    assert MeasureConfig.kind in "".join(whole), "both runs are there"
    chance, full = random.Random(0), 0
    while full < MOMENTS:
        full += sum(map(count_full, commands(disk / "runs")))
        after = results(fm.RunStore(disk / "runs"))
        assert after.keys() == whole.keys()
        for name, record in whole.items():
            assert {**after[name], "files": {}} == {**record, "files": {}}, name
        assert [path.name for path in (disk / "runs" / "page").iterdir()] == ["report.html"], "nothing half"
        assert (disk / "runs" / "page" / "report.html").read_text().rstrip().endswith("</html>")
        print(f"{full} moments at which the disk was full")
        shutil.rmtree(disk / "runs")
