"""Sentences of a report's verdict, from rows that are checked by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from faithmeter.config import TrainConfig
from faithmeter.report.page.verdicts import Judged, judge, masking_cost, together
from faithmeter.stats.intervals import Interval
from faithmeter.store.run_store import RunStore
from faithmeter.verdict.evidence import MethodEvidence, TaskEvidence
from faithmeter.verdict.sentences import verdict
from fixtures_report import measure, train
from traces import falling, keep, traces

FLOORS = {"published": 0.01, "crossfit": 0.01}


def method(mean: float, half: float = 0.01, *, p: float = 0.5, texts: int = 200) -> MethodEvidence:
    area = Interval(mean, mean - half, mean + half)
    return MethodEvidence(area, {"published": p, "crossfit": p}, texts)


def judged(**changes: Any) -> Judged:
    """The verdict on RTE (tiny): a is ahead of b by 20 points, unless the facts are changed."""
    known = {
        "methods": {"random": method(0, 0), "a": method(0.31), "b": method(0.11)},
        "whole": 0.9,
        "majority": 0.5,
        "floors": FLOORS,
        "trained_with": "half",
        "seeds": 3,
        "cost": 0.01,
    }
    evidence = TaskEvidence(**{**known, **changes})
    return Judged("RTE", "tiny", verdict(evidence), evidence)


def test_a_clear_winner() -> None:
    one = judged()
    first, second, third = one.verdict.answers
    assert (one.task, one.model, one.verdict.leaders) == ("RTE", "tiny", ("a",))
    assert first.text == (
        "Yes: it passes the check. There is no sign that texts masked at random are out of distribution for "
        "the model, fine-tuned with masks (cross-fitted p = 0.50). It has 90.0% accuracy on whole texts, "
        "50.0% by guessing their most frequent label. This rests on 200 texts and 3 trainings. On all test "
        "texts it has 1.0 points less than a plainly fine-tuned model."
    )
    assert second.text == (
        "It is a, 20.0 points ahead of b. Its area below random erasure (ACU) is 31.0% [30.0, 32.0]. This "
        "rests on 200 texts and 3 trainings."
    )
    assert "they hold for these 200 texts and 3 seeds" in third.text
    assert [sentence.mood for sentence in one.verdict.answers] == ["good", "good", "good"]
    values = one.to_dict()
    assert (values["task"], values["measurable"], values["leaders"]) == ("RTE", True, ("a",))


def test_performance_by_labels_of_a_model_is_agreement() -> None:
    assert (
        "90.0% agreement with the original on whole texts"
        in judged(metric="agreement").verdict.answers[0].text
    )


def test_without_an_interval_the_area_alone_decides() -> None:
    one = judged(methods={"random": method(0, 0), "a": method(0.3, 0), "b": method(0.29, 0)})
    text = one.verdict.answers[1].text
    assert text == (
        "It is a, 1.0 points ahead of b. Its area below random erasure (ACU) is 30.0%. This rests on 200 "
        "texts and 3 trainings. Without an interval, other texts may change the order."
    )
    assert one.verdict.answers[1].mood == "caution"


def test_overlapping_intervals_leave_it_undecided() -> None:
    near = {"a": method(0.3, 0.05), "b": method(0.29, 0.05), "c": method(0.02)}
    one = judged(methods={"random": method(0, 0), **near})
    assert one.verdict.leaders == ("a", "b")
    assert one.verdict.answers[1].text.startswith("Not decided: a and b cannot be told apart. Of a: its area")


def test_without_a_plain_model_nothing_is_said_of_the_price_of_masks() -> None:
    text = judged(cost=math.nan).verdict.answers[0].text
    assert "plainly fine-tuned" not in text
    assert "nan" not in text


def test_masks_that_cost_performance(tmp_path: Path) -> None:
    """By hand: 0.95 without masks and 0.91 with them are four points."""
    store = RunStore(tmp_path)
    masked = train(store, value=0.91)
    train(store, strategy="none", validation="unmasked", value=0.95)
    frame = store.frame("train")
    assert masking_cost(frame, masked.to_dict()) == pytest.approx(0.04)
    assert math.isnan(masking_cost(frame, {**masked.to_dict(), "strategy": "none"}))
    assert math.isnan(masking_cost(frame[frame["strategy"] == "half"], masked.to_dict()))
    assert judged(cost=0.04).verdict.answers[0].mood == "caution"


def test_masked_texts_out_of_distribution() -> None:
    methods = {"random": method(0, 0, p=0.0004), "a": method(0.3)}
    one = judged(methods=methods)
    first, second, third = one.verdict.answers
    assert [first.mood, second.mood, third.mood] == ["bad", "bad", "bad"]
    assert first.text.startswith("No: masked texts are strange to it. For the model, fine-tuned with")
    assert "(cross-fitted p < 0.001)" in first.text
    assert second.text.startswith("None can be named while the model is not measurable")
    assert "so do not trust any area" in third.text
    assert one.verdict.leaders == ()


def test_a_method_that_leaves_strange_texts_cannot_win() -> None:
    one = judged(methods={"random": method(0, 0), "a": method(0.31, p=0.01), "b": method(0.11)})
    assert one.verdict.leaders == ("b",)
    assert "Texts erased by a are out of distribution (cross-fitted p = 0.010)" in one.verdict.answers[2].text


def test_methods_no_better_than_random() -> None:
    one = judged(methods={"random": method(0, 0), "a": method(0.3), "b": method(0.01, 0.02)})
    assert "b: not clearly better than a random order." in one.verdict.answers[2].text
    worse = judged(methods={"random": method(0, 0), "a": method(-0.1)})
    assert worse.verdict.answers[1].text.startswith("None is clearly")


def test_what_did_not_learn_is_left_out() -> None:
    assert "1 of 3 seeds did not learn the task" in judged(seeds=2, unlearned_seeds=1).verdict.answers[2].text
    for unlearned in ({"converged": False}, {"whole": 0.5}):  # by the threshold, or no better than guessing
        one = judged(**unlearned)
        assert one.verdict.answers[0].text.startswith(
            "No: it did not learn the task with any of 3 seeds. It has"
        )
        assert "50.0% by guessing" in one.verdict.answers[0].text
        assert "The model did not learn the task" in one.verdict.answers[2].text
        assert one.verdict.leaders == ()


@pytest.mark.parametrize(("beam", "mood"), [(0.28, "good"), (0.45, "caution")])
def test_areas_on_other_texts_are_compared_on_those_they_share(beam: float, mood: str) -> None:
    """Beam's 0.41 on 50 texts does not beat 0.31 on 200."""
    methods = {"random": method(0, 0), "a": method(0.31), "b": method(0.11), "beam": method(0.41, texts=50)}
    one = judged(methods=methods, shared={"beam": (50, {"a": 0.40, "b": 0.1, "beam": beam})})
    second = one.verdict.answers[1]
    assert (one.verdict.leaders, second.mood) == (("a",), mood)
    assert "20.0 points ahead of b." in second.text
    told = f" On the 50 texts that both were measured on, beam has {beam:.1%} and a 40.0%."
    assert second.text.endswith(told)
    apart = judged(methods=methods, shared={"beam": (0, {})}).verdict.answers[1].text
    assert apart.endswith(" beam was not measured on the same texts.")


def test_a_check_that_could_not_have_rejected_tells_nothing() -> None:
    one = judged(floors={"crossfit": 0.09})
    assert one.verdict.answers[0].text.startswith("Not known: masked texts were not checked.")


def test_few_texts_and_no_test() -> None:
    one = judged(methods={"random": method(0, 0), "a": method(0.3, texts=50)}, floors={})
    assert one.verdict.answers[0].text.startswith("Not known: masked texts were not checked.")
    assert "a: measured on 50 texts only, so small differences mean little" in one.verdict.answers[2].text


def test_masked_fine_tuning_is_judged_and_the_plain_one_warned_of(tmp_path: Path) -> None:
    store, texts = RunStore(tmp_path), [{"text": f"word {n}", "label": n % 6} for n in range(300)]
    measure(store, train(store), texts, {"a": 0.3, "random": 0.0})
    plain = train(store, strategy="none", validation="unmasked")
    measure(store, plain, texts, {"b": 0.5, "random": 0.0}, p={"random": 0.001})
    [one] = judge(store.results(), store.frame("train"))
    assert one.verdict.leaders == ("a",)
    assert "so do not trust any erasure on it" in one.verdict.answers[2].text


def test_seeds_of_a_fine_tuning_are_judged_together(tmp_path: Path) -> None:
    store, labels = RunStore(tmp_path), [n % 2 for n in range(60)]
    for number in range(3):
        predictions = falling({"random": 0.9, "a": 0.3}, labels, number)
        p = {"crossfit": (0.03, 0.5, 0.9)[number]}
        keep(store, TrainConfig(seed=number), traces(predictions, labels, p=p))
    [pooled] = store.results()
    [one] = judge([pooled], store.frame("train"))
    assert one.evidence is not None
    assert one.evidence.p("random") == pooled.result.evidence.p("random") == pytest.approx(0.09), (
        "Simes over seeds"
    )


def test_many_models_in_three_sentences() -> None:
    good = judged(methods={"random": method(0, 0), "a": method(0.3)})
    bad = judged(methods={"random": method(0, 0, p=0.001), "a": method(0.3)})
    first, second, third = together([good, bad])
    assert first.text == "1 of 2 models are measurable; not measurable: RTE (tiny)."
    assert second.text == "In the lead most often, alone or tied: a (1 of 2)."
    assert third.text == "There are reservations about RTE (tiny): see below."
    assert together([good]) == good.verdict.answers
    unchecked = judged(floors={"crossfit": 0.09})
    assert not unchecked.measurable
    first = together([good, bad, unchecked])[0].text
    assert first == "1 of 3 models are measurable; not measurable: RTE (tiny); not known: RTE (tiny)."
    adapted = judged(agreement=0.99)
    third = together([good, adapted])[2]
    assert (third.mood, third.text) == (
        "good",
        "Nothing measured here speaks against the numbers; read the notes on RTE (tiny) below.",
    )
    many = together([bad] * 5)[2].text
    assert many == "There are reservations about RTE (tiny), RTE (tiny), RTE (tiny) and 2 more: see below."
