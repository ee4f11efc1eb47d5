"""Precision of a training: what the device can compute, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import faithmeter as fm
from faithmeter.training import trainer
from faithmeter.training.trainer import cpu_has_bf16, find_precision
from trainings import run

on_cpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


@on_cpu
def test_a_precision_that_the_device_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_precision("auto") == find_precision("fp32") == "fp32"
    with pytest.raises(fm.InputError, match="precision is fp16, and there is no GPU; expected auto, fp32"):
        find_precision("fp16")
    monkeypatch.setattr(trainer, "cpu_has_bf16", lambda: False)
    with pytest.raises(fm.InputError, match="precision is bf16, which this CPU lacks; expected auto or fp32"):
        find_precision("bf16")


def test_looking_for_bf16_draws_no_random_number() -> None:
    state = torch.get_rng_state()
    cpu_has_bf16()
    assert torch.equal(torch.get_rng_state(), state)


@on_cpu
@pytest.mark.skipif(not cpu_has_bf16(), reason="this CPU has no bf16")
def test_a_cpu_trains_in_bf16(config: fm.TrainConfig, tmp_path: Path) -> None:
    result = run(config.replace(precision="bf16", epochs=1, limit=16), tmp_path)
    assert result["precision"] == "bf16"
    assert fm.load(tmp_path).embedding_matrix().dtype == torch.float32
