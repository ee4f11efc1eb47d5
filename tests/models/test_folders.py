"""Folders of models that transformers alone does not read: adapters, and formats that nobody should."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import faithmeter as fm
from faithmeter.models.loading import kind_of_model
from toy import tiny


@pytest.fixture
def adapter(tmp_path: Path) -> tuple[Path, torch.nn.Module]:
    """A LoRA adapter with a head of its own beside its base model, and the model with the adapter in it."""
    peft = pytest.importorskip("peft")
    base = tiny("bert", dtype=torch.float32, labels=2)
    base.model.save_pretrained(tmp_path / "base")
    base.tokenizer.save_pretrained(tmp_path / "base")
    config = peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query", "value"])
    inner = tiny("bert", dtype=torch.float32, labels=3).model
    model = peft.get_peft_model(inner, config)
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name or "modules_to_save" in name:
                weight.copy_(torch.randn(weight.shape, generator=draw))
    model.save_pretrained(tmp_path / "adapter")
    settings = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    settings["base_model_name_or_path"] = str(tmp_path / "base")
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(settings))
    return tmp_path / "adapter", model.eval()


def test_an_adapter_is_merged_into_its_base(adapter: tuple[Path, torch.nn.Module], tmp_path: Path) -> None:
    folder, model = adapter
    clf = fm.load(folder)
    batch = clf.encode(["the film was not good", "dull"])
    expected = model(**batch.inputs).logits
    torch.testing.assert_close(clf.logits(batch), expected, rtol=0, atol=1e-5)
    assert len(clf.labels) == 3
    assert not any("lora" in name for name in clf.model.state_dict())
    assert kind_of_model(folder) == "single-label"
    clf.model.save_pretrained(tmp_path / "merged")
    clf.tokenizer.save_pretrained(tmp_path / "merged")
    assert fm.load(tmp_path / "merged").fingerprint == clf.fingerprint
    assert fm.explain(clf, batch, [0, 1], "grad-l2")[batch.explained].gt(0).all()


def test_the_adapters_of_an_object_are_merged_into_a_copy(adapter: tuple[Path, torch.nn.Module]) -> None:
    _, model = adapter
    clf = fm.Classifier(model, tiny("bert").tokenizer)
    batch = clf.encode(["the film was not good"])
    torch.testing.assert_close(clf.logits(batch), model(**batch.inputs).logits, rtol=0, atol=1e-5)
    assert any("lora" in name for name in model.state_dict())


def test_without_peft_an_adapter_says_what_to_install(
    adapter: tuple[Path, torch.nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(fm.InputError, match=r"needs peft, .*: pip install 'faithmeter\[peft\]'"):
        fm.load(adapter[0])


def test_an_adapter_without_a_head_or_without_its_base_is_refused(
    adapter: tuple[Path, torch.nn.Module],
) -> None:
    folder, _ = adapter
    tensors = load_file(folder / "adapter_model.safetensors")
    headless = {name: own for name, own in tensors.items() if "classifier" not in name}
    save_file(headless, folder / "adapter_model.safetensors")
    with pytest.raises(fm.InputError, match="brings no classifier head; train it with task_type SEQ_CLS"):
        fm.load(folder)
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    with pytest.raises(fm.InputError, match=r"no adapter_model\.safetensors in .*; save the adapter with"):
        fm.load(folder)
    settings = json.loads((folder / "adapter_config.json").read_text())
    gone = {**settings, "base_model_name_or_path": str(folder / "gone")}
    (folder / "adapter_config.json").write_text(json.dumps(gone))
    with pytest.raises(fm.InputError, match=r"there is no folder .*gone"):
        fm.load(folder)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("model.onnx", r"holds only an ONNX export \(model\.onnx\); save the PyTorch model that it was"),
        ("onnx/model_quantized.onnx", r"only an ONNX export \(model_quantized\.onnx\)"),
        ("tf_model.h5", "only weights of TensorFlow"),
        ("flax_model.msgpack", "only weights of Flax"),
        (
            "pipeline.joblib",
            "only a pickle, which is not run .*load the object in Python, if you trust the file",
        ),
        ("model.pkl", "only a pickle, which is not run"),
        ("model.pt", "only a pickled module .*; build the module in Python, load its weights, and give it"),
    ],
)
def test_formats_that_are_not_read_say_what_to_export(file: str, message: str, tmp_path: Path) -> None:
    clf = tiny(dtype=torch.float32)
    clf.model.config.save_pretrained(tmp_path)
    clf.tokenizer.save_pretrained(tmp_path)
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_bytes(b"")
    with pytest.raises(fm.InputError) as caught:
        fm.load(tmp_path)
    assert "\n" not in str(caught.value)
    assert re.search(message, str(caught.value))
