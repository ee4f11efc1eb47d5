"""Recalibration of masked predictions: how much better could they be without knowing more?

At each masking rate, a temperature and a bias for each class are fitted on masked validation texts. On test
texts, the log-loss of the model minus that of its recalibrated self is the excess that it could have avoided.
A model that understands masks has an excess of about 0 at every rate. `behavior` judges the result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .behavior import Behavior, Recalibration
from .curves import Floats
from .intervals import Interval, widened_bca
from .predictions import resampling_weights

CONFIDENCE = 0.90
"""Confidence of the two-sided intervals; each bound alone then holds in 95 % of checks."""
RESAMPLES = 1999
PRIOR_TEXTS = 1.0
"""Weight of the prior, a temperature of 1 and no bias, in texts; it keeps fits to few texts finite."""


def recalibrate(
    logits: NDArray[np.floating[Any]], labels: NDArray[np.int64], percents: Sequence[int]
) -> Recalibration:
    """Fit temperatures and class biases on validation texts, masked at random at each rate.

    Args:
        logits: Logits of the validation texts, [N, S, C].
        labels: Classes of these texts, [N]; for a model without labels, the original's predictions.
        percents: Masking rates in percent, [S].

    Raises:
        InputError: There are fewer than two texts, or the arrays do not fit each other.
    """
    if logits.ndim != 3 or len(logits) < 2 or logits.shape[:2] != (len(labels), len(percents)):
        raise InputError(
            f"logits of shape {logits.shape} for {len(labels)} labels at {len(percents)} rates; expected "
            "[texts, rates, classes] of at least two texts"
        )
    fits = [_fit(logits[:, step].astype(np.float64), labels) for step in range(len(percents))]
    constant = int(np.bincount(labels, minlength=logits.shape[2]).argmax())
    scales, biases = zip(*fits, strict=True)
    return Recalibration(tuple(percents), scales, biases, constant, len(labels))


def check_behavior(
    recalibration: Recalibration,
    logits: NDArray[np.floating[Any]],
    labels: NDArray[np.int64],
    *,
    seed: int = 0,
) -> Behavior:
    """Compare a model on masked test texts with its recalibrated self, and with guessing one class.

    Args:
        recalibration: What `recalibrate` fitted on validation texts.
        logits: Logits of the test texts at the same masking rates, [N, S, C].
        labels: Classes of these texts, or the original's predictions, [N].
        seed: Seed of the bootstrap.
    """
    own = logits.astype(np.float64)
    texts, _, classes = own.shape
    excess = _losses(own, labels) - _losses(apply(recalibration, own), labels)  # [N, S]
    # fitting k parameters costs k / 2N nats on new texts, which the excess over the best fit contains
    excess = excess + classes / (2 * recalibration.texts)
    right = own.argmax(axis=2) == labels[:, None]
    shortfall = (labels == recalibration.constant)[:, None] - right.astype(np.float64)
    weights = np.concatenate([*resampling_weights(texts, RESAMPLES, np.random.default_rng(seed))])
    return Behavior(
        recalibration.percents,
        intervals_of_means(excess, weights),
        intervals_of_means(shortfall, weights),
        texts,
        recalibration.texts,
    )


def apply(recalibration: Recalibration, logits: Floats) -> Floats:
    """Return the recalibrated logits [N, S, C]."""
    scales, biases = np.array(recalibration.scales), np.array(recalibration.biases)
    return np.asarray(logits * scales[:, None] + biases)


def intervals_of_means(values: Floats, weights: NDArray[np.int64]) -> tuple[Interval, ...]:
    """Return the mean of each column of values [N, S] with its interval; unknown for a single text."""
    n = len(values)
    resampled = weights @ values / n  # [R, S]
    intervals = []
    for column, drawn in zip(values.T, resampled.T, strict=True):
        mean = float(column.mean())
        bounds = (-math.inf, math.inf)
        if n > 1:
            bounds = widened_bca(mean, drawn, [(column.sum() - column) / (n - 1)], CONFIDENCE)
        intervals.append(Interval(mean, *bounds, n))
    return tuple(intervals)


def _losses(logits: Floats, labels: NDArray[np.int64]) -> Floats:
    """Return the log-loss [N, S] of logits [N, S, C]."""
    own = np.take_along_axis(logits, labels[:, None, None], axis=2)[:, :, 0]
    losses: Floats = np.logaddexp.reduce(logits, axis=2) - own
    return losses


def _fit(logits: Floats, labels: NDArray[np.int64]) -> tuple[float, tuple[float, ...]]:
    """Return the inverse temperature and the class biases with the smallest log-loss on logits [N, C]."""
    from scipy.optimize import minimize  # slow to import

    own = np.eye(logits.shape[1])[labels]  # [N, C]

    def loss(parameters: Floats) -> tuple[float, Floats]:
        scale, biases = math.exp(parameters[0]), parameters[1:]
        scaled = logits * scale + biases
        logs = scaled - np.logaddexp.reduce(scaled, axis=1, keepdims=True)
        error = np.exp(logs) - own  # [N, C]
        value = -float((logs * own).sum()) + PRIOR_TEXTS * float((parameters**2).sum()) / 2
        slope = np.array([scale * (error * logits).sum(), *error.sum(axis=0)])
        return value, slope + PRIOR_TEXTS * parameters

    best = minimize(loss, np.zeros(1 + logits.shape[1]), jac=True, method="L-BFGS-B").x
    return math.exp(best[0]), tuple(best[1:].tolist())
