"""Predictions of planted models on texts that their true explanation masks, beside the best possible ones.

Once a deciding word is masked, nothing tells the label, and each class is as likely as the others. So the
excess log-loss over the best prediction is known exactly, without fitting, on texts that are not masked at
random but by an explanation.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .cache import TRUTH, Control, read

TASKS = ("word", "first", "pair")
"""Tasks of which one masked deciding word leaves nothing to know."""


def exact_excess(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the divergence [N, S] of the uniform distribution from predictions [N, S, C], in nats."""
    logs = logits - np.logaddexp.reduce(logits, axis=2, keepdims=True)
    divergence: NDArray[np.float64] = -logs.mean(axis=2) - np.log(logits.shape[2])
    return divergence


def tabulate_excess(control: Control) -> pd.DataFrame:
    """Return the largest excess of a control at 10 to 90 %, and the mean; no row without a truth."""
    erasures = read(control)
    if control.task not in TASKS or TRUTH not in erasures.methods:
        return pd.DataFrame()
    of_rates = exact_excess(erasures.methods[TRUTH].astype(np.float64))[:, 1:-1].mean(axis=0)
    facts = {"encoder": control.encoder, "task": control.task, "training": control.training}
    return pd.DataFrame([{**facts, "excess": of_rates.max(), "mean": of_rates.mean()}])
