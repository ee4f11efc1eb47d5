"""Metrics of numbers: by hand, beside scipy and scikit-learn, and from weighted means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import r2_score

from faithmeter.errors import InputError
from faithmeter.stats.comparisons import _pooled_influences
from faithmeter.stats.metrics import NUMBER_METRICS, kind_of, majority, mean_loss, predict, score
from faithmeter.stats.predictions import Predictions, resampling_weights

PERCENTS = (0, 50, 100)


def random_numbers(seed: int, metric: str, texts: int = 9) -> Predictions:
    """Numbers of three methods that get worse step by step; some labels are equal."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=texts) * 0.5 + 100
    noise = {name: rng.normal(size=(2, texts, 3)) * (1, 2, 4) for name in ("random", "a", "b")}
    methods = {name: labels[None, :, None] + values for name, values in noise.items()}
    return Predictions(labels, methods, 2, metric, PERCENTS)


def test_metrics_of_four_numbers_by_hand() -> None:
    labels, predictions = [1.0, 2.0, 3.0, 6.0], [2.0, 1.0, 3.0, 4.0]
    result = score(["pearson", "spearman", "r2"], labels, predictions, 1)
    # means 3 and 2.5; sums of products 7, of squares 14 and 5
    assert result["pearson"] == pytest.approx(7 / (14 * 5) ** 0.5)
    assert result["spearman"] == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert result["r2"] == pytest.approx(1 - (1 + 1 + 0 + 4) / 14)


@given(st.integers(0, 2**32 - 1))
def test_metrics_are_those_of_scipy_and_sklearn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels, predictions = rng.integers(6, size=12) / 2, rng.normal(3, 2, size=12)
    labels[:2] = 0, 3
    result = score([*NUMBER_METRICS], labels, predictions, 1)
    assert result["pearson"] == pytest.approx(stats.pearsonr(labels, predictions).statistic)
    assert result["spearman"] == pytest.approx(stats.spearmanr(labels, predictions).statistic)
    assert result["r2"] == pytest.approx(r2_score(labels, predictions))


def test_constant_predictions_do_not_correlate() -> None:
    labels, constant = np.array([1.0, 2.0, 4.0]), np.full(3, 2.5)
    assert score(["pearson", "spearman"], labels, constant, 1) == {"pearson": 0, "spearman": 0}
    rounded = constant + np.array([0, 1e-7, 2e-7])  # the same number, as batches compute it
    assert score(["pearson", "spearman"], labels, rounded, 1) == {"pearson": 0, "spearman": 0}
    assert majority(["pearson", "spearman", "r2"], labels, labels, 1) == {
        "pearson": 0,
        "spearman": 0,
        "r2": 0,
    }


def test_the_mean_is_that_of_the_training_numbers() -> None:
    # always 2 where the truth is 1 and 5, whose mean is 3: errors 1 and 9, squares around the mean 4 and 4
    assert majority(["r2"], [1.0, 3.0], [1.0, 5.0], 1)["r2"] == pytest.approx(1 - 10 / 8)


def test_the_loss_of_numbers_is_the_mean_squared_error() -> None:
    logits, labels = np.array([[1.0], [4.0]]), np.array([2.0, 4.5])
    assert predict(logits, "regression").tolist() == [1.0, 4.0]
    assert mean_loss(logits, labels) == pytest.approx((1 + 0.25) / 2)
    assert kind_of(labels) == "regression"


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(NUMBER_METRICS)))
def test_weighted_curves_are_the_metric_of_texts_counted_so_often(seed: int, metric: str) -> None:
    predictions = random_numbers(seed, metric)
    [weights] = resampling_weights(9, 3, np.random.default_rng(seed))
    curves = predictions.weighted_curves([weights])["a"]
    for row, times in enumerate(weights):
        rows = np.repeat(np.arange(9), times)
        for number, of_seed in enumerate(predictions.methods["a"]):
            expected = [
                score([metric], predictions.labels[rows], step[rows], 2)[metric] for step in of_seed.T
            ]
            assert curves[row, number] == pytest.approx(expected, abs=1e-6)


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(NUMBER_METRICS)))
def test_left_out_curves_are_the_metric_of_the_other_texts(seed: int, metric: str) -> None:
    predictions = random_numbers(seed, metric)
    curves = predictions.left_out_curves("b")
    for text in range(9):
        labels = np.delete(predictions.labels, text)
        others = np.delete(predictions.methods["b"], text, axis=1)
        expected = [[score([metric], labels, step, 2)[metric] for step in of_seed.T] for of_seed in others]
        assert curves[text] == pytest.approx(np.array(expected), abs=1e-9)


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(NUMBER_METRICS)))
def test_swapping_two_methods_at_a_text_changes_only_the_sign_of_its_contribution(
    seed: int, metric: str
) -> None:
    predictions = random_numbers(seed, metric)
    swapped = np.random.default_rng(seed).random(9) < 0.5
    where, arrays = swapped[None, :, None], predictions.methods
    other = {
        **arrays,
        "a": np.where(where, arrays["b"], arrays["a"]),
        "b": np.where(where, arrays["a"], arrays["b"]),
    }
    before, after = (
        _pooled_influences(Predictions(predictions.labels, of, 2, metric, PERCENTS), "a", "b")
        for of in (arrays, other)
    )
    assert after == pytest.approx(np.where(swapped, -before, before), abs=1e-8)


def test_numbers_must_be_finite() -> None:
    methods = {"random": np.array([[1.0, 2.0], [np.nan, 1.0]])}
    with pytest.raises(InputError, match="that are not finite; expected numbers"):
        Predictions(np.array([1.0, 2.0]), methods, 2, "pearson", (0, 100))
