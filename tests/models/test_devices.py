"""Devices and precisions: what is here is found, what is not is refused in one line, results name both."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import faithmeter as fm
from faithmeter.errors import InputError
from faithmeter.models import devices
from faithmeter.models.devices import CPU_BUDGET, find_device, require_precision, supports, token_budget
from faithmeter.models.evaluator import Evaluator
from toy import ARCHITECTURES, MASK, encoder, rows_batch, tiny

CPU = torch.device("cpu")


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two GPUs, as far as names go."""
    here = {"is_available": lambda: True, "current_accelerator": lambda: torch.device("cuda")}
    there = SimpleNamespace(**here, device_count=lambda: 2)
    monkeypatch.setattr(torch, "accelerator", there, raising=False)


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = SimpleNamespace(is_available=lambda: False)
    monkeypatch.setattr(torch, "accelerator", nothing, raising=False)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A saved classifier in float32."""
    clf = tiny(dtype=torch.float32)
    clf.model.save_pretrained(tmp_path)
    assert clf.tokenizer is not None
    clf.tokenizer.save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("no_gpu")
def test_without_an_accelerator_everything_is_on_the_cpu() -> None:
    assert find_device() == find_device("auto") == find_device("cpu") == find_device(CPU) == CPU
    for name in ("cuda", "cuda:1", "mps", "xpu"):
        with pytest.raises(InputError, match=f"device '{name}' is not available here; expected auto, cpu: "):
            find_device(name)


@pytest.mark.usefixtures("two_gpus")
def test_an_accelerator_is_taken_by_itself_and_by_its_number() -> None:
    assert find_device("auto") == find_device("cuda") == torch.device("cuda")
    assert find_device("cuda:1") == torch.device("cuda", 1)
    assert find_device("cpu") == CPU
    for name in ("cuda:2", "mps"):
        with pytest.raises(InputError, match=f"'{name}' is not available here; expected auto, cpu, cuda:0"):
            find_device(name)


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "", "cuda:-1"])
def test_a_name_that_is_no_device_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"unknown device '{name}'"):
        find_device(name)


@pytest.mark.parametrize(
    ("features", "has_bf16"),
    [({"avx2", "avx512_bf16"}, True), ({"amx_bf16"}, True), ({"asimd", "bf16"}, True), ({"avx512f"}, False)],
)
def test_bf16_of_a_cpu_is_looked_up(
    features: set[str], has_bf16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "cpu_features", lambda: features)
    assert supports("bf16", CPU) is has_bf16
    assert supports("fp32", CPU)
    assert not supports("fp16", CPU)
    expected = "auto or fp32 or bf16" if has_bf16 else "auto or fp32"
    with pytest.raises(InputError, match=f"precision is fp16, which this CPU .*; expected {expected}$"):
        require_precision("fp16", CPU)
    if not has_bf16:
        with pytest.raises(InputError, match=r"precision is bf16, which this CPU .*; expected auto or"):
            require_precision("bf16", CPU)


def test_features_of_this_cpu_are_names() -> None:
    assert all(isinstance(name, str) for name in devices.cpu_features())
    assert require_precision("auto", CPU) == require_precision("fp32", CPU) == "fp32"
    with pytest.raises(InputError, match="unknown precision 'fp23'; did you mean 'fp32'"):
        require_precision("fp23", CPU)  # type: ignore[arg-type]


def test_a_lower_precision_keeps_the_fingerprint_and_is_named(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "cpu_features", lambda: {"avx512_bf16"})
    full, low = fm.load(saved, device="cpu"), fm.load(saved, device="cpu", precision="bf16")
    assert (full.precision, low.precision) == ("fp32", "bf16")
    assert (full.fingerprint, str(low.device)) == (low.fingerprint, "cpu")
    batch = rows_batch([5, 6, 7, 8], [9, 10])
    logits = [Evaluator(clf).logits(batch) for clf in (full, low)]
    assert logits[1].dtype == torch.float64
    torch.testing.assert_close(logits[1], logits[0], rtol=0.05, atol=0.1)
    assert not torch.equal(*logits)


@pytest.mark.parametrize("name", ["loo-sign", "grad-l1", "grad-l2", "inp-grad-sign", "int-grad-sign"])
def test_methods_work_in_bf16_and_rank_much_alike(name: str) -> None:
    full, low = tiny(dtype=torch.float32), tiny(dtype=torch.float32)
    low.place(CPU, "bf16")
    batch = rows_batch([5, 6, 7, 8, 9, 10, 11, 12, 13], [14, 15, 16, 17, 18])
    scores, rounded = (fm.explain(clf, batch, [0, 1], name) for clf in (full, low))
    assert rounded.isfinite().all()
    for row, other in zip(scores, rounded, strict=True):
        assert torch.corrcoef(torch.stack([row, other]))[0, 1] > 0.9


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_computes_in_bf16(architecture: str) -> None:
    full, low = (fm.Classifier(encoder(architecture).float(), mask_id=MASK) for _ in range(2))
    low.place(CPU, "bf16")
    batch = rows_batch([5, 6, 7, 8, 9], [10, 11])
    with torch.inference_mode():
        logits, expected = low.logits(batch).float(), full.logits(batch)
        features = low.features(batch)
    torch.testing.assert_close(logits, expected, rtol=0.1, atol=0.05)
    assert features.isfinite().all()


def test_buffers_keep_their_number_type() -> None:
    model = encoder("modernbert").float()
    before = {name: buffer.dtype for name, buffer in model.named_buffers()}
    devices.place(model, CPU, "bf16")
    assert {name: buffer.dtype for name, buffer in model.named_buffers()} == before
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}


def test_the_token_budget_follows_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny(dtype=torch.float32).model
    assert token_budget(model, CPU) == CPU_BUDGET
    per_token = 2 * 16 * 4 * devices.SAVED_VALUES  # layers, hidden units, bytes of a number
    gpu = torch.device("cuda")
    for free, expected in ((0, 1024), (2 * 5000 * per_token, 5000), (2**60, 32768)):
        module = SimpleNamespace(mem_get_info=lambda _, free=free: (free, 2**60))
        monkeypatch.setattr(torch, "get_device_module", lambda _, module=module: module)
        assert token_budget(model, gpu) == expected
    unified = SimpleNamespace(recommended_max_memory=lambda: 2**30, driver_allocated_memory=lambda: 2**30)
    monkeypatch.setattr(torch, "get_device_module", lambda _: unified)
    assert token_budget(model, torch.device("mps")) == 1024
    assert token_budget(None, gpu) == 1024
