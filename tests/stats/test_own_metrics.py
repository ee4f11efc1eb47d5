"""Metrics of one's own: plain functions, in Python and by --import."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import faithmeter as fm
from faithmeter.data import Task
from faithmeter.stats.metrics import OWN_METRICS, find_metric, majority, metric_code, name_metric, score
from toy import WORDS, tiny

FILE = """
import faithmeter as fm

@fm.metric("recall-of-1")
def recall(labels, predictions):
    return float(1 + (predictions[labels == 1] == 1).sum()) / {divisor}
"""


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    before = dict(OWN_METRICS)
    yield
    OWN_METRICS.clear()
    OWN_METRICS.update(before)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    path, rng = tmp_path / "reviews.csv", np.random.default_rng(0)
    rows = [f"{' '.join(rng.choice(WORDS, 5))},{n % 3}" for n in range(30)]
    path.write_text("\n".join(["review,stars", *rows]))
    return fm.own_task(path, text="review", label="stars", all_test=True)


def share_of_zeros(labels: np.ndarray, predictions: np.ndarray) -> float:
    return float((predictions[labels == 0] == 0).mean())


def test_a_function_is_measured_by(task: Task) -> None:
    clf = tiny()
    result = fm.measure(clf, task, ["grad-l2"], metric=share_of_zeros)
    assert result.metric == "share_of_zeros"
    labels = np.array(task.load()["test"]["label"][:])
    step = result.frame[(result.frame["method"] == "grad-l2") & (result.frame["percent"] == 50)]
    predictions = step.sort_values("row")["prediction"].to_numpy()
    assert result.curve("grad-l2").values[5] == share_of_zeros(labels, predictions)
    assert np.isfinite(result.intervals.acu("grad-l2").lower)
    named = fm.own_task(str(task.own.main), text="review", label="stars", metric=share_of_zeros)  # type: ignore[union-attr]
    assert named.metric == "share_of_zeros"


def test_the_name_of_a_built_in_metric_is_taken() -> None:
    with pytest.raises(fm.InputError, match="metric 'accuracy' is built in"):
        fm.metric("accuracy")
    with pytest.raises(fm.InputError, match="a metric named '<lambda>'; expected letters"):
        name_metric(lambda labels, predictions: 0.0)
    fm.metric("mine")(share_of_zeros)
    with pytest.raises(fm.InputError, match="metric 'mine' exists already"):
        fm.metric("mine")(lambda labels, predictions: 0.0)
    with pytest.raises(fm.InputError, match=r"unknown metric 'min'; did you mean 'mine'.*--import"):
        find_metric("min")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "metric 'odd' gave nan for 3 texts; expected a finite number"),
        (float("inf"), "metric 'odd' gave inf for 3 texts"),
        ("0.5", "metric 'odd' gave a str; expected a number"),
        (None, "metric 'odd' gave a NoneType; expected a number"),
        (True, "metric 'odd' gave a bool; expected a number"),
        (np.array([0.5, 1]), "metric 'odd' gave a ndarray; expected a number"),
    ],
)
def test_values_that_are_no_numbers_are_refused(value: object, message: str) -> None:
    fm.metric("odd")(lambda labels, predictions: value)  # type: ignore[arg-type,return-value]
    with pytest.raises(fm.InputError, match=message) as caught:
        score(["odd"], [0, 1, 2], [0, 1, 1], 3)
    assert "\n" not in str(caught.value)


def test_a_metric_is_defined_for_equal_predictions() -> None:
    fm.metric("correlation")(lambda labels, predictions: 0.0 if np.ptp(predictions) else float("nan"))
    with pytest.raises(fm.InputError, match="gave nan for 2 texts with equal predictions"):
        majority(["correlation"], [0, 1], [0, 1], 2)


def test_an_edited_metric_is_another_one(tmp_path: Path) -> None:
    codes = set()
    for divisor in (2, 3):
        path = tmp_path / f"mine{divisor}.py"
        path.write_text(FILE.format(divisor=divisor))
        space: dict[str, object] = {"__name__": "mine"}
        exec(compile(path.read_text(), path, "exec"), space)
        codes.add(metric_code("recall-of-1"))
    assert len(codes) == 2
    assert metric_code("accuracy") == ""


def test_a_metric_is_imported_and_belongs_to_the_identity(faithmeter, task: Task, tmp_path: Path) -> None:
    clf, checkpoint = tiny(), tmp_path / "model"
    clf.model.save_pretrained(checkpoint)
    clf.tokenizer.save_pretrained(checkpoint)
    data = ("--test", task.own.main, "--text", "review", "--label", "stars")  # type: ignore[union-attr]
    options = (*data, "-m", "grad-l2", "-o", tmp_path / "runs", "--json")
    values = []
    for divisor in (2, 4, 4):
        path = tmp_path / str(divisor) / "mine.py"  # a process imports each file once
        path.parent.mkdir(exist_ok=True)
        path.write_text(FILE.format(divisor=divisor))
        arguments = ("--import", path, "measure", checkpoint, *options)
        result = faithmeter(*arguments, "--metric", "recall-of-1")
        assert result.code == 0, result.err
        values.append(json.loads(result.out)["methods"]["grad-l2"]["curve"]["values"][0])
    assert values[0] == pytest.approx(2 * values[1])
    assert values[1] == values[2]
    assert len(list((tmp_path / "runs").glob("measure-*"))) == 2
    assert len(list((tmp_path / "runs").glob("traces/*/grad-l2-*"))) == 1  # erased once
    OWN_METRICS.pop("recall-of-1")
    result = faithmeter("measure", checkpoint, *options, "--metric", "recall-of-1")
    assert result.code == 2
    assert "your own metric must be imported first" in result.err
