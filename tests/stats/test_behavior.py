"""Behavioral check: models that are calibrated, overconfident, biased or confused by masks."""

import math

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from faithmeter.errors import InputError
from faithmeter.stats.behavior import (
    MAX_EXCESS,
    RESAMPLES,
    Behavior,
    Finding,
    apply,
    check_behavior,
    intervals_of_means,
    recalibrate,
)
from faithmeter.stats.intervals import Interval
from faithmeter.stats.predictions import resampling_weights

RATES = (10, 50, 90)


def draw(texts: int, seed: int, classes: int = 2, strength: float = 2.0):
    """Logits of a calibrated model [N, S, C] that knows less at higher rates, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    evidence = strength * rng.normal(size=(texts, classes))
    labels = np.array([rng.choice(classes, p=p) for p in softmax(evidence, axis=1)])
    logits = np.stack([evidence, evidence, evidence], axis=1)
    return logits, labels


def check(change, texts=400, classes=2) -> Behavior:
    """Check a model whose logits at 50 % are changed."""
    (validation, known), (test, labels) = draw(texts, 1, classes), draw(texts, 2, classes)
    validation[:, 1], test[:, 1] = change(validation[:, 1]), change(test[:, 1])
    return check_behavior(recalibrate(validation, known, RATES), test, labels)


@pytest.mark.parametrize("classes", [2, 5])
def test_a_calibrated_model_is_accepted(classes):
    result = check(lambda logits: logits, texts=1000, classes=classes)
    assert result.outcome == "accepted"
    assert result.texts_needed is None
    assert max(abs(each.mean) for each in result.excess) < 0.02


def test_an_overconfident_rate_is_rejected_and_named():
    result = check(lambda logits: 4 * logits)
    assert result.outcome == "rejected"
    assert result.worst.percent == 50
    assert result.excess[1].lower > MAX_EXCESS > result.excess[0].upper


def test_a_rate_that_always_says_one_class_falls_short_of_guessing():
    def confused(logits):
        return np.column_stack([np.full(len(logits), 9.0), np.zeros(len(logits))])

    result = check(confused)
    assert result.outcome == "rejected"
    assert result.excess[1].mean > 1


def test_recalibration_finds_the_temperature_and_the_bias():
    logits, labels = draw(20_000, 0)
    changed = logits * 3 + np.array([1.0, -1.0])
    fit = recalibrate(changed, labels, RATES)
    assert list(fit.scales) == pytest.approx([1 / 3] * 3, rel=0.05)
    assert list(fit.biases[0]) == pytest.approx([-1 / 3, 1 / 3], abs=0.05)
    assert log_softmax(apply(fit, changed), axis=2) == pytest.approx(log_softmax(logits, axis=2), abs=0.3)


def test_few_texts_do_not_decide_and_say_how_many_would():
    result = check(lambda logits: logits, texts=30)
    assert result.outcome == "undecided"
    assert result.texts_needed is None or result.texts_needed > 30


def test_texts_needed_from_the_width():
    narrow, wide = Interval(0.0, -0.01, 0.01, 100), Interval(0.01, -0.07, 0.09, 100)
    result = Behavior((10,), (wide,), (narrow,), 100, 200)
    assert result.outcome == "undecided"
    assert result.texts_needed == math.ceil(100 * (0.08 / (MAX_EXCESS - 0.01)) ** 2)


@pytest.mark.parametrize(
    ("bounds", "outcome"),
    [((-0.1, 0.04), "accepted"), ((0.06, 0.2), "rejected"), ((0.0, 0.1), "undecided")],
)
def test_judging_an_interval(bounds, outcome):
    assert Finding(50, "excess", Interval(sum(bounds) / 2, *bounds, 50), 0.05).outcome == outcome


def test_labels_can_be_the_predictions_of_the_original():
    logits, _ = draw(1000, 3)
    original = logits[:, 0].argmax(axis=1)
    fit = recalibrate(logits[:500] * 20, original[:500], RATES)
    assert check_behavior(fit, logits[500:] * 20, original[500:]).outcome == "accepted"


def test_arrays_that_do_not_fit():
    with pytest.raises(InputError, match="3 labels at 2 rates"):
        recalibrate(np.zeros((4, 2, 2)), np.zeros(3, int), (10, 50))


def test_acceptance_of_a_model_beyond_the_margin_is_rare():
    """A model whose excess is exactly at the margin is accepted in about 5 % of checks, at most."""
    accepted = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        values = rng.normal(MAX_EXCESS, 0.3, (200, 1))
        weights = np.concatenate([*resampling_weights(200, RESAMPLES, rng)])
        [interval] = intervals_of_means(values, weights)
        accepted += Finding(50, "excess", interval, MAX_EXCESS).outcome == "accepted"
    assert accepted <= 11  # 5 expected; 11 or fewer in 99 % of series
