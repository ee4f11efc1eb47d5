"""Simulations of the tests: how often a coin seems to have learned, and how much the count test notices."""

from __future__ import annotations

import numpy as np
import pandas as pd

from faithmeter.stats.guessing import lead_over_guessing
from faithmeter.stats.metrics import majority, score
from faithmeter.stats.pvalues import count_test, simes

COINS = 400
CHECKS = 1000
REFERENCES = 260


def toss_coins(texts: int, metric: str, share: float, *, coins: int = COINS) -> dict[str, object]:
    """Return how often random predictions seem to have learned, by the rule of 0.2 and by the lower bound."""
    before = after = 0
    for seed in range(coins):
        rng = np.random.default_rng([texts, seed])
        labels, coin = (rng.random((2, texts)) < share).astype(int)
        constant = majority([metric], labels, labels, 2)[metric]
        before += score([metric], labels, coin, 2)[metric] > constant
        after += lead_over_guessing(metric, labels, coin, 2, seed=seed).lower > 0
    return {
        "metric": metric,
        "texts": texts,
        "share_of_class": share,
        "constant_rule": before / coins,
        "lower_bound": after / coins,
    }


def count_rejections(shift: float, *, texts: int = 200, checks: int = CHECKS) -> dict[str, object]:
    """Return how often Simes' method and the count test reject texts that are shifted a little.

    All texts are ranked among the same references, as in the check, so that their p-values depend.
    """
    rng = np.random.default_rng(0)
    by_simes = by_count = shares = noticed = 0.0
    for _ in range(checks):
        references = np.sort(rng.normal(size=REFERENCES))
        values = rng.normal(shift, size=texts)
        p = (1 + REFERENCES - np.searchsorted(references, values)) / (1 + REFERENCES)
        result = count_test(p, REFERENCES)
        by_simes += float(simes(p)) < 0.05
        by_count += result.p < 0.05
        shares += result.share
        noticed = result.noticed
    return {
        "shift": shift,
        "texts": texts,
        "references": REFERENCES,
        "share_rejected": shares / checks,
        "simes_rejects": by_simes / checks,
        "count_rejects": by_count / checks,
        "smallest_share_noticed": noticed,
    }


def simulate_learned() -> pd.DataFrame:
    """Return a row for each metric, number of texts and share of the classes."""
    settings = [
        (texts, metric, share)
        for texts in (64, 200)
        for metric in ("accuracy", "macro_f1")
        for share in (0.5, 0.2)
    ]
    return pd.DataFrame([toss_coins(*setting) for setting in settings])


def simulate_counts() -> pd.DataFrame:
    """Return a row for each shift of the tested texts; without a shift, rejections are false."""
    return pd.DataFrame([count_rejections(shift) for shift in (0.0, 0.5, 1.0)])
