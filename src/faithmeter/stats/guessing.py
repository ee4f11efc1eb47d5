"""Performance of guessing without reading the text, and whether a model is better than that."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .curves import Floats
from .intervals import FEW_RESAMPLES, Interval, widened_bca
from .metrics import NUMBER_METRICS, Metric, find_metric, kind_of
from .predictions import COUNTS, SHARES, resampling_weights

SHUFFLES = 20
"""Random orders of the labels that stand for random guesses, for a metric without a formula."""
FAST_RESAMPLES = 1999
"""Number of bootstrap resamples for a metric that counts give."""


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
    if metric in COUNTS and (kind_of(labels) == "single-label" or metric in NUMBER_METRICS):
        value, resampled, left_out = _fast_leads(metric, labels, predictions, classes, rng)
    else:
        value, resampled, left_out = _slow_leads(metric, labels, predictions, classes, rng)
    return Interval(value, *widened_bca(value, resampled, [left_out], 0.95), n)


Leads = tuple[float, Floats, Floats]
"""Lead on all texts, on resampled texts [R], and without each of the texts [N]."""


def _fast_leads(
    metric: str, labels: NDArray[Any], predictions: NDArray[Any], classes: int, rng: np.random.Generator
) -> Leads:
    """Return the leads of a metric that means of counts over texts give."""
    counts = COUNTS[metric].of_texts(labels, predictions[:, None], classes)[:, 0]  # [N, F]
    numbers = metric in NUMBER_METRICS
    shares = np.zeros((len(labels), 0)) if numbers else np.eye(classes)[labels]  # [N, C]
    features, n = np.concatenate([counts, shares], axis=1, dtype=np.float64), len(labels)

    def lead(means: Floats) -> Floats:
        score = COUNTS[metric].value(means[:, : counts.shape[1]])
        return score - (0.0 if numbers else _of_shares(metric, means[:, counts.shape[1] :]))

    total = features.sum(axis=0, keepdims=True)
    blocks = resampling_weights(n, FAST_RESAMPLES, rng)
    resampled = np.concatenate([lead(weights @ features / n) for weights in blocks])
    # without a text by subtraction: a matrix of weights [N, N] would not fit into memory
    return float(lead(total / n)[0]), resampled, lead((total - features) / (n - 1))


def _slow_leads(
    metric: str, labels: NDArray[Any], predictions: NDArray[Any], classes: int, rng: np.random.Generator
) -> Leads:
    """Return the leads of any metric, computed anew for each choice of texts."""
    every = np.arange(len(labels))

    def lead(rows: NDArray[np.int64]) -> float:
        return _lead(metric, labels[rows], predictions[rows], classes)

    drawn = chain.from_iterable(resampling_weights(len(labels), FEW_RESAMPLES, rng))
    resampled = np.array([lead(np.repeat(every, weights)) for weights in drawn])
    return lead(every), resampled, np.array([lead(np.delete(every, row)) for row in every])


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
    return max(filter(math.isfinite, values), default=0.0)
