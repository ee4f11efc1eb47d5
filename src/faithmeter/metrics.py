"""Labels and predictions → performance: accuracy, F1, Matthews, and those of guessing one class."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .errors import unknown

Metric = Callable[[np.ndarray, np.ndarray, int], float]


def _accuracy(labels: np.ndarray, predictions: np.ndarray, classes: int) -> float:
    return float(np.mean(labels == predictions))


def _f1(average: str) -> Metric:
    def f1(labels: np.ndarray, predictions: np.ndarray, classes: int) -> float:
        from sklearn.metrics import f1_score

        # every class counts, even one that neither occurs nor is predicted (as 0)
        return float(f1_score(labels, predictions, labels=range(classes), average=average, zero_division=0))

    return f1


def _matthews(labels: np.ndarray, predictions: np.ndarray, classes: int) -> float:
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(labels, predictions))


METRICS: dict[str, Metric] = {
    "accuracy": _accuracy,
    "macro_f1": _f1("macro"),
    "micro_f1": _f1("micro"),
    "matthews": _matthews,
}


def score(names: Sequence[str], labels: ArrayLike, predictions: ArrayLike, classes: int) -> dict[str, float]:
    """Return the named metrics of predicted class numbers."""
    for name in names:
        if name not in METRICS:
            raise unknown("metric", name, METRICS)
    true, predicted = np.asarray(labels), np.asarray(predictions)
    return {name: METRICS[name](true, predicted, classes) for name in names}


def majority(names: Sequence[str], train: ArrayLike, labels: ArrayLike, classes: int) -> dict[str, float]:
    """Return the metrics of always predicting the most frequent class in training (the first of equals)."""
    most_frequent = int(np.bincount(np.asarray(train), minlength=classes).argmax())
    return score(names, labels, np.full_like(np.asarray(labels), most_frequent), classes)
