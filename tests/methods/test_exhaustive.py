"""The best of all orders: by hand, against all permutations, and as the ceiling of search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from faithmeter.errors import InputError
from faithmeter.methods import explain, parse
from faithmeter.methods.search import cheapest_order
from orders import lookup, objective, pairwise_margins, random_margins, ranks_of
from toy import MASK, rows_batch, tiny


def test_the_cheapest_order_by_hand() -> None:
    """Masking token 1 first costs more, but leads to the only pair without a cost."""
    costs = np.array([0, 1, 2, 5, 3, 5, 0, 0], float)  # sets: {}, 0, 1, 01, 2, 02, 12, 012
    assert cheapest_order(costs).tolist() == [1, 2, 0]
    assert cheapest_order(-costs).tolist() == [2, 0, 1]
    assert cheapest_order(np.zeros(1)).tolist() == []


@given(st.integers(1, 6), st.integers(0, 10_000))
@settings(max_examples=30)
def test_no_permutation_is_better_and_none_is_worse_than_the_worst(n: int, seed: int) -> None:
    margins = random_margins(n, seed)
    every = [objective(torch.tensor(ranks), margins) for ranks in itertools.permutations(range(1, n + 1))]
    best = objective(ranks_of(margins, n, "exhaustive"), margins)
    worst = objective(ranks_of(margins, n, "exhaustive(worst=true)"), margins)
    assert best == pytest.approx(min(every))
    assert worst == pytest.approx(max(every))


@pytest.mark.parametrize("n", [5, 10, 12])
def test_every_set_is_evaluated_once_within_the_stated_cost(n: int) -> None:
    clf = lookup(random_margins(n, 0))
    method = parse("exhaustive")
    explain(clf, rows_batch(range(5, 5 + n)), [0], method)
    assert len(clf.seen) == len(set(clf.seen)) <= method.evaluations(n) == 2**n


def test_search_is_within_one_point_of_the_best_order_on_average() -> None:
    """A step at which the label is predicted costs a tenth of the area of a text, 10 points."""
    gaps = []
    for seed in range(30):
        margins = pairwise_margins(9, seed)
        searched, best = (
            objective(ranks_of(margins, 9, name), margins)[0]
            for name in ("search(gradients=0)", "exhaustive")
        )
        assert best <= searched
        gaps.append(10 * (searched - best))
    assert np.mean(gaps) <= 1


def test_longer_texts_are_searched() -> None:
    clf = tiny()
    batch = clf.encode(["the film was not good and the story was dull", "very dull", "a <mask> plot"])
    labels = clf.logits(batch).argmax(dim=1)
    ranks = explain(clf, batch, labels, "exhaustive(longest=3)")
    open_tokens = batch.explained & (batch.input_ids != MASK)
    assert torch.equal(ranks > 0, open_tokens)
    assert torch.equal(ranks[0], explain(clf, batch[[0]], labels[[0]], "search")[0])
    worst = explain(clf, batch, labels, "exhaustive(longest=3,worst=true)")
    assert torch.equal(worst[0], explain(clf, batch[[0]], labels[[0]], "beam(worst=true)")[0])
    assert parse("exhaustive(longest=3)").evaluations(10) == parse("search").evaluations(10)
    assert parse("exhaustive(longest=3,worst=true)").evaluations(10) == parse("beam").evaluations(10)


@pytest.mark.parametrize("longest", [-1, 17])
def test_a_length_out_of_range_says_what_is_expected(longest: int) -> None:
    with pytest.raises(InputError, match="expected 0 to 16, such as longest=12"):
        explain(tiny(), rows_batch([5, 6]), [0], f"exhaustive(longest={longest})")
