"""Ladder of models from random weights to masked ones: which are noticed, with how many texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from faithmeter.stats import behavior
from faithmeter.stats.behavior import Behavior, check_behavior, recalibrate
from faithmeter.stats.guessing import lead_over_guessing
from faithmeter.stats.pvalues import of_steps, simes

from .cache import Control, Erasures, read

SIZES = (100, 200, 400, 1000)
"""Numbers of texts, of the validation and of the test part each."""
DRAWS = 25
LEAST_POOL = 400
"""Texts of each part from which larger samples are drawn; smaller pools give no more texts than they have."""
MARGINS = (0.02, 0.04, 0.05, 0.06, 0.08, 0.12)
"""Margins of the excess log-loss that are compared, in nats."""


def draw(erasures: Erasures, size: int, rng: np.random.Generator) -> tuple[Behavior, bool]:
    """Return the check of a model on texts drawn from its pools, and whether it learned whole texts.

    Texts are drawn with repeats, whatever the size of the pool; `repeats` compares both ways.
    """
    steps = [step for step, percent in enumerate(erasures.percents) if 0 < percent < 100]
    percents = [erasures.percents[step] for step in steps]
    known, rows = (rng.integers(len(pool), size=size) for pool in (erasures.validation, erasures.test))
    fit = recalibrate(
        erasures.validation[known][:, steps].astype(np.float64), erasures.validation_labels[known], percents
    )
    labels, logits = erasures.test_labels[rows], erasures.test[rows]
    result = check_behavior(fit, logits[:, steps].astype(np.float64), labels)
    lead = lead_over_guessing("accuracy", labels, logits[:, 0].argmax(axis=1), logits.shape[2])
    return result, lead.lower > 0


def climb(control: Control, *, sizes: Sequence[int] = SIZES, draws: int = DRAWS) -> pd.DataFrame:
    """Return a row for each draw: the bounds that decide, at the rate where they are largest."""
    erasures, rows = read(control), []
    for size in sizes:
        if control.pool < min(size, LEAST_POOL):
            continue
        rng = np.random.default_rng(size)
        for _ in range(draws):
            result, learned = draw(erasures, size, rng)
            rows.append(
                {
                    "task": control.task,
                    "training": control.training,
                    "encoder": control.encoder,
                    "seed": control.seed,
                    "texts": size,
                    "learned": learned,
                    "excess": max(each.mean for each in result.excess),
                    "excess_lower": max(each.lower for each in result.excess),
                    "excess_upper": max(each.upper for each in result.excess),
                    "shortfall_lower": max(each.lower for each in result.shortfall),
                    "shortfall_upper": max(each.upper for each in result.shortfall),
                }
            )
    return pd.DataFrame(rows)


def count(draws: pd.DataFrame, margin: float = behavior.MAX_EXCESS) -> pd.DataFrame:
    """Return the share of draws that a margin accepts, rejects or leaves open, for each model and size."""
    loss, guess = (
        np.select(
            [draws[f"{name}_upper"] < limit, draws[f"{name}_lower"] > limit],
            ["accepted", "rejected"],
            "undecided",
        )
        for name, limit in (("excess", margin), ("shortfall", behavior.MAX_SHORTFALL))
    )
    rejected = (loss == "rejected") | (guess == "rejected") | ~draws.learned
    accepted = (loss == "accepted") & (guess == "accepted") & ~rejected
    outcomes = draws.assign(
        margin=margin, accepted=accepted, rejected=rejected, undecided=~accepted & ~rejected
    )
    keys = ["encoder", "task", "training", "texts", "margin"]
    columns = ["accepted", "rejected", "undecided", "learned", "excess"]
    groups = outcomes.groupby(keys, sort=False)
    return groups[columns].mean().assign(trainings=groups.seed.nunique()).reset_index()


def check_of_today(control: Control) -> dict[str, object]:
    """Return what 0.2 said: the p-value of texts masked at random, for a model declared to be masked."""
    erasures = read(control)
    by_step = dict(zip(erasures.percents, (float(simes(p)) for p in erasures.pvalues.T), strict=True))
    below = (erasures.pvalues[:, :-1] < 0.05).mean(axis=0)
    p = of_steps(by_step)
    whole = erasures.test[: len(erasures.pvalues), 0].argmax(axis=1)
    labels = erasures.test_labels[: len(whole)]
    learned = (whole == labels).mean() > np.bincount(labels).max() / len(labels)
    return {
        "encoder": control.encoder,
        "task": control.task,
        "training": control.training,
        "p": p,
        "largest_share_of_texts": float(below.max()),
        "learned": bool(learned),
        "measurable": bool(p >= 0.05 and below.max() <= 0.5 and learned),
    }
