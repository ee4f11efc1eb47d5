"""Scripts that kill commands and damage files, shortly: they still run, and find nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ("scripts/kill_runs.py", "--kills", "1"),
        ("benchmarks/flip_bits.py", "--flips", "60"),  # each kind of file at least once
    ],
    ids=lambda arguments: arguments[0],
)
def test_nothing_is_lost_and_no_damage_is_overlooked(arguments: tuple[str, ...]) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
