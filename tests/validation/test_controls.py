"""Controls whose truth is known: what is planted, and what the package says of the committed erasures."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from faithmeter.data.stories import ACTORS, PLACES
from faithmeter.measuring import groups
from faithmeter.stats.intervals import resample_texts
from validation.controls import __main__, ladder, page, repeats, simulations
from validation.controls.cache import CONTROLS, TRUTH, Control, Erasures, make_parts
from validation.controls.exact import exact_excess, tabulate_excess
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
    shares = np.bincount(planted.labels) / len(planted.labels)
    assert (np.abs(len(shares) * shares - 1) < 0.25).all()
    for text, truth in zip(planted.texts, planted.truth, strict=True):
        words = text.split()
        assert all(words[place] in (*KNOWN, *PLACES) for place in truth)


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


def test_the_place_of_the_first_person_is_the_truth_and_others_tell_nothing() -> None:
    planted = plant("places", 3000, seed=0)
    agree = []
    for text, label, [place] in zip(planted.texts, planted.labels, planted.truth, strict=True):
        words = text.split()
        assert words[place] == PLACES[label]
        assert words[place - 4] == ACTORS[0]
        agree.append(text.count(PLACES[label]) - 1)
    assert np.mean(agree) == pytest.approx(3 / len(PLACES), abs=0.05), "as if drawn without looking"


def test_no_order_of_a_story_is_called_the_truth() -> None:
    """Who moves goes to another place than before, so that earlier statements tell about the answer."""
    stories = make_parts(BY_NAME["embedded-stories-masked-0"])["test"]
    assert not any(stories.planted.truth)
    assert TRUTH not in judge(BY_NAME["embedded-stories-masked-0"]).methods


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


@pytest.mark.parametrize("name", ["word-masked", "first-masked", "places-masked"])
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
@pytest.mark.parametrize("name", ["word-plain", "first-plain", "pair-plain", "stories-plain"])
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


def test_a_model_that_saw_few_masks_is_judged_by_its_predictions() -> None:
    """On stories it is too sure of wholly masked texts, of pairs if one word is left; easy tasks it knows."""
    names = ("stories-few-masks", "pair-few-masks", "word-few-masks")
    stories, pair, word = (judge(control(name)).behavior for name in names)
    assert stories is not None
    assert pair is not None
    assert word is not None
    assert pair.outcome == "rejected"
    assert stories.outcome != "accepted"
    assert stories.worst.percent >= 80
    assert word.outcome == "accepted"


def test_the_exact_excess_by_hand() -> None:
    """Without the word, each of two classes has one half."""
    excess = exact_excess(np.log([[[0.9, 0.1], [0.5, 0.5]]]))
    assert excess[0] == pytest.approx([0.5 * np.log(0.5 / 0.9) + 0.5 * np.log(0.5 / 0.1), 0])


def test_a_model_that_saw_few_masks_is_right_where_its_true_explanation_masks() -> None:
    """Not only random masks: the planted word is masked first, and the best prediction is one half."""
    excess = {name: tabulate_excess(control(f"word-{name}")).excess[0] for name in ("few-masks", "plain")}
    assert excess["few-masks"] < 0.02
    assert excess["plain"] > 1
    assert tabulate_excess(control("stories-masked")).empty


def test_the_simulations_run() -> None:
    """A few draws of each, so that the tables can be computed again."""
    assert __main__.main
    assert 0 <= simulations.toss_coins(64, "macro_f1", 0.5, coins=5)["lower_bound"] <= 1
    assert simulations.count_rejections(1.0, checks=5)["count_rejects"] == 1
    covered = simulations.cover(control("word-masked"), "grad-l2", 64, checks=10)
    assert covered["coverage"] >= 0.7
    assert len(ladder.climb(control("first-masked"), sizes=(100,), draws=2)) == 2


def test_draws_with_and_without_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that accepts draws of different texts only: with repeats there are none."""

    def accept(erasures: Erasures, known: np.ndarray, tested: np.ndarray) -> bool:
        return len({*known.tolist()}) == len({*tested.tolist()}) == repeats.SIZE

    monkeypatch.setattr(repeats, "is_accepted", accept)
    found = repeats.compare_draws(repeats.LARGEST).set_index(["drawn_from", "way"]).accepted
    assert found["kept texts", repeats.WITHOUT] == 1
    assert found["all texts", repeats.WITH] == found["kept texts", repeats.WITH] == 0


def test_a_shift_of_the_texts_is_not_accepted() -> None:
    behavior = judge(control("distractor-masked")).behavior
    assert behavior is not None
    assert behavior.outcome != "accepted"


def test_the_page_is_built_from_the_committed_tables() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.build_page()
    assert page.TRIALS.read_text(encoding="utf-8") == page.build_trials()


def test_the_decision_follows_from_the_table() -> None:
    decision = pd.read_csv(page.RESULTS / "faithfulness-decision.csv").set_index("definition")
    right = decision[
        (decision.praised_windows_of_empty_models == 0)
        & (decision.points_on_empty_models <= 5)
        & (decision.truth_first_or_tied == decision.truth_first_or_tied.max())
    ]
    assert right.pairs_apart.idxmax() == "probability, clipped"
