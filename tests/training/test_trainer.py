"""Precision of a training: what the device can compute, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import faithmeter as fm
from faithmeter.models import devices
from faithmeter.training.trainer import find_precision
from trainings import run

on_cpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


@on_cpu
def test_a_precision_that_the_device_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cpu_features", lambda: {"avx2"})
    assert find_precision("auto") == find_precision("fp32") == "fp32"
    for precision in ("fp16", "bf16"):
        with pytest.raises(fm.InputError, match=f"precision is {precision}, which this CPU does not"):
            find_precision(precision)


def test_a_gpu_trains_in_bf16_if_it_has_it_and_in_fp16_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for has_bf16, expected in ((True, "bf16"), (False, "fp16")):
        monkeypatch.setattr(
            torch.cuda, "is_bf16_supported", lambda including_emulation, answer=has_bf16: answer
        )
        assert find_precision("auto") == expected
        assert find_precision("fp32") == "fp32"


@on_cpu
def test_a_cpu_trains_in_bf16(
    config: fm.TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "cpu_features", lambda: {"avx512_bf16"})
    result = run(config.replace(precision="bf16", epochs=1, limit=16), tmp_path)
    assert result["precision"] == "bf16"
    assert fm.load(tmp_path).embedding_matrix().dtype == torch.float32
