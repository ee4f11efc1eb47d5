"""Numbers of trials by hand (`results/trials.csv`, as docs/trials.md prints them) → claims.

Records of the trials were not kept, so that there are no intervals over texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
from claims import MARGIN, STATEMENTS, Claim, judge, judge_pvalue, roar_difference
from evidence import MASKED, METHODS, PLAIN, Effect, over_seeds, paired, published_areas
from pandas import DataFrame
from scipy import stats

from faithmeter.faithfulness.pvalues import simes

ROUNDED = 0.005
"""Largest p-value that is printed as 0.00."""


def _scores(rows: DataFrame, tuning: str, quantity: str) -> dict[int, float]:
    own = rows[(rows["tuning"] == tuning) & (rows["quantity"] == quantity)]
    return dict(zip(own["seeds"].astype(int), own["value"], strict=True))


def _performance(rows: DataFrame) -> Iterator[Claim]:
    rows = rows[rows["trial"] == "demo"]
    place = "bAbI-1, embedded, trial"
    unmasked = paired(*(_scores(rows, tuning, "unmasked") for tuning in (MASKED, PLAIN)))
    yield Claim("a", STATEMENTS["a"][0], place, unmasked, judge(unmasked, -MARGIN), "holds")
    majority = float(rows[rows["quantity"] == "majority"]["value"].iloc[0])
    masked = over_seeds(v - majority for v in _scores(rows, MASKED, "wholly_masked").values())
    plain = over_seeds(majority - v for v in _scores(rows, PLAIN, "wholly_masked").values())
    yield Claim("b", STATEMENTS["b"][0], place, masked, judge(masked, -MARGIN), "holds")
    yield Claim("b", STATEMENTS["b"][1], place, plain, judge(plain), "holds on most tasks")


def _pvalues(rows: DataFrame) -> Iterator[Claim]:
    rows = rows[rows["quantity"].str.startswith("p_") & (rows["percent"] != "0") & (rows["percent"] != "100")]
    for (task, model, tuning, quantity), own in rows.groupby(["task", "model", "tuning", "quantity"]):
        p = float(simes(own["value"].clip(lower=ROUNDED)))
        test = str(quantity).removeprefix("p_")
        place = f"{task}, {model}, trial"
        statement = STATEMENTS["c"][tuning == PLAIN].format(test)
        yield Claim("c", statement, place, Effect(p, over="p"), judge_pvalue(p, str(tuning)), "holds")


def _order(rows: DataFrame) -> Iterator[Claim]:
    rows = rows[rows["quantity"] == "acu"]
    for (task, model), own in rows.groupby(["task", "model"]):
        areas, reference = dict(zip(own["method"], own["value"], strict=True)), published_areas(str(task))
        ours, theirs = ([one[name] for name in METHODS] for one in (areas, reference))
        value = stats.spearmanr(ours, theirs).statistic
        effect = Effect(float(value), over="1 seed")
        yield Claim("d", STATEMENTS["d"][0], f"{task}, {model}, trial", effect, judge(effect), "reference")


def _roar(rows: DataFrame) -> Iterator[Claim]:
    rows = rows[rows["trial"] == "smoke"]
    ours, theirs = (float(rows[rows["quantity"] == name]["value"].iloc[0]) for name in ("racu", "roar_racu"))
    effect = Effect(ours - theirs, over="2 seeds, no interval")
    yield Claim("g", STATEMENTS["g"][0], "bAbI-1, embedded, trial", effect, judge(effect), roar_difference())


FINDERS: tuple[Callable[[DataFrame], Iterator[Claim]], ...] = (_performance, _pvalues, _order, _roar)


def gather_trials(folder: Path) -> list[Claim]:
    """Return the claims on which the trials by hand have something to say."""
    rows = pd.read_csv(folder / "trials.csv", dtype={"percent": str}).fillna({"percent": ""})
    return [claim for find in FINDERS for claim in find(rows)]
