"""Beam search by hand, against exhaustive search, against a plain one-text search, and what it costs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from faithmeter.measuring.erase import erase
from faithmeter.methods import explain
from faithmeter.methods.registry import parse
from faithmeter.models.evaluator import Evaluator
from faithmeter.models.tokens import Batch
from toy import BOS, EOS, MASK, LookupClassifier, rows_batch, tiny

Logit = Callable[[frozenset[int]], float]


def lookup(values: dict[frozenset[int], float]) -> LookupClassifier:
    """A classifier of one text, by the set of its masked positions (counted from 0, specials left out)."""
    return LookupClassifier(
        lambda ids: (values[frozenset(i for i, token in enumerate(ids[1:-1]) if token == MASK)],)
    )


def random_values(n: int, seed: int, levels: int | None = None) -> dict[frozenset[int], float]:
    """A logit for every set of n tokens; few `levels` make ties."""
    rng = np.random.default_rng(seed)
    sets = [frozenset(s) for k in range(n + 1) for s in itertools.combinations(range(n), k)]
    draws = rng.standard_normal(len(sets)) if levels is None else rng.integers(0, levels, len(sets))
    return dict(zip(sets, map(float, draws), strict=True))


def area(order: Sequence[int], values: dict[frozenset[int], float]) -> float:
    sets = [frozenset(order[: k + 1]) for k in range(len(order))]
    return sum(values[frozenset()] - values[s] for s in sets)


def plain_beam(values: dict[frozenset[int], float], n: int, width: int) -> list[int]:
    """The order that a search with lists and sets finds, one text alone."""
    beam: list[tuple[float, list[int]]] = [(0.0, [])]
    for _ in range(n):
        found: dict[frozenset[int], tuple[float, list[int]]] = {}
        for score, order in beam:
            for token in range(n):
                masked = frozenset([*order, token])
                if token not in order and masked not in found:
                    found[masked] = (score + values[frozenset()] - values[masked], [*order, token])
        beam = sorted(found.values(), key=lambda state: -state[0])[:width]
    return beam[0][1]


def order_of(scores: torch.Tensor) -> list[int]:
    """Tokens from first to last erased, out of ranks n … 1."""
    ranks = scores.tolist()
    assert sorted(ranks) == list(range(1, len(ranks) + 1))
    return sorted(range(len(ranks)), key=lambda token: -ranks[token])


def test_a_beam_sees_what_greedy_search_misses() -> None:
    # token 0 falls most alone; but 1 and 2 together end it all
    falls = {(): 0, (0,): 3, (1,): 2, (2,): 2, (0, 1): 3, (0, 2): 3, (1, 2): 9, (0, 1, 2): 9}
    values = {frozenset(tokens): -float(fall) for tokens, fall in falls.items()}
    batch = rows_batch([5, 6, 7])
    assert explain(lookup(values), batch, [0], "beam(width=1)").tolist() == [[0, 3, 2, 1, 0]]
    assert explain(lookup(values), batch, [0], "beam(width=2)").tolist() == [[0, 1, 3, 2, 0]]


@pytest.mark.parametrize("seed", range(10))
def test_a_wide_beam_is_an_exhaustive_search(seed: int) -> None:
    n = 5
    values = random_values(n, seed)
    scores = explain(lookup(values), rows_batch(range(5, 5 + n)), [0], f"beam(width={2**n})")
    order = order_of(scores[0, 1 : n + 1])
    best = max(itertools.permutations(range(n)), key=lambda order: area(order, values))
    assert area(order, values) == pytest.approx(area(best, values), abs=1e-12)
    assert tuple(order) == best


def erased(values: dict[frozenset[int], float], name: str) -> list[frozenset[int]]:
    """What is masked of five tokens after each step that masks one more."""
    steps = erase(lookup(values), rows_batch(range(5, 10)), [0], name, percents=range(0, 101, 20))
    return [frozenset(np.flatnonzero(batch.input_ids[0, 1:-1] == MASK).tolist()) for _, batch in steps]


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_searching_again_at_every_step_changes_nothing_if_the_search_is_exact(seed: int) -> None:
    """Appendix B.3: reevaluation "would result in the exact same results"."""
    values = random_values(5, seed)
    assert erased(values, "beam(width=32,again=true)") == erased(values, "beam(width=32)")


def test_a_narrow_beam_that_searches_again_may_find_another_order() -> None:
    """So the paper's sentence holds for an exact search only."""
    values = random_values(5, 14)
    once, again = erased(values, "beam(width=2)"), erased(values, "beam(width=2,again=true)")
    assert once[:2] == again[:2]
    assert once != again
    falls = [sum(values[frozenset()] - values[masked] for masked in sets) for sets in (once, again)]
    assert falls == pytest.approx([7.06, 8.08], abs=0.01)


def test_the_option_is_what_erasure_and_costs_read() -> None:
    assert [parse(name).recursive for name in ("beam", "beam(again=false)", "beam(again=true)")] == [
        False,
        False,
        True,
    ]
    assert parse("beam(again=true)").explanations(11) == 10


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10_000), st.sampled_from([None, 2, 3]))
@settings(max_examples=60)
def test_ties_and_narrow_beams_go_as_in_a_plain_search(
    n: int, width: int, seed: int, levels: int | None
) -> None:
    values = random_values(n, seed, levels)
    scores = explain(lookup(values), rows_batch([*range(5, 5 + n)]), [0], f"beam(width={width})")
    assert order_of(scores[0, 1 : n + 1]) == plain_beam(values, n, width)


@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_a_text_gets_the_same_ranks_alone_and_among_texts_of_its_length(kind: str) -> None:
    clf = tiny(kind)
    texts = ["the film was not good", "a <mask> and fun music", "very dull", "<mask> plot was <mask> but"]
    batch = clf.encode(texts, ["who wrote it"] * 4)
    together = explain(clf, batch, [0, 1, 2, 0], "beam(width=3)")
    for row, label in enumerate([0, 1, 2, 0]):
        alone = batch[[row]]
        tokens = (alone.explained & (alone.input_ids != MASK))[0].nonzero()[:, 0]
        n = len(tokens)
        sets = [frozenset(s) for k in range(n + 1) for s in itertools.combinations(range(n), k)]
        values = {}
        for masked in sets:
            where = torch.zeros_like(alone.explained)
            where[0, tokens[list(masked)]] = True
            with torch.no_grad():
                values[masked] = clf.logits(alone.masked(where, MASK))[0, label].item()
        assert order_of(together[row, tokens]) == plain_beam(values, n, 3)
        assert together[row].count_nonzero() == n
        assert torch.equal(explain(clf, alone, [label], "beam(width=3)")[0], together[row])


def test_no_masked_set_is_evaluated_twice() -> None:
    clf = LookupClassifier(lambda ids: (float(sum(i * token for i, token in enumerate(ids)) % 17),))
    evaluator = Evaluator(clf, memory=0)
    explain(evaluator, rows_batch([5, 6, 7, 8, 9, 10]), [0], "beam(width=4)")
    assert len(clf.seen) == len(set(clf.seen)) == evaluator.evaluations
    assert evaluator.evaluations <= 1 + sum(4 * (6 - step) for step in range(6))
    assert (BOS, *[MASK] * 6, EOS) not in clf.seen, "the last state has no rival"


def test_tokens_masked_already_take_no_part() -> None:
    values = random_values(3, seed=1)
    open_positions = [0, 2, 3]  # of the text 5 <mask> 6 7

    def logits(ids: tuple[int, ...]) -> tuple[float]:
        return (values[frozenset(i for i, p in enumerate(open_positions) if ids[1 + p] == MASK)],)

    scores = explain(LookupClassifier(logits), rows_batch([5, MASK, 6, 7]), [0], "beam")
    assert scores[0, 2] == 0
    assert order_of(scores[0, [1, 3, 4]]) == plain_beam(values, 3, 10)


@pytest.mark.slow
def test_a_text_of_512_tokens_is_ordered_by_worth() -> None:
    class Additive(LookupClassifier):
        """Each position has its own worth, so that the best order is known."""

        def logits(self, batch: Batch) -> torch.Tensor:
            worth = torch.arange(batch.input_ids.shape[1]).double()
            return (batch.input_ids.ne(MASK) * (worth * 389 % 521)).sum(dim=1, keepdim=True)

    text = rows_batch([5] * 510)
    scores = explain(Additive(lambda ids: ()), text, [0], "beam(width=1)")[0, 1:511]
    expected = sorted(range(510), key=lambda token: -((token + 1) * 389 % 521))
    assert order_of(scores) == expected
