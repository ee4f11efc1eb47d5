"""Device discipline, proved on a fake accelerator in a process of its own: see tests/accelerator.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils import backend_registration

from toy import tiny

pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[1]
SETUP = "_setup_privateuseone_for_python_backend"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if not hasattr(backend_registration, SETUP):
        pytest.skip("this version of torch has no backends in Python")
    folder = tmp_path_factory.mktemp("accelerated")
    clf = tiny(dtype=torch.float32)
    clf.model.save_pretrained(folder)
    assert clf.tokenizer is not None
    clf.tokenizer.save_pretrained(folder)
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(TESTS / "accelerator.py"), str(folder)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr  # mixed devices and float64 are errors there
    result: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return result


def test_scores_of_the_accelerator_are_those_of_the_cpu(report: dict[str, Any]) -> None:
    for name, result in report["methods"].items():
        assert result["device"] == "cpu", name
        assert result["error"] < 1e-5, name
    assert report["states"]["error"] < 1e-5


def test_the_host_waits_once_for_all_micro_batches(report: dict[str, Any]) -> None:
    for name, result in report["methods"].items():
        waits = {cause: count for cause, count in result["waits"].items() if cause != "transformers"}
        steps = 7 if name.startswith("beam") else 1  # a token of the longest text is chosen at each
        assert waits == {"copy to the host": steps}, name
        assert result["evaluations"] > steps, name
    assert report["states"]["waits"].get("copy to the host") == 2, "logits and features"


def test_the_first_budget_follows_the_memory_of_the_accelerator(report: dict[str, Any]) -> None:
    assert report["budget"] == 2**24 // 2 // (2 * 16 * 4 * 24)


def test_a_model_is_loaded_to_the_accelerator_and_results_name_it(report: dict[str, Any]) -> None:
    assert report["loaded"]["names"] == [["fake:0", "fp32"], ["cpu", "fp32"], ["fake:0", "fp16"]]
    there, here, low = report["loaded"]["areas"]
    assert there == pytest.approx(here, abs=1e-5)
    assert low == pytest.approx(here, abs=0.05)
