"""Methods that were measured on the same texts and seeds, as arrays: curves, intervals and ranking."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..config import BASELINE
from ..methods.registry import search_of
from ..stats.comparisons import Ranking, rank_methods
from ..stats.curves import KINDS, PROBABILITY, Curve, acu
from ..stats.intervals import Interval, TextIntervals, resample_texts
from ..stats.metrics import score
from ..stats.other_metrics import OTHER_METRICS, normalized_aopc, text_metrics
from ..stats.predictions import Predictions, best_erasures
from .trace import Trace, subset

Function = TypeVar("Function", bound=Callable[..., Any])


def remembered(method: Function) -> Function:
    """Return a method that computes once what it returns for the same arguments of the same object.

    Unlike `functools.cache`, it keeps no object alive: what is remembered goes with the object's `_memory`.
    """

    @wraps(method)
    def look_up(self: Any, /, *args: Any, **options: Any) -> Any:
        key = (method.__name__, *args, *options.items())
        if key not in self._memory:
            self._memory[key] = method(self, *args, **options)
        return self._memory[key]

    return cast(Function, look_up)


@dataclass(frozen=True, eq=False)
class Group:
    """Traces of some methods and of the baseline in each of G seeds, cut to the first N texts.

    Attributes:
        seeds: The traces of each seed by method; all begin with the same texts.
        texts: N.
        classes: Number of classes.
        metric: Name of the task's metric.
    """

    seeds: Sequence[Mapping[str, Trace]]
    texts: int
    classes: int
    metric: str
    _memory: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def methods(self) -> list[str]:
        """Names of the methods, the baseline first."""
        return list(dict.fromkeys([BASELINE, *self.seeds[0]]))

    @property
    def percents(self) -> tuple[int, ...]:
        return self.seeds[0][BASELINE].percents

    @property
    def labels(self) -> NDArray[Any]:
        """True classes or numbers, [N]."""
        return self.seeds[0][BASELINE].targets[: self.texts]

    def select(self, methods: Sequence[str]) -> Group:
        """Return the group with only these methods and the baseline."""
        # the baseline goes along: each curve is compared with it
        names = dict.fromkeys([BASELINE, *methods])
        seeds = []
        for seed in self.seeds:
            seeds.append(subset(seed, names))
        return Group(seeds, self.texts, self.classes, self.metric)

    def values(self, method: str, quantity: str) -> NDArray[Any]:
        """Return what a curve of this quantity is computed from, in each seed and text, [G, N, S]."""
        attribute = "probabilities" if quantity == PROBABILITY else "predictions"
        return np.stack([getattr(seed[method], attribute)[: self.texts] for seed in self.seeds])

    @remembered
    def curves(self, method: str, quantity: str) -> tuple[Curve, ...]:
        """Return the curve of a method in each seed, in a metric or as the label's mean probability."""
        return tuple(self._curve(values, quantity) for values in self.values(method, quantity))

    def _curve(self, values: NDArray[Any], quantity: str) -> Curve:
        if quantity == PROBABILITY:
            points = values.mean(axis=0).tolist()
        else:
            points = [score([quantity], self.labels, step, self.classes)[quantity] for step in values.T]
        return Curve(self.percents, tuple(points), quantity, self.texts)

    def areas(self, method: str, kind: str, metric: str | None = None) -> list[float]:
        """Return the area of a kind in each seed; `metric` replaces the task's."""
        quantity = KINDS[kind].of_metric(metric or self.metric)
        if quantity == PROBABILITY and self.numbers:  # a predicted number has no probability
            return [math.nan] * len(self.seeds)
        ratios = np.asarray(self.percents) / 100
        areas = []
        for curve, random in zip(self.curves(method, quantity), self.curves(BASELINE, quantity), strict=True):
            area = float(KINDS[kind].area(np.array(curve.values), np.array(random.values), ratios))
            areas.append(math.nan if math.isnan(area) else area)  # one NaN: it equals itself by identity
        return areas

    def predictions(self, quantity: str) -> Predictions:
        """Return what intervals and comparisons of a quantity are computed from."""
        arrays = {name: self.values(name, quantity) for name in self.methods}
        return Predictions(self.labels, arrays, self.classes, quantity, self.percents)

    @remembered
    def intervals(self, quantity: str) -> TextIntervals:
        """Return the intervals over texts or, with several seeds, over seeds and texts."""
        return resample_texts(self.predictions(quantity))

    def interval(self, method: str, kind: str) -> Interval:
        """Return the interval of a method's area of a kind; undefined for the probability of numbers."""
        if KINDS[kind].quantity == PROBABILITY and self.numbers:
            return Interval.undefined(self.texts)
        return self.intervals(KINDS[kind].of_metric(self.metric)).area(method, kind)

    @property
    def numbers(self) -> bool:
        """Whether the model predicts numbers."""
        return self.seeds[0][BASELINE].numbers

    @remembered
    def ranking(self, kind: str) -> Ranking:
        """Return the methods ranked by a kind of area, with a test of each pair."""
        return rank_methods(self.predictions(KINDS[kind].of_metric(self.metric)), kind)

    @cached_property
    def ceilings(self) -> tuple[Curve, ...] | None:
        """Curve of the best order of each text by any method, in each seed.

        None without a search and another method. The ceiling rises when a better search is added. With
        `exhaustive` it is exact for short texts.
        """
        if len(self.methods) < 3 or "best" not in map(search_of, self.methods):  # one is the baseline
            return None
        ceilings = []
        # the best order of each text need not give the best curve of all texts, so each method competes
        for place, best in enumerate(best_erasures(self.predictions(self.metric))):
            random = self.curves(BASELINE, self.metric)[place]
            curves = [self._curve(best, self.metric)]
            for name in self.methods:
                curves.append(self.curves(name, self.metric)[place])
            areas = [acu(curve, random) for curve in curves]
            ceilings.append(curves[int(np.argmax(areas))])
        return tuple(ceilings)

    def shares_of_ceiling(self, method: str) -> list[float]:
        """Return the ACU of a method divided by that of the ceiling, in each seed; NaN where undefined."""
        if self.ceilings is None:
            return [math.nan] * len(self.seeds)
        shares = []
        for place, area in enumerate(self.areas(method, "acu")):
            highest = acu(self.ceilings[place], self.curves(BASELINE, self.metric)[place])
            # a ceiling of 0 or less means that no order does better than chance
            shares.append(area / highest if highest > 0 else math.nan)
        return shares

    def other_metrics(self, method: str, shares: Sequence[int] | None) -> list[dict[str, float]]:
        """Return the means over texts of the metrics of other papers, in each seed; NaN where undefined."""
        return [self._other_metrics(seed, method, shares) for seed in self.seeds]

    def _other_metrics(
        self, seed: Mapping[str, Trace], method: str, shares: Sequence[int] | None
    ) -> dict[str, float]:
        trace, texts = seed[method], self.texts
        kept = None if trace.kept is None else trace.kept[:texts]
        values = text_metrics(trace.probabilities[:texts], kept, trace.percents, shares)
        # normalized by the best and the worst order, which only searches find
        if {"best", "worst"} <= {*map(search_of, seed)}:
            erased = {name: each.probabilities[:texts] for name, each in seed.items()}
            values["naopc"] = normalized_aopc(erased)[method]
        means = dict.fromkeys(OTHER_METRICS, math.nan)
        for name, of_texts in values.items():
            # texts for which a metric is undefined are left out
            if np.isfinite(of_texts).any():
                means[name] = float(np.nanmean(of_texts))
        return means


def mean_of(values: Sequence[float]) -> float:
    """Return the mean; a single value is unchanged to its last bit, and a NaN is `math.nan` itself."""
    mean = values[0] if len(values) == 1 else sum(values) / len(values)
    return math.nan if math.isnan(mean) else mean


def mean_each(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each name's values, 0 where one lacks a name that the first has."""
    means = {}
    for name in values[0]:
        means[name] = mean_of([own.get(name, 0.0) for own in values])
    return means
