"""Controls as results of the package: what it says of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from faithmeter.config import BASELINE, TrainedWith
from faithmeter.measuring.pool import Context
from faithmeter.measuring.result import Result
from faithmeter.measuring.trace import Trace
from faithmeter.stats.behavior import recalibrate

from .cache import Control, Floats, read


def judge(
    control: Control,
    *,
    rows: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    declared: TrainedWith = "half",
) -> Result:
    """Return the result of a control, whatever is declared of its training.

    Args:
        control: The control.
        rows: Test texts; by default all, of which the methods have the first ones only.
        methods: Methods besides random erasure; by default all.
        declared: How the model is said to have been trained.
    """
    erasures = read(control)
    steps = [step for step, percent in enumerate(erasures.percents) if 0 < percent < 100]
    known = recalibrate(
        erasures.validation[:, steps], erasures.validation_labels, [erasures.percents[s] for s in steps]
    )
    logits = {**erasures.methods, BASELINE: erasures.test}
    names = [BASELINE, *(methods or [name for name in erasures.methods if name != BASELINE])]
    traces = {}
    for name in names:
        chosen = np.arange(len(logits[name])) if rows is None else np.asarray(rows)
        traces[name] = _trace(name, erasures.percents, logits[name][chosen], erasures.test_labels[chosen])
    context = Context(
        classes=logits[BASELINE].shape[2],
        metric="accuracy",
        trained_with=declared,
        recalibrations=(known,),
    )
    return Result((traces,), context)


def _trace(name: str, percents: tuple[int, ...], logits: Floats, labels: np.ndarray) -> Trace:
    """Return a trace whose scores and orders are not known."""
    texts = len(labels)
    return Trace(
        method=name,
        percents=percents,
        rows=np.arange(texts),
        targets=labels,
        logits=logits,
        scores=(np.zeros(1),) * texts,
        steps=(np.zeros(1, np.uint8),) * texts,
    )
