"""Stability of rankings when precision, batch size or number of threads change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..methods import Method, explain, parse
from ..models.classifier import Classifier
from ..models.evaluator import Evaluator
from ..models.tokens import Batch

MIN_AGREEMENT = 0.9
"""Mean rank agreement below which a ranking reflects rounding error rather than the model."""
SMALL_BUDGET = 64
"""Tokens in a micro-batch of the comparison, so few that most texts form a batch of their own."""
OTHER_STREAMS = 3
CONDITIONS = {"float64": "precision", "batch size": "batch size", "threads": "number of threads"}
"""Numerical conditions of the comparison, with the setting that each one changes."""


@dataclass(frozen=True)
class Stability:
    """Rank agreement of one method with itself under other numerical conditions.

    Attributes:
        agreement: Mean Kendall correlation over the texts, by condition; 1 is the same ranking.
        lowest: Smallest correlation of a text, by condition.
    """

    agreement: Mapping[str, float]
    lowest: Mapping[str, float]

    @property
    def is_stable(self) -> bool:
        """Whether the agreement is high enough under every condition."""
        return min(self.agreement.values()) >= MIN_AGREEMENT

    @property
    def doubt(self) -> str | None:
        """Reason not to trust the ranking; None if it is stable."""
        if self.is_stable:
            return None
        condition = min(self.agreement, key=self.agreement.__getitem__)
        return (
            f"its ranking is rounding noise (rank agreement {self.agreement[condition]:.2f} with another "
            f"{CONDITIONS[condition]}, expected at least {MIN_AGREEMENT})"
        )


def rank_stability(
    clf: Classifier,
    batch: Batch,
    labels: Tensor | Iterable[int],
    methods: Sequence[str | Method],
    *,
    progress: Callable[[str], object] | None = None,
) -> dict[str, Stability]:
    """Compare each method's rankings with those in float64, in small batches and with more threads.

    Args:
        clf: The classifier, in the precision in which it is used.
        batch: Texts to rank, B of them.
        labels: Class to explain for each text, [B].
        methods: Names of methods, or methods.
        progress: Called with the name of each finished method.

    Returns:
        The stability of each method, by its name.

    Example:
        >>> stability = rank_stability(clf, clf.encode(["a text"]), [0], ["loo-sign"])  # doctest: +SKIP
        >>> stability["loo-sign"].is_stable  # doctest: +SKIP
        True
    """
    labels = torch.as_tensor(labels if isinstance(labels, Tensor) else list(labels))
    exact = _in_double_precision(clf)
    conditions: dict[str, Callable[[], Evaluator]] = {
        "float64": lambda: Evaluator(exact),
        "batch size": lambda: Evaluator(clf, budget=SMALL_BUDGET),
        "threads": lambda: Evaluator(clf, streams=OTHER_STREAMS),
    }
    results = {}
    for method in map(parse, methods):
        scores = explain(Evaluator(clf, streams=1), batch, labels, method)
        correlations = {
            name: _rank_correlations(scores, explain(evaluator(), batch, labels, method), batch)
            for name, evaluator in conditions.items()
        }
        results[str(method)] = Stability(
            {name: float(np.mean(values)) for name, values in correlations.items()},
            {name: min(values) for name, values in correlations.items()},
        )
        if progress is not None:
            progress(str(method))
    return results


def _in_double_precision(clf: Classifier) -> Classifier:
    """Return a float64 copy of a classifier; a deep copy would share the original's hooks."""
    model = type(clf.model)(clf.model.config)
    model.load_state_dict(clf.model.state_dict())
    return Classifier(
        model.double(), clf.tokenizer, mask_id=clf.mask_id, label=clf.label, overlap=clf.overlap
    )


def _rank_correlations(scores: Tensor, others: Tensor, batch: Batch) -> list[float]:
    """Return Kendall's tau-b of the two rankings of each text.

    An undefined correlation counts as 1 if both rankings are constant, otherwise as 0.
    """
    from scipy.stats import kendalltau

    correlations = []
    for row, other, explained in zip(scores, others, batch.explained, strict=True):
        tau = float(kendalltau(row[explained].numpy(), other[explained].numpy()).statistic)
        both_constant = math.isnan(tau) and len(row[explained].unique()) == len(other[explained].unique())
        correlations.append(1.0 if both_constant else 0.0 if math.isnan(tau) else tau)
    return correlations
