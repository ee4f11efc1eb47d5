"""Erase → curves and p-values: how far performance falls below masking at random, for a task or one text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor

from ..config import BASELINE, Rates, Scope, Strategy
from ..errors import InputError, unknown
from ..methods.registry import METHODS, Method, parse
from ..metrics import majority, score
from ..models.evaluator import Evaluator
from ..models.masks import PERCENTS, row_generators, uniform_mask
from ..models.tokens import Batch
from ..tasks import TASKS, Task
from ..training.collator import STRATEGIES, require_masking
from .chunks import PHASES, chunks, erased_chunk, readable
from .curves import Curve, acu, racu, whole_percents
from .masf import CALIBRATIONS, MaSF
from .pvalues import DatasetPValue, dataset_pvalue, of_steps
from .single_text import TextMeasurement, measure_text
from .trajectory import Tests, floors_of, states

if TYPE_CHECKING:
    from pandas import DataFrame

Names = Sequence[str | Method]
Progress = Callable[[str, int, int], object]


@dataclass(frozen=True)
class Measurement:
    """Methods measured on the texts of a task. `frame` has a row for each text, method and step."""

    frame: DataFrame  # method, and the columns of `steps.erased`
    classes: int
    metric: str
    others: tuple[str, ...]  # metrics of the task besides
    evaluations: Mapping[str, int]  # of the model, by method
    seconds: Mapping[str, Mapping[str, float]]  # by method and phase: explain, evaluate, check
    floors: Mapping[str, float]  # the smallest p-value that each test could give
    inputs: DataFrame | None = None  # the texts, see `chunks.readable`; None if read from a store

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(self.frame["method"]))

    @property
    def texts(self) -> int:
        return int(self.frame["row"].nunique())

    @property
    def majority(self) -> float:
        """The metric of always predicting the most frequent class of these texts."""
        labels = self.frame.drop_duplicates("row")["label"]
        return majority([self.metric], labels, labels, self.classes)[self.metric]

    def among(self, rows: Iterable[int]) -> Measurement:
        """The same, of some of the texts."""
        return replace(self, frame=self.frame[self.frame["row"].isin(set(rows))])

    def curve(self, method: str, metric: str | None = None) -> Curve:
        """Performance by share of tokens erased."""
        metric = metric or self.metric
        values = {
            percent: score([metric], step["label"], step["prediction"], self.classes)[metric]
            for percent, step in self._steps(method)
        }
        return Curve(tuple(values), tuple(values.values()), metric, self.texts)

    def acu(self, method: str, metric: str | None = None) -> float:
        return acu(self.curve(method, metric), self.curve(BASELINE, metric))

    def racu(self, method: str, metric: str | None = None) -> float:
        return racu(self.curve(method, metric), self.curve(BASELINE, metric))

    @property
    def tests(self) -> list[str]:
        return [column.removeprefix("p_") for column in self.frame.columns if column.startswith("p_")]

    def pvalues(self, method: str, test: str) -> dict[int, DatasetPValue]:
        """For each percent, whether the texts erased by a method are in distribution: one p-value of all."""
        if test not in self.tests:
            raise unknown("test", test, self.tests or ["what measure(tests=fit_tests(…)) was given"])
        return {percent: dataset_pvalue(step[f"p_{test}"]) for percent, step in self._steps(method)}

    def p(self, method: str, test: str) -> float:
        """Of all texts at the steps together: the smallest of many p-values is none itself."""
        return of_steps({percent: step.p for percent, step in self.pvalues(method, test).items()})

    def _steps(self, method: str) -> Iterator[tuple[int, DataFrame]]:
        if method not in self.methods:
            raise unknown("measured method", method, self.methods)
        rows = self.frame[self.frame["method"] == method]
        for percent in sorted(rows["percent"].unique()):
            yield int(percent), rows[rows["percent"] == percent]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: one entry for each method."""
        return {
            "metric": self.metric,
            "texts": self.texts,
            "majority": self.majority,
            "floors": dict(self.floors),
            "methods": {
                method: {
                    "curve": vars(self.curve(method)),
                    "acu": self.acu(method),
                    "racu": self.racu(method),
                    "others": {
                        metric: {
                            "curve": vars(self.curve(method, metric)),
                            "acu": self.acu(method, metric),
                            "racu": self.racu(method, metric),
                        }
                        for metric in self.others
                    },
                    "p": {test: self.p(method, test) for test in self.tests},
                    "pvalues": {
                        test: {
                            percent: step._asdict() for percent, step in self.pvalues(method, test).items()
                        }
                        for test in self.tests
                    },
                    "evaluations": self.evaluations[method],
                    "seconds": dict(self.seconds[method]),
                }
                for method in self.methods
            },
        }


@overload
def measure(clf: Any, task: Task, methods: Names = ..., **options: Any) -> Measurement: ...


@overload
def measure(clf: Any, task: str, methods: Names = ..., **options: Any) -> TextMeasurement: ...


def measure(
    clf: Any, task: Task | str, methods: Names = tuple(METHODS), **options: Any
) -> Measurement | TextMeasurement:
    """A task measured (`measure_task`) or, given a text, that text alone (`measure_text`)."""
    if isinstance(task, str):
        if task in TASKS:
            raise InputError(f"{task!r} would be measured as a text; for the task give fm.task({task!r})")
        return measure_text(clf, task, methods=methods, **options)
    return measure_task(clf, task, methods, **options)


def measure_task(
    clf: Any,
    task: Task,
    methods: Names = tuple(METHODS),
    *,
    seed: int = 0,
    limit: int = 0,
    percents: Sequence[int] = PERCENTS,
    tests: Tests | None = None,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> Measurement:
    """Erase the test texts of a task by each method and, as the baseline, by `random`, drawn from `seed`.

    `limit` takes only the first texts. `tests` add p-values (`fit_tests` makes them). Finished chunks go to
    the folder `keep` and are taken from there: a killed measurement goes on where it was. `progress` is
    called with a method, how many more texts it has done, and how many there are.
    """
    import pandas as pd

    if limit < 0:
        raise InputError(f"limit is {limit}; expected how many texts to measure, or 0 for all")
    percents = whole_percents(percents)
    named = {str(method): seeded(method, seed) for method in (parse(BASELINE), *map(parse, methods))}
    split = task.load()["test"]
    count = min(limit or len(split), len(split))
    _require_classes(split["label"][:count], task)
    evaluator = Evaluator(clf)

    def tell(texts: int, name: str) -> None:
        if progress is not None:
            progress(name, texts, count)

    parts, inputs = [], []
    for batch, labels in chunks(clf, split, count):
        done = partial(tell, len(batch))
        parts.append(
            erased_chunk(evaluator, batch, labels, named, percents, tests or {}, keep=keep, done=done)
        )
        inputs.append(readable(batch, labels))
    costs = [part.attrs["costs"] for part in parts]
    frame = pd.concat(parts, ignore_index=True)
    frame.attrs = {}  # what one chunk cost
    return Measurement(
        frame,
        len(task.labels),
        task.metric,
        tuple(metric for metric in task.metrics if metric != task.metric),
        {name: sum(cost[name]["evaluations"] for cost in costs) for name in named},
        {
            name: {phase: sum(cost[name]["seconds"][phase] for cost in costs) for phase in PHASES}
            for name in named
        },
        floors_of(tests),
        pd.concat(inputs, ignore_index=True),
    )


def fit_tests(
    clf: Any,
    task: Task,
    *,
    strategy: Strategy = "half",
    scope: Scope = "explained",
    rates: Rates = "uniform",
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, MaSF]:
    """MaSF, as published and cross-fitted, on the validation split masked as in training."""
    require_masking(strategy, scope, rates)
    features = []
    split = task.load()["validation"]
    for batch, _ in chunks(clf, split, len(split)):
        where = training_mask(batch, strategy=strategy, scope=scope, rates=rates, seed=seed)
        masked = batch.masked(where, clf.mask_id)
        features.append(states(Evaluator(clf), masked)[1])
        if progress is not None:
            progress(len(batch), len(split))
    together = torch.cat(features).numpy()
    return {calibration: MaSF(calibration=calibration).fit(together) for calibration in CALIBRATIONS}


def training_mask(batch: Batch, *, strategy: Strategy, scope: Scope, rates: Rates, seed: int) -> Tensor:
    """[B, T]: texts masked as a fine-tuning of this strategy and scope would see them."""
    chosen = torch.zeros(len(batch), dtype=torch.bool)
    chosen[STRATEGIES[strategy]] = True
    allowed = batch.maskable(scope)
    return uniform_mask(allowed & chosen[:, None], row_generators(seed, "masf", batch.index), rates=rates)


def seeded(method: Method, seed: int) -> Method:
    """The baseline draws from the measurement's seed, unless it names its own."""
    if method.name != BASELINE or "seed" in method.options:
        return method
    return replace(method, options={"seed": seed})


def _require_classes(labels: Sequence[int], task: Task) -> None:
    if len(set(labels)) < 2:
        raise InputError(
            f"all {len(labels)} texts of {task.name} to be measured have the label "
            f"{task.labels[labels[0]]!r}; expected at least two classes: take more texts"
        )
