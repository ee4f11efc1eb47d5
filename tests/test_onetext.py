"""One text: its curve by hand, beside random orders."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import faithmeter as fm
from faithmeter.methods import parse
from toy import tiny

TEXT, PAIR = "the film was not good but very fun", "who wrote it"


def test_the_curve_is_the_probability_of_the_label_along_erasure() -> None:
    clf = tiny()
    result = fm.measure_text(clf, TEXT, pair=PAIR, label="LABEL_1", methods=["loo-sign", "beam"], orders=20)
    batch = clf.encode([TEXT], [PAIR])
    for name, erasure in result.methods.items():
        steps = fm.erase(clf, batch, [1], name)
        with torch.inference_mode():
            expected = [float(clf.logits(step).softmax(dim=1)[0, 1]) for _, step in steps]
        np.testing.assert_allclose(erasure.probability, expected, atol=1e-12)
        assert erasure.acu == pytest.approx(fm.acu(expected, result.mean))
    assert result.methods["beam"].acu >= result.methods["loo-sign"].acu - 0.2


def test_random_orders_start_and_end_together_and_the_band_holds_the_mean() -> None:
    result = fm.measure_text(tiny(), TEXT, pair=PAIR, orders=50, seed=1)
    assert result.lower[0] == pytest.approx(result.upper[0])
    assert result.lower[-1] == pytest.approx(result.upper[-1])
    assert np.all(np.subtract(result.mean, result.lower) > -1e-12)
    assert np.all(np.subtract(result.upper, result.mean) > -1e-12)
    again = fm.measure_text(tiny(), TEXT, pair=PAIR, orders=50, seed=1)
    assert again == result
    assert fm.measure_text(tiny(), TEXT, pair=PAIR, orders=50, seed=2).mean != result.mean


def test_without_a_label_the_predicted_class_is_measured() -> None:
    clf = tiny()
    predicted = clf.labels[int(clf.logits(clf.encode([TEXT])).argmax())]
    result = fm.measure_text(clf, TEXT, orders=5)
    assert result.label == predicted
    assert result.to_dict()["methods"]["loo-sign"]["probability"] == result.methods["loo-sign"].probability


def test_a_random_method_has_about_no_area() -> None:
    result = fm.measure_text(
        tiny(), TEXT, pair=PAIR, orders=200, methods=[f"random(seed={s})" for s in range(40)]
    )
    areas = [erasure.acu for erasure in result.methods.values()]
    assert np.mean(areas) == pytest.approx(0, abs=4 * np.std(areas) / 40**0.5)
    assert str(parse("random(seed=7)")) in result.methods


def test_pvalues_come_with_tests() -> None:
    clf = tiny()
    features = torch.randn(50, 3, 16).numpy()
    tests = {"crossfit": fm.MaSF(calibration="crossfit").fit(features)}
    result = fm.measure_text(clf, TEXT, orders=5, tests=tests)
    assert len(result.methods["loo-sign"].pvalues["crossfit"]) == 11
    assert all(0 < p <= 1 for p in result.methods["loo-sign"].pvalues["crossfit"])


@pytest.mark.parametrize(
    ("options", "message"), [({"label": "LABEL_9"}, "unknown label"), ({"methods": ["lo"]}, "method")]
)
def test_wrong_names_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(fm.InputError, match=message):
        fm.measure_text(tiny(), TEXT, orders=5, **options)


def test_measure_takes_a_text_in_place_of_a_task() -> None:
    alone = fm.measure_text(tiny(), TEXT, methods=["grad-l2"], seed=3)
    assert fm.measure(tiny(), TEXT, ["grad-l2"], seed=3) == alone
