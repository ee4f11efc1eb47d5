from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from faithmeter.errors import InputError
from faithmeter.stats.curves import acu, racu
from faithmeter.stats.intervals import bca, bootstrap_interval, resample_texts, widened_bca
from faithmeter.stats.metrics import METRICS
from faithmeter.stats.predictions import Predictions


def test_interval_is_scipys_bca_with_a_fresh_generator() -> None:
    values = [0.1, 0.4, 0.35, 0.8, 0.2]
    low, high = stats.bootstrap(
        (values,), np.mean, method="BCa", n_resamples=9999, random_state=np.random.default_rng(0)
    ).confidence_interval
    assert bootstrap_interval(values) == (pytest.approx(0.37), low, high, 5)
    assert bootstrap_interval(values) == bootstrap_interval(values)


def test_more_confidence_is_wider_and_the_seed_is_heard() -> None:
    values = [0.1, 0.4, 0.35, 0.8, 0.2]
    narrow, wide = bootstrap_interval(values, confidence=0.8), bootstrap_interval(values)
    assert wide.lower < narrow.lower < narrow.mean < narrow.upper < wide.upper
    few = [bootstrap_interval(values, resamples=99, seed=seed) for seed in (0, 1)]
    assert few[0] != few[1]


def test_the_interval_covers_the_mean_of_a_skewed_law_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    intervals = [bootstrap_interval(rng.exponential(size=40), resamples=499) for _ in range(200)]
    assert 0.87 <= np.mean([i.lower <= 1 <= i.upper for i in intervals]) <= 0.98


@given(st.floats(-1, 1), st.integers(1, 6))
def test_equal_values_give_a_point(value: float, n: int) -> None:
    interval = bootstrap_interval([value] * n)
    assert interval == (pytest.approx(value), interval.mean, interval.mean, n)


def test_values_equal_but_for_rounding_give_a_point() -> None:
    interval = bootstrap_interval([0.3, 0.1 + 0.2, 0.3])
    assert interval.lower == interval.mean == interval.upper


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=8))
@example([0.0, 2e-239])
@example([0.0, 1e-11])
def test_bounds_enclose_no_more_than_the_values(values: list[float]) -> None:
    _, lower, upper, n = bootstrap_interval(values, resamples=99)
    assert n == len(values)
    assert min(values) - 1e-9 <= lower <= upper <= max(values) + 1e-9


def test_nan_in_nan_out_and_counted() -> None:
    interval = bootstrap_interval([0.1, math.nan])
    assert interval.n == 2
    assert all(math.isnan(x) for x in interval[:3])


@pytest.mark.parametrize("values", [[], [1.0, math.inf], [[1.0, 2.0]]])
def test_no_sample(values: list[float]) -> None:
    with pytest.raises(InputError, match="finite"):
        bootstrap_interval(values)


def predictions_of(hits: dict[str, np.ndarray], *, metric: str = "accuracy") -> Predictions:
    """Return predictions of two classes that are right where `hits` [N, S] or [G, N, S] is true."""
    shape = hits["random"].shape
    labels = np.arange(shape[-2]) % 2
    arrays = {name: np.where(right, labels[:, None], 1 - labels[:, None]) for name, right in hits.items()}
    percents = np.linspace(0, 100, shape[-1]).astype(int).tolist()
    return Predictions(labels, arrays, 2, metric, percents)


def steps_survived(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return right predictions at 0, 10, …, 100 %, up to a random step for each text."""
    return np.arange(11) <= rng.integers(0, 10, size=(*shape, 1))


def sample(seed: int = 0, texts: int = 50, **options: str) -> Predictions:
    rng = np.random.default_rng(seed)
    return predictions_of({name: steps_survived(rng, texts) for name in ("random", "a", "b")}, **options)


def test_areas_are_those_of_the_curves_and_inside_their_intervals() -> None:
    predictions = sample()
    intervals = resample_texts(predictions, resamples=499)
    curves = {name: [interval.mean for interval in intervals.curve(name)] for name in predictions.methods}
    area = acu(curves["a"], curves["random"])
    for interval, expected in (
        (intervals.acu("a"), area),
        (intervals.racu("a"), racu(curves["a"], curves["random"])),
        (intervals.difference("a", "b"), area - acu(curves["b"], curves["random"])),
    ):
        assert interval.mean == pytest.approx(expected)
        assert interval.lower < expected < interval.upper
        assert interval.n == 50
    assert resample_texts(predictions, resamples=499).acu("a") == intervals.acu("a")
    assert resample_texts(predictions, resamples=499, seed=1).acu("a") != intervals.acu("a")


def test_differences_are_paired() -> None:
    """Two methods that fail together differ little, however much the texts vary."""
    rng = np.random.default_rng(0)
    a, random = steps_survived(rng, 100), steps_survived(rng, 100)
    b = a.copy()
    b[:10, 1] = False
    intervals = resample_texts(predictions_of({"random": random, "a": a, "b": b}), resamples=499)
    difference, area = intervals.difference("b", "a"), intervals.acu("a")
    assert difference.upper - difference.lower < (area.upper - area.lower) / 4
    assert difference.lower > 0
    assert intervals.difference("a", "a")[:3] == (0, 0, 0)


def test_the_interval_is_bca_or_students_t_whichever_reaches_further() -> None:
    """For accuracy an ACU is a mean over texts, of which scipy computes both."""
    predictions = sample(texts=400)
    hits = {name: (array[0] == predictions.labels[:, None]) for name, array in predictions.methods.items()}
    contributions = np.trapezoid(hits["random"] * 1.0 - hits["a"], dx=0.1, axis=1)
    bounds = [
        stats.bootstrap((contributions,), np.mean, n_resamples=4999, random_state=1).confidence_interval,
        stats.ttest_1samp(contributions, 0).confidence_interval(),
    ]
    interval = resample_texts(predictions, resamples=4999).acu("a")
    width = interval.upper - interval.lower
    assert interval.mean == pytest.approx(contributions.mean())
    assert interval.lower == pytest.approx(min(low for low, _ in bounds), abs=width / 50)
    assert interval.upper == pytest.approx(max(high for _, high in bounds), abs=width / 50)


def test_students_t_widens_where_a_few_texts_make_the_difference() -> None:
    values = np.array([1.0] * 3 + [0.0] * 61)
    rng = np.random.default_rng(0)
    resampled = rng.choice(values, size=(999, 64)).mean(axis=1)
    left_out = [(values.sum() - values) / 63]
    low, high = stats.ttest_1samp(values, 0).confidence_interval()
    assert bca(3 / 64, resampled, left_out, 0.95)[0] > 0
    lower, upper = widened_bca(3 / 64, resampled, left_out, 0.95)
    assert lower == pytest.approx(low)
    assert upper > high


def test_points_at_which_all_texts_are_alike_have_exact_bounds_or_none() -> None:
    """With 50 texts all right, a share of 1 - 0.025 ** (1 / 50) = 7.1 % wrong is still possible."""
    first, *_, last = resample_texts(sample(), resamples=99).curve("a")
    assert first[:3] == (1, pytest.approx(0.025 ** (1 / 50)), 1)
    assert last[:3] == (0, 0, pytest.approx(1 - 0.025 ** (1 / 50)))
    first, *_ = resample_texts(sample(metric="macro_f1"), resamples=99).curve("a")
    assert first.mean == 1
    assert math.isnan(first.lower)
    assert math.isnan(first.upper)


def test_racu_is_undefined_where_random_erasure_does_not_lower_the_performance() -> None:
    """The random curve is flat, or falls so little that some resamples do not show it."""
    hits = {"random": np.ones((40, 3), bool), "a": np.zeros((40, 3), bool)}
    interval = resample_texts(predictions_of(hits), resamples=199).racu("a")
    assert all(math.isnan(value) for value in interval[:3])
    hits["random"][0, -1] = False
    interval = resample_texts(predictions_of(hits), resamples=199).racu("a")
    assert interval.mean > 0
    assert math.isnan(interval.lower)
    assert math.isnan(interval.upper)


def test_a_single_text_has_no_bounds() -> None:
    interval = resample_texts(sample(texts=1), resamples=9).acu("a")
    assert not math.isnan(interval.mean)
    assert math.isnan(interval.lower)
    assert math.isnan(interval.upper)


def test_seeds_count_as_their_mean_and_their_variation_widens_the_interval() -> None:
    rng = np.random.default_rng(0)
    texts = [{name: steps_survived(rng, 200) for name in ("random", "a")} for _ in range(4)]
    for number, hits in enumerate(texts):  # seeds differ by more than texts do
        hits["a"][: 50 * number, 1:] = False
    alone = [resample_texts(predictions_of(hits), resamples=199).acu("a") for hits in texts]
    stacked = {name: np.stack([hits[name] for hits in texts]) for name in ("random", "a")}
    together = resample_texts(predictions_of(stacked), resamples=499).acu("a")
    assert together.mean == pytest.approx(np.mean([interval.mean for interval in alone]))
    assert together.upper - together.lower > 2 * max(interval.upper - interval.lower for interval in alone)
    equal = {name: np.stack([texts[0][name]] * 4) for name in ("random", "a")}
    repeated, once = (
        resample_texts(predictions_of(hits), resamples=1999).acu("a") for hits in (equal, texts[0])
    )
    # seeds that agree tell nothing new about texts
    assert list(repeated) == pytest.approx(list(once), abs=0.05 * (once.upper - once.lower))


def test_a_function_as_metric_gives_the_interval_of_its_name() -> None:
    named = sample(texts=12)
    function = Predictions(named.labels, named.methods, 2, METRICS["accuracy"], named.percents)
    expected, interval = (resample_texts(of, resamples=49).acu("a") for of in (named, function))
    assert list(interval) == pytest.approx(list(expected), abs=1e-6)


def test_unknown_methods_and_impossible_confidence_are_refused() -> None:
    intervals = resample_texts(sample(), resamples=9)
    with pytest.raises(InputError, match="unknown measured method"):
        intervals.difference("a", "c")
    with pytest.raises(InputError, match="expected a confidence between 0 and 1"):
        resample_texts(sample(), confidence=95)


def test_intervals_over_texts_contain_the_truth_about_as_often_as_they_say() -> None:
    """benchmarks/simulate_intervals.py gives exact figures; of 150 intervals 142.5 are expected."""
    rng = np.random.default_rng(7)
    misses = np.zeros(2)
    for seed in range(150):
        difficulty = rng.integers(0, 6, size=(64, 1, 1))  # common to the methods
        steps = difficulty + rng.integers(0, 5, size=(64, 3, 1))
        hits = np.moveaxis(np.arange(11) <= steps, 1, 0)
        drawn = predictions_of(dict(zip(("random", "a", "b"), hits, strict=True)))
        intervals = resample_texts(drawn, resamples=299, seed=seed)
        pair = intervals.acu("a"), intervals.difference("a", "b")
        misses += [not interval.lower <= 0 <= interval.upper for interval in pair]
    assert (misses >= 1).all()
    assert (misses <= 17).all()


def test_bounds_stay_within_what_an_area_can_be():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 11)
    random = np.clip(0.9 - 0.4 * x + 0.05 * rng.normal(size=(8, 1)), 0, 1) * np.ones(11)
    at_once = np.where(x > 0, random[:, -1:], random[:, :1])
    predictions = Predictions(
        np.zeros(8, int), {"random": random, "all": at_once}, 2, "mean", tuple(range(0, 101, 10))
    )
    intervals = resample_texts(predictions, resamples=199)
    share, beyond = intervals.area("all", "faithfulness"), intervals.area("all", "beyond")
    assert share.upper <= 1
    assert beyond.lower >= 0
    two = Predictions(
        np.array([0, 1]),
        {"random": np.array([[0, 1, 1], [1, 1, 0]]), "a": np.array([[0, 1, 0], [1, 0, 1]])},
        2,
        "accuracy",
        (0, 50, 100),
    )
    acu = resample_texts(two, resamples=199).acu("a")
    assert -1 <= acu.lower <= acu.upper <= 1
