"""Masks: counted in integers, drawn row by row, never where they may not be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from faithmeter.errors import InputError
from faithmeter.models.masks import PERCENTS, generator, random_scores, row_generators, top_mask, uniform_mask

ALLOWED = npst.arrays(bool, st.tuples(st.integers(1, 5), st.integers(1, 30))).map(torch.from_numpy)


@pytest.mark.parametrize(
    ("n", "percent", "count"), [(90, 70, 63), (7, 10, 0), (7, 20, 1), (3, 100, 3), (1, 90, 0)]
)
def test_the_number_masked_is_counted_in_integers(n: int, percent: int, count: int) -> None:
    allowed = torch.ones(1, n, dtype=torch.bool)
    assert int(top_mask(torch.rand(1, n), allowed, percent).sum()) == count


def test_the_highest_scores_are_masked_and_ties_go_left() -> None:
    scores = torch.tensor([[9.0, 1.0, 3.0, 3.0, 2.0, 3.0]])
    allowed = torch.tensor([[False, True, True, True, True, True]])
    assert top_mask(scores, allowed, 40).int().tolist() == [[0, 0, 1, 1, 0, 0]]


def test_what_is_masked_already_stays_and_counts() -> None:
    scores = torch.tensor([[5.0, 4.0, 3.0, 2.0]])
    already = torch.tensor([[False, False, False, True]])
    allowed = torch.ones(1, 4, dtype=torch.bool)
    assert top_mask(scores, allowed, 50, already=already).int().tolist() == [[1, 0, 0, 1]]
    assert top_mask(scores, allowed, 0, already=already).int().tolist() == [[0, 0, 0, 1]]


@given(ALLOWED, st.integers(0, 2**32))
def test_masks_of_one_order_only_grow_and_stay_where_allowed(allowed: torch.Tensor, seed: int) -> None:
    order = random_scores(allowed, row_generators(seed, "sweep", torch.arange(len(allowed))))
    before = torch.zeros_like(allowed)
    for percent in PERCENTS:
        mask = top_mask(order, allowed, percent)
        assert not (mask & ~allowed).any()
        assert not (before & ~mask).any()
        assert mask.sum(dim=1).tolist() == [int(n) * percent // 100 for n in allowed.sum(dim=1)]
        before = mask


@given(ALLOWED, st.integers(0, 2**32), st.integers(0, 8))
def test_masks_depend_neither_on_the_batch_nor_on_padding(
    allowed: torch.Tensor, seed: int, padding: int
) -> None:
    index = torch.arange(len(allowed)) + 3
    padded = torch.nn.functional.pad(allowed, (0, padding))
    for draw in (uniform_mask, random_scores):
        together = draw(padded, row_generators(seed, "train", index, 1))
        alone = [draw(allowed[[i]], row_generators(seed, "train", index[[i]], 1)) for i in range(len(index))]
        assert torch.equal(together[:, : allowed.shape[1]], torch.cat(alone))


def test_a_row_masks_each_token_with_its_own_rate() -> None:
    """Over many rows the share of masked tokens is uniform on (0, 1): mean 1/2, variance 1/12."""
    allowed = torch.ones(4000, 200, dtype=torch.bool)
    share = uniform_mask(allowed, row_generators(0, "train", torch.arange(4000))).double().mean(dim=1)
    assert share.mean() == pytest.approx(1 / 2, abs=4 * (1 / 12 / 4000) ** 0.5)
    assert share.var() == pytest.approx(1 / 12, rel=0.1)
    assert np.quantile(share, [0.1, 0.9]) == pytest.approx([0.1, 0.9], abs=0.03)


def test_streams_and_keys_give_different_numbers_and_the_same_key_the_same() -> None:
    draws = {generator(*key).random() for key in [(0, "train"), (1, "train"), (0, "sweep"), (0, "train", 1)]}
    assert len(draws) == 4
    assert generator(5, "masf", 2).random() == generator(5, "masf", 2).random()


@pytest.mark.parametrize("percent", [-1, 101])
def test_a_percent_outside_0_to_100_is_refused(percent: int) -> None:
    with pytest.raises(InputError, match="expected 0 to 100"):
        top_mask(torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool), percent)


def test_scores_that_are_not_numbers_are_refused_where_they_matter() -> None:
    scores = torch.tensor([[torch.nan, 1.0]])
    assert top_mask(scores, torch.tensor([[False, True]]), 100).tolist() == [[False, True]]
    with pytest.raises(InputError, match="NaN"):
        top_mask(scores, torch.tensor([[True, True]]), 100)
