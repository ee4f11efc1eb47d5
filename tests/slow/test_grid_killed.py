"""Grids as processes: killed at ten random moments, or shared by two workers, the records end the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import faithmeter as fm

pytestmark = pytest.mark.slow
GRID = """
tasks = ["bAbI-1"]
models = ["embedded"]
seeds = [0, 1]
strategies = ["half/both", "none/unmasked"]
[train]
epochs = 3
learning_rate = 1e-3
limit = 320
[measure]
strategies = ["half/both"]
methods = ["grad-l2", "loo-sign"]
limit = 150
[roar]
methods = ["grad-l2"]
step = 50
"""
KILLS = 10
MOMENTS = (4, 14)
"""Seconds; what is done in them, after a start of about five, is a tenth of the whole at most."""
OWN = ("seconds", "finished", "environment", "checksum")
"""What says when, where and how long."""


def start(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "faithmeter", "grid", "grid.toml", "-o", "runs"]
    return subprocess.Popen(command, cwd=folder, start_new_session=True, stderr=subprocess.DEVNULL)


def records(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.name: record.to_dict() for path, record in fm.RunStore(folder / "runs").records()}


def timeless(value: Any) -> Any:
    """Without durations, wherever they are."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in OWN}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def test_a_grid_killed_ten_times_ends_with_the_same_records(tmp_path: Path) -> None:
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "grid.toml").write_text(GRID)
    assert start(tmp_path / "whole").wait() == 0
    chance = random.Random(0)
    finished: dict[str, str] = {}
    for _ in range(KILLS):
        process = start(tmp_path / "killed")
        time.sleep(chance.uniform(*MOMENTS))
        assert process.poll() is None, "all was done before all kills: make the moments earlier"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        now = {name: record["finished"] for name, record in records(tmp_path / "killed").items()}
        assert finished.items() <= now.items(), "what had finished was not run again"
        finished = now
    assert start(tmp_path / "killed").wait() == 0
    whole, killed = records(tmp_path / "whole"), records(tmp_path / "killed")
    assert {name: killed[name]["finished"] for name in finished} == finished
    assert killed.keys() == whole.keys()
    assert len(whole) == 2 * (2 + 1 + 4)
    for name, record in whole.items():
        assert timeless(killed[name]) == timeless(record), name
    assert not list((tmp_path / "killed" / "runs").glob("quarantine/*"))


def test_two_workers_try_a_failing_run_once_and_one_process_sums_up(tmp_path: Path) -> None:
    bad = GRID.partition("[measure]")[0].replace("embedded", "no/such/model")
    (tmp_path / "grid.toml").write_text(f"workers = 2\n{bad}")
    command = [sys.executable, "-m", "faithmeter", "grid", "grid.toml", "-o", "runs"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    for seed in (0, 1):
        for pair in ("half/both", "none/unmasked"):
            assert done.stderr.count(f"failed: train bAbI-1 model {pair} seed {seed}") == 1, done.stderr
    summary, *failed = done.stdout.splitlines()
    assert summary.startswith("4 runs: 4 failed; ")
    assert len(failed) == 4
    assert all("no/such/model" in line and "traceback in runs/failures" in line for line in failed)


def children(process: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to see children")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_grid_leaves_no_workers(tmp_path: Path, number: int) -> None:
    (tmp_path / "grid.toml").write_text(f"workers = 2\n{GRID}")
    grid = start(tmp_path)
    while len(workers := children(grid.pid)) < 2 or not list(tmp_path.glob("runs/*/trainer")):
        assert grid.poll() is None
        time.sleep(0.1)
    os.kill(grid.pid, number)
    grid.wait()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "a worker goes on without its parent"
        time.sleep(0.1)
