"""Every metric on the same answers, with the sign that makes higher values better."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faithmeter.config import BASELINE
from faithmeter.models.masks import PERCENTS
from faithmeter.stats.curves import KINDS
from faithmeter.stats.other_metrics import OTHER_METRICS, normalized_aopc, text_metrics

from .erasures import Answers, Floats

TITLES = {
    "faithfulness": "faithfulness",
    "acu": "ACU",
    "racu": "RACU",
    "comprehensiveness": "comprehensiveness",
    "sufficiency": "sufficiency",
    "aopc": "AOPC",
    "naopc": "NAOPC",
    "insertion": "insertion AUC",
    "deletion": "deletion AUC",
    "log_odds": "log-odds",
    "soft NC": "Soft-NC",
    "soft NS": "Soft-NS",
    "agreement": "τ with leave-one-out",
}
"""Metrics by name; the first three are ours and the paper's, all others those of other papers."""
OURS = "faithfulness"
CURVES = {"faithfulness": "erased", "acu": "right", "racu": "right"}
"""Metrics of mean curves, by name in the package, and which curves; all others are means over texts."""
RATIOS = np.array(PERCENTS) / 100


class Weighted(NamedTuple):
    """A metric of a model's answers."""

    values: Callable[[Floats], Floats]
    """Function of weights of texts [R, N] with sums of 1; returns values of explanations [R, K]."""
    known: NDArray[np.bool_]
    """Texts on which the metric is defined [N]; all others must have no weight."""


def metrics_of(answers: Answers) -> dict[str, Weighted]:
    """Return each metric of a model's answers, on weighted texts."""
    random = answers.names.index(BASELINE)
    found: dict[str, Weighted] = {}
    for name, curves in CURVES.items():
        found[name] = _of_curves(name, getattr(answers, curves).astype(float), random)
    for name, values in text_values(answers).items():
        found[name] = _of_texts(values)
    return {name: found[name] for name in TITLES if name in found}


def text_values(answers: Answers) -> dict[str, Floats]:
    """Return the metrics of single texts, [K, N]; higher is better."""
    kept = [None] * len(answers.names) if answers.kept is None else answers.kept
    rows = [text_metrics(*curves, PERCENTS) for curves in zip(answers.erased, kept, strict=True)]
    values = {}
    for name, metric in OTHER_METRICS.items():
        if name in rows[0]:
            sign = -1 if metric.better == "lower" else 1
            values[name] = sign * np.stack([row[name] for row in rows])
    steps = PERCENTS[1:]
    values["aopc"] = np.stack(
        [text_metrics(erased, None, PERCENTS, steps)["comprehensiveness"] for erased in answers.erased]
    )
    values["naopc"] = np.stack([*normalized_aopc(dict(enumerate(answers.erased))).values()])
    return values | answers.others


def _of_curves(kind: str, values: Floats, random: int) -> Weighted:
    def weighted(weights: Floats) -> Floats:
        means = np.einsum("rn,kns->rks", weights, values, optimize=True)
        return KINDS[kind].area(means, means[:, random : random + 1], RATIOS)

    return Weighted(weighted, np.ones(values.shape[1], bool))


def _of_texts(values: Floats) -> Weighted:
    """Return the mean over texts; an explanation for which the metric was not computed has NaN."""
    computed = np.isfinite(values).any(axis=1)
    known = np.isfinite(values[computed]).all(axis=0)

    def weighted(weights: Floats) -> Floats:
        result = np.full((len(weights), len(values)), np.nan)
        result[:, computed] = weights[:, known] @ values[computed][:, known].T
        return result

    return Weighted(weighted, known)
