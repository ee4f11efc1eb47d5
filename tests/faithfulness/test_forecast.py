"""Forecast of a measurement: bounds by hand, which hold for the evaluations really made."""

from __future__ import annotations

import pytest
import torch

import faithmeter as fm
from faithmeter.faithfulness.forecast import bound_evaluations, forecast, sort_by_cost, too_expensive
from faithmeter.methods import parse
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


def test_only_what_costs_more_than_all_others_together_is_too_expensive() -> None:
    assert too_expensive({"a": 3, "b": 4, "beam": 8}) == {"beam": 8}
    assert too_expensive({"a": 3, "b": 4, "beam": 7}) == {}
    assert too_expensive({"beam": 7}) == {}, "there is nothing to compare with"


def test_methods_are_ordered_by_cost_and_a_forecast_bounds_what_is_evaluated() -> None:
    clf, batch, labels = tiny(), rows_batch([5, 6, 7, 8, 9, 10], [11, 12, 13]), torch.tensor([0, 1])
    methods = {name: parse(name) for name in ("beam(width=9)", "loo-sign", "random", "grad-l2")}
    assert [name for name, _ in sort_by_cost(methods, batch, PERCENTS)] == [
        *("random", "grad-l2", "loo-sign", "beam(width=9)")
    ]
    expected = forecast(fm.Evaluator(clf), batch, labels, methods, PERCENTS, 20)
    assert expected.texts == 20
    assert expected.evaluations["grad-l2"] == 20 * (10 + 11)
    assert all(seconds > 0 for seconds in expected.seconds.values())
    for name, method in methods.items():
        evaluator = fm.Evaluator(clf)
        for _, masked in fm.erase(evaluator, batch, labels, method):
            evaluator.logits(masked)
        assert 10 * evaluator.evaluations <= expected.evaluations[name]
