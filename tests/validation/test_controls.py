"""Controls whose truth is known: what is planted, and what the package says of the committed erasures."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from faithmeter.measuring import groups
from faithmeter.stats.intervals import resample_texts
from validation.controls import page
from validation.controls.cache import CONTROLS, TRUTH, Control
from validation.controls.judged import judge
from validation.controls.planted import KNOWN, PLANTS, permuted, plant

BY_NAME = {control.name: control for control in CONTROLS if control.file.exists()}


def control(name: str) -> Control:
    return BY_NAME[f"embedded-{name}-0"]


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "resample_texts", partial(resample_texts, resamples=299))


@pytest.mark.parametrize("name", PLANTS)
def test_planted_texts_are_balanced_and_the_same_again(name: str) -> None:
    planted = plant(name, 400, seed=3)
    assert planted == plant(name, 400, seed=3) != plant(name, 400, seed=4)
    assert 0.4 < np.mean(planted.labels) < 0.6
    for text, truth in zip(planted.texts, planted.truth, strict=True):
        words = text.split()
        assert all(words[place] in KNOWN for place in truth)


def test_the_truth_decides_the_label() -> None:
    word, pair, first, negation = (plant(name, 200, seed=0) for name in ("word", "pair", "first", "negation"))
    for planted in (word, first):
        for text, label, [place] in zip(planted.texts, planted.labels, planted.truth, strict=True):
            assert text.split()[place] == KNOWN[label]
    for text, label, (left, right) in zip(pair.texts, pair.labels, pair.truth, strict=True):
        words = text.split()
        both = KNOWN.index(words[left]), KNOWN.index(words[right]) - KNOWN.index(KNOWN.third)
        assert label == (both[0] == both[1])
    for text, label, (flip, place) in zip(negation.texts, negation.labels, negation.truth, strict=True):
        words = text.split()
        assert label == KNOWN.index(words[place]) ^ (words[flip] == KNOWN.flip)


def test_the_first_word_also_stands_where_it_tells_nothing() -> None:
    planted = plant("first", 400, seed=0)
    misled = [
        KNOWN[1 - label] in text.split()[1:]
        for text, label in zip(planted.texts, planted.labels, strict=True)
    ]
    assert np.mean(misled) > 0.5


def test_the_distractor_agrees_in_training_only() -> None:
    for training, expected in ((True, 0.9), (False, 0.5)):
        planted = plant("distractor", 1000, seed=0, training=training)
        agrees = [
            (KNOWN.third, KNOWN.fourth)[label] in text.split()
            for text, label in zip(planted.texts, planted.labels, strict=True)
        ]
        assert np.mean(agrees) == pytest.approx(expected, abs=0.05)


def test_permuted_labels_keep_their_number() -> None:
    planted = plant("word", 100, seed=0)
    shuffled = permuted(planted, seed=1)
    assert sorted(shuffled.labels) == sorted(planted.labels)
    assert shuffled.labels != planted.labels
    assert not any(shuffled.truth)


def test_given_sentences_are_planted_in() -> None:
    planted = plant("word", 20, seed=0, sentences=["a film that nobody will ever see"])
    assert all("nobody will" in text or "nobody" in text for text in planted.texts)
    assert {text.split()[place] for text, (place,) in zip(planted.texts, planted.truth, strict=True)} == {
        "cat",
        "dog",
    }


@pytest.mark.parametrize("name", ["word-masked", "first-masked"])
def test_the_truth_is_first_or_tied_and_the_model_passes(name: str) -> None:
    result = judge(control(name), methods=(TRUTH, "loo-abs", "grad-l2", "inp-grad-sign"))
    assert result.verdict.answers[0].text.startswith("Yes: it passes the check")
    assert "The model passes the check." in result.verdict.headline
    best = max(result.area(method) for method in result.methods)
    assert result.area(TRUTH) > best - 0.01
    assert result.area(TRUTH) > result.area("grad-l2")


def test_an_attack_on_a_guess_is_no_more_faithful_than_the_truth() -> None:
    result = judge(control("word-masked"), methods=(TRUTH, "loo-sign"))
    assert result.acu("loo-sign") > 1.3 * result.acu(TRUTH)
    assert result.area("loo-sign") == pytest.approx(result.area(TRUTH), abs=0.01)
    assert result.area("loo-sign", "beyond") > 0.03


@pytest.mark.parametrize("declared", ["half", "all", "none", "unknown"])
@pytest.mark.parametrize("name", ["word-plain", "first-plain", "stories-plain"])
def test_a_plain_model_is_never_measurable_whatever_is_declared(name: str, declared: str) -> None:
    result = judge(control(name), declared=declared)  # type: ignore[arg-type]
    assert result.behavior is not None
    assert result.behavior.outcome == "rejected"
    assert result.verdict.answers[0].text.startswith("No: it handles masked texts badly")
    assert result.verdict.faithful == result.verdict.leaders == ()


@pytest.mark.parametrize("name", ["shuffled-masked", "word-random"])
def test_nothing_is_praised_where_nothing_is_known(name: str) -> None:
    for seed in range(5):
        rows = np.random.default_rng(seed).permutation(200)[:64]
        judged = judge(control(name), rows=rows, methods=("loo-sign", "loo-abs")).verdict
        assert judged.faithful == judged.leaders == ()
        assert judged.answers[0].mood != "good"
        assert judged.headline.startswith(("Do not use", "Do not rely"))


def test_a_shift_of_the_texts_is_not_accepted() -> None:
    behavior = judge(control("distractor-masked")).behavior
    assert behavior is not None
    assert behavior.outcome != "accepted"


def test_the_page_is_built_from_the_committed_tables() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.build_page()


def test_the_decision_follows_from_the_table() -> None:
    decision = pd.read_csv(page.RESULTS / "faithfulness-decision.csv").set_index("definition")
    right = decision[
        (decision.praised_windows_of_empty_models == 0)
        & (decision.points_on_empty_models <= 5)
        & (decision.truth_first_or_tied == decision.truth_first_or_tied.max())
    ]
    assert right.pairs_apart.idxmax() == "probability, clipped"
