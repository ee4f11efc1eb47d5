"""Trace of an erasure: the model's logits at each step, and the figures that follow from them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..stats.behavior import Behavior, Recalibration, check_behavior

if TYPE_CHECKING:
    from pandas import DataFrame

NEVER = 255
"""Step of a unit that is never masked. A step is a whole percentage, so there are at most 101."""
PHASES = ("explain", "evaluate", "check")
"""Phases of a measurement that are timed separately."""
Value = TypeVar("Value")


def subset(values: Mapping[str, Value], names: Collection[str]) -> dict[str, Value]:
    """Return the values of these names, in the order of the names."""
    return dict(zip(names, map(values.__getitem__, names), strict=True))


@dataclass(frozen=True, eq=False)
class Trace:
    """Logits of a model while one method erased N texts in S steps.

    Everything else follows from them: predictions, probabilities, curves and areas in any metric.

    Attributes:
        method: Name of the method with its options; `random` is the baseline.
        percents: Percentages of units erased, one for each step.
        rows: Numbers of the texts in their split, rising, [N].
        targets: Label of each text: a class number, or the true number of a regression, [N].
        logits: Logits of every class at every step, float32 [N, S, C]. A model that predicts a number z has
            the logits -z and z.
        scores: For each text, the score of each explained unit of the whole text.
        steps: For each text, the first step that masks each explained unit; 255 for never.
        pvalues: By test, the in-distribution p-value of each text at each step, [N, S].
        kept: Probability of the label when only the masked units are left, [N, S]; None if not evaluated.
        evaluations: Number of evaluations; methods that are measured together share equal ones.
        evaluations_alone: Number that the method would have needed alone.
        seconds: Time by phase.
        code: Digest of the source of your own method or scores; empty if built in.
        numbers: Whether the model predicts a number.
        devices: Devices that the model was evaluated on.
    """

    method: str
    percents: tuple[int, ...]
    rows: NDArray[np.int64]
    targets: NDArray[Any]
    logits: NDArray[np.float32]
    scores: tuple[NDArray[np.float64], ...]
    steps: tuple[NDArray[np.uint8], ...]
    pvalues: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    kept: NDArray[np.float64] | None = None
    evaluations: int = 0
    evaluations_alone: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    code: str = ""
    numbers: bool = False
    devices: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def predictions(self) -> NDArray[Any]:
        """Predicted class, the first of equals, or predicted number of each text at each step, [N, S]."""
        if self.numbers:
            return self.logits[:, :, 1].astype(np.float64)
        predictions: NDArray[Any] = self.logits.argmax(axis=2)
        return predictions

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """Probability of the label of each text at each step, [N, S]; NaN for numbers."""
        if self.numbers:
            return np.full(self.logits.shape[:2], math.nan)
        logits = self.logits.astype(np.float64)
        exponentials = np.exp(logits - logits.max(axis=2, keepdims=True))  # the largest is 1: no overflow
        labels = self.targets.astype(np.int64)[:, None, None]  # [N, 1, 1], an index into the classes
        own = np.take_along_axis(exponentials, labels, axis=2)[:, :, 0]
        probabilities: NDArray[np.float64] = own / exponentials.sum(axis=2)
        return probabilities

    def check_behavior(self, known: Recalibration) -> Behavior:
        """Return the behavioral check of texts that were erased at random, at the rates that it knows."""
        known = known.at([percent for percent in self.percents if 0 < percent < 100])
        steps = [*map(self.percents.index, known.percents)]
        return check_behavior(known, self.logits[:, steps], self.targets)

    def masked(self, text: int, step: int) -> list[int]:
        """Return the numbers of the explained units that are masked in a text at a step."""
        numbers: list[int] = np.flatnonzero(self.steps[text] <= step).tolist()
        return numbers

    def first(self, count: int) -> Trace:
        """Return the trace of the first texts."""
        return self._select(slice(0, count))

    def cut(self, stops: Iterable[int]) -> list[Trace]:
        """Return the pieces that end before the rows with these numbers; the first has the costs of all."""
        # stops outside the trace cut nothing
        places = {*np.searchsorted(self.rows, [*stops]).tolist()} - {0, len(self)}
        pieces = []
        for start, stop in pairwise([0, *sorted(places), len(self)]):
            piece = self._select(slice(start, stop))
            # the sum over all pieces stays what was spent
            pieces.append(replace(piece, evaluations=0, evaluations_alone=0, seconds={}) if start else piece)
        return pieces

    def _select(self, part: slice) -> Trace:
        """Return the trace of a part of the texts; facts of the work stay those of all texts."""
        return replace(
            self,
            rows=self.rows[part],
            targets=self.targets[part],
            logits=self.logits[part],
            scores=self.scores[part],
            steps=self.steps[part],
            pvalues={test: values[part] for test, values in self.pvalues.items()},
            kept=None if self.kept is None else self.kept[part],
        )


def join_traces(parts: Sequence[Trace]) -> Trace:
    """Return one trace of the texts of all parts, which are slices of one method's texts, in order."""
    pvalues = {}
    for test in parts[0].pvalues:
        pvalues[test] = np.concatenate([part.pvalues[test] for part in parts])
    kept = [part.kept for part in parts if part.kept is not None]
    joined: dict[str, Any] = {}
    for name in ("rows", "targets", "logits"):
        joined[name] = np.concatenate([*map(attrgetter(name), parts)])
    for name in ("scores", "steps"):  # an array for each text
        joined[name] = tuple(chain.from_iterable(map(attrgetter(name), parts)))
    return replace(
        parts[0],
        **joined,
        pvalues=pvalues,
        kept=np.concatenate(kept) if len(kept) == len(parts) else None,
        **add_costs(map(vars, parts)),
    )


def add_costs(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum of what several parts of a trace cost, and where they were computed."""
    total: dict[str, Any] = {"evaluations": 0, "evaluations_alone": 0}
    seconds: dict[str, float] = {}
    devices: dict[str, None] = {}  # a set in the order of the parts
    for part in parts:
        for name in total:
            total[name] += part[name]
        for phase, spent in part["seconds"].items():
            seconds[phase] = seconds.get(phase, 0.0) + spent
        devices |= dict.fromkeys(part["devices"])
    return {**total, "seconds": seconds, "devices": tuple(devices)}


def frame_trace(trace: Trace) -> DataFrame:
    """Return a frame with a row for each step and text, all texts of a step together.

    Columns: row, label, percent, masked (numbers of the masked explained units), scores (of the explained
    units of the whole text, at the first step only), prediction (the class, or the predicted number),
    probability (of the label; NaN for numbers), p_… of each test, and kept if it was evaluated.
    """
    import pandas as pd

    texts, steps = len(trace), len(trace.percents)
    # all texts of a step together, as the columns below
    masked: list[list[int]] = []
    for step in range(steps):
        for text in range(texts):
            masked.append(trace.masked(text, step))
    # once, at the first step: they are those of the whole text
    scores: list[list[float] | None] = [*map(np.ndarray.tolist, trace.scores)]
    scores += [None] * (len(masked) - texts)
    columns = {
        "row": np.tile(trace.rows, steps),
        "label": np.tile(trace.targets, steps),
        "percent": np.repeat(trace.percents, texts),
        "masked": masked,
        "scores": scores,
        "prediction": trace.predictions.T.ravel(),
        "probability": trace.probabilities.T.ravel(),
    }
    for test, values in trace.pvalues.items():
        columns[f"p_{test}"] = values.T.ravel()
    if trace.kept is not None:
        columns["kept"] = trace.kept.T.ravel()
    return pd.DataFrame(columns)


def frame_traces(traces: Iterable[Trace]) -> DataFrame:
    """Return the frames of several methods below each other, with the name of the method in front."""
    import pandas as pd

    frames = []
    for trace in traces:
        frame = frame_trace(trace)
        frame.insert(0, "method", trace.method)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)
