"""Values that a method can explain, computed from the logits and chosen by its option `of`."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from ..errors import InputError
from ..models.devices import send
from ..models.evaluator import pick

Target = Literal["logit", "logprob", "margin"]
"""Value to explain: the label's logit (as in the paper), its log-probability, or its margin.

The margin is the label's logit minus the highest other logit.
"""


TARGET_UNITS: dict[str, str] = {
    "logit": "logit points",
    "logprob": "nats of log-probability",
    "margin": "logit points of margin",
}
"""Unit of each value that can be explained."""


def target_values(logits: Tensor, labels: Tensor, of: Target) -> Tensor:
    """Return the explained value of each row, Tensor [B].

    A logit can fall although the label gains on other classes, if their logits fall further. The other two
    values fall only if the label loses against other classes. A margin below 0 means that another class is
    predicted.

    Raises:
        InputError: A label is not a class, or the margin of a single class is asked for.
    """
    values = pick(logits, labels)
    if of == "logprob":
        return values - logits.logsumexp(dim=1)
    if of == "margin":
        if logits.shape[1] == 1:
            raise InputError("the model has one class; expected two or more: a margin is to another class")
        others = logits.scatter(1, send(labels, logits.device)[:, None], float("-inf"))
        return values - others.amax(dim=1)
    return values
