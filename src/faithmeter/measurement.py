"""Erase → curves and p-values: how far performance falls below masking at random, for a task or one text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor

from .collator import STRATEGIES, require_masking
from .config import BASELINE
from .curves import Curve, acu, racu, whole_percents
from .errors import InputError, unknown
from .evaluator import Evaluator
from .explanation import token_spans
from .indist import CALIBRATIONS, MaSF
from .masks import PERCENTS, row_generators, uniform_mask
from .methods import METHODS, Method, parse
from .metrics import majority, score
from .onetext import TextMeasurement, measure_text
from .pvalues import DatasetPValue, dataset_pvalue, of_steps
from .steps import Tests, erased, floors_of, states
from .store import read_parquet, write_parquet
from .tasks import TASKS, Task
from .tokens import Batch

if TYPE_CHECKING:
    from datasets import Dataset
    from pandas import DataFrame

CHUNK = 64
"""Texts that are worked on together: the unit of progress and resume. Batches do not reach across chunks."""

PHASES = ("explain", "evaluate", "check")

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

    @classmethod
    def from_record(cls, record: Mapping[str, Any], texts: Path) -> Measurement:
        """What was measured before, from its record and the frame beside it."""
        frame = _read(texts)
        if frame is None:
            raise InputError(f"{texts} is gone; delete the folder it was in and measure again")
        methods = record["methods"]
        return cls(
            frame,
            len(record["labels"]),
            record["metric"],
            tuple(next(iter(methods.values()))["others"]),
            {name: method["evaluations"] for name, method in methods.items()},
            {name: method["seconds"] for name, method in methods.items()},
            record["floors"],
        )

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

    parts = []
    for batch, labels in chunks(clf, split, count):
        file = None if keep is None else keep / f"{int(batch.index[0])}-{int(batch.index[-1])}.parquet"
        part = None if file is None else _read(file)
        stamp = "" if file is None else _stamp(clf, batch, labels, named, percents, tests or {})
        if part is not None and part.attrs.get("stamp") != stamp:
            raise InputError(f"{file} is of another measurement; keep each in a folder of its own")
        if part is None:
            evaluator.forget()  # methods share its memory; chunks do not, so that each stands alone
            part = _chunk(
                evaluator,
                batch,
                labels,
                named,
                percents,
                tests or {},
                done=partial(tell, len(batch)),
            )
            if file is not None:
                part.attrs["stamp"] = stamp
                write_parquet(file, part)
        else:
            for name in named:
                tell(len(batch), name)
        parts.append(part)
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
    )


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
    require_masking(strategy, scope)
    features = []
    split = task.load()["validation"]
    for batch, _ in chunks(clf, split, len(split)):
        masked = batch.masked(training_mask(batch, strategy=strategy, scope=scope, seed=seed), clf.mask_id)
        features.append(states(Evaluator(clf), masked)[1])
        if progress is not None:
            progress(len(batch), len(split))
    together = torch.cat(features).numpy()
    return {calibration: MaSF(calibration=calibration).fit(together) for calibration in CALIBRATIONS}


def _chunk(
    evaluator: Evaluator,
    batch: Batch,
    labels: Tensor,
    methods: Mapping[str, Method],
    percents: Sequence[int],
    tests: Tests,
    done: Callable[[str], object],
) -> DataFrame:
    """All methods on the texts of a chunk; what each cost is in the frame's `attrs`, which parquet keeps."""
    import pandas as pd

    frames, costs = [], {}
    for name, method in methods.items():
        before, seconds = evaluator.evaluations, dict.fromkeys(PHASES, 0.0)
        frames.append(erased(evaluator, batch, labels, method, percents, tests, seconds).assign(method=name))
        costs[name] = {"evaluations": evaluator.evaluations - before, "seconds": seconds}
        done(name)
    frame = pd.concat(frames, ignore_index=True)
    frame.insert(0, "method", frame.pop("method"))
    frame.attrs = {"costs": costs}
    return frame


def _stamp(
    clf: Any,
    batch: Batch,
    labels: Tensor,
    methods: Mapping[str, Method],
    percents: Sequence[int],
    tests: Tests,
) -> str:
    """Digest of what decides a chunk's numbers."""
    model = clf.fingerprint if hasattr(clf, "fingerprint") else ""
    named = [f"{method} {method.code}" for method in methods.values()]
    settings = [model, *named, *map(str, percents), *tests]
    said = hashlib.sha256(" ".join(settings).encode())
    for values in (batch.input_ids.numpy(), labels.numpy(), *(test.statistics_ for test in tests.values())):
        said.update(values.tobytes())
    return said.hexdigest()[:16]


def training_mask(batch: Batch, *, strategy: str, scope: str, seed: int) -> Tensor:
    """[B, T]: texts masked as a fine-tuning of this strategy and scope would see them."""
    chosen = torch.zeros(len(batch), dtype=torch.bool)
    chosen[STRATEGIES[strategy]] = True
    allowed = batch.explained if scope == "explained" else batch.content
    return uniform_mask(allowed & chosen[:, None], row_generators(seed, "masf", batch.index))


def readable(clf: Any, task: Task, count: int) -> DataFrame:
    """The first test texts and where in each its explained tokens stand: what a report shows scores on.

    Columns: row, text, context, label, and of the tokens starts, ends, words (the number of the word).
    """
    import pandas as pd

    rows = []
    split = task.load()["test"]
    for batch, labels in chunks(clf, split, count):
        for place, row in enumerate(batch.index.tolist()):
            text, context = split[row]["text"], split[row].get("context")
            positions = batch.explained[place].nonzero()[:, 0].tolist()
            ids = batch.input_ids[place].tolist()
            text, spans, words = token_spans(clf, text, context, positions, ids)
            starts, ends = [start for start, _ in spans], [end for _, end in spans]
            rows.append((row, text, context, int(labels[place]), starts, ends, words))
    return pd.DataFrame(rows, columns=["row", "text", "context", "label", "starts", "ends", "words"])


def chunks(clf: Any, split: Dataset, count: int) -> Iterator[tuple[Batch, Tensor]]:
    """The first texts of a split with their labels, a chunk at a time."""
    for start in range(0, count, CHUNK):
        index = range(start, min(start + CHUNK, count))
        part = split.select(index)[:]
        batch = clf.encode(part["text"], part.get("context"))
        yield replace(batch, index=torch.tensor(index)), torch.tensor(part["label"])


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


def _read(file: Path) -> DataFrame | None:
    """As it was written: parquet gives arrays for lists. None if it was not, or not to its end."""
    import pandas as pd

    frame = read_parquet(file)
    if frame is None:
        return None
    for column in ("masked", "scores"):
        values = [None if value is None else value.tolist() for value in frame[column]]
        frame[column] = pd.Series(values, dtype=object)
    return frame
