"""Search by hand, its budget, its laws on random models, and the gradients that propose an order."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from faithmeter.errors import InputError
from faithmeter.measuring.erase import erase
from faithmeter.methods import explain, parse
from faithmeter.methods.gradients import masking_effects
from faithmeter.methods.options import target_values
from faithmeter.models.evaluator import Evaluator
from orders import lookup, objective, random_margins, ranks_of
from toy import MASK, LookupClassifier, rows_batch, tiny


def test_search_finds_the_pair_that_leave_one_out_misses() -> None:
    """Token 0 lowers the margin most alone, but only tokens 2 and 3 together change the prediction."""
    alone = {0: 2.0, 1: 0.5, 2: 1.0, 3: 1.0}
    sets = [frozenset(s) for k in range(5) for s in itertools.combinations(range(4), k)]
    margins = {s: -1.0 if {2, 3} <= s else 5.0 - sum(alone[token] for token in s) for s in sets}
    recursive = explain(lookup(margins), rows_batch(range(5, 9)), [0], "loo-sign")[0, 1:5]
    assert recursive.argmax() == 0
    ranks = ranks_of(margins, 4, "search(gradients=0)")
    assert set(ranks.topk(2).indices.tolist()) == {2, 3}
    # 4 tokens: none masked at 10 and 20 %, one at 30 and 40 %, two at 50 to 70 %, three at 80 and 90 %
    assert objective(ranks, margins)[0] == 2
    greedy = ranks_of(margins, 4, "search(exchanges=0,gradients=0)")
    assert greedy[0] == 4
    assert objective(greedy, margins)[0] == 5


def test_a_text_that_is_wrong_at_every_step_costs_one_order() -> None:
    clf = lookup(dict.fromkeys(random_margins(10, 0), -1.0))
    explain(clf, rows_batch(range(5, 15)), [0], "search(budget=100,gradients=0)")
    assert len(clf.seen) == 10 + 9 - 1  # leave-one-out, then nine steps, of which the first is known


@given(st.integers(2, 8), st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 30))
@settings(max_examples=40)
def test_more_budget_is_never_worse_and_no_budget_is_exceeded(
    n: int, seed: int, budget: int, more: int
) -> None:
    margins = random_margins(n, seed)
    results = []
    for allowed in (budget, budget + more):
        method = parse(f"search(budget={allowed},gradients=0)")
        clf = lookup(margins)
        ranks = explain(clf, rows_batch(range(5, 5 + n)), [0], method)[0, 1 : n + 1]
        assert sorted(ranks.tolist()) == list(range(1, n + 1))
        assert len(clf.seen) == len(set(clf.seen)) <= method.evaluations(n)
        results.append(objective(ranks, margins))
    assert results[1] <= results[0]
    assert method.evaluations(n) == max((budget + more) * n, n + 9)


@given(st.integers(2, 7), st.integers(0, 10_000))
@settings(max_examples=40)
def test_search_is_no_worse_than_leave_one_out_once_and_no_better_than_all_orders(n: int, seed: int) -> None:
    margins = random_margins(n, seed)
    result = objective(ranks_of(margins, n, "search(budget=50,gradients=0)"), margins)
    once = torch.tensor([-margins[frozenset([token])] for token in range(n)])
    orders = itertools.permutations(range(1, n + 1))
    best = min(objective(torch.tensor(ranks), margins) for ranks in orders) if n <= 5 else (0, -99.0)
    assert best <= result <= objective(once, margins)


@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_texts_are_searched_alone_as_among_others_within_the_budget(kind: str) -> None:
    clf = tiny(kind)
    texts = ["the film was not good and the story was very dull", "a <mask> and fun music", "very dull"]
    batch = clf.encode(texts, ["who wrote it"] * 3)
    labels = clf.logits(batch).argmax(dim=1)
    method = parse("search(budget=3)")
    evaluator = Evaluator(clf)
    together = explain(evaluator, batch, labels, method)
    open_tokens = batch.explained & (batch.input_ids != MASK)
    assert torch.equal(together > 0, open_tokens)
    assert evaluator.evaluations <= sum(map(method.evaluations, open_tokens.sum(dim=1).tolist()))
    for row in range(3):
        assert torch.equal(explain(clf, batch[[row]], labels[[row]], method)[0], together[row])


def test_the_steps_of_the_search_are_those_of_erasure() -> None:
    """Erasing asks for no masked text that the search has not evaluated."""
    margins = random_margins(9, seed=3)
    clf = lookup(margins)
    batch = rows_batch([5, 6, MASK, 7, 8, 9, 10, 11, 12])
    evaluator = Evaluator(clf)
    explain(evaluator, batch, [0], "search(gradients=0)")
    before = set(clf.seen)
    steps = [masked for percent, masked in erase(evaluator, batch, [0], "search(gradients=0)")]
    evaluated = {tuple(step.input_ids[0].tolist()) for step in steps[2:-1]}  # at 0 and 10 % nothing is new
    assert evaluated <= before


@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_effects_of_masking_add_up_to_the_change_of_the_margin(kind: str) -> None:
    clf = tiny(kind)
    batch = clf.encode(["the film was not good", "a dull plot"], ["who wrote it", "the music"])
    labels = torch.tensor([0, 2])
    effects = masking_effects(Evaluator(clf), batch, labels, steps=400)
    assert (effects[~batch.explained] == 0).all()
    with torch.no_grad():
        whole, empty = (
            target_values(clf.logits(texts), labels, "margin")
            for texts in (batch, batch.masked(batch.explained, MASK))
        )
    # a margin has a kink where the second class changes, which costs an order of precision
    torch.testing.assert_close(effects.sum(dim=1), whole - empty, atol=0.05, rtol=0.01)


@pytest.mark.parametrize("options", ["budget=0", "gradients=-1", "exchanges=-1", "most=-1"])
def test_options_out_of_range_say_what_is_expected(options: str) -> None:
    with pytest.raises(InputError, match=rf"search\({options}\): expected at least [01], such as"):
        explain(lookup(random_margins(2, 0)), rows_batch([5, 6]), [0], f"search({options})")


def test_a_limit_holds_for_texts_of_any_length_and_changes_nothing_below_it() -> None:
    batch, labels = rows_batch(range(5, 25), [5, 6, 7]), [0, 1]
    unlimited = explain(tiny(), batch, labels, "search")
    assert torch.equal(explain(tiny(), batch, labels, "search(most=1000)"), unlimited)
    evaluator = Evaluator(tiny())
    explain(evaluator, batch[torch.tensor([0])], labels[:1], "search(most=30)")
    assert evaluator.evaluations <= parse("search(most=30)").evaluations(20) == 30
    assert parse("search(most=30)").evaluations(3) == 5 * 3


def test_a_model_of_one_class_is_refused() -> None:
    with pytest.raises(InputError, match="one class; expected two or more"):
        explain(LookupClassifier(lambda ids: (1.0,)), rows_batch(range(5, 15)), [0], "search(gradients=0)")


def test_more_budget_is_never_worse_with_gradients_either() -> None:
    """Each text keeps to its own budget, and its objective falls or stays as the budget grows."""
    clf = tiny(initializer_range=0.8)
    texts = ["the film was not good and the story was very dull", "a fun plot but bad music and actors"]
    batch = clf.encode(texts)
    labels = clf.logits(batch).argmax(dim=1)
    for row in range(2):
        one, before = batch[[row]], (math.inf, math.inf)
        n = int(one.explained.sum())
        for budget in (1, 2, 3, 5, 9, 20):
            method, evaluator = parse(f"search(budget={budget})"), Evaluator(clf)
            ranks = explain(evaluator, one, labels[[row]], method)
            assert evaluator.evaluations <= method.evaluations(n) == max(budget * n, 4 + 9)
            erased = dict(erase(clf, one, labels[[row]], method))
            steps = [masked for percent, masked in erased.items() if 0 < percent < 100]
            margins = [
                float(target_values(clf.logits(step), labels[[row]], "margin"))
                for step in steps
                if (step.input_ids == MASK).any()
            ]
            objective = (sum(margin >= 0 for margin in margins), sum(map(math.tanh, margins)))
            assert objective <= (before[0], before[1] + 1e-9)
            assert ranks.max() == n
            before = objective
