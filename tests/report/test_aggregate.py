from __future__ import annotations

import math

import pytest
from pandas import DataFrame

from faithmeter.report.aggregate import over_seeds, over_tasks
from faithmeter.stats.intervals import bootstrap_interval


def runs(seeds: list[int], values: list[float], **columns: object) -> DataFrame:
    return DataFrame(
        {"method": "a", "task": "RTE", "converged": True, **columns, "seed": seeds, "value": values}
    )


def test_over_seeds_averages_runs_of_a_seed_and_leaves_out_unconverged_seeds() -> None:
    frame = runs([0, 0, 1, 2], [0.1, 0.3, 0.4, 0.9], converged=[True, True, True, False])
    [row] = over_seeds(frame, ["method"]).to_dict("records")
    assert (row["mean"], row["n"], row["excluded"]) == (pytest.approx(0.3), 2, 1)
    assert (row["lower"], row["upper"]) == bootstrap_interval([0.2, 0.4])[1:3]
    [row] = over_seeds(frame, ["method"], unconverged=True).to_dict("records")
    assert (row["mean"], row["n"], row["excluded"]) == (pytest.approx(0.5), 3, 0)


def test_over_seeds_keeps_the_order_of_groups_and_gives_nan_where_nothing_is_known() -> None:
    frame = runs([0, 1, 0, 0], [0.2, math.nan, 0.5, 0.7], method=["b", "b", "a", "c"])
    frame["converged"] = [True, True, True, False]
    rows = over_seeds(frame, ["method"])
    assert rows["method"].tolist() == ["b", "a", "c"]
    assert [math.isnan(mean) for mean in rows["mean"]] == [True, False, True]
    assert rows["n"].tolist() == [2, 1, 0]
    assert rows["excluded"].tolist() == [0, 0, 1]


def test_over_tasks_is_the_mean_over_the_tasks_on_which_a_complete_seed_converged() -> None:
    """Seed 0: (0.2 + 0.6) / 2; seed 1 failed on CoLA: 0.7; seed 2 was not run on CoLA: none."""
    frame = runs([0, 1, 2, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.1], task=["RTE"] * 3 + ["CoLA"] * 2)
    frame["converged"] = [True, True, True, True, False]
    rows = over_tasks(frame.assign(other=1.0), ["method"], "value", "other")
    assert rows["seed"].tolist() == [0, 1]
    assert rows["value"].tolist() == pytest.approx([0.4, 0.7])
    assert rows["other"].tolist() == [1, 1]


def test_over_tasks_keeps_an_undefined_value_undefined() -> None:
    rows = over_tasks(runs([0, 0], [0.2, math.nan], task=["RTE", "CoLA"]), ["method"], "value")
    assert rows["value"].isna().tolist() == [True]


def test_the_interval_of_one_seed_is_that_over_texts() -> None:
    frame = runs([0], [0.3], value_lower=[0.2], value_upper=[0.5])
    [row] = over_seeds(frame, ["method"]).to_dict("records")
    assert (row["mean"], row["lower"], row["upper"], row["n"]) == (0.3, 0.2, 0.5, 1)
    several = runs([0, 1], [0.3, 0.5], value_lower=[0.2, 0.2], value_upper=[0.5, 0.5])
    [row] = over_seeds(several, ["method"]).to_dict("records")
    assert (row["lower"], row["upper"]) == bootstrap_interval([0.3, 0.5])[1:3]
    without = runs([0], [0.3], value_lower=[math.nan], value_upper=[math.nan])
    [row] = over_seeds(without, ["method"]).to_dict("records")
    assert (row["lower"], row["upper"]) == (0.3, 0.3)
