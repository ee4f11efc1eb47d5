"""Rankings that come from the model are stable; rankings that come from rounding are found out."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from faithmeter.faithfulness.stability import MIN_AGREEMENT, rank_stability
from faithmeter.methods import Method
from faithmeter.models.classifier import Classifier
from faithmeter.models.tokens import Batch
from toy import MASK, rows_batch, tiny

BATCH = rows_batch([5, 6, 7, 8, 9, 10], [11, 12, 13, 14], [15, 16, 17, 18, 19])
LABELS = [0, 1, 2]


def single() -> Classifier:
    """Return a tiny random classifier in float32."""
    return Classifier(tiny().model.float(), mask_id=MASK)


@pytest.mark.parametrize("name", ["loo-sign", "grad-l2", "int-grad-sign(steps=3)", "beam(width=2)"])
def test_methods_rank_alike_in_every_condition(name: str) -> None:
    stability = rank_stability(single(), BATCH, LABELS, [name])[name]
    assert set(stability.agreement) == {"float64", "batch size", "threads"}
    assert min(stability.agreement.values()) > 0.99
    assert stability.is_stable


def test_a_ranking_by_rounding_error_is_unstable_in_float64() -> None:
    def rounding(clf: Any, batch: Batch, labels: Tensor) -> Tensor:
        """Score tokens by the last bits of the embeddings, which float64 does not round alike."""
        embeddings = clf.embed(batch.input_ids).detach()
        return (embeddings.sum(dim=-1) * 1e7).frac().double()

    stability = rank_stability(single(), BATCH, LABELS, [Method("noise", rounding)])["noise"]
    assert stability.agreement["float64"] < MIN_AGREEMENT
    assert stability.lowest["float64"] <= stability.agreement["float64"]
    assert not stability.is_stable


def test_a_constant_ranking_agrees_with_itself_and_the_model_is_left_alone() -> None:
    clf = single()
    weights = copy.deepcopy(clf.model.state_dict())
    flat = Method("flat", lambda clf, batch, labels: torch.zeros(batch.input_ids.shape))
    finished: list[str] = []
    stability = rank_stability(clf, BATCH, torch.tensor(LABELS), [flat], progress=finished.append)
    assert stability["flat"].agreement == {"float64": 1.0, "batch size": 1.0, "threads": 1.0}
    assert finished == ["flat"]
    assert all(torch.equal(weights[name], value) for name, value in clf.model.state_dict().items())
    assert next(clf.model.parameters()).dtype == torch.float32
