"""Erasure of texts step by step, with the model's results for each text at each step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..config import BASELINE, TrainedWith
from ..errors import InputError
from ..files import timed
from ..methods.own_scores import OwnScores, own_scores
from ..methods.registry import Method, explain, parse, require_name
from ..models.evaluator import Evaluator, Model, pick, require_finite
from ..models.tokens import Batch
from ..stats.masf import MaSF
from .erase import erase

if TYPE_CHECKING:
    from pandas import DataFrame

Tests = Mapping[str, MaSF]
"""In-distribution tests by name; each adds a column `p_<name>`."""


def floors_of(tests: Tests | None) -> dict[str, float]:
    """Return the smallest possible p-value of each test."""
    return {name: test.smallest_p() for name, test in (tests or {}).items()}


def trained_with_of(tests: Tests | None) -> TrainedWith:
    """Return the masking strategy that the tests assume for the model's training; unknown without tests."""
    return next((test.trained_with for test in (tests or {}).values()), "unknown")


def agreement_of(clf: Model) -> float:
    """Return the agreement of an adapted model with the original; NaN for any other model."""
    return float(getattr(clf, "agreement", math.nan))


Names = str | Method | Sequence[str | Method] | Mapping[str, str | Method | OwnScores]
"""Methods by name or as values; in a mapping also scores that were computed elsewhere, by name."""


def parse_methods(methods: Names) -> list[Method]:
    """Return the methods of these names; a single name gives a list of one."""
    if isinstance(methods, str | Method):
        return [parse(methods)]
    if not isinstance(methods, Mapping):
        return [parse(name) for name in methods]
    for name in methods:
        require_name(name)
        if name == BASELINE:
            raise InputError(f"a method named {BASELINE!r}, which is the baseline; give yours another name")
    return [
        replace(parse(value), name=name) if isinstance(value, str | Method) else own_scores(name, value)
        for name, value in methods.items()
    ]


def trace_erasure(
    evaluator: Evaluator,
    batch: Batch,
    labels: Tensor,
    method: Method,
    percents: Sequence[int],
    tests: Tests,
    seconds: dict[str, float] | None = None,
    *,
    complement: bool = False,
) -> DataFrame:
    """Return a frame with a row for each text and step.

    Columns: row, label, percent, masked (numbers of the masked explained units), scores (of the explained
    units of the whole text, at the first step only), prediction (the class, or the predicted number),
    probability (of the label; NaN for numbers), and p_… of each test. A step that masks nothing new in a
    text is not evaluated again. `seconds` is increased by the time of each phase: explain, evaluate, check.
    With `complement` the column kept is the label's probability when only the masked units are left and all
    others are masked.
    """
    import pandas as pd

    seconds = {} if seconds is None else seconds
    with timed(seconds, "explain"):
        scores = explain(evaluator, batch, labels, method)
        steps = erase(evaluator, batch, labels, method, percents=percents, scores=scores)
        ids = torch.stack([step.input_ids for _, step in steps])  # [S, B, T]
    fresh = torch.ones(ids.shape[:2], dtype=torch.bool)  # [S, B]
    fresh[1:] = (ids[1:] != ids[:-1]).any(dim=2)
    rows = fresh.nonzero()[:, 1]  # [K]: text of each distinct input, step by step
    places = torch.zeros(ids.shape[:2], dtype=torch.long)
    places[fresh] = torch.arange(len(rows))
    places = places.cummax(dim=0).values.flatten()  # an unchanged text has the results of its last evaluation
    results = _evaluate(evaluator, replace(batch[rows], input_ids=ids[fresh]), labels[rows], tests, seconds)
    if complement:
        erased = (ids[fresh] == evaluator.mask_id) & batch[rows].covered
        others = batch[rows].covered & ~erased
        kept = replace(batch[rows], input_ids=batch.input_ids[rows].masked_fill(others, evaluator.mask_id))
        with timed(seconds, "evaluate"):
            logits = evaluator.logits(kept)
        results["kept"] = pick(logits.softmax(dim=1), labels[rows]).numpy()
    positions = [row.nonzero()[:, 0] for row in batch.explained]
    is_masked = [step[row, at] == evaluator.mask_id for step in ids for row, at in enumerate(positions)]
    masked = [tokens.nonzero()[:, 0].tolist() for tokens in is_masked]
    first_scores = [row[at].tolist() for row, at in zip(scores, positions, strict=True)]
    return pd.DataFrame(
        {
            "row": np.tile(batch.index, len(percents)),
            "label": np.tile(labels, len(percents)),
            "percent": np.repeat(percents, len(batch)),
            "masked": masked,
            "scores": [*first_scores, *[None] * (len(masked) - len(first_scores))],
            **{name: values[places] for name, values in results.items()},
        }
    )


def _evaluate(
    evaluator: Evaluator, batch: Batch, labels: Tensor, tests: Tests, seconds: dict[str, float]
) -> dict[str, np.ndarray]:
    """Return the prediction, the label's probability and the p-values of each text."""
    with timed(seconds, "evaluate"):
        logits, features = states(evaluator, batch) if tests else (evaluator.logits(batch), torch.empty(0))
    with timed(seconds, "check"):
        pvalues = {f"p_{name}": test.pvalues(features.numpy()) for name, test in tests.items()}
    if evaluator.predicts_number:
        numbers = logits[:, 1].numpy()
        return {"prediction": numbers, "probability": np.full(len(numbers), math.nan), **pvalues}
    return {
        "prediction": logits.argmax(dim=1).numpy(),
        "probability": pick(logits.softmax(dim=1), labels).numpy(),
        **pvalues,
    }


def states(evaluator: Evaluator, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return logits [B, C] in float64 and features [B, L, H] in float32, computed in micro-batches."""

    def work(micro: Batch, items: Tensor) -> tuple[Tensor, Tensor]:
        with torch.inference_mode():
            states: tuple[Tensor, Tensor] = evaluator.states(micro)
        return states

    logits, features = evaluator.gather(work, batch, torch.arange(len(batch)))
    require_finite(logits, batch.index)
    return logits.double(), features.float()
