"""A run's identity: what decides its numbers may not change unnoticed, at any verb."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from faithmeter.cli.listing import listing
from faithmeter.data import stories
from faithmeter.models.loading import resolve
from fixtures_tasks import write_stories

GRID = """
tasks = ["reviews.toml"]
models = ["enc"]
seeds = [0]
strategies = ["none/unmasked"]
[train]
epochs = 1
[measure]
methods = ["grad-l2"]
[roar]
methods = ["grad-l2"]
step = 100
"""
ROWS = [f"the {'apple' if i % 2 else 'milk'} number {i},{'fruit' if i % 2 else 'drink'}" for i in range(220)]
TRAIN = ("train", "--task", "reviews.toml", "--model", "enc", "--epochs", "1", "--strategy", "none")
TRAIN += ("--validation", "unmasked")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, an encoder, and a store in which all runs of a grid are finished."""
    from faithmeter.cli.grid import Processes, grid

    folder = tmp_path_factory.mktemp("finished")
    (folder / "reviews.csv").write_text("\n".join(["text,label", *ROWS]))
    (folder / "reviews.toml").write_text('data = "reviews.csv"\ntext = "text"\nlabel = "label"\nepochs = 1\n')
    (folder / "grid.toml").write_text(GRID)
    shutil.copytree(resolve("embedded"), folder / "enc")
    before = Path.cwd()
    os.chdir(folder)
    try:
        grid(Path("grid.toml"), Processes(processes="1"), store=Path("runs"))
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def place(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to change, as the working directory."""
    shutil.copytree(finished, tmp_path / "place")
    monkeypatch.chdir(tmp_path / "place")
    return tmp_path / "place"


def change_rows(place: Path) -> None:
    file = place / "reviews.csv"
    file.write_text(file.read_text().replace("apple number 1,", "pear number 1,"))


def change_weights(place: Path) -> None:
    weights = load_file(place / "enc" / "model.safetensors")
    name = next(name for name in weights if "layers" in name)
    save_file({**weights, name: weights[name] + torch.ones(())}, place / "enc" / "model.safetensors")


def change_tokenizer(place: Path) -> None:
    swap_words(place / "enc" / "tokenizer.json")


def swap_words(file: Path) -> None:
    """Give two words of a tokenizer each other's number."""
    tokenizer = json.loads(file.read_text())
    vocabulary = tokenizer["model"]["vocab"]
    *_, one, other = vocabulary
    vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]
    file.write_text(json.dumps(tokenizer))


def test_nothing_is_done_again_while_nothing_has_changed(faithmeter, place: Path) -> None:
    outcome = faithmeter("grid", "grid.toml", "--json")
    assert json.loads(outcome.out)["outcomes"] == {"done": 4}
    assert faithmeter(*TRAIN, "--json").code == 0


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (change_rows, "rows (train"),
        (change_weights, "encoder (weights, settings or tokenizer)"),
        (change_tokenizer, "encoder (weights, settings or tokenizer)"),
    ],
)
def test_changed_inputs_are_named_by_train_and_grid(
    faithmeter, place: Path, change: Callable[[Path], None], what: str
) -> None:
    change(place)
    trained = faithmeter(*TRAIN)
    assert trained.code == 2
    assert f"changed: {what}" in trained.err
    outcome = faithmeter("grid", "grid.toml", "--json")
    assert outcome.code == 1
    result = json.loads(outcome.out)
    assert result["outcomes"] == {"failed": 1, "blocked": 3}, "the measurement and both steps build on it"
    assert f"changed: {what}" in result["failures"][0]["error"]


@pytest.fixture
def official_babi(tmp_path: Path) -> Path:
    folder = tmp_path / "official" / "bAbI"
    folder.mkdir(parents=True)
    for name, questions in (("train", 50), ("test", 20)):
        path = folder / f"qa1_single-supporting-fact_{name}.txt"
        write_stories(stories.generate(1, questions, seed=7), path)
    return folder.parent


def test_generated_and_official_rows_are_not_mixed_up(
    faithmeter, tmp_path, monkeypatch, official_babi
) -> None:
    monkeypatch.chdir(tmp_path)
    train = ("train", "--limit", "16", "--epochs", "1")
    for store, first, second in (
        ("a", (), ("--data-dir", official_babi)),
        ("b", ("--data-dir", official_babi), ()),
    ):
        assert faithmeter(*train, *first, "-o", store).code == 0
        again = faithmeter(*train, *second, "-o", store)
        assert again.code == 2
        assert "source of the data (was " in again.err


def test_a_replaced_tokenizer_of_a_checkpoint_is_refused(faithmeter, place: Path) -> None:
    [folder] = (path for path in place.glob("runs/train-*") if path.is_dir())
    swap_words(folder / "tokenizer.json")
    outcome = faithmeter("measure", folder, "-m", "grad-l2")
    assert outcome.code == 2
    assert "tokenizer.json is not as it was written" in outcome.err


def test_a_copied_folder_is_no_other_run(faithmeter, place: Path, capsys) -> None:
    folders = sorted(place.glob("runs/[mrt]*-*"))
    for folder in folders:
        shutil.copytree(folder, folder.with_name(f"a copy of {folder.name}"))
    listing("runs", as_json=True)
    captured = capsys.readouterr()
    assert sorted(run["folder"] for run in json.loads(captured.out)) == [
        str(folder.relative_to(place)) for folder in folders
    ]
