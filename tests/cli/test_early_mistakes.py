"""Mistakes that were once noticed after the work, or ended in a traceback: one line before any work."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import fixtures_report
from faithmeter.errors import InputError
from faithmeter.store.run_store import RunStore
from toy import WORDS, tiny

COLUMNS = ("--text", "review", "--label", "stars")
UNWRITABLE = Path("/proc/faithmeter")
on_linux = pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and files of 12, 30, 70 and 220 rows."""
    folder, rng = tmp_path_factory.mktemp("early"), random.Random(0)
    clf = tiny(dtype=torch.float32, labels=2)
    clf.model.save_pretrained(folder / "model")
    clf.tokenizer.save_pretrained(folder / "model")
    clf.model.config.id2label = {0: "good", 1: "bad"}
    clf.model.save_pretrained(folder / "named")
    clf.tokenizer.save_pretrained(folder / "named")
    for count in (7, 12, 30, 70, 220):
        rows = (f"{' '.join(rng.choices(WORDS, k=6))},{'ab'[number % 2]}" for number in range(count))
        (folder / f"{count}.csv").write_text("\n".join(["review,stars", *rows]))
    return folder


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The working directory, in which nothing is worked on."""

    def work(*_: object, **__: object) -> None:
        raise InputError("the work began")

    monkeypatch.chdir(folder)
    parts = ("training.finetuning.finetune", "models.evaluator.Evaluator.logits", "report.page._draw")
    for name in (*parts, "measuring.one_text.explain_texts"):
        monkeypatch.setattr(f"faithmeter.{name}", work)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "--data", "220.csv", *COLUMNS, "--model", "./nowhere"), "there is no folder './nowhere'"),
        (("train", "--data", "12.csv", *COLUMNS), "12.csv: 12 rows in all; expected at least 40"),
        (("adapt", "model", "--data", "70.csv", "--text", "review"), "7 validation texts; expected at least"),
        (
            ("adapt", "model", "--data", "220.csv", "--valid", "7.csv", "--text", "review"),
            "7 validation texts; expected at least 20",
        ),
        (("check", "model", "--test", "30.csv", *COLUMNS), "give a file of at least 20 with --valid"),
        (("check", "model", "--test", "30.csv", "--valid", "7.csv", *COLUMNS), "7 validation rows; the"),
        (("measure", "model", "--test", "30.csv", *COLUMNS, "--classes", "a"), "--classes 'a': 'a'; expect"),
        (("measure", "named", "--test", "30.csv", *COLUMNS), "say which is which, --classes a=…,b=…"),
        (("measure", "model", "--test", "30.csv", *COLUMNS, "-m", "beam(width=0)"), "expected at least 1"),
        (("explain", "model", "a film", "-m", "int-grad-sign(steps=0)"), "expected at least 1, such as"),
    ],
)  # fmt: skip
def test_rows_and_models_are_looked_at_first(faithmeter, arguments: tuple[str, ...], message: str) -> None:
    outcome = faithmeter(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    *bounds, line = outcome.err.splitlines()
    assert message in line
    assert all("evaluations at most" in bound for bound in bounds)


def test_too_few_validation_rows_for_the_check_are_named_before_the_training(faithmeter) -> None:
    data = ("--data", "220.csv", "--valid", "7.csv", "--test", "30.csv", *COLUMNS)
    first, last = faithmeter("train", *data, "--model", "model", "--json").err.splitlines()
    assert first.startswith(
        "7 validation rows: check and measure need at least 20; give more rows, or a file"
    )
    assert last == "error: the work began"


@on_linux
@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "--data", "220.csv", *COLUMNS, "--model", "model", "-o", UNWRITABLE),
        ("adapt", "model", "--data", "220.csv", "--text", "review", "-o", UNWRITABLE),
        ("audit", "model", "--data", "220.csv", "--text", "review", "-o", UNWRITABLE),
        ("measure", "model", "--task", "bAbI-1", "-o", UNWRITABLE),
        ("check", "model", "--task", "bAbI-1", "-o", UNWRITABLE),
        ("demo", "-o", UNWRITABLE),
        ("report", "store", "-o", UNWRITABLE / "report.html"),
        ("report", "store", "--gallery", UNWRITABLE),
        ("explain", "model", "a film", "--html", "/proc/a.html"),
        ("explain", "model", "a film", "--csv", "/proc/a.csv"),
    ],
    ids=lambda arguments: " ".join(map(str, arguments[:1])),
)
def test_a_place_that_cannot_be_written_is_named_first(faithmeter, arguments: tuple[object, ...]) -> None:
    if not Path("store").exists():
        fixtures_report.train(RunStore(Path("store")))
    outcome = faithmeter(*arguments)
    assert outcome.code == 2
    line = outcome.err.splitlines()[-1]
    assert line.startswith("error: --")
    assert "cannot be written: " in line
    assert "/proc" in line


def test_a_full_disk_in_a_report_names_the_place(
    faithmeter, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    """A failed write has no file name, unlike a failed opening."""

    def write(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    fixtures_report.train(RunStore(tmp_path / "store"))
    monkeypatch.setattr("faithmeter.report.page._draw", write)
    for arguments, place in (
        (("-o", tmp_path / "out" / "report.html"), tmp_path / "out"),
        (("--gallery", tmp_path / "site"), tmp_path / "site"),
    ):
        outcome = faithmeter("report", tmp_path / "store", *arguments)
        assert outcome.code == 2
        assert f"cannot write to {place}: No space left on device; free some space" in outcome.err


def test_a_deleted_working_directory_is_one_line(faithmeter, monkeypatch, tmp_path) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    outcome = faithmeter("train", "--limit", 8, "-o", "runs")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "error: the working directory was deleted; change to a folder that exists (cd)\n"
