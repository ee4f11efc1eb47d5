"""Rows of the frame `areas` → evidence, from which doubts and verdict of report and model card follow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..config import BASELINE
from ..faithfulness.intervals import bootstrap_interval
from ..faithfulness.pvalues import simes
from ..faithfulness.trust import Area, MethodEvidence, TaskEvidence, can_reject

if TYPE_CHECKING:
    from pandas import DataFrame

TESTS = ("published", "crossfit")


def gather_evidence(rows: DataFrame, *, cost: float = math.nan, p_plain: float = math.nan) -> TaskEvidence:
    """Return the facts of one fine-tuning, measured with one or several seeds.

    Args:
        rows: Rows of the frame `areas`, of one task, model and fine-tuning.
        cost: Loss of performance on whole texts against a plainly fine-tuned model, as a fraction.
        p_plain: P-value of the check of that model.

    Returns:
        Means over the seeds that learned the task; if none did, over all.
    """
    learned = select_learned(rows)
    used = learned if len(learned) else rows
    most = used[used["texts"] == used["texts"].max()]
    tests = [test for test in TESTS if used[f"p_{test}"].notna().any()]
    baseline = used[used["method"] == BASELINE]
    return TaskEvidence(
        methods={str(name): _method(own, tests) for name, own in used.groupby("method", sort=False)},
        metric=str(used["metric"].iloc[0]),
        whole=float(most["whole"].mean()),
        majority=float(most["majority"].mean()),
        converged=bool(len(learned)),
        floors={test: float(used[f"floor_{test}"].min()) for test in tests},
        trained_with=used["strategy"].iloc[0],
        truncated=float(used["truncated"].max()),
        p_wholly_masked=_combine(baseline, "p_wholly_masked"),
        seeds=int(used["seed"].nunique()),
        unlearned_seeds=len(set(rows["seed"]) - set(learned["seed"])) if len(learned) else 0,
        classes_by_number=bool(used["classes_by_number"].any()),
        cost=cost,
        p_plain=p_plain,
    )


def select_learned(rows: DataFrame) -> DataFrame:
    """Return the rows of models that are better than guessing."""
    return rows[rows["converged"].astype(bool) & (rows["whole"] > rows["majority"])]


def check_pvalue(rows: DataFrame) -> float:
    """Return the p-value of the check over all seeds; NaN where no test can reject."""
    able = rows[(rows["method"] == BASELINE) & can_reject(rows["floor_crossfit"])]
    return _combine(able, "p_crossfit")


def _method(rows: DataFrame, tests: list[str]) -> MethodEvidence:
    texts = rows["texts"].mode().max()
    areas = rows[rows["texts"] == texts]["acu"]
    able = {test: rows[can_reject(rows[f"floor_{test}"])] for test in tests}
    p = {test: _combine(own if len(own) else rows, f"p_{test}") for test, own in able.items()}
    interval = bootstrap_interval(areas)
    return MethodEvidence(Area(interval.mean, interval.lower, interval.upper), p, int(texts))


def _combine(rows: DataFrame, column: str) -> float:
    """Combine the p-values of several seeds by Simes; NaN without any."""
    values = rows[column].dropna()
    return float(simes(values)) if len(values) else math.nan
