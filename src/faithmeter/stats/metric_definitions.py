"""Metrics, each defined once: as a function of weighted means of counts per text.

With counts, one matrix product evaluates thousands of weightings of the texts, as a bootstrap needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..config import AGREEMENT, Kind

Metric = Callable[[np.ndarray, np.ndarray, int], float]
"""Function of labels, predictions and the number of classes."""
Floats = NDArray[np.float64]
ROUNDING = 1e-6
"""Numbers whose standard deviation is below this share of the largest one count as equal."""


class Counts(NamedTuple):
    """Pair of functions that compute a metric from weighted means of counts per text."""

    of_texts: Callable[[NDArray[Any], NDArray[Any], int], NDArray[Any]]
    """Function of labels [N], predictions [N, S] and the number of classes; returns counts [N, S, F].

    For several labels at once, labels are [N, C] and predictions [N, S, C], with 0 or 1 for each label.
    """
    value: Callable[[NDArray[Any]], Floats]
    """Function of the weighted means [..., F] of the counts; returns the metric [...]."""


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> Floats:
    """Return a ratio; 0 where the denominator is 0, which is the value of an undefined metric."""
    zeros = np.zeros(np.shape(denominator))
    return np.asarray(np.divide(numerator, denominator, out=zeros, where=denominator > 0))


def _hits(labels: NDArray[Any], predictions: NDArray[Any], classes: int) -> NDArray[np.float32]:
    return np.asarray(labels[:, None] == predictions, np.float32)[..., None]


def _first(means: NDArray[Any]) -> Floats:
    return means[..., 0].astype(np.float64)


def _confusion(labels: NDArray[Any], predictions: NDArray[Any], classes: int) -> NDArray[np.float32]:
    """Return counts [N, S, 3 C]: correct predictions, predictions and labels of each of the C classes."""
    if labels.ndim == 1:
        one_hot = np.eye(classes, dtype=np.float32)
        labels, predictions = one_hot[labels], one_hot[predictions]
    predicted = np.asarray(predictions, np.float32)
    labeled = np.broadcast_to(np.asarray(labels, np.float32)[:, None], predicted.shape)
    return np.concatenate([predicted * labeled, predicted, labeled], axis=-1)


def _macro_f1(means: NDArray[Any]) -> Floats:
    # the mean is over all classes; one that neither occurs nor is predicted counts as 0
    hits, predicted, labeled = np.split(means.astype(np.float64), 3, axis=-1)
    return np.asarray(_ratio(2 * hits, predicted + labeled).mean(axis=-1))


def _micro_counts(labels: NDArray[Any], predictions: NDArray[Any], classes: int) -> NDArray[np.float32]:
    """Return hits [N, S, 1] or, for several labels, hits and twice the mean of both sums [N, S, 2].

    With one label and one prediction for each text, the metric is the share of hits.
    """
    if labels.ndim == 1:
        return _hits(labels, predictions, classes)
    hits, predicted, labeled = np.split(_confusion(labels, predictions, classes), 3, axis=-1)
    return np.stack([2 * hits.sum(axis=-1), (predicted + labeled).sum(axis=-1)], axis=-1)


def _micro_f1(means: NDArray[Any]) -> Floats:
    return _first(means) if means.shape[-1] == 1 else _ratio(means[..., 0], means[..., 1])


def _matthews(means: NDArray[Any]) -> Floats:
    hits, predicted, labeled = np.split(means.astype(np.float64), 3, axis=-1)
    covariance = hits.sum(-1) - (predicted * labeled).sum(-1)
    spread = (1 - (predicted**2).sum(-1)) * (1 - (labeled**2).sum(-1))
    # 0 if all labels, or all predictions, are of one class
    return _ratio(covariance, np.sqrt(np.where(spread > 1e-12, spread, 0)))


def standardized(values: NDArray[Any]) -> Floats:
    """Return numbers [N, ...] with mean 0 and deviation 1 along the first axis; 0 where all are equal."""
    numbers = np.asarray(values, np.float64)
    centered = numbers - numbers.mean(axis=0)
    deviation = centered.std(axis=0)
    varies = deviation > ROUNDING * np.abs(numbers).max(axis=0)
    return np.asarray(np.divide(centered, deviation, out=np.zeros_like(centered), where=varies))


def _moments(labels: NDArray[Any], predictions: NDArray[Any], classes: int) -> Floats:
    """Return counts [N, S, 5]: both standardized numbers, their squares and their product."""
    y = np.broadcast_to(standardized(labels)[:, None], predictions.shape)
    x = standardized(predictions)
    return np.stack([x, y, x * x, y * y, x * y], axis=-1)


def _pearson(means: NDArray[Any]) -> Floats:
    x, y, xx, yy, xy = np.moveaxis(means.astype(np.float64), -1, 0)
    spread = (xx - x * x) * (yy - y * y)
    return _ratio(xy - x * y, np.sqrt(np.where(spread > ROUNDING**2, spread, 0)))


def _errors(labels: NDArray[Any], predictions: NDArray[Any], classes: int) -> Floats:
    """Return counts [N, S, 3]: the standardized label, its square, and the squared error in that unit."""
    y = np.broadcast_to(standardized(labels)[:, None], predictions.shape)
    error = (predictions - np.asarray(labels)[:, None]) / (np.std(labels) or 1)
    return np.stack([y, y * y, error * error], axis=-1)


def _r2(means: NDArray[Any]) -> Floats:
    y, yy, error = np.moveaxis(means.astype(np.float64), -1, 0)
    spread = yy - y * y
    defined = spread > ROUNDING
    return np.where(defined, 1 - error / np.where(defined, spread, 1), 0.0)


def _numbers(labels: NDArray[Any], predictions: NDArray[Any], classes: int) -> Floats:
    """Return the predicted numbers as counts [N, S, 1]."""
    return np.asarray(predictions, np.float64)[..., None]


MEAN = "mean"
"""Mean of what is predicted, such as the probability of the label; labels do not matter."""
COUNTS: dict[str, Counts] = {
    "accuracy": Counts(_hits, _first),
    AGREEMENT: Counts(_hits, _first),
    "micro_f1": Counts(_micro_counts, _micro_f1),
    "macro_f1": Counts(_confusion, _macro_f1),
    "matthews": Counts(_confusion, _matthews),
    "pearson": Counts(_moments, _pearson),
    "r2": Counts(_errors, _r2),
    MEAN: Counts(_numbers, _first),
}
"""Metrics that can be computed from counts; any other metric is recomputed for every resample."""
SHARES = ("accuracy", AGREEMENT, "micro_f1")
"""Names of the metrics that equal the fraction of correctly predicted texts, with one label for each."""


def _of_all(name: str) -> Metric:
    """Return a metric as a function of all texts, each counted once."""
    of_texts, value = COUNTS[name]

    def metric(labels: np.ndarray, predictions: np.ndarray, classes: int) -> float:
        means = of_texts(labels, predictions[:, None], classes).mean(axis=0, dtype=np.float64)
        return float(value(means)[0])

    return metric


def _spearman(labels: np.ndarray, predictions: np.ndarray, classes: int) -> float:
    from scipy.stats import rankdata

    # equal numbers stay equal, although rounding may rank them
    ranks = rankdata(predictions) * standardized(predictions).any()
    return NUMBER_METRICS["pearson"](rankdata(labels), ranks, classes)


METRICS = {name: _of_all(name) for name in ("accuracy", "macro_f1", "micro_f1", "matthews", AGREEMENT)}
"""Metrics of classes."""
NUMBER_METRICS: dict[str, Metric] = {
    "pearson": _of_all("pearson"),
    "spearman": _spearman,
    "r2": _of_all("r2"),
}
"""Metrics of numbers: the correlation, that of the ranks, and the explained share of the variance.

All are higher for better predictions. A correlation with constant predictions is 0.
"""
CORRELATIONS = ("pearson", "spearman")
METRICS_OF: dict[Kind, tuple[str, ...]] = {
    "single-label": ("accuracy", "macro_f1"),
    "multi-label": ("micro_f1", "macro_f1"),
    "regression": ("pearson", "spearman", "r2"),
}
"""Metrics that are reported by default for each kind of task; the first is that of the curves."""
