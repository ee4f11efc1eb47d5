from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithmeter.errors import InputError
from faithmeter.stats.curves import Curve, acu, racu

metrics = st.floats(0, 1)
rows = st.lists(metrics, min_size=2, max_size=21)


def curve(
    *values: float, percents: tuple[int, ...] = (0, 50, 100), metric: str = "accuracy", n: int = 10
) -> Curve:
    return Curve(percents, values, metric, n)


def test_racu_of_a_half_way_curve() -> None:
    baseline, explained = curve(0.9, 0.8, 0.5), curve(0.9, 0.6, 0.5)
    assert acu(explained, baseline) == pytest.approx(0.10)  # two triangles 0.2 high, 0.5 wide
    assert racu(explained, baseline) == pytest.approx(
        0.10 / 0.25
    )  # below: 0.5 (0.4 + 0.3) / 2 + 0.5 (0.3 + 0) / 2


def test_uneven_percents_weigh_by_their_width() -> None:
    steps = (0, 20, 100)
    baseline, explained = curve(1, 1, 0, percents=steps), curve(1, 0, 0, percents=steps)
    assert acu(explained, baseline) == pytest.approx(0.5)
    assert racu(explained, baseline) == pytest.approx(0.5 / 0.6)


def test_plain_values_are_evenly_spaced_and_mix_with_curves() -> None:
    assert acu([0.9, 0.6, 0.5], (0.9, 0.8, 0.5)) == pytest.approx(0.10)
    assert acu([0.9, 0.6, 0.5], curve(0.9, 0.8, 0.5)) == pytest.approx(0.10)
    eleven = [1.0] * 10 + [0.0]
    assert acu([1.0] + [0.0] * 10, eleven) == pytest.approx(0.9)
    assert racu([1.0] + [0.0] * 10, eleven) == pytest.approx(0.9 / 0.95)


def test_a_signed_score_may_exceed_one() -> None:
    assert racu([1, 0, 0.5], [1, 0.5, 0.5]) > 1


def test_racu_against_a_flat_baseline_is_undefined() -> None:
    assert math.isnan(racu([0.3, 0.2, 0.1], [0.3, 0.1 + 0.2, 0.3]))


def test_racu_against_a_baseline_that_ends_above_its_mean_is_undefined() -> None:
    """Both areas are negative here: their ratio would praise a method that is worse than random."""
    assert acu([0.5, 0.5, 0.5], [0.5, 0.4, 0.5]) < 0
    assert math.isnan(racu([0.5, 0.5, 0.5], [0.5, 0.4, 0.5]))


@given(rows)
def test_acu_of_a_curve_with_itself_is_zero(values: list[float]) -> None:
    assert acu(values, values) == 0


@given(st.lists(st.tuples(metrics, metrics), min_size=2, max_size=21))
def test_swapping_curve_and_baseline_flips_the_sign(pairs: list[tuple[float, float]]) -> None:
    one, other = zip(*pairs, strict=True)
    assert acu(one, other) == pytest.approx(-acu(other, one))


@given(rows)
def test_falling_at_once_is_the_best_absolute_curve(values: list[float]) -> None:
    baseline = [*sorted(values, reverse=True), 0.0]
    at_once = [baseline[0]] + [0.0] * (len(baseline) - 1)
    assert acu(at_once, baseline) >= acu(baseline, baseline)
    score = racu(at_once, baseline)
    assert math.isnan(score) or 0 <= score <= 1


@pytest.mark.parametrize(
    ("percents", "values", "n", "message"),
    [
        ((0, 50), (1, 1), 5, "from 0 to 100"),
        ((0, 60, 50, 100), (1, 1, 1, 1), 5, "increasing"),
        ((0, 100), (1, 1, 1), 5, "3 values at 2 percents"),
        ((0, 100), (1, math.nan), 5, "finite"),
        ((0, 100), (1, 1), 0, "0 texts"),
    ],
)
def test_a_curve_that_makes_no_sense(
    percents: tuple[int, ...], values: tuple[float, ...], n: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Curve(percents, values, "accuracy", n)


@pytest.mark.parametrize(
    ("explained", "baseline", "message"),
    [
        ([1, 0.5, 0], [1, 0], "same steps"),
        (curve(1, 1, 0, percents=(0, 20, 100)), [1, 1, 0], "same steps"),
        ([1, math.nan, 0], [1, 1, 0], "finite"),
        ([1], [1], "one row"),
        (curve(1, 1, 0), curve(1, 1, 0, metric="f1"), "metric='f1'"),
        (curve(1, 1, 0), curve(1, 1, 0, n=11), "n=11"),
    ],
)
def test_curves_that_cannot_be_compared(explained: object, baseline: object, message: str) -> None:
    for area in (acu, racu):
        with pytest.raises(InputError, match=message):
            area(explained, baseline)  # type: ignore[arg-type]
