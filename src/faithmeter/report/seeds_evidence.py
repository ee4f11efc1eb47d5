"""Evidence for the verdict of a report or model card, gathered from the frame `areas`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..config import BASELINE
from ..stats.pvalues import simes
from ..verdict import MethodEvidence, TaskEvidence, rejects
from .aggregate import POOLED_SEEDS, interval_of_seeds

if TYPE_CHECKING:
    from pandas import DataFrame

TESTS = ("published", "crossfit")
PREFERRED = {"strategy": ("half", "all", "unknown", "none"), "validation": ("both", "masked", "unmasked")}
"""Values in order of preference, for choosing one fine-tuning if a store holds several."""


def gather_evidence(rows: DataFrame, *, cost: float = math.nan, p_plain: float = math.nan) -> TaskEvidence:
    """Return the evidence on one fine-tuning, measured with one or several seeds.

    Args:
        rows: Rows of the frame `areas` for one task, model and fine-tuning.
        cost: Performance on whole texts lost against a plainly fine-tuned model, as a fraction.
        p_plain: P-value of the in-distribution check of the plainly fine-tuned model.

    Returns:
        Evidence over the seeds that learned the task, or over all seeds if none did.
    """
    learned = select_learned(rows)
    used = learned if len(learned) else rows
    most = used[used["texts"] == used["texts"].max()]
    tests = [test for test in TESTS if used[[f"p_{test}", f"floor_{test}"]].notna().all(axis=1).any()]
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
        precision=str(used["precision"].min()),  # bf16 and fp16 sort before fp32
        outside_share=float(baseline["outside_share"].fillna(0).mean()) if len(baseline) else 0.0,
        p_wholly_masked=_combine(baseline, "p_wholly_masked"),
        racu_divisor=float(used["racu_divisor"].mean()),
        seeds=int(used["seed"].nunique()),
        unlearned_seeds=len(set(rows["seed"]) - set(learned["seed"])) if len(learned) else 0,
        classes_by_number=bool(used["classes_by_number"].any()),
        agreement=float(used["agreement"].min()),
        cost=cost,
        p_plain=p_plain,
        **_leaders(used),
    )


def rank(strategy: str, validation: str, scope: str) -> tuple[int, int, bool]:
    """Return a sort key that puts the preferred fine-tuning first."""
    places = PREFERRED["strategy"].index(strategy), PREFERRED["validation"].index(validation)
    return *places, scope != "explained"


def choose_tuning(areas: DataFrame) -> DataFrame:
    """Return the rows of the preferred fine-tuning.

    Fine-tunings for which only the baseline was measured are considered only if there are no others.
    """
    explained = areas[areas["method"] != BASELINE]
    candidates = (explained if len(explained) else areas)[[*PREFERRED, "scope"]].drop_duplicates()
    best = min(candidates.itertuples(index=False), key=lambda tuning: rank(*tuning))
    return areas[(areas[[*PREFERRED, "scope"]] == list(best)).all(axis=1)]


def choose_tunings(frame: DataFrame) -> DataFrame:
    """Return the rows of the preferred fine-tuning of each task and model."""
    import pandas as pd

    rows = [choose_tuning(own) for _, own in frame.groupby(["task", "model"], sort=False)]
    return pd.concat(rows) if rows else frame


def _leaders(rows: DataFrame) -> dict[str, Any]:
    """Return the methods in the lead, compared on the texts of one seed or of all seeds pooled.

    The result is empty if the methods were not measured together, or several seeds were not pooled.
    """
    import pandas as pd

    explained = rows[rows["method"] != BASELINE]
    usual = explained[explained["texts"] == explained["texts"].mode().max()]
    seeds = rows["seed"].nunique()
    if seeds == 1 and usual["digest"].nunique() == 1:
        prefix = ""
    elif seeds > 1 and POOLED_SEEDS in usual and (usual[POOLED_SEEDS] == seeds).all():
        prefix = "pooled_"
    else:
        return {}
    first = usual.iloc[0]
    needed = first[f"{prefix}texts_needed"]
    group = tuple(first[f"{prefix}leaders"])
    return {"group": group, "texts_needed": None if pd.isna(needed) else int(needed)}


def select_learned(rows: DataFrame) -> DataFrame:
    """Return the rows of seeds that converged and, measured on the most texts, beat the class majority."""
    runs = rows.sort_values("texts", kind="stable").drop_duplicates("seed", keep="last")
    better = runs[runs["converged"].astype(bool) & (runs["whole"] > runs["majority"])]
    return rows[rows["seed"].isin(better["seed"])]


def check_pvalue(rows: DataFrame) -> float:
    """Return the combined p-value of the cross-fitted check over seeds; NaN if no test can reject."""
    able = rows[(rows["method"] == BASELINE) & rows["floor_crossfit"].map(rejects)]
    return _combine(able, "p_crossfit")


def _method(rows: DataFrame, tests: list[str]) -> MethodEvidence:
    texts = rows["texts"].mode().max()
    areas = rows[rows["texts"] == texts]
    interval = interval_of_seeds(areas, "acu")
    able = {test: rows[rows[f"floor_{test}"].map(rejects)] for test in tests}
    p = {test: _combine(own if len(own) else rows, f"p_{test}") for test, own in able.items()}
    return MethodEvidence(interval.or_mean(), p, int(texts))


def _combine(rows: DataFrame, column: str) -> float:
    """Combine the p-values in a column by the method of Simes; NaN if all are missing."""
    values = rows[column].dropna()
    return float(simes(values)) if len(values) else math.nan
