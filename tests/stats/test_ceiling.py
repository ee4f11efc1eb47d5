"""The ceiling: the best erasure of each text by hand, its laws, and its place in a measurement."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import faithmeter as fm
from faithmeter.measuring.result import Result
from faithmeter.stats.curves import acu
from faithmeter.stats.predictions import Predictions, best_erasures
from toy import WORDS, tiny

RANDOM = [[0, 0, 0, 1], [1, 1, 1, 0]]  # two texts of the classes 0 and 1, at 0, 10, 50 and 100 %


def test_each_text_has_its_own_best_method() -> None:
    methods = {"random": RANDOM, "a": [[0, 1, 1, 1], [1, 1, 1, 0]], "b": [[0, 0, 1, 1], [1, 1, 0, 0]]}
    arrays = {name: np.array(values) for name, values in methods.items()}
    predictions = Predictions(np.array([0, 1]), arrays, 2, "accuracy", (0, 10, 50, 100))
    assert best_erasures(predictions).tolist() == [[[0, 1, 1, 1], [1, 1, 0, 0]]]


@given(st.integers(2, 4), st.integers(1, 12), st.integers(0, 10_000))
@settings(max_examples=30)
def test_no_method_is_above_the_ceiling_in_accuracy(methods: int, texts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=texts)
    arrays = {f"m{number}": rng.integers(3, size=(texts, 5)) for number in range(methods)}
    arrays["random"] = rng.integers(3, size=(texts, 5))
    predictions = Predictions(labels, arrays, 3, "accuracy", (0, 10, 30, 60, 100))
    right = (best_erasures(predictions)[0] == labels[:, None]).mean(axis=0)
    area = np.trapezoid(right, predictions.ratios)
    every = [np.trapezoid((a == labels[:, None]).mean(axis=0), predictions.ratios) for a in arrays.values()]
    assert area <= min(every) + 1e-12


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> fm.Result:
    path, rng = tmp_path_factory.mktemp("data") / "reviews.csv", random.Random(0)
    rows = [f"{' '.join(rng.choices(WORDS, k=rng.randint(3, 9)))},{'abc'[row % 3]}" for row in range(15)]
    path.write_text("\n".join(["text,label", *rows]))
    task = fm.own_task(path, text="text", label="label", all_test=True)
    return fm.measure(tiny(), task, ["loo-sign", "exhaustive", "search(budget=2)"])


def test_shares_of_the_ceiling(result: fm.Result) -> None:
    assert result.ceiling is not None
    highest = acu(result.ceiling, result.curve("random"))
    assert result.share_of_ceiling("loo-sign") == pytest.approx(result.acu("loo-sign") / highest)
    assert all(result.share_of_ceiling(name) <= 1 for name in result.methods)
    first = result.table().iloc[0]
    assert first["share_of_ceiling"] == pytest.approx(first["acu"] / highest)
    recorded = result.to_dict()["ceiling"]
    assert recorded["acu"] == highest
    assert recorded["curve"]["values"] == result.ceiling.values


def test_without_a_search_or_another_method_there_is_no_ceiling(result: fm.Result) -> None:
    for methods in (["random", "loo-sign"], ["random", "search(budget=2)"]):
        few = Result(({name: result.seeds[0][name] for name in methods},), result.context)
        assert few.ceiling is None
        assert math.isnan(few.share_of_ceiling(methods[-1]))
        assert few.to_dict()["ceiling"] is None


def test_evaluations_alone_do_not_depend_on_the_other_methods(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text("text,label\nthe film was not good,a\nvery dull story,b\na fun plot,c\n")
    task, clf = fm.own_task(path, text="text", label="label", all_test=True), tiny()
    together = fm.measure(clf, task, ["loo-sign", "loo-sign(of=margin)", "int-grad-sign(steps=2)"])
    for name in ("loo-sign", "loo-sign(of=margin)", "int-grad-sign(steps=2)"):
        alone = fm.measure(clf, task, [name])
        assert together.evaluations_alone[name] == alone.evaluations_alone[name]
        assert together.evaluations[name] <= alone.evaluations[name] <= alone.evaluations_alone[name]
    assert together.evaluations["loo-sign(of=margin)"] < together.evaluations_alone["loo-sign(of=margin)"]
