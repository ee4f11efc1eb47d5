"""Bounds on evaluations, by hand and against the evaluations that are made."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import faithmeter as fm
from faithmeter.measuring.costs import bound_evaluations, bound_measurement, sort_by_cost
from faithmeter.measuring.plan import Extent, Settings, plan_measurement
from faithmeter.methods import parse
from faithmeter.models.evaluator import Evaluator
from toy import rows_batch, tiny

PERCENTS = tuple(range(0, 101, 10))


@pytest.mark.parametrize(
    ("method", "evaluations"),
    [
        ("grad-l2", 10 + 11),  # one at each of ten steps, and eleven steps are evaluated
        ("int-grad-sign", 10 * 20 + 11),
        ("loo-sign", sum(range(2, 12)) + 11),  # of 10 tokens 10, 9, … 1 are left, and the text itself
        ("beam(width=3)", 3 * 10 * 11 // 2 + 11),  # explains once
    ],
)
def test_bounds_of_a_text_of_ten_tokens(method: str, evaluations: int) -> None:
    assert bound_evaluations(parse(method), [10], PERCENTS) == evaluations
    assert bound_evaluations(parse(method), [10, 10], PERCENTS) == 2 * evaluations


def test_methods_are_ordered_by_cost_and_their_bounds_hold() -> None:
    clf, batch, labels = tiny(), rows_batch([5, 6, 7, 8, 9, 10], [11, 12, 13]), torch.tensor([0, 1])
    methods = {name: parse(name) for name in ("beam(width=9)", "loo-sign", "random", "grad-l2")}
    assert [name for name, _ in sort_by_cost(methods, batch, PERCENTS)] == [
        *("random", "grad-l2", "loo-sign", "beam(width=9)")
    ]
    for method in methods.values():
        evaluator = Evaluator(clf)
        for _, masked in fm.erase(evaluator, batch, labels, method):
            evaluator.logits(masked)
        assert evaluator.evaluations <= bound_evaluations(method, [6, 3], PERCENTS)


def test_what_is_missing_is_bounded_by_the_first_slice(tmp_path: Path) -> None:
    """Four texts of two words; the check is fitted on eight others."""
    (tmp_path / "own.csv").write_text("\n".join(["text,label", *["good film,a", "bad film,b"] * 2]))
    clf, task = tiny(labels=2), fm.own_task(tmp_path / "own.csv", text="text", label="label", all_test=True)
    plan = plan_measurement(clf, task, ["grad-l2", "loo-sign"], {}, Settings(), Extent(limit=2))
    missing = {"random": 2, "grad-l2": 2, "loo-sign": 2}
    bounds = bound_measurement(plan, missing, fitting=8)
    # eleven steps of two texts; a random order is one more, gradients are ten; leave-one-out has two tokens
    # at the steps from 0 to 40 %, and then one
    loo = 2 * (5 * 3 + 5 * 2 + 11)
    assert bounds.evaluations == {"check": 8, "random": 2 * 12, "grad-l2": 2 * 21, "loo-sign": loo}
    assert bounds.texts == 2
    assert bound_measurement(plan, {"loo-sign": 1}).evaluations == {"loo-sign": loo / 2}


def test_windows_count_as_evaluations() -> None:
    assert bound_evaluations(parse("grad-l2"), [10, 10], PERCENTS, [3, 1]) == 4 * 21
