"""Metrics as functions of labels, predictions and the number of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import AGREEMENT, Kind

Metric = Callable[[np.ndarray, np.ndarray, int], float]
ROUNDING = 1e-6
"""Numbers whose standard deviation is below this share of the largest one count as equal."""


def _accuracy(labels: np.ndarray, predictions: np.ndarray, classes: int) -> float:
    return float(np.mean(labels == predictions))


def _f1_counts(labels: np.ndarray, predictions: np.ndarray, classes: int) -> NDArray[np.int64]:
    """Return, by class [2, C], twice the correct predictions, and the labels and predictions together."""
    if labels.ndim == 1:
        names = np.arange(classes)
        labels, predictions = labels[:, None] == names, predictions[:, None] == names
    true, predicted = labels.astype(bool), predictions.astype(bool)
    return np.stack([2 * (true & predicted).sum(axis=0), true.sum(axis=0) + predicted.sum(axis=0)])


def _macro_f1(labels: np.ndarray, predictions: np.ndarray, classes: int) -> float:
    # the mean is over all classes; one that neither occurs nor is predicted counts as 0
    correct, both = _f1_counts(labels, predictions, classes)
    return float(np.divide(correct, both, out=np.zeros(len(both)), where=both > 0).mean())


def _micro_f1(labels: np.ndarray, predictions: np.ndarray, classes: int) -> float:
    correct, both = _f1_counts(labels, predictions, classes).sum(axis=1)
    return float(correct / both) if both else 0.0


def _matthews(labels: np.ndarray, predictions: np.ndarray, classes: int) -> float:
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(labels, predictions))


def standardized(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers [N, ...] with mean 0 and deviation 1 along the first axis; 0 where all are equal."""
    numbers = np.asarray(values, np.float64)
    centered = numbers - numbers.mean(axis=0)
    deviation = centered.std(axis=0)
    varies = deviation > ROUNDING * np.abs(numbers).max(axis=0)
    return np.asarray(np.divide(centered, deviation, out=np.zeros_like(centered), where=varies))


def _pearson(labels: np.ndarray, predictions: np.ndarray, classes: int) -> float:
    return float(np.mean(standardized(labels) * standardized(predictions)))


def _spearman(labels: np.ndarray, predictions: np.ndarray, classes: int) -> float:
    from scipy.stats import rankdata

    # equal numbers stay equal, although rounding may rank them
    return _pearson(rankdata(labels), rankdata(predictions) * standardized(predictions).any(), classes)


def _r2(labels: np.ndarray, predictions: np.ndarray, classes: int) -> float:
    spread = float(np.var(labels))
    return 1 - float(np.mean((labels - predictions) ** 2)) / spread if spread > 0 else 0.0


METRICS: dict[str, Metric] = {
    "accuracy": _accuracy,
    "macro_f1": _macro_f1,
    "micro_f1": _micro_f1,
    "matthews": _matthews,
    AGREEMENT: _accuracy,
}
"""Metrics of classes."""
NUMBER_METRICS: dict[str, Metric] = {"pearson": _pearson, "spearman": _spearman, "r2": _r2}
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
