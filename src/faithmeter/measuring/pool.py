"""Basis of a result: facts besides the traces, and which seeds, methods and texts can be compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..config import BASELINE, TrainedWith, UnitName
from ..errors import InputError, unknown
from ..methods.registry import search_of
from ..stats.behavior import Behavior, most_doubtful
from ..stats.guessing import best_guess, lead_over_guessing
from ..stats.intervals import Interval
from ..stats.metrics import score
from ..verdict.evidence import MAIN_KIND, NUMBER_KIND, find_comparable
from .groups import Group, mean_each, mean_of, remembered
from .trace import Trace, subset

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..stats.behavior import Recalibration


Seed = Mapping[str, Trace]
"""Traces of one training by the name of the method, among them that of the baseline."""
Place = tuple[tuple[int, ...], int]
"""Numbers of the used seeds that have a method, and of the texts that they share."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """Facts besides the traces that a result rests on: the task, the model, and what sibling runs tell.

    Attributes:
        classes: Number of classes.
        metric: Name of the task's first metric.
        others: Names of its other metrics.
        threshold: Performance above which the model counts as having learned the task.
        floors: By test, the smallest p-value that it can give.
        trained_with: Masking strategy of the training that the tests assume.
        truncated: Share of the texts whose end the model could not read.
        classes_by_number: Whether the classes of model and task were matched by number, not by name.
        device: Device, or devices, that the model was evaluated on.
        precision: Data type that it was evaluated in.
        ranks_alike: Lowest rank correlation of a method's scores with those in fp32, for which that type was
            chosen; 0 if it was not chosen so.
        agreement: Agreement of an adapted model with the original, as a fraction; NaN for any other model.
        unit: What was scored and erased as one piece: token, word or sentence.
        scores: By method, the origin of scores that were computed elsewhere.
        inputs: The texts with the positions of their units and, if there are any, their rationales; None if
            they are not at hand (see `texts.locate_tokens`).
        other_seeds: Number of trainings that are left out because they were measured on other texts.
        cost: Performance on whole texts lost against a plainly fine-tuned model, as a fraction.
        p_plain: P-value of the check of that model.
        recalibrations: For each seed, what its masked validation texts tell about its predictions (see
            `stats.behavior`); None, or no entry, if they were not evaluated.
    """

    classes: int
    metric: str
    others: tuple[str, ...] = ()
    threshold: float = -math.inf
    floors: Mapping[str, float] = field(default_factory=dict)
    trained_with: TrainedWith = "unknown"
    truncated: float = 0.0
    classes_by_number: bool = False
    device: str = "cpu"
    precision: str = "fp32"
    ranks_alike: float = 0.0
    agreement: float = math.nan
    unit: UnitName = "token"
    scores: Mapping[str, str] = field(default_factory=dict)
    inputs: DataFrame | None = None
    other_seeds: int = 0
    cost: float = math.nan
    p_plain: float = math.nan
    recalibrations: tuple[Recalibration | None, ...] = ()


FACTS = (
    *("trained_with", "truncated", "classes_by_number", "precision", "ranks_alike"),
    *("agreement", "cost", "p_plain"),
)
"""Fields of a context that evidence has, too."""
KEPT = (
    *("metric", "others", "threshold", "floors", "trained_with"),
    *("classes_by_number", "precision", "agreement", "scores"),
)
"""Fields of a context that the manifest of a measurement keeps; the others follow from texts and traces."""


def make_context(traces: Collection[Trace], texts: DataFrame, **facts: Any) -> Context:
    """Return the context of traces on these texts, given the facts that do not follow from them."""
    devices = dict.fromkeys(chain.from_iterable(map(attrgetter("devices"), traces)))
    truncated = float(texts["truncated"].mean())
    return Context(truncated=truncated, device=", ".join(devices), inputs=texts, **facts)


def join_contexts(contexts: Sequence[Context]) -> Context:
    """Return the context of several seeds: of each fact that differs, the one that asks for most care."""
    changes = {}
    for name, choose in MOST_CAREFUL.items():
        changes[name] = choose([*map(attrgetter(name), contexts)])
    recalibrations = tuple(next(iter(context.recalibrations), None) for context in contexts)
    return replace(contexts[0], recalibrations=recalibrations, **changes)


def _join_floors(floors: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the highest floor of each test that all seeds have."""
    joined = {}
    for test in floors[0]:
        known = [own[test] for own in floors if test in own]
        if len(known) == len(floors):
            joined[test] = max(known)
    return joined


def _least(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]  # a NaN compares with nothing
    return min(known, default=math.nan)


MOST_CAREFUL: dict[str, Callable[[Any], Any]] = {
    "floors": _join_floors,
    "truncated": max,
    "classes_by_number": any,
    "device": lambda devices: ", ".join(dict.fromkeys(devices)),
    "precision": min,  # bf16 and fp16 sort before fp32
    "ranks_alike": min,
    "agreement": _least,
}
"""By field of a context, the fact of several seeds that asks for most care."""


@dataclass(frozen=True, eq=False, repr=False)
class Pool:
    """Traces of one or several seeds, cut to what can be compared.

    Attributes:
        seeds: Traces of each seed by method.
        context: What is known besides the traces.
    """

    seeds: tuple[Seed, ...]
    context: Context
    _memory: dict[Any, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if not self.seeds:
            raise InputError("a result without a seed; expected the traces of at least one")
        for seed in self.seeds:
            # every area is measured against random erasure of the same texts
            if BASELINE not in seed:
                raise unknown("measured method", BASELINE, seed)
            for test in seed[BASELINE].pvalues:
                # without its floor, a large p-value of a test that cannot reject would pass for "in
                # distribution"
                if test not in self.context.floors:
                    raise InputError(f"no floor of the test {test!r}; expected its smallest possible p-value")
            for name, trace in seed.items():
                if not _fits(trace, seed[BASELINE]):
                    raise InputError(f"{name} was measured on other texts or steps than {BASELINE}")

    @cached_property
    def comparable(self) -> tuple[Seed, ...]:
        """Seeds that were measured on the same texts and steps as most."""
        alike = []
        for seed in self.seeds:
            same = [other for other in self.seeds if _fits(other[BASELINE], seed[BASELINE])]
            alike.append(tuple(same))
        return max(alike, key=len)

    @cached_property
    def learned_seeds(self) -> tuple[Seed, ...]:
        """Comparable seeds whose model passes the task's threshold and is better than guessing."""
        return tuple(filter(self._has_learned, self.comparable))

    @property
    def used(self) -> tuple[Seed, ...]:
        """Seeds that count: those that learned the task or, if none did, all that are comparable.

        A model that has not learned cannot be explained, and would pull the means towards 0.
        """
        return self.learned_seeds or self.comparable

    def _has_learned(self, seed: Seed) -> bool:
        trace, metric = seed[BASELINE], self.metric
        whole = score([metric], trace.targets, trace.predictions[:, 0], self.context.classes)[metric]
        return whole > self.context.threshold and self._lead(trace).lower > 0

    def _lead(self, trace: Trace) -> Interval:
        """Return how much better a model is on whole texts than guessing without reading them."""
        return lead_over_guessing(self.metric, trace.targets, trace.predictions[:, 0], self.context.classes)

    @cached_property
    def lead(self) -> Interval:
        """Performance on whole texts above the best guess, of the used seed where it is least sure."""
        baselines = map(itemgetter(BASELINE), self.used)
        # the mean would hide a seed that guesses
        return min(map(self._lead, baselines), key=attrgetter("lower"))

    @property
    def recalibrated(self) -> list[tuple[Recalibration | None, Seed]]:
        """Used seeds, each with what validation texts tell at its rates; None if nothing is known at any."""
        recalibrations, counted = dict(enumerate(self.context.recalibrations)), set(map(id, self.used))
        pairs = []
        for number, seed in enumerate(self.seeds):
            known = recalibrations.get(number)
            known = known and known.at(seed[BASELINE].percents)  # there may be no step between 0 and 100 %
            if id(seed) in counted:
                pairs.append((known if known and known.percents else None, seed))
        return pairs

    @cached_property
    def behavior(self) -> Behavior | None:
        """Behavioral check of the used seed that it speaks most against; None if one was not checked."""
        checks = []
        for known, seed in self.recalibrated:
            trace = seed[BASELINE]
            if known is None or trace.numbers:  # one unchecked seed leaves the mean of all unchecked
                return None
            checks.append(trace.check_behavior(known))
        return most_doubtful(checks)

    @property
    def main_kind(self) -> str:
        """Kind of area that methods are ranked by; numbers have no probability of a label."""
        return NUMBER_KIND if self.used[0][BASELINE].numbers else MAIN_KIND

    @property
    def metric(self) -> str:
        """Name of the task's first metric."""
        return self.context.metric

    @cached_property
    def methods(self) -> list[str]:
        """Names of the measured methods, the baseline first."""
        names = {BASELINE: None}
        for seed in self.used:
            names |= dict.fromkeys(seed)
        return list(names)

    @property
    def texts(self) -> int:
        """Number of texts."""
        return self.texts_of(BASELINE)

    def texts_of(self, method: str) -> int:
        """Return on how many texts a method was measured with every seed that has it."""
        return self._place(method)[1]

    def seeds_of(self, method: str) -> int:
        """Return with how many of the seeds that count a method was measured."""
        return len(self._place(method)[0])

    def _place(self, method: str) -> Place:
        """Return the numbers of the used seeds that have a method, and of the texts that they share."""
        having, texts = [], []
        for number, seed in enumerate(self.used):
            if method in seed:
                having.append(number)
                texts += [len(seed[method]), len(seed[BASELINE])]
        if not having:
            raise unknown("measured method", method, self.methods)
        # all methods begin with the same texts, so the fewest are a prefix of all others
        return tuple(having), min(texts)

    def group(self, method: str) -> Group:
        """Return the methods that were measured with the same seeds on as many texts, with this one."""
        return self._group_of(self._place(method))

    @remembered
    def _group_of(self, place: Place) -> Group:
        same = [name for name in self.methods if self._place(name) == place]
        return self._cut(place, [BASELINE, *same])

    def group_with_more(self, method: str) -> Group:
        """Return all methods that were measured on at least the texts of this one, cut to these."""
        return self._group_at(self._place(method))

    @remembered
    def _group_at(self, place: Place) -> Group:
        """Return all methods that these seeds have on so many texts or more, cut to these."""
        numbers, texts = place
        enough = []
        for name in self.methods:
            if all(len(self.used[number].get(name, ())) >= texts for number in numbers):
                enough.append(name)
        return self._cut(place, enough)

    def _cut(self, place: Place, methods: list[str]) -> Group:
        numbers, texts = place
        seeds = []
        for number in numbers:
            seeds.append(subset(self.used[number], methods))
        return Group(seeds, texts, self.context.classes, self.metric)

    @cached_property
    def rivals(self) -> list[str]:
        """Methods that can be ranked together: those measured on the most common number of texts.

        Searches are left out, as they optimize the measured order.
        """
        places = {}
        for name in self.methods:
            if name not in (BASELINE, *self.optimizers):
                numbers, texts = self._place(name)
                places[name] = (len(numbers), texts, numbers)
        return find_comparable(places)

    @property
    def optimizers(self) -> tuple[str, ...]:
        """Methods that search for the measured order itself."""
        return tuple(filter(search_of, self.methods))

    @property
    def majority(self) -> float:
        """Performance of the best guess that does not depend on the text."""
        return best_guess(self.metric, self.group(BASELINE).labels, self.context.classes)

    @property
    def evaluations(self) -> dict[str, int]:
        """By method, the mean number of model evaluations; methods measured together share equal ones."""
        return self._mean_counts("evaluations")

    @property
    def evaluations_alone(self) -> dict[str, int]:
        """By method, the mean number that it would have needed alone."""
        return self._mean_counts("evaluations_alone")

    def _mean_counts(self, attribute: str) -> dict[str, int]:
        counts = {}
        for name in self.methods:
            counts[name] = round(mean_of([*map(attrgetter(attribute), self._traces(name))]))
        return counts

    @property
    def seconds(self) -> dict[str, dict[str, float]]:
        """By method and phase, the mean number of seconds."""
        seconds = {}
        for name in self.methods:
            seconds[name] = mean_each([*map(attrgetter("seconds"), self._traces(name))])
        return seconds

    def _traces(self, method: str) -> list[Trace]:
        return [*map(itemgetter(method), self.group(method).seeds)]


def _fits(trace: Trace, other: Trace) -> bool:
    """Return whether two traces begin with the same texts, labels and steps."""
    count = min(len(trace), len(other))
    return (
        trace.percents == other.percents
        and np.array_equal(trace.rows[:count], other.rows[:count])
        and np.array_equal(trace.targets[:count], other.targets[:count])
    )
