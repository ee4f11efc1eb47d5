from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from faithmeter.errors import InputError
from faithmeter.faithfulness.intervals import Interval, bootstrap_interval, converged


def test_interval_is_scipys_bca_with_a_fresh_generator() -> None:
    values = [0.1, 0.4, 0.35, 0.8, 0.2]
    low, high = stats.bootstrap(
        (values,), np.mean, method="BCa", n_resamples=9999, random_state=np.random.default_rng(0)
    ).confidence_interval
    assert bootstrap_interval(values) == (pytest.approx(0.37), low, high, 5)
    assert bootstrap_interval(values) == bootstrap_interval(values)


def test_more_confidence_is_wider_and_the_seed_is_heard() -> None:
    values = [0.1, 0.4, 0.35, 0.8, 0.2]
    narrow, wide = bootstrap_interval(values, confidence=0.8), bootstrap_interval(values)
    assert wide.lower < narrow.lower < narrow.mean < narrow.upper < wide.upper
    few = [bootstrap_interval(values, resamples=99, seed=seed) for seed in (0, 1)]
    assert few[0] != few[1]


def test_the_interval_covers_the_mean_of_a_skewed_law_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    intervals = [bootstrap_interval(rng.exponential(size=40), resamples=499) for _ in range(200)]
    assert 0.87 <= np.mean([i.lower <= 1 <= i.upper for i in intervals]) <= 0.98


@given(st.floats(-1, 1), st.integers(1, 6))
def test_equal_values_give_a_point(value: float, n: int) -> None:
    interval = bootstrap_interval([value] * n)
    assert interval == (pytest.approx(value), interval.mean, interval.mean, n)


def test_values_equal_but_for_rounding_give_a_point() -> None:
    interval = bootstrap_interval([0.3, 0.1 + 0.2, 0.3])
    assert interval.lower == interval.mean == interval.upper


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=8))
@example([0.0, 2e-239])
@example([0.0, 1e-11])
def test_bounds_enclose_no_more_than_the_values(values: list[float]) -> None:
    _, lower, upper, n = bootstrap_interval(values, resamples=99)
    assert n == len(values)
    assert min(values) - 1e-9 <= lower <= upper <= max(values) + 1e-9


def test_nan_in_nan_out_and_counted() -> None:
    interval = bootstrap_interval([0.1, math.nan])
    assert interval.n == 2
    assert all(math.isnan(x) for x in interval[:3])


@pytest.mark.parametrize("values", [[], [1.0, math.inf], [[1.0, 2.0]]])
def test_no_sample(values: list[float]) -> None:
    with pytest.raises(InputError, match="finite"):
        bootstrap_interval(values)


def test_converged_keeps_what_is_strictly_above_the_threshold() -> None:
    kept, excluded = converged([0.5, 0.6, 0.1], 0.5)
    assert (kept.tolist(), excluded) == ([0.6], 2)
    kept, excluded = converged([-0.2, 0.3], 0.5, performance=[0.9, 0.4])
    assert (kept.tolist(), excluded) == ([-0.2], 1)
    assert isinstance(bootstrap_interval(kept), Interval)
    with pytest.raises(InputError, match="one for each seed"):
        converged([0.1, 0.2], 0.5, performance=[0.9])
