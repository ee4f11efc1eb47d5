"""Loading a model: whole files of a fitting kind, or one line that names what is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import faithmeter as fm
from broken import BROKEN, WEIGHTS, pickled, settings
from faithmeter.files import file_checksum, write_sealed_json
from faithmeter.models import loading
from toy import encoder, tiny
from toy import letter_tokenizer as letters


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A saved model with its tokenizer."""
    clf = tiny(dtype=torch.float32)
    clf.model.save_pretrained(tmp_path / "model")
    clf.tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def refusal(path: str | Path) -> str:
    """Return the one line that `load` refuses a model with."""
    with pytest.raises(fm.InputError) as caught:
        fm.load(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_saved_checkpoint_loads_again(tmp_path) -> None:
    model = encoder("roberta").float()
    model.save_pretrained(tmp_path)
    letters().save_pretrained(tmp_path)
    clf = fm.load(tmp_path)
    batch = clf.encode(["a b c"], ["d e"])
    torch.testing.assert_close(clf.logits(batch), fm.Classifier(model, letters()).logits(batch))
    assert clf.labels == ("LABEL_0", "LABEL_1", "LABEL_2")


def test_a_model_without_a_trained_head_is_refused(tmp_path) -> None:
    encoder("roberta").float().roberta.save_pretrained(tmp_path)
    letters().save_pretrained(tmp_path)
    missing = r"no trained classifier head \(missing classifier\.dense\.bias, .*\); fine-tune it first"
    with pytest.raises(fm.InputError, match=missing):
        fm.load(tmp_path)
    with pytest.raises(fm.InputError, match="faithmeter train --model embedded"):
        fm.load("embedded")


def test_a_missing_checkpoint_says_what_is_expected(tmp_path) -> None:
    with pytest.raises(fm.InputError, match=r"there is no folder .*nothing-here'; expected a folder"):
        fm.load(tmp_path / "nothing-here")


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_checkpoint_is_refused_in_one_line(name: str, folder: Path, capsys: Any) -> None:
    damage, message = BROKEN[name]
    damage(folder)
    assert re.search(message, refusal(folder))
    assert "code of the pickle ran" not in capsys.readouterr().out


@pytest.mark.skipif(torch.__version__ < "2.6", reason="torch could run code of a pickle")
def test_pickled_tensors_are_read(folder: Path) -> None:
    before = fm.load(folder).fingerprint
    pickled(load_file(folder / WEIGHTS))(folder)
    assert fm.load(folder).fingerprint == before


def test_code_of_a_repository_is_not_run_and_nothing_is_asked(folder: Path, capsys: Any) -> None:
    code = {"AutoConfig": "code.C", "AutoModelForSequenceClassification": "code.M"}
    settings(model_type="x", auto_map=code)(folder)
    (folder / "code.py").write_text("print('code of the repository ran')")
    assert "needs code from its repository, which is not run" in refusal(folder)
    assert capsys.readouterr().out == ""


def test_a_tokenizer_of_another_model_is_refused(folder: Path) -> None:
    tiny(vocab_size=12, dtype=torch.float32).model.save_pretrained(folder)
    assert "has ids up to 24, the model 12 embeddings" in refusal(folder)


@pytest.mark.parametrize("path", ["./nothere", "runs/x", "/nothere", "~/x", "a/b/c", "a/", ".", ""])
def test_a_wrong_path_is_named_without_asking_the_hub(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loading, "_require_on_hub", lambda name: pytest.fail("the hub was asked"))
    message = refusal(path)
    if path != ".":
        assert message.startswith(f"there is no folder {path!r}; expected a folder with a saved model")


def test_an_unknown_hub_name_is_refused_after_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    questions = []

    def model_info(name: str, *, timeout: float) -> None:
        questions.append((name, timeout))
        raise OSError("Name or service not known.\nDetails follow")

    monkeypatch.setattr(huggingface_hub, "model_info", model_info)
    message = refusal("nobody/nothing")
    assert "no folder 'nobody/nothing' here, and the hub gave no model of that name (Name or" in message
    assert questions == [("nobody/nothing", loading.HUB_TIMEOUT)]


def record(folder: Path, **values: Any) -> None:
    files = {file.name: file_checksum(file) for file in folder.iterdir()}
    write_sealed_json(folder / "record.json", {"files": files, **values})


@pytest.mark.parametrize("name", [WEIGHTS, "config.json", "tokenizer.json", "tokenizer_config.json"])
def test_a_flipped_bit_in_a_recorded_file_is_noticed(name: str, folder: Path) -> None:
    record(folder)
    assert fm.load(folder).takes_pair is None
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    assert f"{name} is not as it was written; copy that checkpoint again" in refusal(folder)
    (folder / name).unlink()
    assert f"{name} is missing" in refusal(folder)


def test_the_record_tells_whether_a_model_takes_pairs(folder: Path) -> None:
    record(folder, columns=["text", "context"])
    assert fm.load(folder).takes_pair is True
    (folder / "record.json").unlink()
    record(folder, columns=["text"])
    assert fm.load(folder).takes_pair is False
