"""Predictions on erased texts, and the curves that they give for any weighting of the texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..config import AGREEMENT, BASELINE, OWN_AGREEMENT
from ..errors import InputError, unknown
from .curves import Floats, whole_percents
from .metrics import MEAN, METRICS, NUMBER_METRICS, ROUNDING, Metric, find_metric, standardized


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


MAX_BLOCK_WEIGHTS = 4_000_000
"""Maximum number of resampling weights held in memory at a time."""


@dataclass(frozen=True)
class Predictions:
    """Predicted classes, or numbers, of the same texts under erasure by each method.

    A number may also be the probability of the label; with the metric `mean`, curves are then its mean.

    Args:
        labels: True classes [N]; floats are true numbers.
        methods: Predictions of each method, [N, S] at S percentages, or [G, N, S] for G seeds.
        classes: Number of classes; without meaning for numbers.
        metric: Name of a metric, `mean`, or a function of labels [n], predictions [n] and classes. A
            function is called for every resample and step, which takes minutes instead of a second.
        percents: Percentages of erased tokens: increasing whole numbers, the first 0 and the last 100.
    """

    labels: NDArray[Any]
    methods: Mapping[str, NDArray[Any]]
    classes: int
    metric: str | Metric
    percents: Sequence[int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", np.asarray(self.labels))
        object.__setattr__(self, "percents", whole_percents(self.percents))
        arrays = {}
        for name, given in self.methods.items():
            array = np.asarray(given)
            arrays[name] = array[None] if array.ndim == 2 else array
        object.__setattr__(self, "methods", arrays)
        _require_method(BASELINE, arrays)
        shape = (len(arrays[BASELINE]), len(self.labels), len(self.percents))
        for name, array in arrays.items():
            if array.shape != shape or 0 in shape:
                raise InputError(
                    f"predictions of {name} have shape {array.shape}; expected seeds, texts, steps = {shape}"
                )
        if isinstance(self.metric, str) and self.metric != MEAN:
            find_metric(self.metric)
        numbers = self.metric in (MEAN, *NUMBER_METRICS)
        if numbers or (self.metric not in METRICS and self.labels.dtype.kind == "f"):
            if not all(map(_are_finite, (self.labels, *arrays.values()))):
                raise InputError("labels or predictions that are not finite; expected numbers")
        elif not all(_are_classes(array, self.classes) for array in (self.labels, *arrays.values())):
            raise InputError(f"labels or predictions outside 0 … {self.classes - 1}; expected class numbers")

    @property
    def texts(self) -> int:
        return len(self.labels)

    @property
    def seeds(self) -> int:
        return len(self.methods[BASELINE])

    @property
    def ratios(self) -> Floats:
        """Fractions erased, from 0 to 1."""
        return np.asarray(self.percents) / 100

    def require(self, *names: str) -> None:
        """Raise an InputError if one of these methods was not measured."""
        for name in names:
            _require_method(name, self.methods)

    def weighted_curves(self, blocks: Iterable[NDArray[np.int64]]) -> dict[str, Floats]:
        """Return the curves [R, G, S] of each method under R weightings of the texts.

        The weightings come in blocks [r, N] of how often each text counts.
        """
        parts: dict[str, list[Floats]] = {name: [] for name in self.methods}
        for weights in blocks:  # one at a time: all together may not fit into memory
            for name, curves in parts.items():
                curves.append(self._weighted(name, weights))
        return dict(zip(parts, map(np.concatenate, parts.values()), strict=True))

    def left_out_curves(self, name: str) -> Floats:
        """Return the curves [N, G, S] of a method, leaving out each of the N texts in turn."""
        if name not in self._counts:
            every = np.arange(self.texts)
            curves = np.stack([self._computed(name, np.delete(every, text)) for text in every])
            if not np.isfinite(curves).all():
                raise InputError(
                    f"metric {self.metric!r} is undefined without one of the texts; take more texts"
                )
            return curves
        counts = self._counts[name]
        means = (counts.sum(axis=1, keepdims=True, dtype=np.float64) - counts) / max(self.texts - 1, 1)
        return np.swapaxes(COUNTS[str(self.metric)].value(means), 0, 1)

    def pooled(self, first: str, second: str) -> Predictions:
        """Return the predictions of two methods as those of a single method on twice the texts.

        The texts erased by `first` come first. The single method has the name of the baseline.
        """
        both = np.concatenate([self.methods[first], self.methods[second]], axis=1)
        return replace(self, labels=np.tile(self.labels, 2), methods={BASELINE: both})

    @cached_property
    def _counts(self) -> dict[str, NDArray[Any]]:
        """Counts [G, N, S, F] of each method; empty if the metric is not a function of counts."""
        if not isinstance(self.metric, str) or self.metric not in COUNTS:
            return {}
        of_texts, counts = COUNTS[self.metric].of_texts, {}
        for name, array in self.methods.items():
            counts[name] = np.stack([of_texts(self.labels, seed, self.classes) for seed in array])
        return counts

    def _weighted(self, name: str, weights: NDArray[np.int64]) -> Floats:
        """Return the curves [r, G, S] of a method, with each text counted by `weights` [r, N]."""
        if name not in self._counts:
            every = np.arange(self.texts)
            return np.stack([self._computed(name, np.repeat(every, times)) for times in weights])
        counts = self._counts[name]
        seeds, texts, steps, features = counts.shape
        floats = weights.astype(np.float32)  # whole numbers below 2^24 are exact
        sums = np.stack([floats @ seed.reshape(texts, -1) for seed in counts], axis=1)
        means = sums.reshape(-1, seeds, steps, features) / weights.sum(axis=1)[:, None, None, None]
        return COUNTS[str(self.metric)].value(means)

    def _computed(self, name: str, rows: NDArray[np.int64]) -> Floats:
        """Return the curves [G, S] of a method on these rows, by calling the metric function."""
        metric = find_metric(self.metric) if isinstance(self.metric, str) else self.metric
        labels, curves = self.labels[rows], []
        for seed in self.methods[name]:
            curves.append([metric(labels, step, self.classes) for step in seed[rows].T])
        return np.array(curves)


def best_erasures(predictions: Predictions) -> NDArray[np.int64]:
    """Return the predicted classes [G, N, S] under the best measured erasure of each text.

    The best erasure is the one under which the label is predicted over the smallest part of the curve. For
    accuracy and micro F1 the curve of these predictions has the highest ACU that any choice among the
    erasures of each text can have; for other metrics it is an approximation.
    """
    every = np.stack(list(predictions.methods.values()))  # [M, G, N, S]
    right = (every == predictions.labels[:, None]).astype(float)
    best = np.trapezoid(right, predictions.ratios, axis=-1).argmin(axis=0)  # [G, N]
    chosen: NDArray[np.int64] = np.take_along_axis(every, best[None, :, :, None], axis=0)[0]
    return chosen


def resampling_weights(texts: int, resamples: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield blocks [r, N] of how often each text is drawn, for `resamples` bootstrap resamples in all."""
    for rows in blocks(resamples, texts):
        drawn = rng.integers(texts, size=(rows, texts)) + texts * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * texts).reshape(rows, texts)


def blocks(rows: int, columns: int) -> Iterator[int]:
    """Return the number of rows in each block of a large matrix, so that blocks fit into memory."""
    size = max(1, MAX_BLOCK_WEIGHTS // columns)
    for start in range(0, rows, size):
        yield min(size, rows - start)


def _are_finite(values: NDArray[Any]) -> bool:
    return bool(np.isfinite(values).all())


def _are_classes(values: NDArray[Any], classes: int) -> bool:
    return values.dtype.kind in "iu" and bool(((values >= 0) & (values < classes)).all())


def _require_method(name: str, methods: Mapping[str, object]) -> None:
    if name not in methods:
        raise unknown("measured method", name, methods)
