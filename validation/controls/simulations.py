"""Simulations of the tests: how often a coin seems to have learned, and how much the count test notices."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from faithmeter.config import BASELINE
from faithmeter.stats.curves import removed_share
from faithmeter.stats.guessing import lead_over_guessing
from faithmeter.stats.intervals import resample_texts
from faithmeter.stats.metrics import MEAN, majority, score
from faithmeter.stats.predictions import Predictions
from faithmeter.stats.pvalues import count_test, simes

from .cache import Control, read
from .definitions import DEFINITIONS

COINS = 400
CHECKS = 1000
REFERENCES = 260
INTERVALS = {64: 1000, 200: 1000, 1000: 300}
"""Intervals that are counted, by their number of texts; more texts take longer."""
RESAMPLES = 499
COVERED = {
    Control("word"): ("grad-l2", "inp-grad-sign", "loo-abs"),
    Control("sst2", encoder="minilm"): ("loo-abs", "inp-grad-sign"),
}
"""Controls and methods whose intervals are counted."""


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
        result = count_test(int((p < 0.05).sum()), texts, REFERENCES)
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


def cover(control: Control, method: str, texts: int, *, checks: int) -> dict[str, object]:
    """Return how often an interval of faithfulness that is told holds the value of all texts of a control.

    Texts are drawn from those of the control, which stand for all texts there are.
    """
    erasures = read(control)
    labels = erasures.test_labels[: len(erasures.methods[BASELINE])]
    values = {
        name: DEFINITIONS["probability"].of_logits(erasures.methods[name].astype(np.float64), labels)
        for name in (BASELINE, method)
    }
    ratios = np.asarray(erasures.percents) / 100
    truth = float(removed_share(values[method].mean(axis=0), values[BASELINE].mean(axis=0), ratios))
    held = width = 0.0
    told = 0
    for seed in range(checks):
        rows = np.random.default_rng([texts, seed]).integers(len(labels), size=texts)
        drawn = {name: own[rows] for name, own in values.items()}
        predictions = Predictions(labels[rows], drawn, 2, MEAN, erasures.percents)
        interval = resample_texts(predictions, resamples=RESAMPLES, seed=seed).area(method, "faithfulness")
        if math.isnan(interval.lower):  # too few texts to tell a share
            continue
        told += 1
        held += interval.lower <= truth <= interval.upper
        width += interval.upper - interval.lower
    return {
        "control": control.name,
        "method": method,
        "texts": texts,
        "checks": checks,
        "faithfulness": truth,
        "told": told / checks,
        "coverage": held / told,
        "width": width / told,
    }


def simulate_coverage() -> pd.DataFrame:
    """Return a row for each method of two controls and number of texts."""
    settings = [
        (control, method, texts)
        for control, methods in COVERED.items()
        for method in methods
        for texts in INTERVALS
    ]
    return pd.DataFrame([cover(*setting, checks=INTERVALS[setting[2]]) for setting in settings])


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
