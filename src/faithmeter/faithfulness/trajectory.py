"""Texts erased step by step → rows: what the model makes of each text at each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..files import timed
from ..methods.registry import Method, explain
from ..models.evaluator import Evaluator, pick, require_finite
from ..models.tokens import Batch
from .erasure import erase
from .masf import MaSF

if TYPE_CHECKING:
    from pandas import DataFrame

Tests = Mapping[str, MaSF]
"""In-distribution tests by name; each gives a column `p_<name>`."""


def floors_of(tests: Tests | None) -> dict[str, float]:
    """The smallest p-value that each test can give."""
    return {name: test.smallest_p() for name, test in (tests or {}).items()}


def erased(
    evaluator: Evaluator,
    batch: Batch,
    labels: Tensor,
    method: Method,
    percents: Sequence[int],
    tests: Tests,
    seconds: dict[str, float] | None = None,
) -> DataFrame:
    """A row for each text and step. A step that masks nothing new in a text is not evaluated again.

    Columns: row, label, percent, masked (which of the explained tokens), scores (of the explained tokens of
    the text as it is, at the first step only), prediction, probability (of the label), and p_… of each test.
    `seconds` is added to, by phase: explain, evaluate, check.
    """
    import pandas as pd

    seconds = {} if seconds is None else seconds
    with timed(seconds, "explain"):
        scores = explain(evaluator, batch, labels, method)
        steps = erase(evaluator, batch, labels, method, percents=percents, scores=scores)
        ids = torch.stack([step.input_ids for _, step in steps])  # [S, B, T]
    fresh = torch.ones(ids.shape[:2], dtype=torch.bool)  # [S, B]
    fresh[1:] = (ids[1:] != ids[:-1]).any(dim=2)
    rows = fresh.nonzero()[:, 1]  # [K]: the texts of the different inputs, step by step
    places = torch.zeros(ids.shape[:2], dtype=torch.long)
    places[fresh] = torch.arange(len(rows))
    places = places.cummax(dim=0).values.flatten()  # of an unchanged text: where it was evaluated last
    judged = _judged(evaluator, replace(batch[rows], input_ids=ids[fresh]), labels[rows], tests, seconds)
    own = [row.nonzero()[:, 0] for row in batch.explained]  # where each text's tokens are
    gone = [step[row, at] == evaluator.mask_id for step in ids for row, at in enumerate(own)]
    masked = [tokens.nonzero()[:, 0].tolist() for tokens in gone]
    firsts = [row[at].tolist() for row, at in zip(scores, own, strict=True)]
    return pd.DataFrame(
        {
            "row": np.tile(batch.index, len(percents)),
            "label": np.tile(labels, len(percents)),
            "percent": np.repeat(percents, len(batch)),
            "masked": masked,
            "scores": [*firsts, *[None] * (len(masked) - len(firsts))],
            **{name: values[places] for name, values in judged.items()},
        }
    )


def _judged(
    evaluator: Evaluator, batch: Batch, labels: Tensor, tests: Tests, seconds: dict[str, float]
) -> dict[str, np.ndarray]:
    """What the model makes of each text as it is: predicted class, the label's probability, p-values."""
    with timed(seconds, "evaluate"):
        logits, features = states(evaluator, batch) if tests else (evaluator.logits(batch), torch.empty(0))
    with timed(seconds, "check"):
        pvalues = {f"p_{name}": test.pvalues(features.numpy()) for name, test in tests.items()}
    return {
        "prediction": logits.argmax(dim=1).numpy(),
        "probability": pick(logits.softmax(dim=1), labels).numpy(),
        **pvalues,
    }


def states(evaluator: Evaluator, batch: Batch) -> tuple[Tensor, Tensor]:
    """Logits [B, C] in float64 and features [B, L, H] of any number of texts."""

    def work(micro: Batch, items: Tensor) -> tuple[Tensor, Tensor]:
        with torch.inference_mode():
            logits, features = evaluator.states(micro)
        return logits.double().cpu(), features.float().cpu()

    items, results = zip(*evaluator.map(work, batch, torch.arange(len(batch))), strict=True)
    order = torch.cat(items).argsort()
    logits, features = (torch.cat(parts)[order] for parts in zip(*results, strict=True))
    require_finite(logits, batch.index)
    return logits, features
