"""A disk that fills up at fifty moments: one clear line each time, the same results once there is room."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import faithmeter as fm
from faithmeter.config import MeasureConfig

pytestmark = pytest.mark.slow
MOMENTS = 50
SMALLEST, LARGEST = 60, 6000
"""Kilobytes: less than a record, and more than all files of both runs together."""
TRAIN = ("train", "--limit", "32", "--epochs", "2", "--resume")
CONFIG = fm.TrainConfig(limit=32, epochs=2)
TIMES = ("seconds", "finished", "environment", "checksum")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """An empty folder in memory, which `resize` gives room."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SMALLEST}k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs an administrator, who may mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def resize(disk: Path, kilobytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", str(disk)], check=True)


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in TIMES}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def results(store: fm.RunStore) -> dict[str, Any]:
    return {folder.name: timeless(record.to_dict()) for folder, record in store.records()}


def test_a_full_disk_costs_nothing_but_time(faithmeter, disk: Path, tmp_path: Path) -> None:
    def commands(store: Path) -> list[tuple[object, ...]]:
        measure = ("measure", fm.RunStore(store).folder(CONFIG), "-m", "grad-l2", "--limit", "70")
        return [(*TRAIN, "-o", store), (*measure, "-o", store)]

    for command in commands(tmp_path / "whole"):
        assert faithmeter(*command).code == 0
    pending, full = commands(disk / "runs"), 0
    for moment in range(MOMENTS):
        resize(disk, SMALLEST + (LARGEST - SMALLEST) * moment // (MOMENTS - 1))
        while pending:
            outcome = faithmeter(*pending[0])
            if outcome.code == 0:
                del pending[0]
                continue
            full += 1
            assert outcome.code == 2, outcome.err
            assert "Traceback" not in outcome.err
            assert "free some space" in outcome.err
            break
    assert not pending
    assert full > 5
    whole, killed = results(fm.RunStore(tmp_path / "whole")), results(fm.RunStore(disk / "runs"))
    assert killed.keys() == whole.keys()
    for name, record in whole.items():
        assert {**killed[name], "files": {}} == {**record, "files": {}}, name
    assert MeasureConfig.kind in "".join(killed), "both runs are there"
