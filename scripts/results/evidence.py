"""Tidy files of the study → the differences and intervals that the claims rest on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame
from scipy import stats

from faithmeter.config import BASELINE
from faithmeter.data import TASKS
from faithmeter.paper import published
from faithmeter.stats.curves import absolute_area
from faithmeter.stats.intervals import RESAMPLES, TextIntervals, resample_texts
from faithmeter.stats.predictions import Predictions, resampling_weights
from faithmeter.stats.pvalues import simes
from faithmeter.store.frames import COLUMNS

CONFIDENCE = 0.95
STEPS = tuple(range(10, 100, 10))
"""Steps that claims about masked texts are about; the wholly masked text is reported apart."""
METHODS = (
    *("loo-sign", "loo-abs", "int-grad-sign", "int-grad-abs", "inp-grad-sign", "inp-grad-abs"),
    *("grad-l1", "grad-l2"),
)
"""Methods of the paper that were measured; beam search was too slow."""
MASKED, PLAIN, ONLY_MASKED = "half", "none", "all"
STORIES = "01-stories"
LONGER = "05-stories-epochs"
ROAR = "08-stories-roar"
VARIANTS = (LONGER, "06-stories-scope", "07-stories-rates", ROAR)
"""Grids that repeat another one with one setting changed; most claims are about the others."""
TUNINGS = ((MASKED, "both"), (PLAIN, "unmasked"), (ONLY_MASKED, "masked"))
"""Fine-tunings that the page compares: strategy, and what chooses the best epoch."""


class Effect(NamedTuple):
    """A value with its 95 % interval and what the interval is over; bounds are nan without an interval."""

    value: float
    lower: float = math.nan
    upper: float = math.nan
    over: str = ""


class Place(NamedTuple):
    """Task and model of the runs of a grid."""

    grid: str
    task: str
    model: str

    @property
    def name(self) -> str:
        return f"{self.task}, {MODELS.get(Path(self.model).name, self.model)}"


MODELS = {
    "paraphrase-MiniLM-L3-v2": "MiniLM-L3",
    "granite-embedding-30m-english-roberta": "granite-30m",
    "mpnet": "MPNet-base",
}


def predictions_of(frames: Sequence[DataFrame], *, classes: int, metric: str) -> Predictions:
    """Return the predictions of several seeds, each a frame with a row for each method, text and step.

    Methods and texts that are missing from any frame are left out.
    """
    tables, cells = [], {"index": "row", "columns": "percent", "values": "prediction"}
    for frame in frames:
        groups = frame.groupby("method", sort=False)
        tables.append({str(name): rows.pivot(**cells) for name, rows in groups})
    names = [name for name in tables[0] if all(name in table for table in tables)]
    rows = sorted(set.intersection(*(set(table[name].index) for table in tables for name in names)))
    labels = frames[0].drop_duplicates("row").set_index("row")["label"].loc[rows]
    arrays = {name: np.stack([table[name].loc[rows].to_numpy() for table in tables]) for name in names}
    percents = tuple(map(int, tables[0][names[0]].columns))
    return Predictions(labels.to_numpy(), arrays, classes, metric, percents)


@dataclass(frozen=True)
class Study:
    """Tidy files of the study, read once."""

    folder: Path
    name: str = ""
    """What tells this study's places from those of another; empty for the main study."""

    compared: ClassVar = {ROAR: STORIES}
    """Grids whose retrained models are compared with those of another grid."""

    def title(self, place: Place) -> str:
        """Name of a place, with that of the study."""
        return f"{place.name}{f', {self.name}' if self.name else ''}"

    def main_places(self, strategy: str) -> list[Place]:
        """Places of which a model was measured, without the variants of other grids."""
        places = self.places.values()
        return [
            place for place in places if self.measured(place.grid, strategy) and place.grid not in VARIANTS
        ]

    @cached_property
    def every_run(self) -> DataFrame:
        """Runs with configs, digests and environments, of all training and validation strategies."""
        return pd.read_csv(self.folder / "runs.csv")

    @cached_property
    def runs(self) -> DataFrame:
        """Runs of the fine-tunings that the page compares."""
        runs = self.every_run
        pairs = pd.Series(list(zip(runs["strategy"], runs["validation"], strict=True)), index=runs.index)
        return runs[pairs.isin(TUNINGS)]

    @cached_property
    def frames(self) -> dict[str, DataFrame]:
        """Frames of the store by kind, with the column `grid`; method names have no number of steps."""
        grids = self.runs[["digest", "grid", "rates"]]
        frames = {kind: pd.read_csv(self.folder / f"{kind}.csv").merge(grids) for kind in COLUMNS}
        for frame in frames.values():
            if "method" in frame:
                frame["method"] = frame["method"].map(without_steps, na_action="ignore")
        return frames

    @cached_property
    def lengths(self) -> DataFrame:
        """Performance of a classifier that only knows the numbers of tokens, by task."""
        return pd.read_csv(self.folder / "lengths.csv")

    @cached_property
    def places(self) -> dict[str, Place]:
        """Task and model of each grid that has runs."""
        rows = self.runs.drop_duplicates("grid")
        places = zip(*(rows[name].astype(str) for name in Place._fields), strict=True)
        return {place.grid: place for place in map(Place._make, places)}

    def measured(self, grid: str, strategy: str) -> bool:
        """Return whether some seed of a fine-tuning was measured."""
        return bool(self.areas(grid, strategy, BASELINE))

    @property
    def measured_grids(self) -> list[str]:
        """Grids of which a masked model was measured."""
        return [grid for grid in self.places if self.measured(grid, MASKED)]

    @property
    def ranked_grids(self) -> list[str]:
        """Grids of which a masked model was measured by all methods of the paper."""
        return [g for g in self.measured_grids if all(self.areas(g, MASKED, name) for name in METHODS)]

    @property
    def has_measurements(self) -> bool:
        return bool(self.measured_grids)

    def test_scores(self, grid: str, strategy: str, masking: str) -> dict[int, float]:
        """Return the test performance of each seed at one masking, in percent."""
        rows = self.frames["train"]
        rows = rows[(rows["grid"] == grid) & (rows["strategy"] == strategy) & (rows["split"] == "test")]
        rows = rows[rows["masking"].astype(str) == masking]
        return dict(zip(rows["seed"], 100 * rows["value"], strict=True))

    def validated(self, grid: str, validation: str) -> dict[int, float]:
        """Return the test performance on whole texts of each seed whose epoch was chosen so, in percent."""
        rows = self._every_training
        rows = rows[(rows["grid"] == grid) & (rows["strategy"] == MASKED) & (rows["split"] == "test")]
        rows = rows[(rows["validation"] == validation) & (rows["masking"].astype(str) == "0")]
        return dict(zip(rows["seed"], 100 * rows["value"], strict=True))

    @cached_property
    def _every_training(self) -> DataFrame:
        return pd.read_csv(self.folder / "train.csv").merge(self.every_run[["digest", "grid"]])

    def wholly_masked(self, grid: str, strategy: str) -> dict[int, float]:
        """Return the test performance of each seed with all columns masked, in percent.

        Runs before there was this condition have that of the explained column masked, see `leaves_context`.
        """
        return self.test_scores(grid, strategy, "all") or self.test_scores(grid, strategy, "100")

    def leaves_context(self, grid: str) -> bool:
        """Return whether the second column of a pair stayed visible in the wholly masked texts."""
        place = self.places[grid]
        scopes = set(self.runs[self.runs["grid"] == grid]["scope"])
        known = self.test_scores(grid, MASKED, "all")
        return not known and TASKS[place.task].context is not None and scopes != {"all"}

    def majority(self, grid: str) -> float:
        """Return the test performance of the class majority, in percent."""
        rows = self.frames["train"]
        return float(100 * rows[(rows["grid"] == grid) & (rows["split"] == "test")]["majority"].iloc[0])

    def areas(self, grid: str, strategy: str, method: str, column: str = "acu") -> dict[int, float]:
        """Return an area of each seed, in percent."""
        rows = self.frames["areas"]
        rows = rows[(rows["grid"] == grid) & (rows["strategy"] == strategy) & (rows["method"] == method)]
        return dict(zip(rows["seed"], 100 * rows[column], strict=True))

    def pvalue(self, grid: str, strategy: str, test: str, percent: int, method: str = BASELINE) -> float:
        """Return the p-value of one step, of all seeds by Simes' method."""
        rows = self.frames["measure"]
        rows = rows[(rows["grid"] == grid) & (rows["strategy"] == strategy) & (rows["method"] == method)]
        return float(simes(rows[rows["percent"] == percent][f"p_{test}"]))

    def rejected(self, grid: str, strategy: str, test: str, method: str = BASELINE) -> Effect:
        """Return the percentage of texts that a test rejects one by one, mean over the steps in `STEPS`.

        The bounds are exact binomial ones for as many texts as there are seeds × texts.
        """
        rows = self.frames["measure"]
        rows = rows[(rows["grid"] == grid) & (rows["strategy"] == strategy) & (rows["method"] == method)]
        share = float(rows[rows["percent"].isin(STEPS)][f"below_{test}"].mean())
        seeds, texts = rows["seed"].nunique(), int(rows["texts"].min())
        count = seeds * texts
        bounds = stats.binomtest(round(share * count), count).proportion_ci(CONFIDENCE)
        over = f"{seeds} seed{'s' if seeds > 1 else ''}, {texts} texts"
        return Effect(100 * share, 100 * float(bounds.low), 100 * float(bounds.high), over)

    def methods(self, grid: str, strategy: str) -> list[str]:
        """Return the methods of the paper that were measured, beam included."""
        return [name for name in (*METHODS, "beam") if self.areas(grid, strategy, name)]

    def predictions(self, grid: str, strategy: str, *methods: str) -> Predictions:
        """Return the predictions of methods, and of random erasure, on the texts that all have.

        Costly methods may have been measured apart, on fewer texts or seeds. Of several measurements of a
        method the one on the most texts counts, and seeds that lack a method are left out.
        """
        runs = self.runs[(self.runs["grid"] == grid) & (self.runs["strategy"] == strategy)]
        wanted = {*methods, BASELINE}
        frames = []
        for _, own in runs[runs["kind"] == "measure"].groupby("seed"):
            rows = self._prediction_rows[self._prediction_rows["digest"].isin(own["digest"])]
            rows = rows[rows["method"].isin(wanted)]
            if set(rows["method"]) == wanted:
                frames.append(most_texts(rows))
        areas = self.frames["areas"]
        metric = str(areas[areas["digest"].isin(runs["digest"])]["metric"].iloc[0])
        return predictions_of(frames, classes=int(rows_classes(frames)), metric=metric)

    @cached_property
    def _prediction_rows(self) -> DataFrame:
        rows = pd.read_parquet(self.folder / "predictions.parquet").astype({"method": str, "digest": str})
        return rows.assign(method=rows["method"].map(without_steps))

    def intervals(self, grid: str, strategy: str, *methods: str) -> TextIntervals:
        """Return the intervals over seeds and texts of some methods of a grid."""
        key = grid, strategy, *sorted(methods)
        if key not in self._intervals:
            self._intervals[key] = resample_texts(self.predictions(grid, strategy, *methods))
        return self._intervals[key]

    @cached_property
    def _intervals(self) -> dict[tuple[str, ...], TextIntervals]:
        return {}

    def acu(self, grid: str, strategy: str, method: str) -> Effect:
        """Return a method's ACU over seeds and texts, in percent."""
        return as_effect(self.intervals(grid, strategy, method), method)

    def difference(self, grid: str, strategy: str, first: str, second: str) -> Effect:
        """Return the difference of two methods' ACU on the same texts, in percent."""
        return as_effect(self.intervals(grid, strategy, first, second), first, second)


def most_texts(rows: DataFrame) -> DataFrame:
    """Return the rows of each method's measurement on the most texts."""
    sizes = rows.groupby(["method", "digest"], sort=False)["row"].nunique().reset_index()
    largest = sizes.sort_values("row", kind="stable").drop_duplicates("method", keep="last")
    return rows.merge(largest[["method", "digest"]], on=["method", "digest"])


def rows_classes(frames: Iterable[DataFrame]) -> int:
    """Return the number of classes that occur."""
    return 1 + max(int(frame[["label", "prediction"]].max().max()) for frame in frames)


def without_steps(method: str) -> str:
    """Return the name of a method without its number of steps."""
    return method.replace("(steps=10)", "").replace(",steps=10", "")


def over_seeds(values: Iterable[float]) -> Effect:
    """Return the mean over seeds with Student's t interval; a single seed has no bounds."""
    numbers = np.array(list(values), np.float64)
    seeds = f"{len(numbers)} seed{'s' if len(numbers) > 1 else ''}"
    if len(numbers) < 2:
        return Effect(float(numbers.mean()), over=seeds)
    if np.ptp(numbers) == 0:  # no variation to estimate from
        return Effect(float(numbers[0]), float(numbers[0]), float(numbers[0]), seeds)
    bounds = stats.ttest_1samp(numbers, 0).confidence_interval(CONFIDENCE)
    return Effect(float(numbers.mean()), float(bounds.low), float(bounds.high), seeds)


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> Effect:
    """Return the mean difference over the seeds that both have."""
    return over_seeds(first[seed] - second[seed] for seed in sorted(first.keys() & second.keys()))


def as_effect(intervals: TextIntervals, first: str, second: str = "") -> Effect:
    """Return the ACU of a method, or its difference to another one, in percent."""
    interval = intervals.difference(first, second) if second else intervals.acu(first)
    seeds = intervals.predictions.seeds
    over = f"{seeds} seed{'s' if seeds > 1 else ''}, {interval.n} texts"
    return Effect(100 * interval.mean, 100 * interval.lower, 100 * interval.upper, over)


def published_areas(task: str, column: str = "acu") -> dict[str, float]:
    """Return the published ACU or RACU of RoBERTa-base by method, in percent."""
    rows = published.table("faithfulness")
    rows = rows[(rows["model"] == "roberta-base") & (rows["dataset"] == task)]
    return dict(zip(rows["importance_measure"], rows[column], strict=True))


def spearman(places: Iterable[tuple[Predictions, Mapping[str, float]]]) -> Effect:
    """Return the rank correlation of ACU with a reference, over resampled seeds and texts (percentiles).

    The value of several places is the mean of their correlations. As in `resample_texts`, one seed fewer is
    drawn than there are.
    """
    values, resampled, texts, seeds = [], [], 0, 0
    for predictions, reference in places:
        rng = np.random.default_rng(0)
        ranks = [reference[name] for name in METHODS]
        own, drawn = predictions.seeds, max(predictions.seeds - 1, 1)
        weights = rng.multinomial(drawn, [1 / own] * own, size=RESAMPLES // 9) / drawn
        once = predictions.weighted_curves([np.ones((1, predictions.texts), np.int64)])
        many = predictions.weighted_curves(resampling_weights(predictions.texts, RESAMPLES // 9, rng))
        values.append(_correlations(once, predictions, ranks, np.full((1, own), 1 / own)))
        resampled.append(_correlations(many, predictions, ranks, weights))
        texts, seeds = texts + predictions.texts, max(seeds, own)
    bounds = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2
    lower, upper = np.nanquantile(np.mean(resampled, axis=0), bounds)
    over = f"{seeds} seed{'s' if seeds > 1 else ''}, {texts} texts"
    return Effect(float(np.mean(values)), float(lower), float(upper), over)


def _correlations(
    curves: Mapping[str, np.ndarray], predictions: Predictions, reference: list[float], weights: np.ndarray
) -> np.ndarray:
    """Return Spearman's correlation of each resample's areas with the reference; nan if all are equal.

    A resample counts each seed by its weight [R, G].
    """
    ratios = predictions.ratios
    of_seeds = (absolute_area(curves[name], curves[BASELINE], ratios) for name in METHODS)  # each [R, G]
    areas = [(own * weights).sum(axis=-1) for own in of_seeds]
    ranks = stats.zscore(stats.rankdata(np.stack(areas, axis=-1), axis=-1), axis=-1)
    correlations: np.ndarray = ranks @ stats.zscore(stats.rankdata(reference)) / len(METHODS)
    return correlations
