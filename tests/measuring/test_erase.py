"""Erasure: counts, growth, order, what is explained again and what it costs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from faithmeter.errors import InputError
from faithmeter.measuring.erase import erase
from faithmeter.methods import METHODS, Method, explain
from faithmeter.models.evaluator import Evaluator
from faithmeter.models.masks import PERCENTS
from faithmeter.models.tokens import Batch
from toy import MASK, LookupClassifier, rows_batch, tiny


def worth(ids: tuple[int, ...]) -> tuple[float, float]:
    """A logit that falls most with the greatest id."""
    return float(sum(token for token in ids if token > MASK)), 0.0


def counting(name: str = "counting", recursive: bool = True) -> tuple[Method, list[list[int]]]:
    """Leftmost token first, and which texts (by row number) it was asked about."""
    asked: list[list[int]] = []

    def scores(clf: Any, batch: Batch, labels: torch.Tensor) -> torch.Tensor:
        asked.append(batch.index.tolist())
        return torch.zeros(batch.input_ids.shape)

    return Method(name, scores, recursive=recursive), asked


def test_erasure_by_hand() -> None:
    steps = dict(
        erase(LookupClassifier(worth), rows_batch([7, 9, 5, 8]), [0], "loo-sign", percents=(0, 25, 60, 100))
    )
    inside = {percent: batch.input_ids[0, 1:5].tolist() for percent, batch in steps.items()}
    assert inside == {0: [7, 9, 5, 8], 25: [7, MASK, 5, 8], 60: [7, MASK, 5, MASK], 100: [MASK] * 4}


@pytest.mark.parametrize("name", [name for name in METHODS if name != "shapley"])  # which needs shapiq
def test_masks_only_grow_to_the_exact_count_and_spare_the_rest(name: str) -> None:
    clf = Evaluator(tiny())
    batch = clf.encode(
        ["the film was not <mask> good and the plot was dull", "very", "a <mask>"], ["who"] * 3
    )
    already = batch.input_ids.eq(MASK) & batch.explained
    before = already
    for percent, masked in erase(clf, batch, [0, 1, 2], name):
        now = masked.input_ids.eq(MASK) & batch.explained
        assert now[before].all()
        assert torch.equal(masked.input_ids[~now], batch.input_ids[~now])
        counts = batch.explained.sum(dim=1) * percent // 100
        assert now.sum(dim=1).tolist() == torch.maximum(counts, already.sum(dim=1)).tolist()
        before = now
    assert torch.equal(before, batch.explained)


def test_the_method_is_asked_about_the_masked_text() -> None:
    clf = tiny()
    batch = clf.encode(["the film was not good and dull"])
    steps = list(erase(clf, batch, [1], "grad-l2", percents=(0, 30, 60)))
    (_, first), (_, second), (_, third) = steps
    scores = explain(clf, second, [1], "grad-l2")
    kept = batch.explained[0] & second.input_ids[0].ne(MASK)
    top = scores[0].masked_fill(~kept, -1).topk(2).indices
    assert sorted(top.tolist()) == third.input_ids[0].ne(second.input_ids[0]).nonzero()[:, 0].tolist()
    assert torch.equal(first.input_ids, batch.input_ids)


def test_only_texts_that_lose_a_token_are_explained() -> None:
    method, asked = counting()
    list(erase(LookupClassifier(worth), rows_batch([5] * 10, [5] * 2, [5]), [0, 0, 0], method))
    assert asked == [[0], [0], [0], [0], [0, 1], [0], [0], [0], [0]]  # 10 … 90 %


def test_a_method_that_is_not_recursive_is_asked_once() -> None:
    method, asked = counting(recursive=False)
    list(erase(LookupClassifier(worth), rows_batch([5] * 10, [5] * 10), [0, 0], method))
    assert asked == [[0, 1]]


def test_all_and_nothing_need_no_explanation() -> None:
    method, asked = counting()
    steps = list(erase(LookupClassifier(worth), rows_batch([5, 6]), [0], method, percents=(0, 100)))
    assert asked == []
    assert steps[1][1].input_ids[0, 1:3].tolist() == [MASK, MASK]


def test_ties_go_to_the_leftmost_token() -> None:
    method, _ = counting()
    steps = dict(erase(LookupClassifier(worth), rows_batch([5, 6, 7, 8]), [0], method))
    assert steps[50].input_ids[0, 1:5].tolist() == [MASK, MASK, 7, 8]


def test_erasure_by_leave_one_out_costs_what_it_must() -> None:
    clf = Evaluator(LookupClassifier(worth))
    list(erase(clf, rows_batch([5, 6, 7, 8, 9, 10, 11, 12, 13, 14]), [0], "loo-sign"))
    # 10 % steps of ten tokens: n + 1 at first; later the text itself was a variant of the step before
    assert clf.evaluations == 1 + sum(range(2, 11))


@given(st.lists(st.lists(st.integers(4, 20), min_size=1, max_size=25), min_size=1, max_size=5))
@settings(max_examples=20)
def test_a_batch_is_erased_as_its_texts_are_alone(rows: list[list[int]]) -> None:
    clf = LookupClassifier(worth)
    together = list(erase(clf, rows_batch(*rows), [0] * len(rows), "loo-sign"))
    assert [percent for percent, _ in together] == list(PERCENTS)
    for number, row in enumerate(rows):
        for (_, batch), (_, alone) in zip(
            together, erase(clf, rows_batch(row), [0], "loo-sign"), strict=True
        ):
            assert batch.input_ids[number, : len(row) + 2].tolist() == alone.input_ids[0].tolist()


@pytest.mark.parametrize("percents", [(0, 50, 20), (0, 120), (-10, 0), (10, 10)])
def test_percents_must_rise_within_the_hundred(percents: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="increasing numbers from 0 to 100"):
        erase(LookupClassifier(worth), rows_batch([5]), [0], "random", percents=percents)


def test_an_unknown_method_is_an_error_at_once() -> None:
    with pytest.raises(InputError, match="did you mean 'loo-sign'"):
        erase(LookupClassifier(worth), rows_batch([5]), [0], "loo-sing")


def test_known_scores_of_any_precision_are_taken_and_not_changed() -> None:
    """Scores in float32 crashed when a later step was explained again."""
    clf, batch = Evaluator(tiny()), rows_batch([7, 9, 5, 8])
    scores = explain(clf, batch, [0], "loo-sign")
    single = scores.float()
    expected = [step.input_ids.tolist() for _, step in erase(clf, batch, [0], "loo-sign", scores=scores)]
    steps = erase(clf, batch, [0], "loo-sign", scores=single)
    assert [step.input_ids.tolist() for _, step in steps] == expected
    assert single.equal(scores.float())
    for wrong in (scores[:, :-1], scores * float("nan")):
        with pytest.raises(InputError, match="expected a finite score for each token"):
            erase(clf, batch, [0], "loo-sign", scores=wrong)
