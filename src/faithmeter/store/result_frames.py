"""Rows of the tidy frames `measure` and `areas`, computed from the results of a store."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ..config import BASELINE, SIGNIFICANCE_LEVEL
from ..measuring.result import Result
from ..stats.areas import KINDS
from ..stats.curves import racu_divisor
from ..stats.intervals import Interval
from ..verdict.evidence import choose_test
from .results import Pooled, Run

Row = dict[str, Any]

POOLED = "pooled_"
"""Beginning of the names of columns with bounds over seeds and texts."""
POOLED_SEEDS = f"{POOLED}seeds"
"""Column with the number of seeds that the pooled bounds of a row are from."""


def run_columns(run: Run, method: str) -> Row:
    """Return the columns that identify a run, and the measurement that a method is from."""
    digest = run.sources[method].digest
    return {"digest": digest, "folder": str(run.folders[digest]), **run.training}


def area_rows(pooled: Pooled) -> Iterator[Row]:
    """Yield a row for each seed and method, with bounds over texts and over seeds and texts."""
    for run in pooled.runs:
        result = run.result
        for method in result.methods:
            yield {
                **run_columns(run, method),
                **_shared(result, method),
                **_areas(result, method),
                **_pooled_areas(pooled, run, method),
                **_check(result, method),
                **result.metrics(method),
                **result.plausibility.get(method, {}),
                "share_of_ceiling": result.share_of_ceiling(method),
                "racu_divisor": racu_divisor(result.random_curve(method)),
                "evaluations": result.evaluations[method],
                # 0 stands for not counted
                "evaluations_alone": result.evaluations_alone[method] or math.nan,
                "whole": result.curve(method).values[0],
                "majority": result.majority,
                "truncated": result.context.truncated,
                "classes_by_number": result.context.classes_by_number,
                "precision": result.context.precision,
                "agreement": result.context.agreement,
            }


def point_rows(pooled: Pooled) -> Iterator[Row]:
    """Yield a row for each seed, method and percentage erased, with bounds as those of areas."""
    for run in pooled.runs:
        result = run.result
        for method in result.methods:
            columns: dict[str, Sequence[float]] = {
                "percent": result.curve(method).percents,
                "value": result.curve(method).values,
                "random": result.random_curve(method).values,
                "ceiling": _ceiling(result, method),
            }
            columns |= _curve_bounds(result, method, "")
            # the same bounds stand in the rows of all seeds, so that one seed's row tells both
            if _is_pooled(pooled, run, method):
                columns |= _curve_bounds(pooled.result, method, POOLED)
                columns[POOLED_SEEDS] = [pooled.result.seeds_of(method)] * len(columns["percent"])
            for test in result.tests:
                steps = result.pvalues(method, test).values()
                columns[f"p_{test}"] = [step.p for step in steps]
                columns[f"below_{test}"] = [step.below[SIGNIFICANCE_LEVEL] for step in steps]
            shared = {**run_columns(run, method), **_shared(result, method)}
            for values in zip(*columns.values(), strict=True):
                yield {**shared, **dict(zip(columns, values, strict=True))}


def second_rows(pooled: Pooled) -> Iterator[Row]:
    """Yield a row for each seed, method and phase; those of phases that methods share are in the manifest."""
    for run in pooled.runs:
        for method, phases in run.result.seconds.items():
            for phase, seconds in phases.items():
                yield {
                    **run_columns(run, method),
                    "kind": "measure",
                    "method": method,
                    "phase": phase,
                    "seconds": seconds,
                }


def _shared(result: Result, method: str) -> Row:
    return {
        "method": method,
        "texts": result.texts_of(method),
        "metric": result.metric,
        "converged": result.curve(method).values[0] > result.context.threshold,
    }


def _areas(result: Result, method: str) -> Row:
    row: Row = {}
    for kind in KINDS:
        row[kind] = result.area(method, kind)
        row |= _bounds(kind, result.interval(method, kind))
    return row


def _pooled_areas(pooled: Pooled, run: Run, method: str) -> Row:
    """Return the bounds over seeds and texts; nothing for a seed that is not among those pooled."""
    if not _is_pooled(pooled, run, method):
        return {}
    row: Row = {POOLED_SEEDS: pooled.result.seeds_of(method)}
    for kind in KINDS:
        row |= _bounds(f"{POOLED}{kind}", pooled.result.interval(method, kind))
    return row


def _is_pooled(pooled: Pooled, run: Run, method: str) -> bool:
    counted = any(seed is run.traces for seed in pooled.result.used)
    return counted and pooled.result.seeds_of(method) > 1


def _bounds(name: str, interval: Interval) -> Row:
    return {f"{name}_lower": interval.lower, f"{name}_upper": interval.upper}


def _curve_bounds(result: Result, method: str, prefix: str) -> dict[str, list[float]]:
    """Return the bounds of the curve of a method, and of random erasure of its texts."""
    intervals = result.group(method).intervals(result.metric)
    bounds = {}
    for column, name in (("value", method), ("random", BASELINE)):
        points = intervals.curve(name)
        bounds[f"{prefix}{column}_lower"] = [point.lower for point in points]
        bounds[f"{prefix}{column}_upper"] = [point.upper for point in points]
    return bounds


def _ceiling(result: Result, method: str) -> Sequence[float]:
    ceilings = result.group_with_more(method).ceilings
    return [math.nan] * len(result.curve(method).values) if ceilings is None else ceilings[0].values


def _check(result: Result, method: str) -> Row:
    """Return the p-values by test; the p-value at 100 % and the share of rejections by the deciding one."""
    row: Row = {f"p_{test}": result.p(method, test) for test in result.tests}
    row |= {f"floor_{test}": result.context.floors[test] for test in result.tests}
    if result.tests:
        steps = result.pvalues(method, choose_test(result.tests))
        # at 100 % all texts of a length look alike, so that step tells nothing about erased ones
        below = [step.below[SIGNIFICANCE_LEVEL] for percent, step in steps.items() if percent < 100]
        row |= {"p_wholly_masked": steps[100].p, "outside_share": max(below)}
    return row
