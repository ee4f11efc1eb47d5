"""Facts that a report adds to the verdict: performance, cost of masking, and areas on shared texts."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, TypeAlias

from ...config import BASELINE
from ...verdict.formats import format_percent
from ..seeds_evidence import PREFERRED

if TYPE_CHECKING:
    from pandas import DataFrame

    Frames: TypeAlias = Mapping[str, DataFrame]
    Published: TypeAlias = Mapping[tuple[str, str, str], float]

SharedAreas = Mapping[str, tuple[int, Mapping[str, float]]]
"""Number of texts that a method shares with others, and the ACU of each method on them, by method."""


def masking_cost(train: DataFrame, rows: DataFrame) -> float:
    """Return the performance on whole texts lost by masked fine-tuning, as a fraction.

    The result is NaN if the fine-tuning is plain or unknown, or if there is no plain one to compare with.
    """
    run = rows.iloc[0]
    if run.strategy in ("none", "unknown"):
        return math.nan
    test = train[(train["split"] == "test") & (train["masking"] == "0") & train["converged"].astype(bool)]
    plain = test[test["strategy"] == "none"]["value"].mean()
    masked = test[(test["strategy"] == run.strategy) & (test["validation"] == run.validation)]
    return float(plain - masked["value"].mean())


def describe_performance(train: DataFrame) -> str:
    """Return a phrase on the test performance on whole texts by strategy, and on guessing."""
    test = train[(train["split"] == "test") & (train["masking"] == "0")]
    means = test.groupby("strategy", sort=False)["value"].mean()
    values = [f"{format_percent(value)}% with strategy {name}" for name, value in means.items()]
    return ", ".join([*values, f"{format_percent(test['majority'].mean())}% by guessing"])


def compare_on_shared_texts(leader: str, others: SharedAreas) -> tuple[str, bool]:
    """Compare the leader with methods measured on other numbers of texts, on the texts that they share.

    Returns:
        The sentences, empty without such methods, and whether any of these methods is ahead of the leader.
    """
    text, ahead = "", False
    for method, (texts, areas) in others.items():
        if not {method, leader} <= set(areas):
            text += f" {method} was not measured on the same texts."
            continue
        both = f"{method} has {format_percent(areas[method])}% and {leader} {format_percent(areas[leader])}%"
        text += f" On the {texts} texts that both were measured on, {both}."
        ahead |= areas[method] > areas[leader]
    return text, ahead


def areas_on_shared_texts(
    learned: DataFrame, ranked: Collection[str], shared: DataFrame
) -> dict[str, tuple[int, dict[str, float]]]:
    """Return, for each method not in `ranked`, the number of shared texts and the ACU of methods on them."""
    explained = learned[learned["method"] != BASELINE]
    shared = shared.merge(learned[[*PREFERRED, "scope", "seed"]].drop_duplicates())
    usual, others = explained["texts"].mode().max(), {}
    for method, rows in explained[~explained["method"].isin(ranked)].groupby("method"):
        texts = int(min(usual, rows["texts"].min()))
        same = shared[(shared["texts"] == texts) & shared["seed"].isin(rows["seed"])]
        means = same.groupby("method")["acu"].mean()
        others[str(method)] = texts, {str(name): float(area) for name, area in means.items()}
    return others
