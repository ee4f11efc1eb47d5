"""Your own metrics: plain functions of labels and predictions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..source import digest_source, find_place
from .counts import COUNTS
from .metric_definitions import METRICS, NUMBER_METRICS

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
    if name in METRICS | NUMBER_METRICS | COUNTS:
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
