"""Traces and results from made-up predictions: a test changes only what it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from faithmeter.measuring.context import Context
from faithmeter.measuring.result import Result
from faithmeter.measuring.trace import PHASES, Trace

PERCENTS = tuple(range(0, 101, 10))
FLOORS = {"published": 0.001, "crossfit": 0.002}
SURE = 2.0
"""Logit of the predicted class; the others have 0."""


def trace(
    method: str,
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    classes: int = 2,
    percents: Sequence[int] = PERCENTS,
    p: Mapping[str, ArrayLike] | None = None,
    **fields: Any,
) -> Trace:
    """The trace of a method that makes the model predict these classes [N, S] on texts of these labels.

    `p` has the p-values by test, one for all or an array [N, S]. Each text has four units, and a step masks
    the first of them that the percentage asks for.
    """
    predicted = np.asarray(predictions)
    texts, steps = predicted.shape
    first = np.searchsorted(percents, (25, 50, 75, 100))
    return Trace(
        method=method,
        percents=tuple(percents),
        rows=np.arange(texts),
        targets=np.asarray(labels),
        logits=SURE * np.eye(classes, dtype=np.float32)[predicted],
        scores=(np.array([4.0, 3.0, 2.0, 1.0]),) * texts,
        steps=(first.astype(np.uint8),) * texts,
        **{
            "pvalues": {
                test: np.broadcast_to(np.asarray(values, float), (texts, steps)).copy()
                for test, values in (p or {}).items()
            },
            "evaluations": 10,
            "evaluations_alone": 12,
            "seconds": dict.fromkeys(PHASES, 1.0),
            **fields,
        },
    )


def falling(shares: Mapping[str, float], labels: ArrayLike, seed: int = 0) -> dict[str, np.ndarray]:
    """Predictions [N, S] by method: a text is right until a share of it is masked, on average this one."""
    true, rng = np.asarray(labels), np.random.default_rng(seed)
    methods = {}
    for name, share in shares.items():
        ends = 100 * share * rng.uniform(0.5, 1.5, len(true))
        wrong = np.asarray(PERCENTS) >= ends[:, None]
        methods[name] = np.where(wrong, 1 - true[:, None], true[:, None])
    return methods


def traces(methods: Mapping[str, ArrayLike], labels: ArrayLike, **options: Any) -> dict[str, Trace]:
    return {name: trace(name, predictions, labels, **options) for name, predictions in methods.items()}


def context(**changes: Any) -> Context:
    return Context(**{"classes": 2, "metric": "accuracy", "floors": FLOORS, **changes})


def result(*seeds: Mapping[str, Trace], **changes: Any) -> Result:
    return Result(tuple(seeds), context(**changes))
