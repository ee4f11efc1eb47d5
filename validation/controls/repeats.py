"""Draws of texts with and without repeats: which tells how often a check accepts a model?

Draws without repeats from one pool share texts, and could agree too often; draws with repeats have fewer
different texts than they count. The simulation takes all texts of a control as all there are, draws pools
from them as large as those that were kept, and draws from the pools in both ways. The spread is that of
shares of pools.

`python -m validation.controls.repeats` writes `results/validation/repeats.csv` in seconds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from faithmeter.files import write_csv
from faithmeter.stats.behavior import MAX_EXCESS, MAX_SHORTFALL, check_behavior, recalibrate

from .cache import CONTROLS, FOLDER, Control, Erasures, read

[LARGEST] = [control for control in CONTROLS if (control.task, control.seed) == ("sst2", 1)]
"""Control on real sentences of which most texts are kept."""
SIZE = 400
POOLS, DRAWS, DIRECT = 20, 10, 200
"""Simulated pools, draws from each, and draws from all texts and from those that were kept."""
WITHOUT, WITH = "without repeats", "with repeats"
Rows = NDArray[np.int64]


def is_accepted(erasures: Erasures, known: Rows, tested: Rows) -> bool:
    """Return whether the check accepts a model that is fitted on some texts and tested on others."""
    steps = slice(1, -1)
    percents = erasures.percents[steps]
    fit = recalibrate(erasures.test[known, steps], erasures.test_labels[known], percents)
    result = check_behavior(fit, erasures.test[tested, steps], erasures.test_labels[tested])
    worst = max(each.upper for each in result.excess), max(each.upper for each in result.shortfall)
    return worst[0] < MAX_EXCESS and worst[1] < MAX_SHORTFALL


def pooled(control: Control) -> Erasures:
    """Return both parts of a control's texts as one."""
    erasures = read(control)
    return replace(
        erasures,
        test=np.concatenate([erasures.validation, erasures.test]),
        test_labels=np.concatenate([erasures.validation_labels, erasures.test_labels]),
    )


def share_accepted(erasures: Erasures, pools: Rows, way: str, draws: int, rng: np.random.Generator) -> float:
    """Return how many draws from a pool of validation texts and one of test texts are accepted."""
    count = 0
    for _ in range(draws):
        drawn = (rng.choice(pool, SIZE, replace=way == WITH) for pool in pools)
        count += is_accepted(erasures, *drawn)
    return count / draws


def compare_draws(control: Control) -> pd.DataFrame:
    """Return the share of accepted draws: from all texts, and from simulated and from the kept pools."""
    erasures, rng = pooled(control), np.random.default_rng(0)
    everything = np.arange(len(erasures.test))
    kept = everything.reshape(2, control.pool)
    both = np.stack([everything, everything])
    rows = [("all texts", WITH, [share_accepted(erasures, both, WITH, DIRECT, rng)])]
    simulated = [rng.integers(len(everything), size=kept.shape) for _ in range(POOLS)]
    for way in (WITHOUT, WITH):
        rows.append(("pools", way, [share_accepted(erasures, pools, way, DRAWS, rng) for pools in simulated]))
        rows.append(("kept texts", way, [share_accepted(erasures, kept, way, DIRECT, rng)]))
    return pd.DataFrame(
        {"drawn_from": name, "way": way, "accepted": np.mean(shares), "spread": np.std(shares)}
        for name, way, shares in rows
    )


def main() -> None:
    write_csv(compare_draws(LARGEST).round(6), FOLDER.parent / "repeats.csv")


if __name__ == "__main__":
    main()
