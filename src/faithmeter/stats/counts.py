"""Metrics from weighted means of counts per text, for fast resampling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..config import AGREEMENT, OWN_AGREEMENT
from .metrics import MEAN, ROUNDING, standardized


class Counts(NamedTuple):
    """Pair of functions that compute a metric from weighted means of counts per text.

    With them, one matrix product evaluates thousands of weightings of the texts.
    """

    of_texts: Callable[[NDArray[Any], NDArray[Any], int], NDArray[Any]]
    """Function of labels [N], predictions [N, S] and the number of classes; returns counts [N, S, F]."""
    value: Callable[[NDArray[Any]], NDArray[np.float64]]
    """Function of the weighted means [..., F] of the counts; returns the metric [...]."""


def _hits(labels: NDArray[Any], predictions: NDArray[Any], classes: int) -> NDArray[np.float32]:
    return np.asarray(labels[:, None] == predictions, np.float32)[..., None]


def _confusion(labels: NDArray[Any], predictions: NDArray[Any], classes: int) -> NDArray[np.float32]:
    """Return counts [N, S, 3 C]: correct predictions, predictions and labels of each of the C classes."""
    one_hot = np.eye(classes, dtype=np.float32)
    predicted, labeled = (
        one_hot[predictions],
        np.broadcast_to(one_hot[labels][:, None], (*predictions.shape, classes)),
    )
    return np.concatenate([predicted * labeled, predicted, labeled], axis=-1)


def _macro_f1_value(means: NDArray[Any]) -> NDArray[np.float64]:
    hits, predicted, labeled = np.split(means.astype(np.float64), 3, axis=-1)
    both = predicted + labeled
    f1 = np.divide(2 * hits, both, out=np.zeros_like(both), where=both > 0)
    return np.asarray(f1.mean(axis=-1))


def _matthews_value(means: NDArray[Any]) -> NDArray[np.float64]:
    hits, predicted, labeled = np.split(means.astype(np.float64), 3, axis=-1)
    covariance = hits.sum(-1) - (predicted * labeled).sum(-1)
    spread = (1 - (predicted**2).sum(-1)) * (1 - (labeled**2).sum(-1))
    # The coefficient is 0 if all labels, or all predictions, are of one class.
    defined = spread > 1e-12
    return np.where(defined, covariance / np.sqrt(np.where(defined, spread, 1)), 0.0)


def _moments(labels: NDArray[Any], predictions: NDArray[Any], classes: int) -> NDArray[np.float64]:
    """Return counts [N, S, 5]: both standardized numbers, their squares and their product."""
    y = np.broadcast_to(standardized(labels)[:, None], predictions.shape)
    x = standardized(predictions)
    return np.stack([x, y, x * x, y * y, x * y], axis=-1)


def _pearson_value(means: NDArray[Any]) -> NDArray[np.float64]:
    x, y, xx, yy, xy = np.moveaxis(means.astype(np.float64), -1, 0)
    spread = (xx - x * x) * (yy - y * y)
    defined = spread > ROUNDING**2
    return np.where(defined, (xy - x * y) / np.sqrt(np.where(defined, spread, 1)), 0.0)


def _errors(labels: NDArray[Any], predictions: NDArray[Any], classes: int) -> NDArray[np.float64]:
    """Return counts [N, S, 3]: the standardized label, its square, and the squared error in that unit."""
    y = np.broadcast_to(standardized(labels)[:, None], predictions.shape)
    error = (predictions - np.asarray(labels)[:, None]) / (np.std(labels) or 1)
    return np.stack([y, y * y, error * error], axis=-1)


def _r2_value(means: NDArray[Any]) -> NDArray[np.float64]:
    y, yy, error = np.moveaxis(means.astype(np.float64), -1, 0)
    spread = yy - y * y
    defined = spread > ROUNDING
    return np.where(defined, 1 - error / np.where(defined, spread, 1), 0.0)


def _numbers(labels: NDArray[Any], predictions: NDArray[Any], classes: int) -> NDArray[np.float64]:
    """Return the predicted numbers as counts [N, S, 1]."""
    return np.asarray(predictions, np.float64)[..., None]


_SHARE = Counts(_hits, lambda means: means[..., 0].astype(np.float64))

COUNTS: dict[str, Counts] = {
    "accuracy": _SHARE,
    AGREEMENT: _SHARE,
    OWN_AGREEMENT: _SHARE,
    "micro_f1": _SHARE,  # equals accuracy: each text has one label and one prediction
    "macro_f1": Counts(_confusion, _macro_f1_value),
    "matthews": Counts(_confusion, _matthews_value),
    "pearson": Counts(_moments, _pearson_value),
    "r2": Counts(_errors, _r2_value),
    MEAN: Counts(_numbers, lambda means: means[..., 0].astype(np.float64)),
}
"""Metrics that can be computed from counts; any other metric is recomputed for every resample."""
SHARES = tuple(name for name, counts in COUNTS.items() if counts is _SHARE)
"""Names of the metrics that equal the fraction of correctly predicted texts."""
