"""Results as plain values, for `to_dict`, `measure --json` and frames, and what shows any result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..stats.curves import KINDS, Curve, acu, racu

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import RenderableType

    from .result import Result


CONTEXT = (
    *("trained_with", "truncated", "classes_by_number", "agreement"),
    *("device", "precision", "unit"),
)
"""Fields of the context that are told as they are."""


def facts_of(owner: object, names: Sequence[str]) -> dict[str, Any]:
    """Return the attributes with these names, two or more, by name."""
    return dict(zip(names, attrgetter(*names)(owner), strict=True))


def describe_result(result: Result) -> dict[str, Any]:
    """Return a result with doubts and verdict as JSON-ready values; writing turns NaN into null."""
    verdict = result.verdict.to_dict()
    return {
        "metric": result.metric,
        "texts": result.texts,
        "seeds": len(result.used),
        "majority": result.majority,
        "floors": dict(result.context.floors),
        "methods": {method: _describe_method(result, method) for method in result.methods},
        "ceiling": _describe_ceiling(result),
        "leaders": list(result.leaders),
        "texts_needed": result.texts_needed,
        **facts_of(result.context, CONTEXT),
        "doubts": verdict.pop("doubts"),
        "verdict": verdict,
    }


def _describe_method(result: Result, method: str) -> dict[str, Any]:
    context, p, pvalues = result.context, {}, {}
    for test in result.tests:
        p[test] = result.p(method, test)
        pvalues[test] = {percent: step._asdict() for percent, step in result.pvalues(method, test).items()}
    return {
        **_describe_areas(result, method, context.metric),
        "texts": result.texts_of(method),
        "intervals": _describe_intervals(result, method),
        "others": {metric: _describe_areas(result, method, metric) for metric in context.others},
        "p": p,
        "pvalues": pvalues,
        "evaluations": result.evaluations[method],
        "evaluations_alone": result.evaluations_alone[method],
        "seconds": result.seconds[method],
        "scores": context.scores.get(method, ""),
        "metrics": result.metrics(method),
        "plausibility": result.plausibility.get(method, {}),
    }


def _describe_areas(result: Result, method: str, metric: str) -> dict[str, Any]:
    described: dict[str, Any] = {"curve": asdict(result.curve(method, metric))}
    for kind in KINDS:
        described[kind] = result.area(method, kind, metric)
    return described


def _describe_intervals(result: Result, method: str) -> dict[str, dict[str, float]]:
    """Return the bounds of each area and of each point of the curve (`curve.10` at 10 %)."""
    quantities = result.bounds(method)
    for percent, interval in zip(result.curve(method).percents, result.curve_intervals(method), strict=True):
        quantities[f"curve.{percent}"] = interval
    return {name: {"lower": each.lower, "upper": each.upper} for name, each in quantities.items()}


def _describe_ceiling(result: Result) -> dict[str, Any] | None:
    ceiling = result.ceiling
    if ceiling is None:
        return None
    random: Curve | Sequence[float] = result.random_curve(result.rivals[0])
    return {"curve": asdict(ceiling), "acu": acu(ceiling, random), "racu": racu(ceiling, random)}


def table_result(result: Result) -> DataFrame:
    """Return a frame with a row for each method, as `Result.table`."""
    import pandas as pd

    evaluations, alone, seconds = result.evaluations, result.evaluations_alone, result.seconds
    rows = []
    for name in result.ranked:
        row: dict[str, Any] = {"method": name}
        for kind in KINDS:
            row[kind] = result.area(name, kind)
        row["share_of_ceiling"] = result.share_of_ceiling(name)
        for test in result.tests:
            row[f"p_{test}"] = result.p(name, test)
        row |= {"texts": result.texts_of(name), "evaluations": evaluations[name]}
        row |= {"evaluations_alone": alone[name], "seconds": sum(seconds[name].values())}
        rows.append(row)
    return pd.DataFrame(rows)


class Rendered:
    """Base class of results, which `faithmeter.report` renders."""

    def _repr_html_(self) -> str:
        html: str = _surfaces().notebook(self)
        return html

    def __rich__(self) -> RenderableType:
        renderable: RenderableType = _surfaces().terminal(self)
        return renderable

    def to_html(self, path: str | Path) -> None:
        """Write the result as a page that loads nothing else."""
        _surfaces().write_page([self], path)

    def to_png(self, path: str | Path) -> None:
        """Write what a terminal shows of the result as a picture; needs the extra `report`."""
        _surfaces().write_picture(self, path)


def _surfaces() -> Any:
    # the only way from a result up to what renders it: a module of this layer must not import `report`
    return import_module("faithmeter.report.surfaces")
