"""Performance metrics of classes, of several labels and of numbers, yours among them, and their baselines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..config import AGREEMENT, OWN_AGREEMENT, Kind
from ..errors import InputError, unknown
from ..source import digest_source, find_place

MEAN = "mean"
"""Mean of what is predicted, such as the probability of the label; labels do not matter."""
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
    OWN_AGREEMENT: _accuracy,
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

MetricFunction = Callable[[NDArray[Any], NDArray[Any]], float]
"""Function of labels and predictions that returns a number, higher for better predictions."""


@dataclass(frozen=True)
class OwnMetric:
    """A user's metric; `version` is the word for the state of what no digest can cover."""

    name: str
    function: MetricFunction
    version: str = ""

    @property
    def code(self) -> str:
        """Digest of the function's source and of all that it depends on."""
        return digest_source(self.function, name=f"metric {self.name!r}", version=self.version)

    def evaluate(self, labels: NDArray[Any], predictions: NDArray[Any], classes: int) -> float:
        """Return the metric; raise an InputError if it is not a number."""
        value: object = self.function(np.asarray(labels), np.asarray(predictions))
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InputError(f"metric {self.name!r} gave a {type(value).__name__}; expected a number")
        return float(value)


OWN_METRICS: dict[str, OwnMetric] = {}
"""Registered metrics by name."""


def metric(name: str, *, version: str = "") -> Callable[[MetricFunction], MetricFunction]:
    """Return a decorator that registers a function as a metric.

    The function takes labels and predictions, arrays [N] of class numbers or of numbers, and returns a
    number that is higher for better predictions. It must be defined for equal predictions, too. Performance
    curves, ACU and the best epoch of a training can then go by it. In the training of a model that gives
    several labels at once, both arrays are [N, C], with 0 or 1 for each label.

    Args:
        name: Name of the metric in every command and function of the package.
        version: As for `faithmeter.method`: to be changed with what the function uses and cannot be compared.

    Returns:
        A decorator that returns the function itself.

    Raises:
        InputError: The name contains characters other than letters, digits and `-.+_`, or is taken.

    Example:
        >>> @fm.metric("hits-of-first-class")
        ... def hits_of_first_class(labels, predictions):
        ...     return float((predictions[labels == 0] == 0).sum() / max(1, (labels == 0).sum()))
        >>> fm.measure(clf, task, ["grad-l2"], limit=20, metric="hits-of-first-class").metric
        'hits-of-first-class'
    """
    if not re.fullmatch(r"[\w.+-]+", name):
        raise InputError(f"a metric named {name!r}; expected letters, digits, '-', '.', '+' or '_'")
    if name in {**METRICS, **NUMBER_METRICS, MEAN: None}:
        raise InputError(f"metric {name!r} is built in; give yours another name")

    def register(function: MetricFunction) -> MetricFunction:
        known = OWN_METRICS.get(name)
        if known is not None and find_place(known.function) != find_place(function):
            where = ".".join(find_place(known.function))
            raise InputError(f"metric {name!r} exists already, in {where}; give yours another name")
        OWN_METRICS[name] = OwnMetric(name, function, version)
        return function

    return register


def name_metric(given: str | MetricFunction) -> str:
    """Return the name of a metric; a function is registered by its own name."""
    if isinstance(given, str):
        return given
    for name, known in OWN_METRICS.items():
        if known.function is given:
            return name
    name = str(getattr(given, "__name__", type(given).__name__))
    metric(name)(given)
    return name


OWN_METRIC_HINT = "(your own metric must be imported first; on the command line: faithmeter --import FILE …)"


def find_metric(name: str) -> Metric:
    """Return a metric by name; raise an InputError if it is unknown."""
    if name in OWN_METRICS:
        return OWN_METRICS[name].evaluate
    known = METRICS | NUMBER_METRICS
    if name not in known:
        raise unknown("metric", name, [*known, *OWN_METRICS], OWN_METRIC_HINT)
    return known[name]


def metric_code(name: str) -> str:
    """Return the digest of the source of your own metric; empty for a built-in one."""
    return OWN_METRICS[name].code if name in OWN_METRICS else ""


def require_metric(name: str, kind: Kind) -> None:
    """Raise an InputError unless a metric is known and fits a kind of task."""
    find_metric(name)
    of_classes = tuple(known for known in METRICS if known not in (AGREEMENT, OWN_AGREEMENT))  # not the truth
    fitting = of_classes if kind == "single-label" else METRICS_OF[kind]
    if name not in fitting and name not in OWN_METRICS:
        raise InputError(f"metric {name!r} is not for {kind} tasks; expected {', '.join(fitting)}")


def score(names: Sequence[str], labels: ArrayLike, predictions: ArrayLike, classes: int) -> dict[str, float]:
    """Return the named metrics for true and predicted class numbers, or true and predicted numbers.

    Raises:
        InputError: A name is unknown, or the value of your own metric is not finite.
    """
    functions = dict(zip(names, map(find_metric, names), strict=True))
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
