"""Facts that a report adds to the verdict: performance, and the cost of masking."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ...verdict.formats import format_percent

if TYPE_CHECKING:
    from pandas import DataFrame

    Published: TypeAlias = Mapping[tuple[str, str, str], float]


def masking_cost(train: DataFrame, training: Mapping[str, Any]) -> float:
    """Return the performance on whole texts lost by masked fine-tuning, as a fraction.

    The result is NaN if the fine-tuning is plain or unknown, or if there is no plain one to compare with.
    """
    strategy, validation = training["strategy"], training["validation"]
    if strategy in ("none", "unknown"):
        return math.nan
    test = train[(train["split"] == "test") & (train["masking"] == "0") & train["converged"].astype(bool)]
    plain = test[test["strategy"] == "none"]["value"].mean()
    masked = test[(test["strategy"] == strategy) & (test["validation"] == validation)]
    return float(plain - masked["value"].mean())


def describe_performance(train: DataFrame) -> str:
    """Return a phrase on the test performance on whole texts by strategy, and on guessing."""
    test = train[(train["split"] == "test") & (train["masking"] == "0")]
    means = test.groupby("strategy", sort=False)["value"].mean()
    values = [f"{format_percent(value)}% with strategy {name}" for name, value in means.items()]
    return ", ".join([*values, f"{format_percent(test['majority'].mean())}% by guessing"])
