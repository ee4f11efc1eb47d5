"""Metrics and searches on tables of real classifiers: by hand, by oracle, and as committed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from faithmeter.measuring.erase import erase
from validation.lookup import LookupClassifier
from validation.naopc import data, picture, published, rankings, searches

needs_data = pytest.mark.skipif(not data.DATA.is_dir(), reason="needs data/NAOPC; set FAITHMETER_SHARED")


def random_table(n: int, seed: int) -> np.ndarray:
    """Probabilities of two classes for each set of n words."""
    label = np.random.default_rng(seed).random(2**n)
    return np.stack([1 - label, label], axis=1)


def area(table: np.ndarray, order: list[int]) -> float:
    """AOPC of an order of words, step by step."""
    values, masked, total = table[:, data.LABEL], 0, 0.0
    for word in order:
        masked |= 1 << word
        total += values[0] - values[masked]
    return total / len(order)


def test_the_lookup_classifier_reads_the_row_of_the_masked_words() -> None:
    """Bit i of a row's number is word i: masking words 0 and 2 reads row 5."""
    tables = [np.arange(16.0).reshape(8, 2), 100 + np.arange(4.0).reshape(2, 2)]
    lookup = LookupClassifier(tables)
    batch = lookup.batch()
    assert batch.explained.tolist() == [[False, True, True, True], [False, True, False, False]]
    where = torch.tensor([[False, True, False, True], [False, True, False, False]])
    assert lookup.logits(batch).tolist() == [[0, 1], [100, 101]]
    assert lookup.logits(batch.masked(where, lookup.mask_id)).tolist() == [[10, 11], [102, 103]]
    assert lookup.evaluator().logits(batch).tolist() == [[0, 1], [100, 101]]


def test_aopc_by_hand() -> None:
    """Word 1 first: the probability falls from 0.9 to 0.4, then to 0.2. Word 0 first: to 0.8, then to 0.2."""
    label = np.array([0.9, 0.8, 0.4, 0.2])  # {}, word 0, word 1, both
    table = np.stack([1 - label, label], axis=1)
    scores = data.aopc_scores([table], {"first": torch.tensor([[0.0, 1, 2]])}).set_index("method")
    assert scores.loc["first", "comprehensiveness"] == pytest.approx((0.5 + 0.7) / 2)
    assert scores.loc["first", "sufficiency"] == pytest.approx((0.1 + 0.7) / 2)  # word 0 goes first
    assert scores.loc["first", "naopc"] == pytest.approx(1)
    assert scores.loc["first", "naopc_sufficiency"] == pytest.approx(0)
    assert scores.loc["worst", "naopc"] == pytest.approx(0)


def test_naopc_of_one_word_is_undefined() -> None:
    scores = data.aopc_scores([random_table(1, 0)], {"only": torch.tensor([[0.0, 1]])})
    assert scores.naopc.isna().all()


@given(st.integers(2, 5), st.integers(0, 10_000))
@settings(max_examples=20)
def test_no_permutation_is_outside_of_the_exact_limits(n: int, seed: int) -> None:
    table = random_table(n, seed)
    every = [area(table, order) for order in itertools.permutations(range(n))]
    assert area(table, data.exact_order(table).tolist()) == pytest.approx(max(every))
    assert area(table, data.exact_order(table, worst=True).tolist()) == pytest.approx(min(every))


@given(st.integers(2, 5), st.integers(0, 10_000))
@settings(max_examples=20)
def test_the_widest_beam_of_the_authors_is_exact(n: int, seed: int) -> None:
    """With room for all orders nothing is dropped, and each set is evaluated once."""
    table = random_table(n, seed)
    order, evaluations = searches.authors_beam(table[:, data.LABEL], math.factorial(n))
    assert area(table, order.tolist()) == pytest.approx(area(table, data.exact_order(table).tolist()))
    assert evaluations == 2**n


def test_the_beam_of_width_one_is_greedy_by_hand() -> None:
    """It evaluates both words, masks the one with the larger fall, and evaluates the empty text."""
    order, evaluations = searches.authors_beam(np.array([0.9, 0.5, 0.7, 0.1]), 1)
    assert (order.tolist(), evaluations) == ([0, 1], 4)


@given(st.integers(1, 5), st.integers(0, 10_000))
@settings(max_examples=20)
def test_shapley_values_are_the_mean_over_all_orders(n: int, seed: int) -> None:
    values = random_table(n, seed)[:, data.LABEL]
    expected = np.zeros(n)
    for order in itertools.permutations(range(n)):
        masked = 0
        for word in order:
            expected[word] += values[masked] - values[masked | 1 << word]
            masked |= 1 << word
    assert rankings.shapley_values(values) == pytest.approx(expected / math.factorial(n))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=8))
def test_kendall_is_that_of_scipy(pairs: list[tuple[int, int]]) -> None:
    first, second = (np.array(values, float) for values in zip(*pairs, strict=True))
    expected = kendalltau(first, second).statistic
    assert rankings.kendall(first, second) == pytest.approx(expected, nan_ok=True)


def test_the_random_curve_is_the_mean_over_all_orders() -> None:
    """The package erases n·percent // 100 words, as the expectation does."""
    table, n = random_table(4, 1), 4
    lookup = LookupClassifier([table])
    curves = []
    for ranks in itertools.permutations(range(1, n + 1)):
        scores = torch.tensor([[0.0, *ranks]])
        steps = erase(lookup, lookup.batch(), [data.LABEL], "random", scores=scores)
        curves.append([float(lookup.logits(step)[0, data.LABEL]) for _, step in steps])
    assert rankings.random_curve(table) == pytest.approx(np.mean(curves, axis=0))


def test_faithfulness_by_hand() -> None:
    """A curve that falls at once to the wholly masked level removes all; one that falls below, no more."""
    at_once = np.array([1.0] + [0.5] * 10)
    below = np.array([1.0] + [0.2] * 9 + [0.5])
    random = np.linspace(1, 0.5, 11)
    result = rankings.areas(np.stack([at_once, below, random]), random)
    # the area of `random` is 0.75 and that of `at_once` 0.525; `below` has 9 steps of 0.1 that are 0.3 lower
    assert result["area below random"] == pytest.approx([0.225, 0.225 + 0.27, 0])
    assert result["faithfulness"] == pytest.approx([1, 1, 0])


@needs_data
def test_a_row_of_the_data_by_hand() -> None:
    """Text 0 of SST-2, whole and with its first word masked, as the file has it."""
    file = data.read("sst2", "bert-base-uncased-SST-2")
    assert file.tables[0].shape == (2**9, 2)
    assert file.tables[0][:2].tolist() == pytest.approx(
        np.array([[-4.32250452, 4.03796721], [-4.29301929, 3.95363021]]), abs=1e-5
    )
    assert file.probabilities[0][0, data.LABEL] == pytest.approx(0.999766121)
    scores = data.aopc_scores(file.probabilities, {"decompx": file.ranks("decompx")[0]})
    first = scores[scores.id == 0].set_index("method").comprehensiveness
    assert first.to_dict() == pytest.approx(
        {"decompx": 0.273756183, "best": 0.462549587, "worst": 0.013045039}, abs=1e-6
    )


@needs_data
@pytest.mark.parametrize("model", ["bert-base-uncased-SST-2", "roberta-base-SST-2"])
def test_every_published_number_is_equal_or_named(model: str) -> None:
    numbers = published.compare_published(data.read("sst2", model))
    assert len(numbers) == 66 * (3 * 10 + 2)
    equal = numbers[numbers.reason == "equal"]
    assert (equal.published - equal.ours).abs().max() <= published.TOLERANCE
    counted = published.count_reasons(numbers)
    assert "unexplained" not in counted.reason.tolist()
    committed = pd.read_csv(data.RESULTS / "naopc-equal.csv")
    committed = committed[(committed.dataset == "sst2") & (committed.model == model)].reset_index(drop=True)
    pd.testing.assert_frame_equal(committed, counted, atol=1e-8, check_dtype=False)


@needs_data
def test_the_committed_search_is_computed_from_the_data() -> None:
    file = data.read("sst2", "roberta-base-SST-2")
    recomputed = searches.summarize_searches(searches.run_searches(file))
    recomputed = recomputed[recomputed.dataset == "sst2"].reset_index(drop=True)
    committed = pd.read_csv(data.RESULTS / "naopc-search.csv")
    chosen = (committed.dataset == "sst2") & (committed.model == "roberta-base-SST-2")
    pd.testing.assert_frame_equal(
        committed[chosen].reset_index(drop=True), recomputed, atol=1e-8, check_dtype=False
    )


@needs_data
def test_the_committed_scores_are_computed_from_the_data() -> None:
    file = data.read("sst2", "roberta-base-SST-2")
    recomputed = rankings.tabulate_scores(file, rankings.measure_attributions(file))
    committed = pd.read_csv(data.RESULTS / "naopc-scores.csv")
    chosen = (committed.dataset == "sst2") & (committed.model == "roberta-base-SST-2")
    pd.testing.assert_frame_equal(
        committed[chosen].reset_index(drop=True), recomputed, atol=1e-8, check_dtype=False
    )


def test_all_ten_files_are_committed_without_an_unexplained_number() -> None:
    counted = pd.read_csv(data.RESULTS / "naopc-equal.csv")
    assert len(counted[["dataset", "model"]].drop_duplicates()) == 10
    assert set(counted.reason) == {"equal", "float32", "maximum from 0", "one word", "other words"}
    named = pd.read_csv(data.RESULTS / "naopc-named.csv")
    follows = (counted.column == "naopc") & (counted.reason == "float32")
    assert len(named) == counted[(counted.reason != "equal") & ~follows].numbers.sum()


def test_the_picture_has_a_point_for_each_search_that_is_counted() -> None:
    chart = picture.draw_pareto(pd.read_csv(data.RESULTS / "naopc-search.csv"))
    counts = chart.data.family.value_counts().to_dict()
    assert counts == dict(zip(picture.FAMILIES.values(), (5, 4, 5), strict=True))
