"""Performance of guessing without reading the text, and whether a model is better than that."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bounds import widened_bca
from .counts import COUNTS, SHARES
from .intervals import FEW_RESAMPLES, Interval
from .metric_definitions import NUMBER_METRICS, Metric
from .metrics import find_metric, kind_of
from .predictions import resampling_weights

SHUFFLES = 20
"""Random orders of the labels that stand for random guesses, for a metric without a formula."""
FAST_RESAMPLES = 1999
"""Number of bootstrap resamples for a metric that counts give."""
Floats = NDArray[np.float64]


def best_guess(metric: str, labels: NDArray[Any], classes: int) -> float:
    """Return the best performance that guesses reach that do not depend on the text.

    A guess is the same for all texts or drawn at random with any probabilities. Constants are best for
    accuracy; for macro F1 it is best to guess each class as often as it occurs, which gives 1/C.
    """
    if kind_of(labels) == "single-label" and metric in (*SHARES, "macro_f1", "matthews"):
        return float(_of_shares(metric, np.bincount(labels, minlength=classes) / len(labels)))
    if metric in NUMBER_METRICS:
        return 0.0
    if metric in ("micro_f1", "macro_f1"):
        return _of_several(metric, labels.mean(axis=0))
    return _by_trying(find_metric(metric), labels, classes)


def lead_over_guessing(
    metric: str, labels: NDArray[Any], predictions: NDArray[Any], classes: int, *, seed: int = 0
) -> Interval:
    """Return how much a model is better than the best guess, with an interval over texts.

    A model has learned something if the lower bound is above 0. The guess is recomputed for each resample,
    as it is as uncertain as the model's performance.

    Args:
        metric: Name of the metric.
        labels: True classes, or numbers, of the whole texts, [N].
        predictions: Predicted classes, or numbers, [N].
        classes: Number of classes.
        seed: Seed of the resampling.
    """
    rng, n = np.random.default_rng(seed), len(labels)
    if n < 2:
        return Interval.undefined(n)
    fast = metric in COUNTS and (kind_of(labels) == "single-label" or metric in NUMBER_METRICS)
    lead = _fast_lead(metric, labels, predictions, classes) if fast else None
    if lead is None:

        def lead(weights: NDArray[np.int64]) -> Floats:
            rows = [np.repeat(np.arange(n), times) for times in weights]
            return np.array([_lead(metric, labels[row], predictions[row], classes) for row in rows])

    everything = np.ones((1, n), np.int64)
    value = float(lead(everything)[0])
    resampled = np.concatenate(
        [lead(block) for block in resampling_weights(n, FAST_RESAMPLES if fast else FEW_RESAMPLES, rng)]
    )
    left_out = lead(everything - np.eye(n, dtype=np.int64))
    return Interval(value, *widened_bca(value, resampled, [left_out], 0.95), n)


def _fast_lead(metric: str, labels: NDArray[Any], predictions: NDArray[Any], classes: int) -> Any:
    """Return a function of weights [R, N] that returns the lead [R] of a metric that counts give."""
    counts = COUNTS[metric].of_texts(labels, predictions[:, None], classes)[:, 0]  # [N, F]
    of_class = None if metric in NUMBER_METRICS else np.eye(classes)[labels]

    def lead(weights: NDArray[np.int64]) -> Floats:
        total = weights.sum(axis=1, keepdims=True)
        score = COUNTS[metric].value(weights @ counts / total)
        return score - (0.0 if of_class is None else _of_shares(metric, weights @ of_class / total))

    return lead


def _lead(metric: str, labels: NDArray[Any], predictions: NDArray[Any], classes: int) -> float:
    return find_metric(metric)(labels, predictions, classes) - best_guess(metric, labels, classes)


def _of_shares(metric: str, shares: Floats) -> Floats:
    """Return the best guess [...] for one of several classes with these shares [..., C]."""
    if metric == "matthews":
        return np.zeros(shares.shape[:-1])
    if metric == "macro_f1":  # the mean of 2qp / (q + p) over classes is largest for q = p
        return np.asarray((shares > 0).mean(axis=-1) / np.maximum((shares > 0).sum(axis=-1), 1))
    return np.asarray(shares.max(axis=-1))


def _of_several(metric: str, shares: Floats) -> float:
    """Return the best guess for several labels at once, each of which this share of the texts has."""
    if metric == "macro_f1":  # guessing a label for every text is best for its F1
        return float((2 * shares / (1 + shares)).mean())
    falling = np.sort(shares)[::-1]  # the best guess names the most frequent labels, for all texts
    counts = np.arange(1, len(shares) + 1)
    return float((2 * falling.cumsum() / (counts + shares.sum())).max())


def _by_trying(metric: Metric, labels: NDArray[Any], classes: int) -> float:
    """Return the best of all constants and of the mean over random orders of the labels."""
    rng = np.random.default_rng(0)
    guesses: list[NDArray[Any]]
    if kind_of(labels) == "regression":
        guesses = [np.full(len(labels), labels.mean())]
    elif kind_of(labels) == "multi-label":
        frequent = (labels.mean(axis=0) > 0.5).astype(labels.dtype)
        guesses = [np.zeros_like(labels), np.ones_like(labels), np.broadcast_to(frequent, labels.shape)]
    else:
        guesses = [np.full(len(labels), number) for number in range(classes)]
    values = [metric(labels, guess, classes) for guess in guesses]
    shuffled = [metric(labels, rng.permutation(labels), classes) for _ in range(SHUFFLES)]
    values.append(sum(shuffled) / SHUFFLES)
    return max((value for value in values if math.isfinite(value)), default=0.0)
