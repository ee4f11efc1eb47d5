from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faithmeter.errors import InputError
from faithmeter.stats.comparisons import rank_methods
from faithmeter.stats.curves import absolute_area, acu, racu, relative_area
from faithmeter.stats.intervals import resample_texts
from faithmeter.stats.metrics import METRICS, score
from faithmeter.stats.predictions import Predictions, resampling_weights

STEPS = (0, 30, 100)


def random_predictions(
    seed: int, *, texts: int = 9, classes: int = 3, seeds: int = 1, **fields: object
) -> Predictions:
    rng = np.random.default_rng(seed)
    arrays = {name: rng.integers(classes, size=(seeds, texts, len(STEPS))) for name in ("random", "a", "b")}
    values = {"metric": "accuracy", "percents": STEPS, **fields}
    return Predictions(rng.integers(classes, size=texts), arrays, classes, **values)  # type: ignore[arg-type]


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(METRICS)), st.integers(2, 4), st.integers(1, 2))
def test_weighted_curves_are_the_metric_of_texts_counted_so_often(
    seed: int, metric: str, classes: int, seeds: int
) -> None:
    predictions = random_predictions(seed, metric=metric, classes=classes, seeds=seeds)
    [weights] = resampling_weights(9, 3, np.random.default_rng(seed))
    curves = predictions.weighted_curves([weights[:1], weights[1:]])["a"]
    for row, times in enumerate(weights):
        rows = np.repeat(np.arange(9), times)
        for number, of_seed in enumerate(predictions.methods["a"]):
            expected = [
                score([metric], predictions.labels[rows], step[rows], classes)[metric] for step in of_seed.T
            ]
            assert curves[row, number] == pytest.approx(expected, abs=1e-6)


@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(METRICS)))
def test_left_out_curves_are_the_metric_of_the_other_texts(seed: int, metric: str) -> None:
    predictions = random_predictions(seed, metric=metric, seeds=2)
    curves = predictions.left_out_curves("b")
    assert curves.shape == (9, 2, 3)
    for text in range(9):
        labels, others = (
            np.delete(predictions.labels, text),
            np.delete(predictions.methods["b"], text, axis=1),
        )
        expected = [[score([metric], labels, step, 3)[metric] for step in of_seed.T] for of_seed in others]
        assert curves[text] == pytest.approx(np.array(expected), abs=1e-12)


@pytest.mark.parametrize("metric", ["accuracy", "matthews"])
def test_a_metric_given_as_a_function_gives_the_curves_of_its_name(metric: str) -> None:
    named, function = (random_predictions(3, metric=of) for of in (metric, METRICS[metric]))
    weights = list(resampling_weights(9, 2, np.random.default_rng(0)))
    for name, curves in function.weighted_curves(weights).items():
        assert curves == pytest.approx(named.weighted_curves(weights)[name], abs=1e-6)
        assert function.left_out_curves(name) == pytest.approx(named.left_out_curves(name), abs=1e-12)


def test_resampling_draws_as_many_texts_as_there_are_and_each_equally_often() -> None:
    weights = np.concatenate(list(resampling_weights(20, 2000, np.random.default_rng(0))))
    assert weights.shape == (2000, 20)
    assert (weights.sum(axis=1) == 20).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(20), abs=0.1)


@settings(max_examples=12)
@given(st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=2, max_size=2))
def test_areas_of_many_curves_are_those_of_each(curves: list[list[float]]) -> None:
    ratios, values = np.linspace(0, 1, 4), np.array(curves)
    for row, random in enumerate(curves):
        areas = absolute_area(values, values[row], ratios), relative_area(values, values[row], ratios)
        for number, curve in enumerate(curves):
            assert areas[0][number] == acu(curve, random)
            assert areas[1][number] == pytest.approx(racu(curve, random), nan_ok=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": "acuracy"}, "did you mean 'accuracy'"),
        ({"methods": {"a": np.zeros((2, 3), int)}}, "unknown measured method 'random'"),
        ({"methods": {"random": np.zeros((2, 2), int)}}, r"shape \(1, 2, 2\); expected .* \(1, 2, 3\)"),
        ({"methods": {"random": np.full((2, 3), 7)}}, "outside 0 … 1"),
        ({"labels": np.array([0.0, 1.0])}, "class numbers"),
        ({"percents": (0, 50)}, "from 0 to 100"),
    ],
)
def test_wrong_predictions_are_refused_in_one_line(changes: dict[str, object], message: str) -> None:
    fields = {"labels": np.array([0, 1]), "methods": {"random": np.zeros((2, 3), int)}, "classes": 2}
    fields |= {"metric": "accuracy", "percents": STEPS}
    with pytest.raises(InputError, match=message) as error:
        Predictions(**(fields | changes))  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def probabilities(seed: int) -> tuple[Predictions, Predictions]:
    """Right or wrong as the numbers 1 and 0, and the same as predicted classes."""
    classes = random_predictions(seed, texts=30, seeds=2)
    right = {
        name: (array == classes.labels[:, None]).astype(float) for name, array in classes.methods.items()
    }
    return Predictions(classes.labels, right, 3, "mean", STEPS), classes


def test_the_mean_of_numbers_has_the_intervals_and_the_ranking_of_any_metric() -> None:
    """Accuracy is the mean of being right, so both ways give equal numbers."""
    numbers, classes = probabilities(5)
    one, other = (resample_texts(each, resamples=99) for each in (numbers, classes))
    for name in ("a", "b"):
        assert [*one.acu(name)] == pytest.approx([*other.acu(name)], abs=1e-6)
        assert [*one.racu(name)] == pytest.approx([*other.racu(name)], abs=1e-6, nan_ok=True)
        for point, same in zip(one.curve(name), other.curve(name), strict=True):
            assert [*point] == pytest.approx([*same], abs=1e-6)
    mine, theirs = (rank_methods(each, swaps=99) for each in (numbers, classes))
    assert mine.areas == pytest.approx(theirs.areas)
    assert mine.leaders == theirs.leaders
    assert [pair.p for pair in mine.comparisons] == pytest.approx([pair.p for pair in theirs.comparisons])


def test_the_mean_needs_finite_numbers() -> None:
    numbers, _ = probabilities(0)
    broken = {name: array * np.nan for name, array in numbers.methods.items()}
    with pytest.raises(InputError, match="not finite"):
        Predictions(numbers.labels, broken, 3, "mean", STEPS)
