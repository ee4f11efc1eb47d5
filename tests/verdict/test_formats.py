"""Numbers look the same on every surface, whatever way they were computed in."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithmeter.verdict.formats import format_number, format_percent


@pytest.mark.parametrize(("tenths_of_permille", "text"), [(3515, "35.2"), (3385, "33.8"), (2745, "27.4")])
def test_a_tie_looks_the_same_as_a_fraction_a_percent_and_a_sum(tenths_of_permille: int, text: str) -> None:
    fraction = tenths_of_permille / 10_000
    ways = [fraction, round(100 * fraction, 6) / 100, math.fsum([fraction - 0.1, 0.1]), fraction * 3 / 3]
    assert {format_percent(way) for way in ways} == {text}


@given(st.integers(-10_000, 10_000))
def test_an_error_in_the_last_digit_changes_nothing(value: int) -> None:
    number = value / 100
    above, below = math.nextafter(number, math.inf), math.nextafter(number, -math.inf)
    assert format_number(number) == format_number(above) == format_number(below)


def test_numbers_without_a_value_and_zeros() -> None:
    assert format_number(math.nan) == "–"
    assert format_number(-0.01) == "0.0"
    assert format_number(math.inf) == "inf"
    assert format_number(np.float64(35.15)) == "35.2"
