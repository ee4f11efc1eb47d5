"""Agreement of explanations with human rationales (plausibility), and with those of another model.

Neither says anything about faithfulness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame
    from torch import Tensor

    from ..models.tokens import Batch, Span
    from .trace import Trace

PLAUSIBILITY = {"token_f1": "token F1", "token_iou": "token IOU", "auprc": "AUPRC"}
"""Measures by name, with their titles; docs/metrics.md has the definitions."""


def mark_rationale(spans: Sequence[Span], rationale: Sequence[Span]) -> NDArray[np.bool_]:
    """Return for each token or unit, by its span, whether it overlaps a part of the rationale."""
    starts, ends = np.array(spans).reshape(-1, 2).T  # also of a text without a unit
    marks = np.zeros(len(spans), dtype=bool)
    for begin, stop in rationale:
        marks |= (starts < stop) & (begin < ends)
    return marks


def mark_rationales(inputs: DataFrame | None) -> dict[int, NDArray[np.bool_]]:
    """Return, for each text that has a rationale, by its row, which units overlap it.

    Args:
        inputs: Texts with the columns row, starts, ends (of units) and, if there are rationales, `rationale`:
            start and end of each part, in characters.
    """
    marks: dict[int, NDArray[np.bool_]] = {}
    if inputs is None or "rationale" not in inputs:
        return marks
    for row, starts, ends, parts in inputs[["row", "starts", "ends", "rationale"]].itertuples(index=False):
        mark = mark_rationale([*zip(starts, ends, strict=True)], () if parts is None else parts)
        # AUPRC needs a positive, and token F1 a rationale with a unit in it
        if mark.any():
            marks[int(row)] = mark
    return marks


def score_trace(trace: Trace, marks: Mapping[int, NDArray[np.bool_]]) -> dict[str, float]:
    """Return the agreement of a method's scores of whole texts with rationales, means over their texts.

    Token F1 and token IOU compare the rationale with as many of the highest-scored units as it has. AUPRC
    needs no such choice.
    """
    rows = zip(trace.rows.tolist(), trace.scores, strict=True)
    texts = [score_text(scores, marks[row]) for row, scores in rows if row in marks]
    if not texts:
        return dict.fromkeys(PLAUSIBILITY, math.nan)
    return {name: float(np.mean([*map(itemgetter(name), texts)])) for name in PLAUSIBILITY}


def score_text(scores: NDArray[np.float64], marks: NDArray[np.bool_]) -> dict[str, float]:
    """Return token F1, token IOU and AUPRC of one text; ties of scores go to the leftmost unit."""
    count = int(marks.sum())
    chosen = np.zeros_like(marks)
    # as many units as the rationale has, so that precision and recall are one number
    chosen[np.argsort(-scores, kind="stable")[:count]] = True
    both = int((chosen & marks).sum())
    return {
        "token_f1": both / count,
        "token_iou": both / int((chosen | marks).sum()),
        "auprc": average_precision(marks, scores),
    }


def average_precision(marks: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Return Σ (R_n − R_{n−1}) P_n over thresholds n; units with equal scores share one."""
    order = np.argsort(-scores, kind="stable")
    hits, ranked = marks[order].cumsum(), scores[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))  # of equal scores
    gained = np.diff(hits[last], prepend=0) / hits[-1]
    return float((gained * hits[last] / (last + 1)).sum())


def correlate_scores(one: Tensor, other: Tensor, batch: Batch) -> list[float]:
    """Return the rank correlation of two scores [B, T] of the units of each text.

    A text whose units have all the same score is left out: it has no order.
    """
    from scipy.stats import spearmanr

    correlations = []
    for row, explained in enumerate(batch.explained):
        left, right = one[row, explained].double().numpy(), other[row, explained].double().numpy()
        if np.ptp(left) and np.ptp(right):
            correlations.append(float(spearmanr(left, right).statistic))
    return correlations
