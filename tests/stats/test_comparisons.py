from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from faithmeter.stats import comparisons
from faithmeter.stats.comparisons import rank_methods, texts_needed
from faithmeter.stats.metrics import METRICS
from faithmeter.stats.predictions import Predictions

PERCENTS = (0, 50, 100)


def predictions_of(steps: dict[str, list[int]], *, metric: str = "accuracy") -> Predictions:
    """Return predictions that are right at as many of three steps as given for each text."""
    labels = np.arange(len(steps["random"])) % 2
    arrays = {
        name: np.where(np.arange(3) < np.array(counts)[:, None], labels[:, None], 1 - labels[:, None])
        for name, counts in steps.items()
    }
    return Predictions(labels, arrays, 2, metric, PERCENTS)


def test_a_pair_by_hand() -> None:
    """Area below a text: 0, 1/4, 3/4 for 0, 1, 2 right steps. The pair differs by 1/2 on 3 of 4 texts.

    Of the 8 signs of the three differences 2 give a sum as large: p = 2 / 8.
    """
    ranking = rank_methods(predictions_of({"random": [2] * 4, "a": [2, 2, 2, 1], "b": [1, 1, 1, 1]}))
    assert list(ranking.areas.items()) == [("b", pytest.approx(0.5)), ("a", pytest.approx(0.125))]
    [pair] = ranking.comparisons
    assert (pair.first, pair.second, pair.apart) == ("b", "a", False)
    assert pair.difference == pytest.approx(3 / 8)
    assert pair.p == pair.adjusted_p == pytest.approx(2 / 8, abs=0.02)
    assert ranking.leaders == ("b", "a")
    # deviation of 1/2, 1/2, 1/2, 0: 1/4; ((1.96 + 0.84) * (1/4) / (3/8))² = 3.5, but 4 were not enough
    assert ranking.texts_needed == 5


def test_many_like_texts_tell_a_pair_apart() -> None:
    ranking = rank_methods(predictions_of({"random": [2] * 20, "a": [2] * 10 + [1] * 10, "b": [1] * 20}))
    [pair] = ranking.comparisons
    assert pair.apart
    assert pair.p == pytest.approx(2 / 2**10, abs=0.002)
    assert ranking.leaders == ("b",)
    assert ranking.texts_needed is None


def test_identical_methods_share_the_group_and_no_number_of_texts_tells_them_apart() -> None:
    steps = [2, 1, 1, 0] * 10
    ranking = rank_methods(predictions_of({"random": [2] * 40, "a": steps, "b": steps}))
    assert ranking.leaders == ("a", "b")
    assert (ranking.comparisons[0].p, ranking.comparisons[0].texts_needed, ranking.texts_needed) == (
        1,
        None,
        None,
    )


def test_one_method_leads_alone_and_random_is_not_ranked() -> None:
    only = rank_methods(predictions_of({"random": [2, 2]}))
    assert (only.areas, only.leaders, only.texts_needed) == ({}, (), None)
    ranking = rank_methods(predictions_of({"random": [2, 2], "a": [1, 1]}))
    assert (ranking.leaders, ranking.comparisons, ranking.texts_needed) == (("a",), (), None)


def test_one_text_tells_nothing() -> None:
    ranking = rank_methods(predictions_of({"random": [2], "a": [1], "b": [0]}))
    assert (ranking.leaders, ranking.texts_needed) == (("b", "a"), None)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(METRICS)))
def test_swapping_two_methods_at_a_text_changes_only_the_sign_of_its_contribution(
    seed: int, metric: str
) -> None:
    """So the test of random signs is exact, for every metric."""
    rng = np.random.default_rng(seed)
    arrays = {name: rng.integers(3, size=(1, 8, 3)) for name in ("random", "a", "b")}
    labels, swapped = rng.integers(3, size=8), rng.random(8) < 0.5
    where = swapped[None, :, None]
    other = {
        **arrays,
        "a": np.where(where, arrays["b"], arrays["a"]),
        "b": np.where(where, arrays["a"], arrays["b"]),
    }
    before, after = (
        comparisons._pooled_influences(Predictions(labels, of, 3, metric, PERCENTS), "a", "b")
        for of in (arrays, other)
    )
    assert after == pytest.approx(np.where(swapped, -before, before), abs=1e-9)


def test_pvalues_are_the_share_of_all_signs_with_a_sum_as_large() -> None:
    values = np.random.default_rng(0).normal(0.3, 1, size=(3, 10))
    signs = np.array(list(product((-1, 1), repeat=10)))
    exact = (np.abs(signs @ values.T) >= np.abs(values.sum(axis=1)) - 1e-9).mean(axis=0)
    assert comparisons._swap_pvalues(values, 9999, 0) == pytest.approx(exact, abs=0.015)


def test_symmetric_contributions_have_the_pvalue_of_a_t_test() -> None:
    values = np.array([[-2.0, -1, 0, 1, 2], [-1.0, 1, 3, 5, 7], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]])
    expected = [*(stats.ttest_1samp(row, 0).pvalue for row in values[:2]), 1, 0]
    assert comparisons._skew_pvalues(values) == pytest.approx(expected)


@pytest.mark.parametrize("texts", [64, 200])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_methods_that_are_equal_only_on_average_are_seldom_told_apart(share: float, texts: int) -> None:
    """One method is better by 1 − share on this share of the texts, the other by the share on the rest.

    The number of rare texts is binomial, and it decides. Swaps alone tell them apart in up to 17 %.
    """
    counts = np.arange(texts + 1)
    weights = stats.binom.pmf(counts, texts, share)
    rare = np.arange(texts) < counts[weights > 1e-6][:, None]
    contributions = np.where(rare, 1 - share, -share)
    swapped = comparisons._swap_pvalues(contributions, 1999, 0)
    pvalues = np.maximum(swapped, comparisons._skew_pvalues(contributions))
    assert weights[weights > 1e-6][pvalues <= 0.05].sum() <= 0.05


def test_holm_by_hand() -> None:
    """Sorted 0.01, 0.02, 0.04 times 3, 2, 1; no later one is smaller than an earlier one."""
    assert comparisons._holm(np.array([0.04, 0.01, 0.02])) == pytest.approx([0.04, 0.03, 0.04])
    assert comparisons._holm(np.array([0.5, 0.9])) == pytest.approx([1.0, 1.0])


def test_texts_needed_by_hand_and_by_simulated_power() -> None:
    """((1.960 + 0.842) * 0.3 / 0.1)² = 70.6 for one pair."""
    assert texts_needed(0.1, 0.3) == texts_needed(-0.1, 0.3) == 71
    assert texts_needed(0.1, 0.3, pairs=10) > 71
    assert texts_needed(0.0, 0.3) is None
    samples = np.random.default_rng(0).normal(0.1, 0.3, size=(1000, 71))
    assert 0.75 < (stats.ttest_1samp(samples, 0, axis=1).pvalue <= 0.05).mean() < 0.85


def test_with_several_seeds_a_pair_must_differ_beyond_its_variation_over_seeds() -> None:
    """On every text of two seeds b is better, of the third a: the mean differs, the seeds do not agree."""
    worse, better = [2] * 30, [1] * 30
    seeds = [
        predictions_of({"random": worse, "a": a, "b": b})
        for a, b in ((worse, better),) * 2 + ((better, worse),)
    ]
    arrays = {name: np.concatenate([seed.methods[name] for seed in seeds]) for name in ("random", "a", "b")}
    together = Predictions(seeds[0].labels, arrays, 2, "accuracy", PERCENTS)
    assert rank_methods(seeds[0]).leaders == ("b",)
    [pair] = rank_methods(together).comparisons
    assert pair.difference == pytest.approx(0.5 / 3)
    assert pair.p == pytest.approx(stats.ttest_1samp([0.5, 0.5, -0.5], 0).pvalue)


@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize("ratio", [0.1, 1.0])
def test_few_seeds_seldom_tell_equal_methods_apart(seeds: int, ratio: float) -> None:
    """Normal effects of seeds and texts; `ratio` is the variance over texts by that over seeds.

    Satterthwaite's degrees of freedom tell methods apart in 13 % of samples with 2 seeds.
    """
    rng, texts = np.random.default_rng(seeds), 30
    of_seeds = rng.normal(size=(2000, seeds, 1)) * np.sqrt(seeds)
    of_texts = rng.normal(size=(2000, 1, texts)) * np.sqrt(ratio * texts)
    apart = np.mean([comparisons._two_way_pvalue(sample) <= 0.05 for sample in of_seeds + of_texts])
    assert 0.005 <= apart <= 0.055


@pytest.mark.parametrize("count", [2, 5])
def test_equal_methods_are_seldom_told_apart(count: int) -> None:
    """benchmarks/simulate_intervals.py gives exact figures; of 100 rankings at most 5 are expected."""
    rng = np.random.default_rng(count)
    apart = 0
    for seed in range(100):
        steps = rng.integers(0, 3, size=(40, 1)) * (rng.random((40, count + 1)) < 0.6)
        names = ["random", *"abcde"[:count]]
        ranking = rank_methods(
            predictions_of(dict(zip(names, steps.T.tolist(), strict=True))), swaps=499, seed=seed
        )
        apart += len(ranking.leaders) < count
    assert apart <= 11


def probabilities(shares: dict[str, float], texts: int, seed: int) -> Predictions:
    """The label's probability as methods remove it over a share of the text; each text adds noise."""
    rng, x = np.random.default_rng(seed), np.linspace(0, 1, 11)
    methods = {}
    for name, share in {"random": 1.0, **shares}.items():
        fall = np.clip(x / (share * rng.uniform(0.6, 1.4, (texts, 1))), 0, 1)
        methods[name] = 0.9 - 0.4 * fall
    return Predictions(np.zeros(texts, int), methods, 2, "mean", tuple(range(0, 101, 10)))


def test_methods_are_ranked_by_faithfulness():
    ranking = rank_methods(probabilities({"weak": 0.7, "strong": 0.2}, 100, 0), "faithfulness", swaps=199)
    assert list(ranking.areas) == ["strong", "weak"]
    assert 0.3 < ranking.areas["weak"] < ranking.areas["strong"] <= 1
    assert ranking.leaders == ("strong",)


def test_equal_methods_are_seldom_told_apart_by_faithfulness():
    apart = 0
    for seed in range(60):
        ranking = rank_methods(probabilities({"a": 0.4, "b": 0.4}, 64, seed), "faithfulness", swaps=199)
        apart += len(ranking.leaders) == 1
    assert apart <= 8  # 3 expected


def test_without_anything_to_remove_nobody_leads():
    rng = np.random.default_rng(0)
    flat = {name: 0.5 + 0.01 * rng.normal(size=(64, 11)) for name in ("random", "a", "b")}
    predictions = Predictions(np.zeros(64, int), flat, 2, "mean", tuple(range(0, 101, 10)))
    ranking = rank_methods(predictions, "faithfulness", swaps=199)
    assert ranking.leaders == ()
    assert ranking.texts_needed is None


def test_a_lead_that_no_printed_digit_shows_is_no_lead() -> None:
    """However many texts agree on it: the verdict would read "0.0 points ahead"."""
    lead = {"first": "truth", "second": "loo-sign", "p": 1e-6, "adjusted_p": 1e-5, "texts_needed": None}
    too_small, just_told = (comparisons.Comparison(difference=d, **lead) for d in (0.00049, 0.0005))
    assert not too_small.apart
    assert just_told.apart
    areas = {"truth": 0.99849, "loo-sign": 0.998}
    assert comparisons.Ranking(areas, (too_small,)).leaders == ("truth", "loo-sign")
    assert texts_needed(0.0004, 0.001) is None, "no number of texts makes it worth telling"
