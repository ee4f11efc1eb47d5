"""Metrics by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.metrics import f1_score

import faithmeter as fm
from faithmeter.stats.metrics import majority, score


def test_metrics_of_six_rows_by_hand() -> None:
    labels, predictions = [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2]
    result = score(["accuracy", "micro_f1", "macro_f1", "matthews"], labels, predictions, 3)
    assert result["accuracy"] == result["micro_f1"] == pytest.approx(4 / 6)
    assert result["macro_f1"] == pytest.approx((2 * 2 / 5 + 2 * 1 / 4 + 2 * 1 / 3) / 3)
    # R_K: (c s - sum p t) / sqrt((s² - sum p²)(s² - sum t²)), t = 3 2 1, p = 2 2 2
    assert result["matthews"] == pytest.approx((4 * 6 - 12) / ((36 - 12) * (36 - 14)) ** 0.5)


def test_a_class_that_never_occurs_counts_as_zero_in_macro_f1() -> None:
    assert score(["macro_f1"], [0, 1], [0, 1], 4)["macro_f1"] == pytest.approx(0.5)


def test_the_majority_class_is_that_of_the_training_split() -> None:
    baseline = majority(["accuracy", "macro_f1", "matthews"], [1, 1, 0], [0, 0, 1], 2)
    assert baseline == {"accuracy": pytest.approx(1 / 3), "macro_f1": pytest.approx(0.25), "matthews": 0.0}


def test_of_equally_frequent_classes_the_first_is_the_majority() -> None:
    assert majority(["accuracy"], [1, 0], [0, 0], 2)["accuracy"] == 1.0


def test_agreement_is_for_labels_by_a_model_only() -> None:
    assert score(["agreement"], [0, 1, 1], [0, 1, 0], 2) == {"agreement": pytest.approx(2 / 3)}
    with pytest.raises(fm.InputError, match="'agreement' is not for single-label tasks"):
        fm.task("bAbI-1").with_metric("agreement")


@pytest.mark.parametrize("name", ["micro_f1", "macro_f1"])
@pytest.mark.parametrize("several", [False, True], ids=["one label", "several labels"])
def test_f1_is_that_of_scikit_learn(name: str, several: bool) -> None:
    rng = np.random.default_rng(0)
    for classes, texts in product((2, 3, 7), (1, 2, 30)):
        high = 2 if several else classes
        labels, predictions = rng.integers(high, size=(2, texts, *[classes] * several))
        expected = f1_score(
            labels,
            predictions,
            labels=range(classes),
            average=name.removesuffix("_f1"),
            zero_division=0,
        )
        assert score([name], labels, predictions, classes)[name] == pytest.approx(expected, abs=1e-15)
