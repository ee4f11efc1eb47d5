"""The measured ruler as one table: for each metric and training, over all models."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from .recovery import EMPTY, SURE, TEXTS
from .rivals import TITLES

ENOUGH = 0.9
"""Kendall's τ with the known ranking that asks for a number of texts."""
KEYS = ["training", "way", "metric"]


def share(count: int, of: int) -> dict[str, float]:
    """Return a share with its exact interval of 95 %."""
    interval = binomtest(count, of).proportion_ci(SURE, method="exact")
    return {"share": count / of, "low": interval.low, "high": interval.high}


def summarize(first: pd.DataFrame, tau: pd.DataFrame, praise: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each training, way to erase and metric.

    The interval of τ is that of its mean over models, which are taken as they are; texts are drawn.
    """
    rows = []
    for (training, way, metric), found in first.groupby(KEYS, sort=False):
        ranked = tau[(tau[KEYS] == [training, way, metric]).all(axis=1)]
        counted = int(found.first_or_tied.sum())
        row = {"training": training, "way": way, "metric": metric, "models": len(found), "first": counted}
        row |= share(counted, len(found))
        row |= {"not_behind": found.not_behind.sum(), "compared": found.compared.sum()}
        for ladder, of in ranked.groupby("ladder"):
            row |= {f"{name}_{ladder}": value for name, value in _mean_tau(of).items()}
        row["needed"] = texts_needed(ranked[ranked.ladder == "truth"])
        rows.append(row | _praise(praise, training, way, metric))
    table = pd.DataFrame(rows)
    order = {name: place for place, name in enumerate(TITLES)}
    return table.sort_values(
        KEYS, key=lambda column: column.map(order) if column.name == "metric" else column, kind="stable"
    ).reset_index(drop=True)


def _mean_tau(ranked: pd.DataFrame) -> dict[str, float]:
    at = ranked[ranked.drawn == TEXTS]
    mean, half = at.tau.mean(), 1.96 * np.sqrt((at.error**2).sum()) / len(at)
    return {"tau": mean, "tau_low": max(mean - half, -1), "tau_high": min(mean + half, 1)}


def texts_needed(ranked: pd.DataFrame) -> float:
    """Return the smallest number of texts with a mean τ of at least ENOUGH over models; NaN if none was."""
    means = ranked.groupby("drawn").tau.mean()
    enough = means.index[means >= ENOUGH]
    return float(enough.min()) if len(enough) else np.nan


def _praise(praise: pd.DataFrame, training: str, way: str, metric: str) -> dict[str, float]:
    """Return the praise of models of this training that know nothing, and of one with random weights."""
    empty = praise[(praise.way == way) & (praise.metric == metric)]
    empty = empty[empty.training.isin([training, EMPTY[1]])]
    if not len(empty):
        return {}
    praised, windows = int(empty.praised.sum()), int(empty.windows.sum())
    bounds = {f"praise_{name}": value for name, value in share(praised, windows).items()}
    return {"praised": praised, "windows": windows, **bounds}
