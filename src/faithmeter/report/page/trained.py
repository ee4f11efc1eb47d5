"""Facts that a report adds to the verdict: performance, and the cost of masking."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ...verdict.formats import format_metric, format_percent
from ..labels import short_names

if TYPE_CHECKING:
    from pandas import DataFrame

    Published: TypeAlias = Mapping[tuple[str, str, str], float]

TRAINING_PHRASES = {
    "half": "with half of every mini-batch masked",
    "all": "with every text masked",
    "none": "without masks",
}


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


def performance_sentences(train: DataFrame) -> Iterator[str]:
    """Yield a sentence on test performance for each task and model with exactly one fine-tuning run.

    Args:
        train: The frame `train` of a store.
    """
    test = train[(train["split"] == "test") & train["best"].astype(bool)]
    names = {column: short_names(test[column]) for column in ("task", "model")}
    for key, rows in test.groupby(["task", "model"]):
        if rows["digest"].nunique() > 1:
            continue
        values = {row["masking"]: format_percent(row["value"]) for row in rows.to_dict("records")}
        metric, training = format_metric(rows["metric"].iloc[0]), TRAINING_PHRASES[rows["strategy"].iloc[0]]
        masked = "all" if "all" in values else "100"
        which = "wholly masked ones" if masked == "all" else "ones with the explained column masked"
        task, model = (names[column][str(name)] for column, name in zip(names, key, strict=True))
        yield (
            f"{model}, fine-tuned on {task} {training}: {values['0']}% {metric} on whole test texts, "
            f"{values[masked]}% on {which}; always the most frequent class of the training texts: "
            f"{format_percent(rows['majority'].iloc[0])}%."
        )
