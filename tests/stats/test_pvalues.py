from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithmeter.errors import InputError
from faithmeter.stats.pvalues import (
    count_test,
    count_unusual,
    dataset_pvalue,
    fisher,
    ranks,
    rejected_ranks,
    simes,
)

probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def test_ranks_on_paper() -> None:
    smaller, upto = ranks(np.array([[1.0, 2.0, 2.0, 5.0]]), np.array([[2.0, 0.0, 6.0, 5.0]]))
    assert smaller.tolist() == [[1, 0, 4, 3]]
    assert upto.tolist() == [[3, 0, 4, 4]]


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=20), st.lists(st.integers(0, 6), min_size=1, max_size=20)
)
def test_ranks_equal_a_double_loop(fitted: list[int], values: list[int]) -> None:
    smaller, upto = ranks(np.sort(np.array([fitted])), np.array([values]))
    assert smaller[0].tolist() == [sum(f < v for f in fitted) for v in values]
    assert upto[0].tolist() == [sum(f <= v for f in fitted) for v in values]


def test_simes_on_paper() -> None:
    assert simes([0.5, 0.01, 0.03]) == pytest.approx(0.03)  # 0.01 · 3/1, 0.03 · 3/2, 0.5 · 3/3
    assert simes([0.5, 0.02, 0.03]) == pytest.approx(0.045)
    assert simes([[0.1, 0.2], [0.9, 0.9]], axis=0) == pytest.approx([0.2, 0.4])
    assert simes([[0.1, 0.2], [0.9, 0.9]]) == pytest.approx([0.2, 0.9])


@given(probabilities)
def test_simes_lies_between_the_least_and_the_largest(p: list[float]) -> None:
    assert min(p) <= simes(p) * (1 + 1e-12)
    assert simes(p) <= max(p) * (1 + 1e-12)


@given(probabilities, st.randoms(use_true_random=False))
def test_order_does_not_matter(p: list[float], random: object) -> None:
    shuffled = list(p)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert simes(shuffled) == simes(p)
    assert fisher(shuffled) == fisher(p)  # to the last bit


def test_fisher_on_paper() -> None:
    assert fisher([1, math.exp(-3)]) == pytest.approx(6, abs=1e-6)
    assert fisher([0, 1]) == pytest.approx(-2 * math.log(1e-8), abs=1e-6)
    assert fisher([[0.5, 0.5], [0.25, 1]], axis=1) == pytest.approx([4 * math.log(2)] * 2, abs=1e-6)


def test_dataset_pvalue_is_simes_and_the_shares_below_each_level() -> None:
    p, below = dataset_pvalue([0.004, 0.04, 0.5, 0.9])
    assert p == pytest.approx(0.016)
    assert below == {0.001: 0, 0.005: 0.25, 0.01: 0.25, 0.05: 0.5, 0.1: 0.5}
    assert dataset_pvalue([0.05]).below[0.05] == 0  # strictly below


@pytest.mark.parametrize("p", [[], [0.1, math.nan], [1.5], [-0.1], 0.5])
def test_what_is_no_p_value(p: object) -> None:
    with pytest.raises(InputError, match="from 0 to 1"):
        simes(p)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="from 0 to 1"):
        dataset_pvalue(p)  # type: ignore[arg-type]


def test_count_test_by_hand():
    # 19 references: only a text beyond all of them has p = 0.05, which is not below 0.05
    assert count_test(0, 2, 19).p == 1
    # 39 references: one rank is below; of one text it is rejected with probability 1/40
    result = count_test(1, 1, 39)
    assert result.p == pytest.approx(1 / 40)
    assert result.share == 1


def test_count_test_holds_its_level():
    """Of simulated checks without any difference, 3 to 6 % are significant."""
    rng = np.random.default_rng(0)
    counts = []
    for _ in range(2000):
        references = np.sort(rng.random(200))
        larger = 200 - np.searchsorted(references, rng.random(200))
        counts.append(int(((1 + larger) / 201 < 0.05).sum()))
    significant = [n for n in set(counts) if count_test(n, 200, 200).p < 0.05]
    assert 0.03 <= np.isin(counts, significant).mean() <= 0.06


def test_count_test_notices_the_share_that_it_names():
    rng = np.random.default_rng(1)
    noticed = count_test(0, 200, 200).noticed
    assert 0.05 < noticed < 0.2
    detected = sum(count_test(n, 200, 200).p < 0.05 for n in rng.binomial(200, noticed, size=200).tolist())
    assert 0.7 <= detected / 200 <= 0.9


def test_count_test_is_stronger_than_simes():
    p = np.r_[np.full(54, 0.04), np.linspace(0.06, 1, 146)]  # 27 % of 200 texts, none of them extreme
    assert simes(p) > 0.05
    assert count_test(54, 200, 260).p < 1e-5


def test_unusual_texts_are_counted_at_each_rate():
    """At the first rate 2 of 40 texts are below the limit, at the second 10."""
    pvalues = np.full((40, 2), 0.5)
    pvalues[:2, 0], pvalues[:10, 1] = 0.01, 0.15
    result = count_unusual(pvalues, [0.05, 0.2], 199)
    few, many = count_test(2, 40, 199), count_test(10, 40, 199)
    assert result.share == many.share == 0.25
    assert result.p == pytest.approx(min(2 * many.p, few.p))
    assert result.noticed == many.noticed


def test_texts_at_one_rate_are_rejected_at_the_level_only_beside_texts_at_that_rate():
    """The mixture of rates says too little of a rate whose texts differ from the others."""
    rng = np.random.default_rng(0)
    by_rate = by_mixture = 0
    for _ in range(400):
        held_out, new = rng.normal(1, 1, 200), rng.normal(1, 1, 100)  # statistics at this rate
        mixture = np.sort(rng.normal(rng.integers(2, size=200), 1))  # at a mixture of two rates
        known, p = ((1 + 200 - np.searchsorted(mixture, each)) / 201 for each in (held_out, new))
        limit = np.sort(known)[rejected_ranks(200) - 1]
        by_rate += count_unusual(p[:, None], [limit], 200).p < 0.05
        by_mixture += count_test(int((p < 0.05).sum()), 100, 200).p < 0.05
    assert by_rate / 400 <= 0.06
    assert by_mixture / 400 > 0.2
