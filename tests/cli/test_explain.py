"""`faithmeter explain` as typed: files, pages, progress, mistakes; a method of one's own in every verb."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import torch

from faithmeter.cli import explain
from faithmeter.cli.progress import bars
from faithmeter.methods import METHODS
from toy import WORDS, tiny

OWN = """
import torch, faithmeter as fm
@fm.method("rightmost", recursive=False)
def rightmost(clf, batch, labels):
    return torch.arange(batch.input_ids.shape[1]).expand(batch.input_ids.shape).double()
"""
TASK = """
data = "reviews.csv"
text = "review"
label = "stars"
"""
GRID = """
tasks = ["reviews.toml"]
models = ["MODEL"]
seeds = [0]
strategies = ["half/both"]
[train]
epochs = 1
[measure]
methods = ["rightmost"]
"""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explained") / "model"
    clf = tiny(dtype=torch.float32)
    clf.model.save_pretrained(folder)
    clf.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_texts_of_a_file_have_headings_and_blank_lines_between(faithmeter, checkpoint, here) -> None:
    (here / "texts.txt").write_text("the film was good\n\nbad plot\n")
    out = faithmeter("explain", checkpoint, "--file", "texts.txt").out
    first, second = out.split("\n\n")
    assert first.startswith("texts.txt, line 1\nprediction")
    assert second.startswith("texts.txt, line 3\nprediction")
    one = faithmeter("explain", checkpoint, "bad plot", "--no-verify").out
    assert one.strip() == second.removeprefix("texts.txt, line 3\n").strip(), "one text has no heading"


def test_rows_take_what_they_do_not_say_from_the_options(faithmeter, checkpoint, here) -> None:
    rows = [{"text": "a film", "label": 2}, {"text": "a\u2028plot"}]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (here / "texts.jsonl").write_text("\ufeff" + "\r\n".join(lines), encoding="utf-8")
    asked = (
        "explain",
        checkpoint,
        "--file",
        "texts.jsonl",
        "--class",
        "LABEL_1",
        "--json",
    )
    explained = json.loads(faithmeter(*asked).out)
    assert [row["label"] for row in explained] == ["LABEL_2", "LABEL_1"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": " "}', "the text is empty; expected at least one word"),
        ('{"text": "a film", "label": "LABEL_9"}', "unknown label 'LABEL_9'; did you mean"),
        ('{"text": "a film", "label": 3}', "unknown label '3'"),
        ('{"text": "a film", "lable": 1}', "unknown key 'lable'; did you mean 'label'?"),
        ('{"text": "a film", "pair": 5}', "`pair` is 5; expected a string"),
        ('{"text": "a film", "label": 0.5}', "`label` is 0.5; expected a string"),
        ('{"label": "LABEL_1"}', "`text` is None; expected a string"),
        ("[1]", "list; expected one object in each line"),
        ("the film", "not JSON"),
    ],
)
def test_a_wrong_row_is_named_by_its_line_before_anything_is_explained(
    faithmeter, checkpoint, here, monkeypatch, line: str, message: str
) -> None:
    (here / "texts.jsonl").write_text('{"text": "the film"}\n' + line + "\n")
    monkeypatch.setattr("faithmeter.measuring.one_text.explain_texts", None)
    outcome = faithmeter("explain", checkpoint, "--file", "texts.jsonl")
    assert (outcome.code, outcome.out) == (2, "")
    assert f"error: texts.jsonl, line 2: {message}" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((" ",), "error: the text is empty; expected at least one word"),
        (
            ("a film", "--html", "nowhere/page.html"),
            "error: --html nowhere/page.html: expected the name of a file",
        ),
        (("a film", "--html", "."), "error: --html .: expected the name of a file, in a folder that exists"),
        (("--file", "empty.txt"), "error: empty.txt holds no text; expected one per line"),
        (("--file", "missing.txt"), "error: cannot read missing.txt: No such file"),
        (
            ("--file", "texts.csv"),
            "error: --file texts.csv is a table (.csv), and --file takes a text in each",
        ),
        (("--data", "texts.csv"), "error: --data texts.csv requires --text"),
        (
            ("--data", "texts.csv", "--text", "txt"),
            "error: texts.csv: no column 'txt'; there are 'text', 'stars'",
        ),
        (("--data", "texts.csv", "--text", "text"), "error: texts.csv, line 3: the text is empty"),
        (("--file", "empty.txt", "--verify"), "error: empty.txt holds no text"),
    ],
)
def test_mistakes_are_told_before_the_model_is_loaded(
    faithmeter, here, monkeypatch, arguments: tuple[str, ...], message: str
) -> None:
    (here / "empty.txt").write_text("\n \n")
    (here / "texts.csv").write_text("text,stars\na film,1\n ,2\n")
    monkeypatch.setattr("faithmeter.models.loading.load", None)
    outcome = faithmeter("explain", "embedded", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


def test_a_table_is_explained_and_written(faithmeter, checkpoint, here) -> None:
    (here / "texts.csv").write_text("review,stars\nthe film was good,LABEL_2\n=bad plot,LABEL_1\n")
    table = ("--data", "texts.csv", "--text", "review", "-m", "grad-l2", "-m", "loo-sign")
    outcome = faithmeter("explain", checkpoint, *table, "--csv", "scores.csv", "--html", "all.html")
    assert (outcome.code, outcome.out) == (0, ""), outcome.err
    assert outcome.err.splitlines()[-2:] == ["page: all.html", "scores: scores.csv"]
    assert (here / "all.html").read_text().count("prediction") == 2
    explained = json.loads(faithmeter("explain", checkpoint, *table, "--json").out)
    frame = pd.read_csv("scores.csv")
    for row, one in enumerate(explained):
        for method in ("grad-l2", "loo-sign"):
            lines = frame[(frame["row"] == row) & (frame["method"] == method)]
            scores = [word["scores"][method] for word in one["words"]]
            assert lines["score"].tolist() == pytest.approx(scores)
            assert set(lines["prediction"]) == {one["prediction"]}
    assert frame["word"][len(frame) - 1] == "plot"
    labeled = json.loads(faithmeter("explain", checkpoint, *table, "--label", "stars", "--json").out)
    assert [one["label"] for one in labeled] == ["LABEL_2", "LABEL_1"]


def test_a_dear_verification_is_asked_for(faithmeter, checkpoint, monkeypatch) -> None:
    monkeypatch.setattr("faithmeter.measuring.costs.MAX_EVALUATIONS", 100)
    outcome = faithmeter("explain", checkpoint, "the film was good")
    assert "not verified, as that takes up to 526 evaluations of the model; to do it: --verify" in outcome.err
    assert "random (mean" not in outcome.out
    assert "random (mean" in faithmeter("explain", checkpoint, "the film was good", "--verify").out


@pytest.fixture
def damage(checkpoint: Path, tmp_path: Path) -> Callable[..., Path]:
    """Return a function that copies the checkpoint with other settings, or without some files."""

    def copy(*missing: str, **settings: object) -> Path:
        folder = tmp_path / "copy"
        shutil.copytree(checkpoint, folder, ignore=shutil.ignore_patterns(*missing))
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | settings))
        return folder

    return copy


@pytest.mark.parametrize(
    ("missing", "settings", "message"),
    [
        (("tokenizer*", "vocab*", "special*"), {}, "tokenizer"),
        ((), {"problem_type": "regression"}, "numbers at once (problem_type regression)"),
        ((), {"problem_type": "multi_label_classification"}, "several labels at once"),
    ],
)
def test_models_that_cannot_be_explained_get_one_line(
    faithmeter, damage, missing: tuple[str, ...], settings: dict[str, object], message: str
) -> None:
    outcome = faithmeter("explain", damage(*missing, **settings), "the film was good")
    assert (outcome.code, outcome.out) == (2, "")
    assert [message in line for line in outcome.err.splitlines()] == [True]


@pytest.mark.parametrize("name", ["./nothere", "/no/such/folder", "runs/train-x/", "../up"])
def test_a_wrong_path_is_named_in_one_line_without_asking_the_hub(faithmeter, here, name: str) -> None:
    outcome = faithmeter("explain", name, "the film was good")
    assert (outcome.code, outcome.out) == (2, "")
    [line] = outcome.err.splitlines()
    assert line.startswith(f"error: there is no folder {name!r}; expected a folder")


def test_a_model_of_pairs_needs_a_pair_and_one_of_single_texts_takes_none(faithmeter, here) -> None:
    rows = [f"{word} {other},{word},{number % 2}" for number, word in enumerate(WORDS) for other in WORDS]
    (here / "own.csv").write_text("\n".join(["review,product,stars", *rows]))
    base = (
        "train",
        "--data",
        "own.csv",
        "--text",
        "review",
        "--label",
        "stars",
        "--limit",
        32,
        "--epochs",
        1,
    )
    for pair, arguments, message in (
        (("--pair", "product"), (), "trained on pairs of texts, and only one text was given"),
        ((), ("a film",), "trained on single texts, and a second text was given"),
    ):
        folder = here / f"runs{len(pair)}"
        assert faithmeter(*base, *pair, "-o", folder).code == 0
        outcome = faithmeter("explain", next(folder.glob("train-*")), "the film", *arguments)
        assert (outcome.code, outcome.out) == (2, "")
        assert [message in line for line in outcome.err.splitlines()] == [True]


def test_a_pattern_for_several_checkpoints_is_no_text(faithmeter, checkpoint) -> None:
    outcome = faithmeter("explain", checkpoint, checkpoint)
    assert outcome.code == 2
    assert "is a checkpoint; expected a text" in outcome.err
    assert faithmeter("explain", checkpoint, "good film " * 500).code == 0, "longer than any path"


def test_sentences_are_explained_as_units(faithmeter, checkpoint) -> None:
    text = "the film was good. a dull plot"
    result = faithmeter("explain", checkpoint, text, "--unit", "sentence", "--json")
    assert result.code == 0, result.err
    [explanation] = json.loads(result.out)
    assert [unit["text"] for unit in explanation["words"]] == ["the film was good.", "a dull plot"]
    assert len(json.loads(faithmeter("explain", checkpoint, text, "--json").out)[0]["words"]) > 2
    wrong = faithmeter("explain", checkpoint, text, "--unit", "letter")
    assert wrong.code == 2
    assert "unknown unit 'letter'; expected one of sentence, token, word" in wrong.err


def test_the_bar_counts_evaluations_inside_a_text(faithmeter, checkpoint, monkeypatch) -> None:
    notes: list[str] = []
    progress = bars()
    update = progress.update
    monkeypatch.setattr(
        progress, "update", lambda bar, **fields: notes.append(fields["note"]) or update(bar, **fields)
    )
    monkeypatch.setattr(explain, "bars", lambda: progress)
    assert (
        faithmeter("explain", checkpoint, "the film was good", "-m", "int-grad-sign", "--no-verify").code == 0
    )
    assert notes[0] == "1 evaluations"
    assert notes[-1] == "21 evaluations"


def test_a_method_of_ones_own_in_every_verb(faithmeter, checkpoint, here, monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    files = {"rightmost_of_mine.py": OWN, "reviews.toml": TASK, "small.toml": GRID}
    rows = [f"{first} {second},{number % 2}" for number, first in enumerate(WORDS) for second in WORDS[:11]]
    files["reviews.csv"] = "\n".join(["review,stars", *rows])
    for name, text in files.items():
        (here / name).write_text(text.replace("MODEL", str(checkpoint)))
    own = ("--import", "rightmost_of_mine")  # a module in the working directory
    try:
        assert faithmeter(*own, "grid", "small.toml").code == 0
        trained = next((here / "runs").glob("train-*"))
        shown = faithmeter(*own, "explain", trained, "the plot was dull", "-m", "rightmost", "--json")
        scores = [token["scores"]["rightmost"] for token in json.loads(shown.out)[0]["tokens"]]
        assert scores == [1, 2, 3, 4]
        measured = faithmeter(*own, "measure", trained, "-m", "rightmost", "--json")
        assert set(json.loads(measured.out)["methods"]) == {"random", "rightmost"}
        assert faithmeter(*own, "report", "--page-only").code == 0
        assert "rightmost" in (here / "report.html").read_text()
    finally:
        METHODS.pop("rightmost", None)  # the tests share one process
