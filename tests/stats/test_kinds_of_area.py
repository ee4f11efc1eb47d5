"""Faithfulness: the share of the removable probability, on curves whose areas are known on paper."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithmeter.stats.curves import absolute_area, removable_area, removed_share, share_beyond

RATIOS = np.array([0, 0.5, 1])
RANDOM = np.array([0.9, 0.7, 0.5])
CURVES = st.lists(st.floats(0, 1), min_size=11, max_size=11).map(np.array)


def test_removable_area_is_that_of_falling_at_once():
    # at half the text, random erasure is 0.2 above the end: a triangle of base 1
    assert removable_area(RANDOM, RATIOS) == pytest.approx(0.1)
    assert removed_share(np.array([0.9, 0.5, 0.5]), RANDOM, RATIOS) == pytest.approx(1)


def test_share_of_a_method_that_removes_half():
    values = np.array([0.9, 0.6, 0.5])
    assert removed_share(values, RANDOM, RATIOS) == pytest.approx(0.5)
    assert share_beyond(values, RANDOM, RATIOS) == pytest.approx(0)


def test_evidence_against_the_label_is_counted_apart():
    values = np.array([0.9, 0.2, 0.5])  # 0.3 below the wholly masked level at half the text
    assert removed_share(values, RANDOM, RATIOS) == pytest.approx(1)
    assert share_beyond(values, RANDOM, RATIOS) == pytest.approx(0.3 / 0.2)


def test_a_model_without_removable_probability_has_no_share():
    flat = np.array([0.5, 0.51, 0.5])
    assert np.isnan(removed_share(np.array([0.5, 0.1, 0.5]), flat, RATIOS))
    assert np.isnan(share_beyond(np.array([0.5, 0.1, 0.5]), flat, RATIOS))


def test_many_curves_at_once():
    values = np.array([[0.9, 0.5, 0.5], [0.9, 0.6, 0.5]])
    shares = removed_share(values, np.stack([RANDOM, RANDOM]), RATIOS)
    assert shares.tolist() == pytest.approx([1, 0.5])


@given(CURVES, CURVES)
def test_no_method_removes_more_than_all(values, random):
    ratios = np.linspace(0, 1, 11)
    values[0], values[-1] = random[0], random[-1]
    share, beyond = removed_share(values, random, ratios), share_beyond(values, random, ratios)
    assert np.isnan(share) or share <= 1 + 1e-9
    assert np.isnan(beyond) or beyond >= 0


@given(CURVES)
def test_both_parts_together_are_the_area_of_probability(values):
    ratios, random = np.linspace(0, 1, 11), np.linspace(0.9, 0.4, 11)
    values[0], values[-1] = random[0], random[-1]
    both = removed_share(values, random, ratios) + share_beyond(values, random, ratios)
    assert both * removable_area(random, ratios) == pytest.approx(absolute_area(values, random, ratios))
