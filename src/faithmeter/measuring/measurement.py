"""Measurement of methods on the texts of a task: curves, areas, p-values, doubts and verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..config import BASELINE, SIGNIFICANCE_LEVEL, TrainedWith, UnitName
from ..errors import unknown
from ..files import write_csv
from ..methods.registry import find_searches
from ..stats.ceiling import best_erasures
from ..stats.comparisons import Ranking, rank_methods
from ..stats.curves import Curve, acu, racu, racu_divisor
from ..stats.intervals import Interval, TextIntervals, resample_texts
from ..stats.metrics import majority, score
from ..stats.other_metrics import OTHER_METRICS, normalized_aopc, text_metrics
from ..stats.predictions import Predictions
from ..stats.pvalues import DatasetPValue, dataset_pvalue, of_steps
from ..verdict import Measured, MethodEvidence, TaskEvidence, choose_test, guess_level
from ..verdict.formats import format_metric, format_percent
from .rendered import Rendered

if TYPE_CHECKING:
    from pandas import DataFrame


def predictions_of(frames: Sequence[DataFrame], *, classes: int, metric: str) -> Predictions:
    """Return the predictions of one or more measurements, with one `Measurement.frame` for each seed.

    Methods and texts that are missing from any frame are left out.
    """
    tables = [
        {str(name): rows.pivot(index="row", columns="percent", values="prediction") for name, rows in groups}
        for groups in (frame.groupby("method", sort=False) for frame in frames)
    ]
    names = [name for name in tables[0] if all(name in table for table in tables)]
    shared = set.intersection(*(set(table[name].index) for table in tables for name in names))
    rows = sorted(shared)
    labels = frames[0].drop_duplicates("row").set_index("row")["label"].loc[rows]
    arrays = {name: np.stack([table[name].loc[rows].to_numpy() for table in tables]) for name in names}
    percents = tuple(map(int, tables[0][names[0]].columns))
    return Predictions(labels.to_numpy(), arrays, classes, metric, percents)


@dataclass(frozen=True)
class Measurement(Measured, Rendered):
    """Measurement of several methods on the texts of a task.

    Attributes:
        frame: A row for each method, text and step: `method` and the columns of `trajectory.trace_erasure`.
        classes: Number of classes.
        metric: Name of the task's first metric.
        others: Names of its other metrics.
        evaluations: By method, the number of model evaluations; methods share equal ones.
        evaluations_alone: By method, the number that it would have needed alone; empty if not counted.
        seconds: By method and phase: explain, evaluate, check.
        floors: By test, the smallest p-value that it can give.
        inputs: The texts with their token positions (`chunks.locate_tokens`); None if read from a store.
        trained_with: Masking strategy of the training that the tests assume.
        threshold: Performance above which the model counts as having learned the task.
        truncated: Share of the texts whose end the model could not read.
        classes_by_number: Whether the classes of model and task were matched by number, not by name.
        device: Device, or devices, that the model was evaluated on.
        precision: Data type that it was evaluated in.
        agreement: Agreement of an adapted model with the original, as a fraction; NaN for any other model.
        scores: By method, the origin of scores that were computed elsewhere.
        unit: What was scored and erased as one piece: token, word or sentence.
        plausibility: By method, the agreement of its scores with human rationales; empty without rationales.
            It says nothing about faithfulness.

    Example:
        >>> result = fm.measure(clf, task, ["loo-sign"], limit=20)
        >>> result.methods
        ['random', 'loo-sign']
    """

    frame: DataFrame
    classes: int
    metric: str
    others: tuple[str, ...]
    evaluations: Mapping[str, int]
    seconds: Mapping[str, Mapping[str, float]]
    floors: Mapping[str, float]
    inputs: DataFrame | None = None
    trained_with: TrainedWith = "unknown"
    threshold: float = -math.inf
    truncated: float = 0.0
    classes_by_number: bool = False
    device: str = "cpu"
    precision: str = "fp32"
    agreement: float = math.nan
    scores: Mapping[str, str] = field(default_factory=dict)
    unit: UnitName = "token"
    plausibility: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    evaluations_alone: Mapping[str, int] = field(default_factory=dict)
    _curves: dict[tuple[str, str], Curve] = field(default_factory=dict, init=False, repr=False, compare=False)
    _pvalues: dict[tuple[str, str], dict[int, DatasetPValue]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __repr__(self) -> str:
        areas = ", ".join(f"{name} {format_percent(acu)}" for name, (acu, _) in self._ranked())
        return f"<Measurement of {self.texts} texts by {format_metric(self.metric)}, ACU in %: {areas}>"

    def table(self) -> DataFrame:
        """Return a frame with a row for each method, most faithful first, random last.

        Columns: method, acu, racu and share_of_ceiling (fractions), `p_…` for each test, texts, evaluations,
        evaluations_alone, seconds.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "method": name,
                "acu": acu,
                "racu": racu,
                "share_of_ceiling": self.share_of_ceiling(name),
                **{f"p_{test}": self.p(name, test) for test in self.tests},
                "texts": self.texts,
                "evaluations": self.evaluations[name],
                "evaluations_alone": self.evaluations_alone.get(name, math.nan),
                "seconds": sum(self.seconds[name].values()),
            }
            for name, (acu, racu) in self._ranked()
        )

    def to_csv(self, path: str | Path) -> None:
        """Write `table()` to a CSV file."""
        write_csv(self.table(), path)

    def _ranked(self) -> list[tuple[str, tuple[float, float]]]:
        """Return the methods with their ACU and RACU, highest ACU first, the baseline last."""
        return sorted(self.areas.items(), key=lambda item: (item[0] == BASELINE, -item[1][0]))

    @property
    def methods(self) -> list[str]:
        """Names of the measured methods, the baseline first."""
        return list(self.frame["method"].unique())

    @property
    def texts(self) -> int:
        """Number of texts."""
        return int(self.frame["row"].nunique())

    @property
    def majority(self) -> float:
        """Performance of guessing: always the most frequent class of these texts, or their mean."""
        labels = self.frame.drop_duplicates("row")["label"]
        constant = majority([self.metric], labels, labels, self.classes)[self.metric]
        return guess_level(self.metric, constant, self.texts)

    @property
    def tests(self) -> list[str]:
        """Names of the in-distribution tests."""
        return [column.removeprefix("p_") for column in self.frame.columns if column.startswith("p_")]

    def select_methods(self, methods: Iterable[str]) -> Measurement:
        """Return the measurement restricted to these methods."""
        chosen = {*methods}
        return replace(
            self,
            frame=self.frame[self.frame["method"].isin(chosen)].reset_index(drop=True),
            evaluations={name: count for name, count in self.evaluations.items() if name in chosen},
            seconds={name: phases for name, phases in self.seconds.items() if name in chosen},
            evaluations_alone={n: count for n, count in self.evaluations_alone.items() if n in chosen},
        )

    def among(self, rows: Iterable[int]) -> Measurement:
        """Return the measurement restricted to the texts with these row numbers."""
        return replace(self, frame=self.frame[self.frame["row"].isin(set(rows))])

    def curve(self, method: str, metric: str | None = None) -> Curve:
        """Return a method's performance at each percentage erased, by default in the task's first metric."""
        metric = metric or self.metric
        if (method, metric) not in self._curves:
            values = {
                percent: score([metric], step["label"], step["prediction"], self.classes)[metric]
                for percent, step in self._steps(method)
            }
            self._curves[method, metric] = Curve(tuple(values), tuple(values.values()), metric, self.texts)
        return self._curves[method, metric]

    def acu(self, method: str, metric: str | None = None) -> float:
        """Return the area between the curve of random erasure and that of a method, as a fraction."""
        return acu(self.curve(method, metric), self.curve(BASELINE, metric))

    def racu(self, method: str, metric: str | None = None) -> float:
        """Return the ACU relative to that of a curve that falls at once, as a fraction; NaN if undefined."""
        return racu(self.curve(method, metric), self.curve(BASELINE, metric))

    @cached_property
    def ceiling(self) -> Curve | None:
        """Curve of the best order of each text by any method; None without a search and another method.

        The ceiling rises when a better search is added. With `exhaustive` it is exact for short texts.
        """
        if len(self.methods) < 3 or "best" not in find_searches(self.methods):  # one is the baseline
            return None
        predictions, classes = self.predictions, self.classes
        steps = best_erasures(predictions)[0].T
        values = [score([self.metric], predictions.labels, step, classes)[self.metric] for step in steps]
        best = Curve(tuple(predictions.percents), tuple(values), self.metric, self.texts)
        return max((best, *map(self.curve, self.methods)), key=lambda curve: acu(curve, self.curve(BASELINE)))

    def share_of_ceiling(self, method: str) -> float:
        """Return the ACU of a method divided by that of the ceiling; NaN without a positive ceiling."""
        if self.ceiling is None or (highest := acu(self.ceiling, self.curve(BASELINE))) <= 0:
            return math.nan
        return self.acu(method) / highest

    @property
    def areas(self) -> dict[str, tuple[float, float]]:
        """ACU and RACU by method."""
        return {method: (self.acu(method), self.racu(method)) for method in self.methods}

    def pvalues(self, method: str, test: str) -> dict[int, DatasetPValue]:
        """Return the p-value of all texts at each percentage erased; small means out of distribution."""
        if test not in self.tests:
            raise unknown("test", test, self.tests or ["what measure(tests=fit_tests(…)) was given"])
        if (method, test) not in self._pvalues:
            values = {percent: dataset_pvalue(step[f"p_{test}"]) for percent, step in self._steps(method)}
            self._pvalues[method, test] = values
        return dict(self._pvalues[method, test])

    def p(self, method: str, test: str) -> float:
        """Return the combined p-value of all texts at all steps below 100 %."""
        return of_steps({percent: step.p for percent, step in self.pvalues(method, test).items()})

    @cached_property
    def predictions(self) -> Predictions:
        """Predicted classes of all methods, from which intervals and comparisons are computed."""
        return predictions_of([self.frame], classes=self.classes, metric=self.metric)

    @cached_property
    def intervals(self) -> TextIntervals:
        """Confidence intervals over texts, for curve points, ACU, RACU and differences between methods."""
        return resample_texts(self.predictions)

    @cached_property
    def ranking(self) -> Ranking:
        """Methods ranked by ACU, with a test of each pair."""
        return rank_methods(self.predictions)

    @cached_property
    def evidence(self) -> TaskEvidence:
        """Facts from which doubts and verdict are derived."""
        tests, whole = self.tests, self.curve(BASELINE).values[0]
        steps = self.pvalues(BASELINE, choose_test(tests)) if tests else {}
        shares = [step.below[SIGNIFICANCE_LEVEL] for percent, step in steps.items() if percent < 100]
        return TaskEvidence(
            methods={
                name: MethodEvidence(
                    self.intervals.acu(name).or_mean(),
                    {test: self.p(name, test) for test in tests},
                    self.texts,
                )
                for name in self.methods
            },
            group=self.leaders,
            texts_needed=self.texts_needed,
            metric=self.metric,
            whole=whole,
            majority=self.majority,
            converged=whole > self.threshold,
            floors=self.floors,
            trained_with=self.trained_with,
            truncated=self.truncated,
            outside_share=max(shares, default=0.0),
            p_wholly_masked=steps[100].p if steps else math.nan,
            racu_divisor=racu_divisor(self.curve(BASELINE)),
            classes_by_number=self.classes_by_number,
            precision=self.precision,
            agreement=self.agreement,
            explained_once=tuple(name for name in self.methods if name in self.scores),
        )

    def bounds(self, method: str) -> dict[str, Interval]:
        """Return the confidence intervals of a method's ACU and RACU."""
        return {"acu": self.intervals.acu(method), "racu": self.intervals.racu(method)}

    @property
    def leaders(self) -> tuple[str, ...]:
        """Method with the highest ACU, followed by those that cannot be told apart from it."""
        return self.ranking.leaders if len(self.methods) > 1 else ()

    @property
    def texts_needed(self) -> int | None:
        """Number of texts needed to tell the two best methods apart.

        None if they can be told apart already, or if no number of texts would suffice.
        """
        return self.ranking.texts_needed if len(self.methods) > 1 else None

    def to_record(self) -> dict[str, Any]:
        """Return the results as the values that a record stores."""
        return {
            "metric": self.metric,
            "texts": self.texts,
            "majority": self.majority,
            "floors": dict(self.floors),
            "trained_with": self.trained_with,
            "truncated": self.truncated,
            "classes_by_number": self.classes_by_number,
            "agreement": self.agreement,
            "methods": {method: self._describe(method) for method in self.methods},
            "ceiling": None if self.ceiling is None else self._describe_curve(self.ceiling, self.metric),
            "leaders": list(self.leaders),
            "texts_needed": self.texts_needed,
            "device": self.device,
            "precision": self.precision,
        }

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values, including doubts and verdict; writing turns NaN into null."""
        verdict = self.verdict.to_dict()
        return {**self.to_record(), "unit": self.unit, "doubts": verdict.pop("doubts"), "verdict": verdict}

    def _describe(self, method: str) -> dict[str, Any]:
        """Return the results of one method as plain values."""
        others = {metric: self._describe_areas(method, metric) for metric in self.others}
        pvalues = {test: self.pvalues(method, test) for test in self.tests}
        return {
            **self._describe_areas(method, self.metric),
            "intervals": self._describe_intervals(method),
            "others": others,
            "p": {test: self.p(method, test) for test in self.tests},
            "pvalues": {
                test: {percent: step._asdict() for percent, step in steps.items()}
                for test, steps in pvalues.items()
            },
            "evaluations": self.evaluations[method],
            "evaluations_alone": self.evaluations_alone.get(method, 0),
            "seconds": dict(self.seconds[method]),
            "scores": self.scores.get(method, ""),
            "metrics": self.metrics(method),
            "plausibility": dict(self.plausibility.get(method, {})),
        }

    def metrics(self, method: str, shares: Sequence[int] | None = None) -> dict[str, float]:
        """Return the metrics of other papers on these erasures (docs/metrics.md); NaN where undefined.

        Args:
            method: Name of a measured method.
            shares: Percents that comprehensiveness, sufficiency and log-odds average over; by default those
                of ERASER (1, 5, 10, 20, 50) that were measured.
        """
        if method not in self.methods:
            raise unknown("measured method", method, self.methods)
        probabilities = self._probabilities
        erased = probabilities["probability", method]
        kept = probabilities.get(("kept", method))
        texts = text_metrics(erased, kept, self.curve(method).percents, shares)
        if {"best", "worst"} <= find_searches(self.methods):
            all_methods = {name: probabilities["probability", name] for name in self.methods}
            texts["naopc"] = normalized_aopc(all_methods)[method]
        means = {
            name: float(np.nanmean(values)) if np.isfinite(values).any() else math.nan
            for name, values in texts.items()
        }
        return {name: means.get(name, math.nan) for name in OTHER_METRICS}

    def metric_table(self, shares: Sequence[int] | None = None) -> DataFrame:
        """Return a row for each method with the metrics of other papers, most faithful by ACU first."""
        import pandas as pd

        return pd.DataFrame({"method": name, **self.metrics(name, shares)} for name, _ in self._ranked())

    def plausibility_table(self) -> DataFrame:
        """Return ACU (a fraction) and agreement with rationales side by side for each method."""
        import pandas as pd

        rows = [(name, acu, self.plausibility.get(name, {})) for name, (acu, _) in self._ranked()]
        return pd.DataFrame({"method": name, "acu": acu, **agreement} for name, acu, agreement in rows)

    @cached_property
    def _probabilities(self) -> dict[tuple[str, str], NDArray[np.float64]]:
        """Probabilities of the label [N, S] by column (probability, kept) and method."""
        columns = [name for name in ("probability", "kept") if name in self.frame]
        return {
            (column, str(method)): rows.pivot(index="row", columns="percent", values=column).to_numpy(float)
            for method, rows in self.frame.groupby("method", sort=False)
            for column in columns
        }

    def _describe_intervals(self, method: str) -> dict[str, dict[str, float]]:
        """Return the bounds of ACU, RACU and each point of the curve (`curve.10` at 10 %)."""
        points = zip(self.predictions.percents, self.intervals.curve(method), strict=True)
        curve = {f"curve.{percent}": interval for percent, interval in points}
        quantities = {**self.bounds(method), **curve}
        return {name: {"lower": each.lower, "upper": each.upper} for name, each in quantities.items()}

    def _describe_areas(self, method: str, metric: str) -> dict[str, Any]:
        return self._describe_curve(self.curve(method, metric), metric)

    def _describe_curve(self, curve: Curve, metric: str) -> dict[str, Any]:
        random = self.curve(BASELINE, metric)
        return {"curve": asdict(curve), "acu": acu(curve, random), "racu": racu(curve, random)}

    def _steps(self, method: str) -> Iterator[tuple[int, DataFrame]]:
        """Yield each percentage with the rows of a method at that percentage."""
        if method not in self.methods:
            raise unknown("measured method", method, self.methods)
        rows = self.frame[self.frame["method"] == method]
        for percent in sorted(rows["percent"].unique()):
            yield int(percent), rows[rows["percent"] == percent]
