"""Performance metrics: accuracy, F1, Matthews correlation coefficient, and majority baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import unknown

Metric = Callable[[np.ndarray, np.ndarray, int], float]


def _accuracy(labels: np.ndarray, predictions: np.ndarray, classes: int) -> float:
    return float(np.mean(labels == predictions))


def _f1(average: str) -> Metric:
    def f1(labels: np.ndarray, predictions: np.ndarray, classes: int) -> float:
        from sklearn.metrics import f1_score

        # the mean is over all classes; one that neither occurs nor is predicted counts as 0
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


class Counts(NamedTuple):
    """Pair of functions that compute a metric from weighted means of counts per text.

    With them, one matrix product evaluates thousands of weightings of the texts.
    """

    of_texts: Callable[[NDArray[Any], NDArray[Any], int], NDArray[np.float32]]
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


_SHARE = Counts(_hits, lambda means: means[..., 0].astype(np.float64))

COUNTS: dict[str, Counts] = {
    "accuracy": _SHARE,
    "micro_f1": _SHARE,  # equals accuracy: each text has one label and one prediction
    "macro_f1": Counts(_confusion, _macro_f1_value),
    "matthews": Counts(_confusion, _matthews_value),
}
"""Metrics that can be computed from counts; any other metric is recomputed for every resample."""
SHARES = tuple(name for name, counts in COUNTS.items() if counts is _SHARE)
"""Names of the metrics that equal the fraction of correctly predicted texts."""


def score(names: Sequence[str], labels: ArrayLike, predictions: ArrayLike, classes: int) -> dict[str, float]:
    """Return the named metrics for true and predicted class numbers.

    Raises:
        InputError: A name is not in `METRICS`.
    """
    for name in names:
        if name not in METRICS:
            raise unknown("metric", name, METRICS)
    true, predicted = np.asarray(labels), np.asarray(predictions)
    return {name: METRICS[name](true, predicted, classes) for name in names}


def predict(logits: NDArray[Any], *, several: bool) -> NDArray[np.int64]:
    """Return predictions from logits [N, C]: the class [N], or with several labels 0 or 1 for each [N, C]."""
    return (logits > 0).astype(np.int64) if several else logits.argmax(axis=1)


def mean_loss(logits: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return the mean cross-entropy: of classes [N], or of each of several labels [N, C] apart."""
    if labels.ndim == 2:
        return float(np.mean(np.logaddexp(0, logits) - labels * logits))
    chosen = logits[np.arange(len(labels)), labels]
    return float(np.mean(np.logaddexp.reduce(logits, axis=1) - chosen))


def majority(names: Sequence[str], train: ArrayLike, labels: ArrayLike, classes: int) -> dict[str, float]:
    """Return the metrics of always predicting the most frequent class of the training labels.

    Ties go to the class with the lowest number.
    """
    if np.ndim(train) == 2:
        usual = np.asarray(train).mean(axis=0) > 0.5
        return score(names, labels, np.tile(usual, (len(np.asarray(labels)), 1)).astype(int), classes)
    most_frequent = int(np.bincount(np.asarray(train), minlength=classes).argmax())
    return score(names, labels, np.full_like(np.asarray(labels), most_frequent), classes)
