"""Mistakes of a first hour with a classifier: each is one clear line, before anything is trained."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from faithmeter.errors import InputError
from toy import WORDS, tiny

ROWS = 240
TEXTS = ("--data", "texts.csv", "--text", "review")


def write_table(
    name: str, rows: Sequence[Sequence[str]], separator: str = ",", encoding: str = "utf-8"
) -> None:
    lines = [separator.join(row) for row in (("review", "stars"), *rows)]
    Path(name).write_text("\n".join(lines), encoding=encoding)


def write_files() -> None:
    """Tables of texts, right and wrong, in the working directory."""
    rng = random.Random(0)
    rows = [(" ".join(rng.choices(WORDS, k=6)), ("fresh", "rotten")[n % 2]) for n in range(ROWS)]
    write_table("texts.csv", rows)
    write_table("ten.csv", rows[:10])
    write_table("semicolons.csv", rows, ";")
    write_table("latin.csv", [(f"{text} café", label) for text, label in rows], encoding="latin-1")
    write_table("gap.csv", [*rows, ("", "fresh")])
    write_table("same.csv", [("good film", label) for _, label in rows])
    write_table("header.csv", [])
    for name, text in (
        ("empty.csv", ""),
        ("sheet.xlsx", "PK"),
        ("half.jsonl", '{"review": "a"'),
        ("taken", ""),
    ):
        Path(name).write_text(text)
    for name in ("model.onnx", "classifier.pkl"):
        Path(name).write_text("")


def write_models() -> None:
    """A classifier, and folders that are none."""
    clf = tiny(dtype=torch.float32, labels=2)
    head = clf.model.classifier.out_proj
    with torch.no_grad():  # so that both classes are predicted
        head.weight.mul_(100)
        head.bias.zero_()
    clf.model.config.id2label, clf.model.config.label2id = {0: "good", 1: "bad"}, {"good": 0, "bad": 1}
    for name, part in (("model", clf.model), ("headless", clf.model.base_model)):
        part.save_pretrained(name)
        clf.tokenizer.save_pretrained(name)
    clf.model.save_pretrained("wordless")
    clf.model.config.problem_type = "multi_label_classification"
    clf.model.save_pretrained("several")
    clf.tokenizer.save_pretrained("several")
    Path("bare").mkdir()
    Path("exported").mkdir()
    shutil.copy("model.onnx", "exported")
    Path("pickled").mkdir()
    for name in ("modules.json", "model_head.pkl"):
        Path("pickled", name).write_text("[]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mistakes")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_files()
        write_models()
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("audit", "model"), "the audit of model needs --data, a file with your texts"),
        (("audit", "model", *TEXTS[:2]), "needs --text, the column with the texts"),
        (("audit", "model", *TEXTS[:3], "reviw"), "no column 'reviw'; there are 'review'"),
        (("audit", "model", *TEXTS, "--pair", "context"), "no column 'context'"),
        (("audit", "model", "--data", "text.csv", *TEXTS[2:]), "text.csv does not exist"),
        (("audit", "model", "--data", "semicolons.csv", *TEXTS[2:]), "separated by semicolons"),
        (("audit", "model", "--data", "latin.csv", *TEXTS[2:]), "iconv -f Windows-1252 -t UTF-8 latin.csv"),
        (("audit", "model", "--data", "ten.csv", *TEXTS[2:]), "10 rows in all; expected at least 40"),
        (("audit", "model", "--data", "gap.csv", *TEXTS[2:]), "line 242: 'review' is empty; fill it"),
        (("audit", "model", "--data", "same.csv", *TEXTS[2:]), "expected texts of at least two"),
        (("audit", "model", "--data", "header.csv", *TEXTS[2:]), "header.csv has no rows"),
        (("audit", "model", "--data", "empty.csv", *TEXTS[2:]), "empty.csv is empty"),
        (("audit", "model", "--data", "sheet.xlsx", *TEXTS[2:]), "unknown kind of file; expected .csv, .tsv"),
        (("audit", "model", "--data", "half.jsonl", *TEXTS[2:]), "half.jsonl, line 1: not JSON"),
        (("audit", "model", *TEXTS, "--valid", "ten.csv"), "10 validation texts; expected at least"),
        (("audit", "model", *TEXTS, "--label", "stars"), "--classes fresh=…,rotten=…"),
        (("audit", "model", *TEXTS, "--label", "stars", "--classes", "fresh"), "--classes 'fresh'"),
        (("audit", "model", *TEXTS, "--label", "stars", "--classes", "fresh=x,rotten=bad"), "task's x"),
        (("audit", "wordless", *TEXTS), "expected the tokenizer's files"),
        (("audit", "headless", *TEXTS), "'headless' has no trained classifier head"),
        (("audit", "several", *TEXTS), "several gives several labels at once"),
        (("audit", "bare", *TEXTS), "expected a folder with a saved model and tokenizer"),
        (("audit", "exported", *TEXTS), "holds only an ONNX export (model.onnx); save the PyTorch model"),
        (("audit", "model.onnx", *TEXTS), "'model.onnx' is an ONNX export; save the PyTorch model"),
        (("audit", "classifier.pkl", *TEXTS), "'classifier.pkl' is a pickle, which is not run"),
        (("audit", "pickled", *TEXTS), "model_head.pkl"),
        (("audit", "./nowhere", *TEXTS), "there is no folder './nowhere'"),
        (("audit", "model", *TEXTS, "-m", "loo-sing"), "unknown method 'loo-sing'; did you mean 'loo-sign'?"),
        (("audit", "model", *TEXTS, "--budget", "soon"), "budget 'soon' cannot be read; expected a time"),
        (("audit", "model", *TEXTS, "--require", "loo-sign>=40"), "expected one such as 'loo-sign:racu>=40'"),
        (("audit", "model", *TEXTS, "--require", "beam:acu>=40"), "unknown method in a requirement 'beam'"),
        (("audit", "model", *TEXTS, "-o", "taken"), "--output taken cannot be written"),
        (("audit", "model", *TEXTS, "--learning-rate", "-1"), "learning_rate is -1.0; expected at least 0.0"),
        (("explain", "model", "--file", "texts.csv"), "--data texts.csv --text COLUMN"),
        (("explain", "model", "model", "a film"), "if a pattern stands for several folders"),
        (("explain", "runs/adapt-*", "a film"), "no folder matches 'runs/adapt-*'"),
        (("explain", "model", "a film", "--class", "happy"), "unknown label 'happy'; expected one of bad"),
        (("measure", "model", "-m", "loo-sign"), "model does not say what it was trained on"),
        (("report", "model"), "model holds no finished run"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_before_any_training(
    faithmeter, folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    def train(*_: Any, **__: Any) -> None:
        raise InputError("the training began")

    monkeypatch.chdir(folder)
    monkeypatch.setattr("faithmeter.training.finetuning.finetune", train)
    outcome = faithmeter(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    [line] = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    assert message in line
    assert outcome.err.splitlines()[-1] == line
    assert "Traceback" not in outcome.err
