"""Result of a measurement: everything that is computed from the traces of one or several seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..config import BASELINE
from ..errors import unknown
from ..files import write_csv
from ..stats.comparisons import Ranking
from ..stats.curves import KINDS, Curve, racu_divisor
from ..stats.intervals import Interval, TextIntervals
from ..stats.masf import CROSSFIT
from ..stats.pvalues import (
    CountTest,
    DatasetPValue,
    count_unusual,
    dataset_pvalue,
    join_counts,
    join_pvalues,
    of_steps,
    simes,
)
from ..verdict.evidence import NUMBER_KIND, MethodEvidence, TaskEvidence, choose_test, gather_evidence
from ..verdict.formats import format_metric, format_percent
from ..verdict.sentences import Measured
from .groups import Group, mean_each, mean_of, remembered
from .plain import Rendered, facts_of
from .plausibility import mark_rationales, score_trace
from .pool import FACTS, Pool
from .trace import frame_traces, subset

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False, repr=False)
class Result(Pool, Measured, Rendered):
    """Measurement of methods on the texts of a task, with one or several trained models (seeds).

    Values are means over the seeds that count. Methods may be measured on different numbers of texts, which
    are the first ones of the same texts: each method has its areas on its own texts, and methods are ranked
    with those that share their texts.

    Attributes:
        seeds: Traces of each seed by method.
        context: What the result rests on besides the traces.

    Example:
        >>> result = fm.measure(clf, task, ["loo-sign"], limit=20)
        >>> result.methods
        ['random', 'loo-sign']
    """

    def __repr__(self) -> str:
        areas = ", ".join(f"{name} {format_percent(self.area(name))}" for name in self.ranked)
        seeds = f" with {len(self.used)} seeds" if len(self.used) > 1 else ""
        metric = format_metric(self.metric)
        return f"<Result of {self.texts} texts{seeds} by {metric}, {self.main_kind} in %: {areas}>"

    @property
    def ranked(self) -> list[str]:
        """Methods by faithfulness, the highest first, those without it by ACU; random last."""

        def place(name: str) -> tuple[bool, float, float]:
            area = self.area(name)
            # a NaN sorts nowhere, so it is last but for the baseline
            return name == BASELINE, math.inf if math.isnan(area) else -area, -self.acu(name)

        return sorted(self.methods, key=place)

    def first(self, texts: int) -> Result:
        """Return the result on the first texts, with the methods that were measured on as many."""
        seeds = []
        for seed in self.seeds:
            # a method on fewer texts has no result on these
            seeds.append({name: trace.first(texts) for name, trace in seed.items() if len(trace) >= texts})
        return Result(tuple(seeds), self.context)

    def in_context(self, **facts: Any) -> Result:
        """Return the result with other facts of its context, such as what sibling runs tell."""
        result = Result(self.seeds, replace(self.context, **facts))
        for key, value in self._memory.items():
            if isinstance(value, Group):  # it depends on no such fact, and holds the costly intervals
                result._memory[key] = value
        return result

    def curve(self, method: str, metric: str | None = None) -> Curve:
        """Return a method's performance at each percentage erased, by default in the task's first metric."""
        return _mean_curve(self.group(method).curves(method, metric or self.metric))

    def random_curve(self, method: str, metric: str | None = None) -> Curve:
        """Return the performance under random erasure of the texts of a method."""
        return _mean_curve(self.group(method).curves(BASELINE, metric or self.metric))

    def curve_intervals(self, method: str) -> tuple[Interval, ...]:
        """Return the interval of each point of a method's curve."""
        return self.group(method).intervals(self.metric).curve(method)

    def seed_areas(self, method: str, kind: str = "", metric: str | None = None) -> list[float]:
        """Return the area of a kind (see `areas.KINDS`; default: `main_kind`) with each seed, a fraction."""
        kind = kind or self.main_kind
        if kind not in KINDS:
            raise unknown("kind of area", kind, KINDS)
        return self.group(method).areas(method, kind, metric)

    def area(self, method: str, kind: str = "", metric: str | None = None) -> float:
        """Return the area of a kind, the mean over seeds."""
        return mean_of(self.seed_areas(method, kind, metric))

    @remembered
    def interval(self, method: str, kind: str = "") -> Interval:
        """Return the confidence interval of an area over texts or, with several seeds, seeds and texts."""
        return self.group(method).interval(method, kind or self.main_kind)

    def acu(self, method: str, metric: str | None = None) -> float:
        """Return the area between the curve of random erasure and that of a method, as a fraction."""
        return self.area(method, "acu", metric)

    def racu(self, method: str, metric: str | None = None) -> float:
        """Return the ACU relative to that of a curve that falls at once, as a fraction; NaN if undefined."""
        return self.area(method, "racu", metric)

    @property
    def areas(self) -> dict[str, tuple[float, float]]:
        """ACU and RACU by method."""
        return {method: (self.acu(method), self.racu(method)) for method in self.methods}

    def bounds(self, method: str) -> dict[str, Interval]:
        """Return the interval of each kind of area."""
        return {kind: self.interval(method, kind) for kind in KINDS}

    @property
    def intervals(self) -> TextIntervals:
        """Intervals of curves, areas and differences of the methods that can be ranked together."""
        return self._compared.intervals(self.metric)

    @property
    def ranking(self) -> Ranking:
        """The rivals ranked by their areas, with a test of each pair."""
        return self._compared.ranking(self.main_kind)

    @cached_property
    def _compared(self) -> Group:
        """The rivals, alone with the baseline: searches do not compete."""
        return self.group(self.rivals[0] if self.rivals else BASELINE).select(self.rivals)

    @property
    def leaders(self) -> tuple[str, ...]:
        """Method with the largest area, followed by those that cannot be told apart from it."""
        return self.ranking.leaders if self.rivals else ()

    @property
    def texts_needed(self) -> int | None:
        """Number of texts needed to tell the two best methods apart.

        None if they can be told apart already, or if no number of texts would suffice.
        """
        return self.ranking.texts_needed if self.rivals else None

    def shared_areas(self, method: str, other: str) -> tuple[int, dict[str, float]]:
        """Return how many texts two methods share, and the area of all methods measured on them.

        The areas are empty if no seed has both.
        """
        (numbers, texts), (others, more) = self._place(method), self._place(other)
        both, count = tuple(filter(others.__contains__, numbers)), min(texts, more)
        if not both:
            return 0, {}
        group = self._group_at((both, count))
        return count, {name: mean_of(group.areas(name, self.main_kind)) for name in group.methods[1:]}

    @property
    def ceiling(self) -> Curve | None:
        """Curve of the best order of each text by any method (see `Group.ceilings`)."""
        ceilings = self.group_with_more(self.rivals[0] if self.rivals else BASELINE).ceilings
        return None if ceilings is None else _mean_curve(ceilings)

    def share_of_ceiling(self, method: str) -> float:
        """Return the ACU of a method divided by that of the ceiling; NaN without a positive ceiling."""
        return mean_of(self.group_with_more(method).shares_of_ceiling(method))

    @property
    def tests(self) -> list[str]:
        """Names of the in-distribution tests that every trace of the baseline has."""
        shared = list(self.used[0][BASELINE].pvalues)
        for seed in self.used:
            shared = [*filter(seed[BASELINE].pvalues.__contains__, shared)]
        return shared

    @remembered
    def seed_pvalues(self, method: str, test: str) -> list[dict[int, DatasetPValue]]:
        """Return the p-value of all texts by percentage erased, with each seed."""
        if test not in self.tests:
            raise unknown("test", test, self.tests or ["what measure(tests=fit_tests(…)) was given"])
        # one p-value of all texts per step and seed: seeds share texts, so they are not pooled as texts
        group, pvalues = self.group(method), []
        for seed in group.seeds:
            steps = seed[method].pvalues[test][: group.texts].T  # [S, N]
            pvalues.append(dict(zip(group.percents, map(dataset_pvalue, steps), strict=True)))
        return pvalues

    def pvalues(self, method: str, test: str) -> dict[int, DatasetPValue]:
        """Return the p-value of all texts at each percentage erased; small means out of distribution.

        Several seeds are combined by Simes' method.
        """
        seeds = self.seed_pvalues(method, test)
        joined = {}
        for percent in seeds[0]:
            joined[percent] = join_pvalues([*map(itemgetter(percent), seeds)])
        return joined

    def p(self, method: str, test: str) -> float:
        """Return the combined p-value of all texts at all steps below 100 %."""
        combined = []
        for steps in self.seed_pvalues(method, test):
            combined.append(of_steps({percent: step.p for percent, step in steps.items()}))
        return float(simes(combined))

    def unusual(self, method: str) -> CountTest | None:
        """Return how many erased texts look unusual beside validation texts masked at the same rates.

        Several seeds are combined by Simes' method; the share is the largest. None without such texts.
        """
        tests = []
        for known, seed in self.recalibrated:
            if method not in seed:
                continue
            if known is None or not known.references or CROSSFIT not in seed[method].pvalues:
                return None
            trace = seed[method].first(self.texts_of(method))
            steps = [*map(trace.percents.index, known.percents)]
            tests.append(count_unusual(trace.pvalues[CROSSFIT][:, steps], known.limits, known.references))
        return join_counts(tests)

    @cached_property
    def evidence(self) -> TaskEvidence:
        """Facts from which doubts and verdict are derived."""
        context, tests, leader = self.context, self.tests, next(iter(self.leaders), None)
        baseline = self.group(BASELINE)
        spread, shared = math.nan, {}
        if leader is not None:
            if self.seeds_of(leader) > 1:
                spread = float(np.std(self.seed_areas(leader), ddof=1))
            # rivals are ranked by their tests; what was measured on other texts is compared on shared ones
            ranked = {BASELINE, *self.rivals, *self.optimizers}
            shared = {name: self.shared_areas(name, leader) for name in self.methods if name not in ranked}
        random = baseline.curves(BASELINE, self.metric)
        whole = [curve.values[0] for curve in random]
        return gather_evidence(
            dict(zip(self.methods, map(self._method_evidence, self.methods), strict=True)),
            self.seed_pvalues(BASELINE, choose_test(tests)) if tests else [],
            kind=self.main_kind,
            lead=self.lead,
            behavior=self.behavior,
            optimizers=self.optimizers,
            training_spread=spread,
            group=self.leaders,
            texts_needed=self.texts_needed,
            shared=shared,
            metric=self.metric,
            whole=mean_of(whole),
            majority=self.majority,
            converged=min(whole) > context.threshold,
            racu_divisor=mean_of([*map(racu_divisor, random)]),
            seeds=len(self.used),
            unlearned_seeds=len(self.comparable) - len(self.used),
            other_seeds=context.other_seeds + len(self.seeds) - len(self.comparable),
            floors=subset(context.floors, tests),
            explained_once=tuple(filter(context.scores.__contains__, self.methods)),
            **facts_of(context, FACTS),
        )

    def _method_evidence(self, method: str) -> MethodEvidence:
        p = {}
        for test in self.tests:  # a trace that was measured before may lack a test of the baseline
            if all(test in trace.pvalues for trace in self._traces(method)):
                p[test] = self.p(method, test)
        area = self.interval(method).or_mean()
        beyond = None if self.main_kind == NUMBER_KIND else self.interval(method, "beyond").or_mean()
        texts, seeds = self.texts_of(method), self.seeds_of(method)
        return MethodEvidence(area, p, texts, seeds, beyond, self.unusual(method))

    def metrics(self, method: str, shares: Sequence[int] | None = None) -> dict[str, float]:
        """Return the metrics of other papers on these erasures (docs/metrics.md); NaN where undefined.

        Args:
            method: Name of a measured method.
            shares: Percents that comprehensiveness, sufficiency and log-odds average over; by default those
                of ERASER (1, 5, 10, 20, 50) that were measured.
        """
        return mean_each(self.group_with_more(method).other_metrics(method, shares))

    @cached_property
    def plausibility(self) -> dict[str, dict[str, float]]:
        """By method, the agreement of its scores with human rationales; empty without rationales.

        It says nothing about faithfulness.
        """
        marks = mark_rationales(self.context.inputs)
        agreements = {}
        for name in self.methods if marks else []:
            agreements[name] = mean_each([score_trace(trace, marks) for trace in self._traces(name)])
        return agreements

    @cached_property
    def frame(self) -> DataFrame:
        """Row for each method, text and step (see `trace.frame_trace`); of several seeds, of the first."""
        seed = self.used[0]
        measured = filter(seed.__contains__, self.methods)
        return frame_traces(map(seed.__getitem__, measured))

    def table(self) -> DataFrame:
        """Return a frame with a row for each method, most faithful first, random last.

        Columns: method, areas by kind and share_of_ceiling (fractions), `p_…` for each test, texts,
        evaluations, evaluations_alone, seconds.
        """
        from .plain import table_result

        return table_result(self)

    def metric_table(self, shares: Sequence[int] | None = None) -> DataFrame:
        """Return a row for each method with the metrics of other papers, most faithful by ACU first."""
        import pandas as pd

        return pd.DataFrame({"method": name, **self.metrics(name, shares)} for name in self.ranked)

    def plausibility_table(self) -> DataFrame:
        """Return ACU (a fraction) and agreement with rationales side by side for each method."""
        import pandas as pd

        rows = ({"acu": self.acu(name), **self.plausibility.get(name, {})} for name in self.ranked)
        return pd.DataFrame(rows).assign(method=self.ranked).set_index("method").reset_index()

    def to_csv(self, path: str | Path) -> None:
        """Write `table()` to a CSV file."""
        write_csv(self.table(), path)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values, including doubts and verdict; writing turns NaN into null."""
        from .plain import describe_result

        return describe_result(self)


def _mean_curve(curves: Sequence[Curve]) -> Curve:
    steps = zip(*map(attrgetter("values"), curves), strict=True)  # the values of all seeds at each step
    return replace(curves[0], values=tuple(map(mean_of, steps)))
