"""Forecasts: bounds by hand, which hold for the evaluations made, and times by a fake clock."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import faithmeter as fm
from faithmeter.faithfulness import forecast as forecasts
from faithmeter.faithfulness.forecast import bound_evaluations, forecast, sort_by_cost, too_expensive
from faithmeter.faithfulness.trajectory import states, trace_erasure
from faithmeter.methods import parse
from toy import LookupClassifier, rows_batch, tiny

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


class PricedClassifier(LookupClassifier):
    """A classifier on a fake clock: a call costs `call` seconds, and each of its tokens `token` seconds."""

    def __init__(self, call: float, token: float) -> None:
        super().__init__(lambda text: (sum(text) % 7, 3))
        self.call, self.token, self.now = call, token, 0.0

    def logits(self, batch: fm.Batch) -> Tensor:
        self.now += self.call + self.token * batch.input_ids.numel()
        return super().logits(batch)

    def states(self, batch: fm.Batch) -> tuple[Tensor, Tensor]:
        return self.logits(batch), torch.zeros(len(batch), 1, 1)


class NoTest:
    def pvalues(self, features: np.ndarray) -> np.ndarray:
        return np.ones(len(features))


def priced(monkeypatch: pytest.MonkeyPatch, call: float = 0.005, token: float = 1e-5) -> tuple[Any, ...]:
    """A priced classifier, 64 texts of 3 to 18 tokens, and labels."""
    clf = PricedClassifier(call, token)
    monkeypatch.setattr(forecasts.time, "perf_counter", lambda: clf.now)
    rng = np.random.default_rng(0)
    batch = rows_batch(*(rng.integers(5, 40, 3 + number % 16).tolist() for number in range(64)))
    return clf, batch, torch.arange(64) % 2


def slow_start(method: str, clf: PricedClassifier, seconds: float) -> fm.Method:
    """The method, with a first call that takes so many more seconds, as if it imported its library."""
    calls, known = [], parse(method)

    @wraps(known.function)
    def function(*arguments: Any, **options: Any) -> Tensor:
        clf.now += 0 if calls else seconds
        calls.append(1)
        return known.function(*arguments, **options)

    return replace(known, function=function)


@pytest.mark.parametrize("name", ["random", "loo-sign", "ridge(samples=40)", "beam"])
def test_a_forecast_is_near_the_truth(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Small batches are dear, a first call is slow, and equal inputs are evaluated once."""
    clf, batch, labels = priced(monkeypatch)
    method = slow_start(name, clf, seconds=3.0)
    expected = forecast(fm.Evaluator(clf, streams=1), batch, labels, {name: method}, PERCENTS, len(batch))
    start = clf.now
    trace_erasure(fm.Evaluator(clf, streams=1), batch, labels, method, PERCENTS, {"no": NoTest()})
    ratio = expected.seconds[name] / (clf.now - start)
    assert 1 / 1.5 < ratio < (5 if name == "beam" else 1.5)
    assert expected.at_most == ({"beam"} if name == "beam" else set()), "a beam may need less than its bound"


def test_a_forecast_of_a_slow_model_stays_cheap_and_says_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    clf, batch, labels = priced(monkeypatch, call=0.1, token=0.01)
    methods = {name: parse(name) for name in ("random", "ridge", "beam")}
    expected = forecast(fm.Evaluator(clf, streams=1, budget=64), batch, labels, methods, PERCENTS, 64)
    assert clf.now < 0.002 * sum(expected.seconds.values())
    assert expected.at_most == {"ridge", "beam"}, "not even one text was explained"


def test_a_forecast_contains_the_check_if_it_must_be_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    clf, batch, labels = priced(monkeypatch)
    evaluator, methods = fm.Evaluator(clf, streams=1), {"random": parse("random")}
    expected = forecast(evaluator, batch, labels, methods, PERCENTS, 64, fitting=640)
    start = clf.now
    for _ in range(10):
        states(evaluator, batch)
    assert expected.evaluations["check"] == 640
    assert 1 / 1.5 < expected.seconds["check"] / (clf.now - start) < 1.5
    assert "check" not in forecast(evaluator, batch, labels, methods, PERCENTS, 64).seconds


def test_a_method_that_declares_no_cost_is_timed_on_whole_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    clf, batch, labels = priced(monkeypatch, call=0.1)
    undeclared = replace(parse("loo-sign"), cost=None, recursive=False)
    expected = forecast(fm.Evaluator(clf, streams=1), batch, labels, {"own": undeclared}, PERCENTS, 640)
    assert not expected.at_most
    start = clf.now
    fm.explain(fm.Evaluator(clf, streams=1), batch, labels, undeclared)
    assert expected.seconds["own"] > 5 * (clf.now - start), "ten times as many texts"
