"""Logits → the number that a method explains: the option `of` of every method."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from ..models.evaluator import pick

Target = Literal["logit", "logprob", "margin"]
"""The label's logit, as in the paper; its log-probability; or its logit minus the highest other one."""


def target_values(logits: Tensor, labels: Tensor, of: Target) -> Tensor:
    """Return the explained value of each row, Tensor [B].

    A logit can fall without the prediction changing, since the others may fall with it. A log-probability
    and a margin fall only if the label loses against other classes; a margin below 0 is a wrong prediction.
    """
    values = pick(logits, labels)
    if of == "logprob":
        return values - logits.logsumexp(dim=1)
    if of == "margin":
        others = logits.scatter(1, labels.to(logits.device)[:, None], float("-inf"))
        return values - others.amax(dim=1)
    return values
