"""Tests of a checkpoint: verified, found without the data, and kept even if it can only be read."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import faithmeter as fm
from faithmeter.config import MeasureConfig
from faithmeter.errors import DamageWarning
from faithmeter.measuring import fitting as check
from faithmeter.runs.fitted_tests import load_tests, saved_tests

ROWS = [f"the {'apple' if i % 2 else 'milk'} number {i},{'fruit' if i % 2 else 'drink'}" for i in range(240)]
OWN = {"data": "reviews.csv", "text": "review", "label": "kind", "epochs": 1}
TEXT = "the milk number 3"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that was trained with a relative path to its data, which are gone since."""
    folder = tmp_path_factory.mktemp("original")
    (folder / "reviews.csv").write_text("\n".join(["review,kind", *ROWS]))
    before = Path.cwd()
    os.chdir(folder)
    try:
        fm.train(fm.TrainConfig(**OWN), fm.RunStore("runs"))
    finally:
        os.chdir(before)
    (folder / "reviews.csv").rename(folder / "moved.csv")
    return folder


@pytest.fixture
def checkpoint(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its copy, in another place, with another working directory."""
    [run] = original.glob("runs/train-*")
    shutil.copytree(run, tmp_path / "anywhere" / "my model")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "anywhere" / "my model"


def fail(*_: Any, **__: Any) -> None:
    pytest.fail("the tests were fitted again")


def test_single_texts_need_no_data(faithmeter, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "fit_tests", fail)
    outcome = faithmeter("explain", checkpoint, TEXT, "-m", "grad-l2", "--json")
    assert outcome.code == 0, outcome.err
    assert set(json.loads(outcome.out)[0]["erasures"]["grad-l2"]["p"]) == {
        "published",
        "crossfit",
    }
    assert fm.pipeline(checkpoint, method="grad-l2")(TEXT)["p_value"] is not None
    record = json.loads((checkpoint / "record.json").read_text())
    assert record["columns"] == ["text"]


def test_too_few_validation_rows_for_a_test_do_not_stop_single_texts(
    faithmeter, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a checkpoint has no fitted tests; moved, it has no data to fit them on either."""
    for file in checkpoint.glob("masf-*"):
        file.unlink()
    monkeypatch.setattr("faithmeter.runs.fitted_tests.MIN_ROWS", 10_000)
    outcome = faithmeter("explain", checkpoint, TEXT, "-m", "grad-l2")
    assert outcome.code == 0, outcome.err
    assert "no check was made" in outcome.out
    result = fm.pipeline(checkpoint, method="grad-l2")(TEXT)
    assert result["p_value"] is None
    assert not result["trusted"]


def test_only_the_task_needs_the_data_and_they_may_be_named(
    faithmeter, checkpoint: Path, original: Path
) -> None:
    outcome = faithmeter("measure", checkpoint, "-m", "grad-l2", "-o", "runs")
    assert outcome.code == 2
    assert "if the data of" in outcome.err
    assert "give --data" in outcome.err
    measure = ("measure", checkpoint, "-m", "grad-l2", "--data", original / "moved.csv", "-o", "runs")
    assert faithmeter(*measure, "--json").code == 0
    [(_, record)] = fm.RunStore("runs").records()
    assert record.trained.task_or_data == "reviews.csv", "the same rows: it keeps its name"


def test_a_checkpoint_that_can_only_be_read_keeps_its_tests_in_the_cache(
    checkpoint: Path, original: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for file in checkpoint.glob("masf-*"):
        file.unlink()
    record = json.loads((checkpoint / "record.json").read_text())
    monkeypatch.chdir(original)
    (original / "reviews.csv").symlink_to(original / "moved.csv")
    replace = os.replace

    def refuse(source: Any, target: Any) -> None:
        if Path(target).parent == checkpoint:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    clf = fm.load(checkpoint)
    first = load_tests(clf, checkpoint, MeasureConfig())
    (original / "reviews.csv").unlink()
    monkeypatch.setattr(check, "fit_tests", fail)
    again = load_tests(clf, checkpoint, MeasureConfig())
    assert first is not None
    assert again is not None
    assert (again["crossfit"].statistics_ == first["crossfit"].statistics_).all()
    assert len(list(tmp_path.glob(f"cache/faithmeter/tests/{record['fingerprint']}/masf-*"))) == 2


def test_a_test_under_the_name_of_another_is_fitted_again(
    checkpoint: Path, original: Path, monkeypatch
) -> None:
    clf = fm.load(checkpoint)
    [published], [crossfit] = (list(checkpoint.glob(f"masf-{n}-*")) for n in ("published", "crossfit"))
    shutil.copy(published, crossfit)
    (original / "reviews.csv").symlink_to(original / "moved.csv")
    monkeypatch.chdir(original)
    with pytest.warns(DamageWarning, match="is of the calibration published, not crossfit"):
        tests = load_tests(clf, checkpoint, MeasureConfig())
    (original / "reviews.csv").unlink()
    assert tests is not None
    assert tests["crossfit"].calibration == "crossfit"


def test_measure_uses_the_tests_beside_a_checkpoint(checkpoint: Path, original: Path) -> None:
    """They were fitted by the training, and without them no area can be trusted."""
    clf = fm.load(checkpoint)
    task = fm.own_task(original / "moved.csv", text="review", label="kind")
    result = fm.measure(clf, task, ["grad-l2"], limit=8)
    assert result.tests == ["published", "crossfit"]
    assert result.context.floors == {name: test.smallest_p() for name, test in saved_tests(clf).items()}
    assert fm.measure(clf, task, ["grad-l2"], limit=8, tests=None).tests == []


def test_python_uses_the_tests_beside_a_checkpoint_as_the_command_line_does(
    faithmeter, checkpoint: Path, original: Path
) -> None:
    """Without them, no area proves anything, and that was the default in Python."""
    task = fm.own_task(original / "moved.csv", text="review", label="kind")
    result = fm.measure(fm.load(checkpoint), task, ["grad-l2"], limit=12)
    data = ("--data", original / "moved.csv")
    outcome = faithmeter("measure", checkpoint, *data, "-m", "grad-l2", "--limit", 12, "-o", "runs", "--json")
    assert outcome.code == 0, outcome.err
    printed = json.loads(outcome.out)
    for method, one in printed["methods"].items():
        assert one["p"] == pytest.approx({test: result.p(method, test) for test in ("published", "crossfit")})
    assert {doubt["kind"] for doubt in printed["doubts"]} == {doubt.kind for doubt in result.doubts}
    text = fm.explain_text(fm.load(checkpoint), TEXT, orders=19)
    assert text.floors == {name: test.smallest_p() for name, test in saved_tests(fm.load(checkpoint)).items()}
    assert "no check was made" not in str(text.verdict), "which it said without looking"
    assert fm.pipeline(fm.load(checkpoint), orders=19)(TEXT)["p_value"] is not None
    without = fm.measure(fm.load(checkpoint), task, ["grad-l2"], limit=12, tests=None)
    assert not without.tests
