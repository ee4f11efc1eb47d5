"""`--overlap`: check, measure and explain read long texts in windows, which belong to the run's identity."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch

import faithmeter as fm
from faithmeter.report.provenance import reproduce
from faithmeter.runs.fitted_tests import saved_tests
from toy import WORDS, tiny, word_tokenizer

TEXT = " ".join(WORDS[:14])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that reads 8 words at once, and texts of 4 to 14."""
    folder, rng = tmp_path_factory.mktemp("windows"), random.Random(0)
    tiny(dtype=torch.float32, labels=2).model.save_pretrained(folder / "model")
    word_tokenizer(model_max_length=10).save_pretrained(folder / "model")
    rows = [f"{' '.join(rng.choices(WORDS, k=4 + n % 11))},LABEL_{n % 2}" for n in range(220)]
    (folder / "own.csv").write_text("\n".join(["text,label", *rows]))
    (folder / "own.toml").write_text('data = "own.csv"\ntext = "text"\nlabel = "label"\n')
    return folder


def test_long_texts_are_measured_whole_and_apart_from_truncated_ones(faithmeter, folder: Path) -> None:
    task = ("--task", folder / "own.toml", "-o", folder / "runs")
    results = {}
    for overlap in (0, 2):
        arguments = (folder / "model", *task, "-m", "loo-sign", "--limit", 6, "--overlap", overlap)
        outcome = faithmeter("measure", *arguments, "--json")
        assert outcome.code == 0, outcome.err
        results[overlap] = json.loads(outcome.out)
    assert results[0]["truncated"] > 0
    assert "truncated" in {doubt["kind"] for doubt in results[0]["doubts"]}
    assert results[2]["truncated"] == 0
    assert "truncated" not in {doubt["kind"] for doubt in results[2]["doubts"]}
    truncated, whole = (results[overlap]["methods"]["loo-sign"]["evaluations"] for overlap in (0, 2))
    assert truncated < whole
    store = fm.RunStore(folder / "runs")
    titles = sorted({*store.frame("areas")["task"]})
    assert [title.removeprefix(str(folder / "own.toml")) for title in titles] == [
        "",
        " (windows, overlap 2)",
    ]
    commands = reproduce([record for _, record in store.records()], store.root)
    assert sum("--overlap 2" in line for line in commands) == 1


def test_check_and_explain_read_the_whole_text(faithmeter, folder: Path) -> None:
    own, windows = ("--task", folder / "own.toml"), ("--overlap", 2)
    checked = faithmeter("check", folder / "model", *own, *windows, "--limit", 12, "-o", folder / "checked")
    assert checked.code == 0, checked.err
    for arguments, count in (((), 8), (windows, 14)):
        [explained] = json.loads(faithmeter("explain", folder / "model", TEXT, *arguments, "--json").out)
        assert (len(explained["words"]), explained["truncated"]) == (count, count == 8)
    measured = faithmeter("explain", folder / "model", TEXT, "-m", "grad-l2", *windows, "--json")
    assert not json.loads(measured.out)[0]["truncated"]


@pytest.mark.parametrize("verb", ["check", "measure", "explain"])
def test_an_overlap_that_leaves_no_room_is_one_line(faithmeter, folder: Path, verb: str) -> None:
    texts = (TEXT,) if verb == "explain" else ("--task", folder / "own.toml")
    outcome = faithmeter(verb, folder / "model", *texts, "--overlap", 3)
    assert (outcome.code, outcome.out) == (2, "")
    assert "overlap is 3, and the model reads 10 tokens at once" in outcome.err.splitlines()[-1]


def test_saved_tests_are_those_of_the_overlap(faithmeter, folder: Path) -> None:
    own = ("--data", folder / "own.csv", "--text", "text", "--label", "label", "--epochs", 1)
    trained = faithmeter("train", *own, "--model", folder / "model", "-o", folder / "trained")
    assert trained.code == 0, trained.err
    assert "texts are too long for the model: training reads only their beginnings" in trained.err
    checkpoint = next((folder / "trained").glob("train-*"))
    assert saved_tests(fm.load(checkpoint))
    with pytest.raises(fm.errors.InputError, match="no tests were saved"):
        saved_tests(fm.load(checkpoint, overlap=2))
    assert faithmeter("check", checkpoint, "--overlap", 2, "--limit", 8, "-o", folder / "trained").code == 0
    assert saved_tests(fm.load(checkpoint, overlap=2))
