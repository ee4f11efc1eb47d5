"""Erase → curves and p-values: how far performance falls below masking at random, for a task or one text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor

from .collator import STRATEGIES
from .curves import Curve, acu, racu
from .errors import InputError
from .evaluator import Evaluator
from .indist import CALIBRATIONS, MaSF
from .masks import PERCENTS, row_generators, uniform_mask
from .methods import METHODS, Method, parse
from .metrics import score
from .onetext import TextMeasurement, measure_text
from .pvalues import DatasetPValue, dataset_pvalue
from .steps import BASELINE, Tests, erased, states
from .store import write_parquet
from .tasks import Task
from .tokens import Batch

if TYPE_CHECKING:
    from datasets import Dataset
    from pandas import DataFrame

CHUNK = 64
"""Texts that are worked on together: the unit of progress and resume. Batches do not reach across chunks."""

Names = Sequence[str | Method]


@dataclass(frozen=True)
class Measurement:
    """Methods measured on the texts of a task. `frame` has a row for each text, method and step."""

    frame: DataFrame  # method, and the columns of `steps.erased`
    classes: int
    metric: str
    evaluations: Mapping[str, int]  # of the model, by method; 0 for what was found on disk
    seconds: Mapping[str, float]
    floors: Mapping[str, float]  # the smallest p-value that each test could give

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(self.frame["method"]))

    @property
    def texts(self) -> int:
        return int(self.frame["row"].nunique())

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
        return {percent: dataset_pvalue(step[f"p_{test}"]) for percent, step in self._steps(method)}

    def smallest_p(self, method: str, test: str) -> float:
        """Of the dataset, over all steps but 100 %, where every method gives the same text and no area."""
        return min(step.p for percent, step in self.pvalues(method, test).items() if percent < 100)

    def _steps(self, method: str) -> Iterator[tuple[int, DataFrame]]:
        rows = self.frame[self.frame["method"] == method]
        for percent in sorted(rows["percent"].unique()):
            yield int(percent), rows[rows["percent"] == percent]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: one entry for each method."""
        return {
            "metric": self.metric,
            "texts": self.texts,
            "floors": dict(self.floors),
            "methods": {
                method: {
                    "curve": vars(self.curve(method)),
                    "acu": self.acu(method),
                    "racu": self.racu(method),
                    "pvalues": {
                        test: {
                            percent: step._asdict() for percent, step in self.pvalues(method, test).items()
                        }
                        for test in self.tests
                    },
                    "evaluations": self.evaluations[method],
                    "seconds": self.seconds[method],
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
    progress: Callable[[str, int, int], object] | None = None,
) -> Measurement:
    """Erase the test texts of a task by each method and, as the baseline, by `random`, drawn from `seed`.

    `limit` takes only the first texts. `tests` add p-values (`fit_tests` makes them). Finished chunks go to
    the folder `keep` and are taken from there: a killed measurement goes on where it was. `progress` is
    called with a method, how many more texts it has done, and how many there are.
    """
    import pandas as pd

    named = {str(method): method for method in (parse(BASELINE), *map(parse, methods))}
    evaluations, seconds = dict.fromkeys(named, 0), dict.fromkeys(named, 0.0)
    frames = []
    split = task.load()["test"]
    count = min(limit or len(split), len(split))
    _require_classes(split["label"][:count], task)
    evaluator = Evaluator(clf)
    for batch, labels in chunks(clf, split, count):
        evaluator.forget()  # methods share its memory; chunks do not, so that each stands alone
        for name, method in named.items():
            file = None if keep is None else keep / _chunk_name(name, batch)
            if file is not None and file.exists():
                frame = _read(file)
            else:
                before, begun = evaluator.evaluations, time.perf_counter()
                frame = erased(evaluator, batch, labels, _seeded(method, seed), percents, tests or {})
                frame.insert(0, "method", name)
                evaluations[name] += evaluator.evaluations - before
                seconds[name] += time.perf_counter() - begun
                if file is not None:
                    write_parquet(file, frame)
            frames.append(frame)
            if progress is not None:
                progress(name, len(batch), count)
    frame = pd.concat(frames, ignore_index=True)
    floors = {name: test.smallest_p() for name, test in (tests or {}).items()}
    return Measurement(frame, len(task.labels), task.metric, evaluations, seconds, floors)


def fit_tests(
    clf: Any,
    task: Task,
    *,
    strategy: str = "half",
    scope: str = "explained",
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, MaSF]:
    """MaSF, as published and cross-fitted, on the validation split masked as in training."""
    features = []
    split = task.load()["validation"]
    for batch, _ in chunks(clf, split, len(split)):
        masked = batch.masked(training_mask(batch, strategy=strategy, scope=scope, seed=seed), clf.mask_id)
        features.append(states(Evaluator(clf), masked)[1])
        if progress is not None:
            progress(len(batch), len(split))
    together = torch.cat(features).numpy()
    return {calibration: MaSF(calibration=calibration).fit(together) for calibration in CALIBRATIONS}


def training_mask(batch: Batch, *, strategy: str, scope: str, seed: int) -> Tensor:
    """[B, T]: texts masked as a fine-tuning of this strategy and scope would see them."""
    chosen = torch.zeros(len(batch), dtype=torch.bool)
    chosen[STRATEGIES[strategy]] = True
    allowed = batch.explained if scope == "explained" else batch.content
    return uniform_mask(allowed & chosen[:, None], row_generators(seed, "masf", batch.index))


def chunks(clf: Any, split: Dataset, count: int) -> Iterator[tuple[Batch, Tensor]]:
    """The first texts of a split with their labels, a chunk at a time."""
    for start in range(0, count, CHUNK):
        index = range(start, min(start + CHUNK, count))
        part = split.select(index)[:]
        batch = clf.encode(part["text"], part.get("context"))
        yield replace(batch, index=torch.tensor(index)), torch.tensor(part["label"])


def _seeded(method: Method, seed: int) -> Method:
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


def _read(file: Path) -> DataFrame:
    """As it was written: parquet gives arrays for lists."""
    import pandas as pd

    frame = pd.read_parquet(file)
    for column in ("masked", "scores"):
        values = [None if value is None else value.tolist() for value in frame[column]]
        frame[column] = pd.Series(values, dtype=object)
    return frame


def _chunk_name(method: str, batch: Batch) -> str:
    slug = "".join(c if c.isalnum() or c in "-=." else "_" for c in method)
    return f"{slug}-{int(batch.index[0])}-{int(batch.index[-1])}.parquet"
