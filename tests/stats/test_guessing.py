"""Best guesses that ignore the text, and how seldom a coin seems to have learned."""

import tracemalloc

import numpy as np
import pytest

from faithmeter.stats import guessing
from faithmeter.stats.guessing import best_guess, lead_over_guessing
from faithmeter.stats.metrics import find_metric


def test_best_guess_of_accuracy_is_the_most_frequent_class():
    assert best_guess("accuracy", np.array([0, 1, 1, 1]), 2) == 0.75


def test_best_guess_of_macro_f1_is_random():
    labels = np.array([0] * 90 + [1] * 10)
    assert best_guess("macro_f1", labels, 2) == 0.5
    constant = find_metric("macro_f1")(labels, np.zeros(100, int), 2)
    assert constant < 0.5


@pytest.mark.parametrize("share", [0.5, 0.2, 0.05])
def test_no_random_guess_has_a_higher_macro_f1(share):
    rng = np.random.default_rng(0)
    labels = (rng.random(100_000) < share).astype(int)
    for rate in (share, share / 2, 0.5, 0.9):
        guess = (rng.random(100_000) < rate).astype(int)
        assert find_metric("macro_f1")(labels, guess, 2) <= best_guess("macro_f1", labels, 2) + 0.01


def test_best_guess_of_several_labels():
    labels = np.array([[1, 0], [1, 0], [1, 1], [0, 0]])
    # the first label for all texts: 3 right of 4 guesses and 4 labels
    assert best_guess("micro_f1", labels, 2) == pytest.approx(2 * 3 / (4 + 4))
    assert best_guess("macro_f1", labels, 2) == pytest.approx((2 * 0.75 / 1.75 + 2 * 0.25 / 1.25) / 2)


def test_best_guess_of_numbers_and_correlations():
    assert best_guess("pearson", np.array([0.5, 1.5]), 2) == 0
    assert best_guess("matthews", np.array([0, 1, 1]), 2) == 0


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "matthews"])
def test_a_coin_seldom_seems_to_have_learned(metric):
    passes = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        labels, coin = rng.integers(2, size=(2, 64))
        passes += lead_over_guessing(metric, labels, coin, 2, seed=seed).lower > 0
    assert passes <= 9  # 5 expected; validation/controls counts more draws


def test_a_good_model_has_learned():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=64)
    predictions = np.where(rng.random(64) < 0.8, labels, rng.integers(3, size=64))
    lead = lead_over_guessing("accuracy", labels, predictions, 3)
    assert 0 < lead.lower < lead.mean < lead.upper


def test_half_of_useless_correlations_are_positive_but_few_pass():
    passes = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        passes += lead_over_guessing("pearson", *rng.normal(size=(2, 50)), 2).lower > 0
    assert passes <= 5


def test_a_lead_on_many_texts_needs_no_matrix_of_texts_by_texts(monkeypatch):
    """Ten resamples, as these take blocks of a fixed size; the matrix would take 3.2 GB."""
    monkeypatch.setattr(guessing, "FAST_RESAMPLES", 10)
    labels = np.arange(20_000) % 2
    tracemalloc.start()
    lead = guessing.lead_over_guessing("accuracy", labels, labels, 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lead.mean == 0.5
    assert peak < 1e8
