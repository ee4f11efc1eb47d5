"""Encoders that are loaded whole or not at all, and the digests of what a training begins with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

import faithmeter as fm
from broken import BROKEN
from faithmeter.runs.measured import task_of
from faithmeter.training.inputs import load_encoder, load_splits, read_inputs
from toy import word_tokenizer


def encoder_with(config: fm.TrainConfig, folder: Path, damage: str) -> fm.TrainConfig:
    shutil.copytree(config.model, folder)
    file = folder / "model.safetensors"
    tensors = load_file(file)
    if damage == "vocabulary":
        settings = json.loads((folder / "config.json").read_text())
        settings["vocab_size"] += 8
        (folder / "config.json").write_text(json.dumps(settings))
    elif damage == "renamed":
        tensors = {name.replace("roberta.encoder.", "roberta.stack."): t for name, t in tensors.items()}
    elif damage == "prefix":
        tensors = {f"other.{name}": tensor for name, tensor in tensors.items()}
    elif damage == "half":
        tensors = dict(sorted(tensors.items())[::2])
    elif damage == "head":
        tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("classifier.")}
    save_file(tensors, file, metadata={"format": "pt"})
    return fm.TrainConfig.from_dict({**config.to_dict(), "model": str(folder)})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("vocabulary", r"another shape than its config says \(roberta\.embeddings\.word_embeddings"),
        ("renamed", r"are missing \(roberta\.encoder\.layer\.0.* and \d+ more\)"),
        ("prefix", r"are missing \(roberta\.embeddings"),
        ("half", r"are missing \(roberta\."),
    ],
)
def test_training_never_begins_with_random_weights(
    config: fm.TrainConfig, tmp_path: Path, damage: str, message: str
) -> None:
    broken = encoder_with(config, tmp_path / "encoder", damage)
    with pytest.raises(fm.InputError, match=message):
        load_encoder(broken, task_of(broken))


def test_a_new_head_is_no_damage(config: fm.TrainConfig, tmp_path: Path) -> None:
    new = encoder_with(config, tmp_path / "encoder", "head")
    names = load_encoder(new, task_of(new)).new_weights
    assert names
    assert all(name.startswith("classifier.") for name in names)
    load_encoder(fm.TrainConfig(), fm.task("bAbI-1"))  # the embedded model


def test_digests_cover_the_weights_and_the_tokenizer(config: fm.TrainConfig, tmp_path: Path) -> None:
    copy = encoder_with(config, tmp_path / "encoder", "none")
    task = task_of(config)
    same = read_inputs(config, task)
    assert read_inputs(copy, task) == same, "where it lies does not matter"
    words = ["film", "the", "a", "was"]  # other numbers for the same words
    word_tokenizer(words).save_pretrained(copy.model)
    assert read_inputs(copy, task)["encoder"] != same["encoder"]
    assert fm.load(config.model).fingerprint != fm.load(copy.model).fingerprint


@pytest.mark.parametrize(
    "name", [name for name in BROKEN if name != "one weight infinite"]
)  # in the old head
def test_a_broken_encoder_is_refused_in_one_line(name: str, config: fm.TrainConfig, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(config.model, folder)
    BROKEN[name][0](folder)
    broken = config.replace(model=str(folder))
    with pytest.raises(fm.InputError) as caught:
        load_encoder(broken, task_of(broken))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("limit", "validation_limit", "rows"),
    [(0, 0, (8000, 2000, 1000)), (50, 0, (50, 50, 50)), (50, 7, (50, 7, 50))],
)
def test_limits_count_the_first_rows(limit: int, validation_limit: int, rows: tuple[int, ...]) -> None:
    config = fm.TrainConfig(limit=limit, validation_limit=validation_limit)
    whole, splits = fm.task("bAbI-1").load(), load_splits(config, fm.task("bAbI-1"))
    assert tuple(len(splits[name]) for name in ("train", "validation", "test")) == rows
    assert all(part["text"][-1] == whole[name]["text"][len(part) - 1] for name, part in splits.items())
