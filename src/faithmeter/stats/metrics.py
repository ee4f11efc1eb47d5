"""Performance metrics of classes, of several labels and of numbers, and their baselines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..config import AGREEMENT, Kind
from ..errors import InputError, unknown
from .counts import COUNTS, SHARES, Counts
from .metric_definitions import CORRELATIONS, METRICS, METRICS_OF, NUMBER_METRICS, Metric
from .own_metrics import OWN_METRICS, MetricFunction, metric, name_metric

__all__ = [
    "CORRELATIONS",
    "COUNTS",
    "METRICS",
    "METRICS_OF",
    "NUMBER_METRICS",
    "OWN_METRICS",
    "SHARES",
    "Counts",
    "Metric",
    "MetricFunction",
    "find_metric",
    "kind_of",
    "majority",
    "mean_loss",
    "metric",
    "metric_code",
    "name_metric",
    "predict",
    "require_metric",
    "score",
]
OWN_METRIC_HINT = "(your own metric must be imported first; on the command line: faithmeter --import FILE …)"


def find_metric(name: str) -> Metric:
    """Return a metric by name; raise an InputError if it is unknown."""
    own = {name: known.evaluate for name, known in OWN_METRICS.items()}
    known = METRICS | NUMBER_METRICS | own
    if name not in known:
        raise unknown("metric", name, known, OWN_METRIC_HINT)
    return known[name]


def metric_code(name: str) -> str:
    """Return the digest of the source of your own metric; empty for a built-in one."""
    return OWN_METRICS[name].code if name in OWN_METRICS else ""


def require_metric(name: str, kind: Kind) -> None:
    """Raise an InputError unless a metric is known and fits a kind of task."""
    find_metric(name)
    of_classes = tuple(known for known in METRICS if known != AGREEMENT)  # labels of a task are the truth
    fitting = of_classes if kind == "single-label" else METRICS_OF[kind]
    if name not in fitting and name not in OWN_METRICS:
        raise InputError(f"metric {name!r} is not for {kind} tasks; expected {', '.join(fitting)}")


def score(names: Sequence[str], labels: ArrayLike, predictions: ArrayLike, classes: int) -> dict[str, float]:
    """Return the named metrics for true and predicted class numbers, or true and predicted numbers.

    Raises:
        InputError: A name is unknown, or the value of your own metric is not finite.
    """
    functions = {name: find_metric(name) for name in names}
    true, predicted = np.asarray(labels), np.asarray(predictions)
    values = {name: function(true, predicted, classes) for name, function in functions.items()}
    for name, value in values.items():
        if not math.isfinite(value):
            equal = " with equal predictions" if (predicted == predicted[:1]).all() else ""
            raise InputError(
                f"metric {name!r} gave {value} for {len(true)} texts{equal}; expected a finite number for "
                "any predictions, also equal ones"
            )
    return values


def kind_of(labels: NDArray[Any]) -> Kind:
    """Return the kind of task that labels belong to: classes [N], 0 or 1 for each label [N, C], or floats."""
    if labels.ndim == 2:
        return "multi-label"
    return "regression" if labels.dtype.kind == "f" else "single-label"


def predict(logits: NDArray[Any], kind: Kind) -> NDArray[Any]:
    """Return predictions from logits [N, C]: the class [N], 0 or 1 for each label [N, C], or the number."""
    if kind == "regression":
        return logits[:, 0]
    return (logits > 0).astype(np.int64) if kind == "multi-label" else logits.argmax(axis=1)


def mean_loss(logits: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return the mean loss: cross-entropy of classes or of each of several labels, or the squared error."""
    kind = kind_of(labels)
    if kind == "regression":
        return float(np.mean((logits[:, 0] - labels) ** 2))
    if kind == "multi-label":
        return float(np.mean(np.logaddexp(0, logits) - labels * logits))
    chosen = logits[np.arange(len(labels)), labels]
    return float(np.mean(np.logaddexp.reduce(logits, axis=1) - chosen))


def majority(names: Sequence[str], train: ArrayLike, labels: ArrayLike, classes: int) -> dict[str, float]:
    """Return the metrics of always predicting the most frequent class of the training labels.

    Ties go to the class with the lowest number. For several labels, each is predicted if most texts have it;
    for numbers, the prediction is their mean.
    """
    seen, shape = np.asarray(train), np.shape(labels)
    constant: Any
    if kind_of(seen) == "regression":
        constant = seen.mean()
    elif kind_of(seen) == "multi-label":
        constant = (seen.mean(axis=0) > 0.5).astype(int)
    else:
        constant = int(np.bincount(seen, minlength=classes).argmax())
    return score(names, labels, np.broadcast_to(constant, shape), classes)
