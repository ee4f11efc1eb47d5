"""SIGKILL in the middle of an epoch, then --resume: the same metrics as if nothing had happened."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
TRAIN = ["train", "--task", "bAbI-1", "--limit", "640", "--epochs", "4", "--learning-rate", "1e-3", "--json"]


def command(store: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "faithmeter", *TRAIN, "-o", str(store), *more]


def outcome(store: Path, *more: str) -> dict[str, object]:
    done = subprocess.run(command(store, *more), capture_output=True, text=True, check=True)
    record = json.loads(done.stdout)
    return {key: record[key] for key in ("epochs", "best_epoch", "test", "majority", "splits")}


def kill_after_checkpoint(store: Path, count: int) -> None:
    """Kill the training half a second after it has written its `count`-th checkpoint, in the next epoch."""
    process = subprocess.Popen(command(store, "--resume"), stdout=subprocess.DEVNULL, start_new_session=True)
    seen: set[str] = set()
    while len(seen) < count:
        assert process.poll() is None, "it ended before it could be killed"
        seen |= {path.parent.name for path in store.glob("*/trainer/checkpoint-*/trainer_state.json")}
        time.sleep(0.02)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_killed_trainings_resume_to_the_same_metrics(tmp_path) -> None:
    whole = outcome(tmp_path / "whole")
    kill_after_checkpoint(tmp_path / "killed", 1)
    assert not list((tmp_path / "killed").glob("*/record.json"))
    assert outcome(tmp_path / "killed", "--resume") == whole


def test_a_second_kill_changes_nothing(tmp_path) -> None:
    whole = outcome(tmp_path / "whole")
    kill_after_checkpoint(tmp_path / "killed", 1)
    kill_after_checkpoint(tmp_path / "killed", 2)
    assert outcome(tmp_path / "killed", "--resume") == whole
