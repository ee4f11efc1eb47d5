"""`measure` and `check` on a file of test texts, with scores from a file, by words."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pandas as pd
import pytest
import torch

import faithmeter as fm
from faithmeter.methods import METHODS
from faithmeter.report.provenance import reproduce
from toy import WORDS, tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A checkpoint, 220 reviews to train on, 32 others, and scores of those."""
    folder, rng = tmp_path_factory.mktemp("own"), random.Random(0)
    clf = tiny(dtype=torch.float32, labels=2)
    clf.model.save_pretrained(folder / "encoder")
    clf.tokenizer.save_pretrained(folder / "encoder")
    rows = [(" ".join(rng.choices(WORDS, k=rng.randint(2, 8))), "ab"[i % 2]) for i in range(252)]
    for name, part, header in (
        ("reviews", rows[:220], "review,stars"),
        ("held-out", rows[220:], "text,label"),
    ):
        (folder / f"{name}.csv").write_text("\n".join([header, *map(",".join, part)]))
    scores = [[len(word) for word in text.split()] for text, _ in rows[220:]]
    lines = [json.dumps({"row": row, "scores": values}) for row, values in enumerate(scores)]
    (folder / "mine.jsonl").write_text("\n".join(lines))
    return folder


@pytest.fixture
def checkpoint(faithmeter, folder: Path) -> Path:
    own = ("--data", folder / "reviews.csv", "--text", "review", "--label", "stars")
    small = ("--model", folder / "encoder", "--epochs", 1, "-o", folder / "runs")
    assert faithmeter("train", *own, *small).code == 0
    return next((folder / "runs").glob("train-*"))


@pytest.fixture
def held_out(folder: Path) -> tuple[object, ...]:
    return ("--test", folder / "held-out.csv", "--text", "text", "--label", "label")


def test_all_rows_are_measured_with_the_check_of_the_training(
    faithmeter, checkpoint, held_out, folder
) -> None:
    runs = ("-o", folder / "runs")
    mine = ("--scores", folder / "mine.jsonl", "-m", "loo-sign", "--unit", "word")
    outcome = faithmeter("measure", checkpoint, *held_out, *mine, "--limit", 50, *runs)
    assert outcome.code == 0, outcome.err
    assert "32 texts were measured: there are no more" in outcome.err
    assert "mine: scores that were computed elsewhere" in outcome.out
    for words in ("words erased", "mine", "loo-sign", "p crossfit"):
        assert words in outcome.out
    again = json.loads(
        faithmeter("measure", checkpoint, *held_out, *mine, "--limit", 50, *runs, "--json").out
    )
    assert (again["texts"], again["unit"]) == (32, "word")
    assert again["methods"]["mine"]["scores"] == str(folder / "mine.jsonl")
    store = fm.RunStore(folder / "runs")
    assert set(store.frame("areas")["task"]) == {f"{folder / 'held-out.csv'} (words)"}
    [line] = [
        line
        for line in reproduce([record for _, record in store.records()], store.root)
        if " measure " in line
    ]
    for part in (f"--test {folder / 'held-out.csv'}", "--text text", "--unit word", "--scores mine="):
        assert part in line
    del METHODS["mine"]


def test_data_mean_the_same_as_in_training(faithmeter, checkpoint, folder) -> None:
    """The same options split the same test rows off, so that no training row is measured."""
    own = ("--data", folder / "reviews.csv", "--text", "review", "--label", "stars")
    runs = ("-m", "grad-l2", "-o", folder / "same", "--json")
    named = faithmeter("measure", checkpoint, *own, *runs)
    assert "22 of 220 rows are test texts, split off as in training" in named.err
    plain = faithmeter("measure", checkpoint, *runs)
    results = [json.loads(outcome.out) for outcome in (named, plain)]
    assert results[0]["texts"] == 22
    assert results[0]["methods"]["grad-l2"]["curve"] == results[1]["methods"]["grad-l2"]["curve"]
    # a file of test texts beside them: all of its rows, and the validation rows of --data
    rows = (folder / "held-out.csv").read_text().removeprefix("text,label")
    (folder / "renamed.csv").write_text("review,stars" + rows)
    beside = ("--test", folder / "renamed.csv", *own)
    assert json.loads(faithmeter("measure", checkpoint, *beside, *runs).out)["texts"] == 32
    store = fm.RunStore(folder / "same")
    lines = reproduce([record for _, record in store.records()], store.root)
    assert any(f"--data {folder / 'reviews.csv'} --test {folder / 'renamed.csv'}" in line for line in lines)


def test_a_model_of_elsewhere_needs_validation_rows_for_its_check(faithmeter, held_out, folder) -> None:
    runs = ("-o", folder / "elsewhere")
    outcome = faithmeter("measure", folder / "encoder", *held_out, "-m", "grad-l2", *runs)
    assert outcome.code == 0
    assert "masked texts were not checked" in outcome.out
    outcome = faithmeter("check", folder / "encoder", *held_out, *runs)
    assert outcome.code == 2
    assert "give a file of at least 20 with --valid" in outcome.err
    outcome = faithmeter("check", folder / "encoder", *held_out, "--valid", folder / "held-out.csv", *runs)
    assert outcome.code == 0, outcome.err
    assert "crossfit" in outcome.out


def test_a_rationale_column_gives_plausibility_beside_faithfulness(
    faithmeter, checkpoint, held_out, folder
) -> None:
    """The first word is the reason of each text; a second rationale column is another measurement."""
    frame = pd.read_csv(folder / "held-out.csv")
    marks = [[1] + [0] * (len(text.split()) - 1) for text in frame["text"]]
    frame.assign(why=marks, none="").to_csv(folder / "held-out.csv", index=False)
    first = [json.dumps({"row": row, "scores": values}) for row, values in enumerate(marks)]
    (folder / "first.jsonl").write_text("\n".join(first))
    call = ("measure", checkpoint, *held_out, "--scores", folder / "first.jsonl", "-o", folder / "why")
    outcome = faithmeter(*call, "--rationale", "why")
    assert outcome.code == 0, outcome.err
    assert "Faithfulness (ACU) and plausibility" in outcome.out
    measured = json.loads(faithmeter(*call, "--rationale", "why", "--json").out)
    assert measured["methods"]["first"]["plausibility"] == {"token_f1": 1.0, "token_iou": 1.0, "auprc": 1.0}
    assert measured["methods"]["random"]["plausibility"]["token_f1"] < 1
    without = json.loads(faithmeter(*call, "--rationale", "none", "--json").out)
    assert without["methods"]["first"]["plausibility"] == {}
    store = fm.RunStore(folder / "why")
    lines = reproduce([record for _, record in store.records()], store.root)
    assert any("--rationale why" in line for line in lines)
    del METHODS["first"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rationale", "why"), "--rationale why goes with --data"),
        (("--text", "text"), "--text text goes with --data or --test, the file that it belongs to"),
        (("--data", "x.csv", "--text", "text"), "--data x.csv requires --label"),
        (("--test", "x.csv"), "--test x.csv requires --text"),
        (("--test", "reviews.csv", "--text", "a film", "--label", "stars"), "no column 'a film'; there are"),
        (
            ("--data", "x.csv", "--text", "t", "--label", "l", "--task", "RTE"),
            "--task RTE and --data x.csv with columns exclude each other",
        ),
        (("--data", "x.csv", "--text", "t", "--label", "l"), "x.csv does not exist"),
        (("--unit", "letter"), "unknown unit 'letter'; expected one of sentence, token, word"),
        (("--scores", "nothing.jsonl"), "cannot read nothing.jsonl"),
    ],
)
def test_mistakes_are_named_in_one_line(
    faithmeter, folder, monkeypatch: pytest.MonkeyPatch, options, message: str
) -> None:
    monkeypatch.chdir(folder)
    outcome = faithmeter("measure", folder / "encoder", *options)
    assert outcome.code == 2
    [line] = outcome.err.splitlines()
    assert message in line
