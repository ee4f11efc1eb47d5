"""One text: its curve by hand, beside random orders."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
import torch
from rich.console import Console

import faithmeter as fm
from faithmeter.measuring.explanation import Erasure, Explanation, Piece
from faithmeter.methods import parse
from toy import tiny

TEXT, PAIR = "the film was not good but very fun", "who wrote it"


def test_the_curve_is_the_probability_of_the_label_along_erasure() -> None:
    clf = tiny()
    result = fm.explain_text(clf, TEXT, pair=PAIR, label="LABEL_1", method=["loo-sign", "beam"], orders=20)
    batch = clf.encode([TEXT], [PAIR])
    for name, erasure in result.erasures.items():
        steps = fm.erase(clf, batch, [1], name)
        with torch.inference_mode():
            expected = [float(clf.logits(step).softmax(dim=1)[0, 1]) for _, step in steps]
        np.testing.assert_allclose(erasure.probability, expected, atol=1e-7)
        assert erasure.acu == pytest.approx(fm.acu(expected, result.mean), abs=1e-7)


def test_random_orders_start_and_end_together_and_the_band_holds_the_mean() -> None:
    result = fm.explain_text(tiny(), TEXT, pair=PAIR, orders=200, seed=1)
    assert result.lower[0] == pytest.approx(result.upper[0])
    assert result.lower[-1] == pytest.approx(result.upper[-1])
    assert np.all(np.subtract(result.mean, result.lower) > -1e-12)
    assert np.all(np.subtract(result.upper, result.mean) > -1e-12)
    again = fm.explain_text(tiny(), TEXT, pair=PAIR, orders=200, seed=1)
    assert again == result
    assert fm.explain_text(tiny(), TEXT, pair=PAIR, orders=200, seed=2).mean != result.mean


def test_without_a_label_the_predicted_class_is_measured() -> None:
    clf = tiny()
    predicted = clf.labels[int(clf.logits(clf.encode([TEXT])).argmax())]
    result = fm.explain_text(clf, TEXT, orders=20)
    assert result.label == predicted
    assert result.to_dict()["erasures"]["loo-sign"]["probability"] == result.erasures["loo-sign"].probability


def test_a_random_method_has_about_no_area() -> None:
    result = fm.explain_text(
        tiny(), TEXT, pair=PAIR, orders=200, method=[f"random(seed={s})" for s in range(40)]
    )
    areas = [erasure.acu for erasure in result.erasures.values()]
    assert np.mean(areas) == pytest.approx(0, abs=4 * np.std(areas) / 40**0.5)
    assert str(parse("random(seed=7)")) in result.erasures


def test_pvalues_are_those_of_the_erased_text_and_together_by_simes() -> None:
    clf = tiny()
    features = np.random.default_rng(0).normal(size=(50, 3, 16))
    test = fm.MaSF(calibration="crossfit").fit(features)
    found = fm.explain_text(clf, TEXT, label=1, tests={"crossfit": test})
    steps = [step for _, step in fm.erase(clf, clf.encode([TEXT]), [1], "loo-sign")]
    with torch.inference_mode():
        expected = test.pvalues(torch.cat([clf.features(step) for step in steps]).float().numpy())
    erasure = found.erasures["loo-sign"]
    assert erasure.pvalues["crossfit"] == pytest.approx(list(expected))
    below = sorted(expected[:-1])
    assert erasure.p["crossfit"] == pytest.approx(min(10 * p / n for n, p in enumerate(below, 1)))
    assert found.floors == {"crossfit": test.smallest_p()}


def test_chance_is_the_share_of_random_orders_that_do_as_well() -> None:
    clf, orders = tiny(), 30
    result = fm.explain_text(clf, TEXT, label=1, method=["random(seed=0)", "beam"], orders=orders)
    batch = clf.encode([TEXT])
    curves = []
    for order in range(orders):
        steps = fm.erase(clf, replace(batch, index=torch.tensor([order])), [1], "random(seed=0)")
        with torch.inference_mode():
            curves.append([float(clf.logits(step).softmax(dim=1)[0, 1]) for _, step in steps])
    areas = np.array([fm.acu(curve, np.mean(curves, axis=0)) for curve in curves])
    for name in result.erasures:  # the first random order is one of the baseline's own
        area = areas[0] if name.startswith("random") else result.erasures[name].acu
        expected = (1 + (areas >= area - 1e-6).sum()) / (1 + orders)
        assert result.erasures[name].chance == pytest.approx(expected)


def test_areas_are_over_the_percents_as_they_are_and_not_evenly_spaced() -> None:
    percents = (0, 30, 60, 90, 100)
    result = fm.explain_text(tiny(), TEXT, orders=20, percents=percents)
    erasure = result.erasures["loo-sign"]
    expected = np.trapezoid(np.subtract(result.mean, erasure.probability), np.divide(percents, 100))
    assert erasure.acu == pytest.approx(expected)


def test_progress_tells_of_every_method() -> None:
    calls: list[tuple[str, int, int]] = []
    methods = ["grad-l2", "beam(width=2)"]
    fm.explain_text(tiny(), TEXT, orders=20, method=methods, progress=lambda *call: calls.append(call))
    assert calls == [("random", 1, 3), ("grad-l2", 2, 3), ("beam(width=2)", 3, 3)]


def measured(**methods: Erasure) -> Explanation:
    flat = [1.0, 1.0, 1.0, 1.0]
    floors = {} if any(not one.p for one in methods.values()) else {"crossfit": 0.01}
    word = Piece("a", 0, 1, (0,), dict.fromkeys(methods, 1.0))
    return Explanation(
        text="a",
        pair=None,
        truncated=False,
        label="yes",
        probabilities={"yes": 1.0, "no": 0.0},
        value=None,
        **dict.fromkeys(("tokens", "words"), (word,)),
        methods=tuple(methods),
        percents=(0, 40, 70, 100),
        orders=99,
        **dict.fromkeys(("mean", "lower", "upper"), flat),
        erasures=methods,
        floors=floors,
        trained_with="half",
    )


def erasure(*, acu: float = 0.2, chance: float = 0.01, pvalues: tuple[float, ...] | None = None) -> Erasure:
    """`pvalues` at 0, 40, 70 and 100 %."""
    by_test = {} if pvalues is None else {"crossfit": list(pvalues)}
    together = {test: float(fm.simes(values[:-1])) for test, values in by_test.items()}
    return Erasure([1.0, 0.5, 0.2, 0.1], by_test, together, acu, 1.0, chance)


@pytest.mark.parametrize(
    ("one", "kinds", "words"),
    [
        (erasure(pvalues=(0.3, 0.4, 0.5, 0.001)), [], ""),  # 100 % is the same text for all methods
        (erasure(pvalues=(0.3, 0.04, 0.04, 0.9)), [], ""),  # Simes: 0.04 · 3 / 2 = 0.06
        (erasure(pvalues=(0.3, 0.03, 0.03, 0.9)), ["outside"], "from 40 % on (cross-fitted p = 0.045)"),
        (erasure(pvalues=(0.3, 0.01, 0.3, 0.9)), ["outside"], "at 40 % (cross-fitted p = 0.030)"),
        (erasure(pvalues=(0.01, 0.3, 0.01, 0.9)), ["outside"], "at 0, 70 % (cross-fitted p = 0.015)"),
        (erasure(chance=0.05, pvalues=(0.3, 0.4, 0.5, 0.6)), [], ""),
        (erasure(chance=0.21, pvalues=(0.3, 0.4, 0.5, 0.6)), ["unfaithful"], "21% of random orders hurt as"),
        (
            erasure(acu=-0.1, chance=0.6, pvalues=(1, 1, 1, 1)),
            ["unfaithful"],
            "no more than erasing at random",
        ),
        (
            erasure(acu=0, chance=1, pvalues=(0.001,) * 4),
            ["outside", "unfaithful"],
            "from 0 % on (cross-fitted p = 0.001)",
        ),
        (erasure(), ["unchecked"], "name the task"),
    ],
)
def test_doubts(one: Erasure, kinds: list[str], words: str) -> None:
    doubts = measured(**{"loo-sign": one}).doubts
    assert [doubt.kind for doubt in doubts] == kinds
    assert words in " ".join(doubt.text for doubt in doubts)
    assert {doubt.methods for doubt in doubts} <= {("loo-sign",), ()}


def test_a_text_that_is_strange_as_it_is_is_told_once() -> None:
    strange = erasure(pvalues=(0.012, 0.01, 0.01, 0.01))
    [doubt] = measured(**{"loo-sign": strange, "grad-l2": strange}).doubts
    assert (doubt.kind, doubt.methods) == ("outside", ())
    assert "before anything is erased (cross-fitted p = 0.012)" in doubt.text
    later = erasure(pvalues=(0.3, 0.01, 0.01, 0.01))
    assert [doubt.methods for doubt in measured(a=later, b=later).doubts] == [("a",), ("b",)]
    fine = erasure(pvalues=(0.04, 0.4, 0.4, 0.4))  # Simes: 0.04 · 3 = 0.12
    assert [doubt.methods for doubt in measured(a=strange, b=fine).doubts] == [("a",)]


def test_a_test_that_could_not_have_rejected_is_no_check() -> None:
    one = replace(measured(**{"loo-sign": erasure(pvalues=(0.3, 0.4, 0.5, 0.6))}), floors={"crossfit": 0.09})
    [doubt] = one.doubts
    assert (doubt.kind, doubt.methods) == ("unchecked", ())
    assert doubt.text.endswith("there are too few validation texts for a p-value below 0.09")


def test_names_with_brackets_are_shown_as_they_are() -> None:
    console = Console(record=True, width=200, file=StringIO())
    console.print(replace(measured(**{"loo-sign": erasure()}), label="[/neg]"))
    assert "probability of [/neg] in %" in console.export_text()


def test_doubts_are_printed_and_in_the_json() -> None:
    result = measured(**{"loo-sign": erasure(acu=-0.1, chance=0.6, pvalues=(1, 1, 1, 1))})
    assert [doubt["kind"] for doubt in result.to_dict()["doubts"]] == ["unfaithful"]
    console = Console(record=True, width=200, file=StringIO())
    console.print(result)
    assert "loo-sign is not faithful for this text" in console.export_text()


def test_the_label_alone_decides_nothing_where_every_order_is_the_same() -> None:
    """A text of one word has one order: no method can be told from chance."""
    result = fm.explain_text(tiny(), "film", orders=20, method=["loo-sign", "grad-l2"])
    assert [erasure.chance for erasure in result.erasures.values()] == [1, 1]
    assert [doubt.kind for doubt in result.doubts] == ["unchecked", "unfaithful", "unfaithful"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "LABEL_9"}, "unknown label"),
        ({"method": ["lo"]}, "method"),
        ({"orders": 18}, "orders is 18; expected at least 19"),
        ({"text": " "}, "the text is empty"),
    ],
)
def test_mistakes_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(fm.InputError, match=message):
        fm.explain_text(tiny(), **{"text": TEXT, **options})


def test_every_method_has_a_verdict_also_when_it_succeeds() -> None:
    """`explain` said nothing when a method succeeded."""
    normal = (0.3, 0.4, 0.5, 0.6)
    methods = {
        "good": erasure(pvalues=normal),
        "chance": erasure(chance=0.2, pvalues=normal),
        "bad": erasure(acu=-0.1, chance=0.9, pvalues=normal),
        "strange": erasure(pvalues=(0.3, 0.01, 0.01, 0.6)),
    }
    result = measured(**methods)
    verdicts = result.to_dict()["verdicts"]
    assert verdicts["good"] == {
        "mood": "good",
        "text": "faithful for this text: it beats 99% of random orders",
    }
    assert verdicts["chance"]["text"] == "could be chance"
    assert verdicts["bad"]["text"] == "not faithful"
    assert verdicts["strange"]["text"].startswith("out of distribution")
    assert result.verdict.faithful == ("good",)
    assert result.verdict.trusted == ("good", "chance", "bad")
    console = Console(record=True, width=200, file=StringIO())
    console.print(result)
    assert "good: faithful for this text" in console.export_text()
    unchecked = measured(good=erasure()).verdict
    assert (unchecked.trusted, unchecked.answers[0].mood) == ((), "caution")
