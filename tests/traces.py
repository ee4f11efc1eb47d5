"""Traces and results from made-up predictions: a test changes only what it is about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from faithmeter.config import BASELINE, MeasureConfig, TrainConfig
from faithmeter.measuring.pool import Context
from faithmeter.measuring.result import Result
from faithmeter.measuring.trace import PHASES, Trace
from faithmeter.stats.behavior import Recalibration
from faithmeter.store.identity import digest_values
from faithmeter.store.run_store import RunStore
from faithmeter.store.traces import TRACES, Shelf

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
    texts = len(predicted)
    first = np.searchsorted(percents, (25, 50, 75, 100))
    tests = {test: np.asarray(values, float) for test, values in (p or {}).items()}
    known = {
        "rows": np.arange(texts),
        "targets": np.asarray(labels),
        "logits": SURE * np.eye(classes, dtype=np.float32)[predicted],
        "scores": (np.array([4.0, 3.0, 2.0, 1.0]),) * texts,
        "steps": (first.astype(np.uint8),) * texts,
        "pvalues": {test: np.broadcast_to(values, predicted.shape).copy() for test, values in tests.items()},
        "evaluations": 10,
        "evaluations_alone": 12,
        "seconds": dict.fromkeys(PHASES, 1.0),
    }
    return Trace(method, tuple(percents), **{**known, **fields})


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


def perfect(classes: int) -> Recalibration:
    """What the masked validation texts tell of a model whose predictions cannot be made better."""
    inner = PERCENTS[1:-1]
    return Recalibration(inner, (1.0,) * len(inner), ((0.0,) * classes,) * len(inner), 0, 400)


def context(**changes: Any) -> Context:
    return Context(**{"classes": 2, "metric": "accuracy", "floors": FLOORS, **changes})


def result(*seeds: Mapping[str, Trace], **changes: Any) -> Result:
    return Result(tuple(seeds), context(**changes))


def keep(
    store: RunStore,
    trained: TrainConfig,
    seed: Mapping[str, Trace],
    /,
    *,
    texts: pd.DataFrame | None = None,
    labels: Sequence[str] = ("no", "yes"),
    **changes: Any,
) -> MeasureConfig:
    """Write traces and the manifest of a measurement that has them; return its config.

    `changes` are those of the manifest and, by the name of a field, of the config.
    """
    of_config = {*MeasureConfig.model_fields} - {"metric", "precision"}  # of these, what was measured counts
    fields = {name: changes.pop(name) for name in of_config & {*changes}}
    count = len(next(iter(seed.values())))
    asked = {
        "checkpoint": f"weights-{trained.digest}",
        "data": "data",
        "task": trained.task,
        "methods": tuple(name for name in seed if name != BASELINE) or (BASELINE,),
        "limit": count,
        "strategy": trained.strategy,
        "scope": trained.scope,
    }
    config = MeasureConfig(**{**asked, **fields})
    manifest = manifest_values(trained, seed, labels=labels, **changes)
    manifest["subject"] = digest_values({"of": [config.checkpoint, config.data, config.unit, config.overlap]})
    shelf = Shelf(store.root / TRACES / manifest["subject"])
    shelf.write_texts(made_up_texts(seed[BASELINE]) if texts is None else texts)
    for name, each in seed.items():
        manifest["traces"][name] = place = f"{name}-{digest_values({'percents': each.percents})}"
        tests = {test: test for test in each.pvalues}
        shelf.write_trace(place, {"method": name}, each, tests)
    store.put(config, manifest)
    return config


def manifest_values(
    trained: TrainConfig, seed: Mapping[str, Trace], *, labels: Sequence[str] = ("no", "yes"), **changes: Any
) -> dict[str, Any]:
    """Values of a measurement of these traces, for `RunStore.put`."""
    tests = dict.fromkeys(test for each in seed.values() for test in each.pvalues)
    return {
        "trained": trained.to_dict(),
        "train_digest": trained.digest,
        "task_name": "",
        "labels": list(labels),
        "classes_by_number": False,
        "metric": "accuracy",
        "others": [],
        "texts": len(next(iter(seed.values()), ())),
        "subject": "subject",
        "traces": {},
        "tests": {test: test for test in tests},
        "scores": {},
        "threshold": 0.5,
        "trained_with": trained.strategy,
        "floors": {test: FLOORS[test] for test in tests},
        "agreement": math.nan,
        "precision": "fp32",
        "recalibration": perfect(len(labels)),
        "seconds": {"fit": 3.0},
        **changes,
    }


def made_up_texts(one: Trace) -> pd.DataFrame:
    """Four words for each text."""
    columns = {"text": "a bb cc dd", "context": None, "truncated": False}
    frame = pd.DataFrame({"row": one.rows, **columns, "label": one.targets})
    for name, values in {"starts": [0, 2, 5, 8], "ends": [1, 4, 7, 10], "words": [0, 1, 2, 3]}.items():
        frame[name] = [values] * len(frame)
    return frame
