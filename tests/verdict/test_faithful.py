"""Verdicts by faithfulness and the behavioral check: what is said first, and what is never praised."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from faithmeter.stats.behavior import Behavior
from faithmeter.stats.intervals import Interval
from faithmeter.stats.pvalues import CountTest
from faithmeter.verdict.evidence import MAIN_KIND, MethodEvidence, TaskEvidence
from faithmeter.verdict.sentences import verdict

GOOD_EXCESS, BAD_EXCESS = Interval(0.002, -0.004, 0.01, 200), Interval(0.72, 0.57, 0.88, 200)
OPEN_EXCESS = Interval(0.02, -0.03, 0.08, 60)
FINE, SHORT = Interval(-0.3, -0.35, -0.25, 200), Interval(0.2, 0.16, 0.24, 200)


def behavior(excess: Interval = GOOD_EXCESS, shortfall: Interval = FINE) -> Behavior:
    return Behavior((10, 50), (GOOD_EXCESS, excess), (FINE, shortfall), 200, 150)


def method(share: float, half: float = 0.03, beyond: float = 0.0, **changes: Any) -> MethodEvidence:
    bounds = Interval(beyond, max(beyond - 0.02, 0), beyond + 0.02)
    upper = share if math.isnan(share) else min(share + half, 1)
    return MethodEvidence(Interval(share, share - half, upper), {}, 200, beyond=bounds, **changes)


def evidence(**changes: Any) -> TaskEvidence:
    facts: dict[str, Any] = {
        "methods": {"random": method(0.0), "loo-sign": method(0.96), "grad-l2": method(0.8)},
        "kind": MAIN_KIND,
        "whole": 0.9,
        "majority": 0.5,
        "lead": Interval(0.4, 0.35, 0.45, 200),
        "behavior": behavior(),
        "trained_with": "half",
        "group": ("loo-sign",),
    }
    return TaskEvidence(**{**facts, **changes})


def first_sentences(facts: TaskEvidence) -> list[str]:
    return [answer.text.split(". ")[0] for answer in verdict(facts).answers]


def test_the_headline_says_what_to_use_what_it_achieves_and_whether_to_rely_on_it() -> None:
    judged = verdict(evidence())
    assert judged.headline == (
        "Use loo-sign. Masking its words removes 96% of what can be removed (likely 93–99%). "
        "The model passes the check."
    )
    assert judged.leaders == ("loo-sign",)
    assert [answer.mood for answer in judged.answers[:2]] == ["good", "good"]


def test_more_unusual_texts_than_chance_allows_are_a_doubt() -> None:
    """Of 200 texts 27 % are rejected one by one, and Simes' p-value over texts rejects nothing."""
    many, few = CountTest(4e-7, 0.27, 0.11), CountTest(0.4, 0.06, 0.11)
    methods = {"random": method(0.0, unusual=few), "loo-sign": method(0.96, unusual=many)}
    [doubt] = verdict(evidence(methods=methods)).doubts
    assert (doubt.kind, doubt.severity, doubt.methods) == ("outside", "caution", ("loo-sign",))
    assert "27% of them one by one at some rate, 5% by chance" in doubt.text
    methods["loo-sign"] = method(0.96, unusual=few)
    assert verdict(evidence(methods=methods)).doubts == ()


CASES = {
    "good": evidence(),
    "one method": evidence(methods={"random": method(0.0), "loo-sign": method(0.96)}),
    "tied": evidence(group=("loo-sign", "grad-l2"), texts_needed=1200),
    "no better than random": evidence(methods={"random": method(0.0), "loo-sign": method(0.01)}, group=()),
    "nothing to remove": evidence(methods={"random": method(0.0), "loo-sign": method(math.nan)}, group=()),
    "not learned": evidence(lead=Interval(0.02, -0.06, 0.1, 64)),
    "rejected": evidence(behavior=behavior(BAD_EXCESS)),
    "falls short of guessing": evidence(behavior=behavior(shortfall=SHORT)),
    "undecided": evidence(behavior=behavior(OPEN_EXCESS)),
    "not checked": evidence(behavior=None),
    "plain": evidence(trained_with="none"),
    "strayed": evidence(agreement=0.933),
    "adapted": evidence(agreement=0.99),
    "only searches": evidence(
        methods={"random": method(0.0), "search": method(0.99)}, optimizers=("search",)
    ),
}


@pytest.mark.parametrize("facts", CASES.values(), ids=CASES)
def test_an_answer_comes_first_in_at_most_twelve_words(facts: TaskEvidence) -> None:
    for sentence in first_sentences(facts)[:2]:
        assert len(sentence.split()) <= 12, sentence


@pytest.mark.parametrize(
    ("name", "answer", "headline"),
    [
        ("not learned", "No: it did not learn the task", "Do not use these explanations"),
        ("rejected", "No: it handles masked texts badly", "does not pass the check"),
        ("falls short of guessing", "No: it handles masked texts badly", "does not pass the check"),
        ("undecided", "Not known: the check needs about", "Do not rely on these explanations yet"),
        ("not checked", "Not known: masked texts were not checked", "was not checked"),
        ("strayed", "No: it is not the model that was adapted", "agrees with it on 93.3%"),
        ("plain", "Perhaps: it passes the check", "fine-tuned without masks"),
    ],
)
def test_a_model_that_is_not_measurable_gets_no_praise(name: str, answer: str, headline: str) -> None:
    judged = verdict(CASES[name])
    assert judged.answers[0].text.startswith(answer)
    assert headline in judged.headline
    assert judged.leaders == ()
    assert judged.answers[0].mood != "good"
    assert not judged.headline.startswith("Use ")
    if name != "plain":
        assert judged.faithful == ()


def test_the_rate_at_which_masks_confuse_the_model_is_named_with_its_numbers() -> None:
    text = verdict(CASES["rejected"]).answers[0].text
    assert (
        "With 50% masked, recalibrating alone would lower its log-loss by 0.720 nats [0.570, 0.880]" in text
    )
    text = verdict(CASES["falls short of guessing"]).answers[0].text
    assert "always guessing one class is right more often by 20.0 [16.0, 24.0] points" in text


def test_one_method_is_not_the_most_faithful() -> None:
    judged = verdict(CASES["one method"])
    assert judged.answers[1].text.startswith("Not known: loo-sign was measured alone")
    assert judged.answers[1].mood == "caution"
    assert judged.headline.startswith("Only loo-sign was measured.")


def test_searches_are_the_ceiling_and_do_not_compete() -> None:
    methods = {"random": method(0.0), "loo-sign": method(0.9), "search": method(0.99), "grad-l2": method(0.8)}
    facts = evidence(methods=methods, optimizers=("search",))
    judged = verdict(facts)
    assert judged.leaders == ("loo-sign",)
    assert "search optimizes the measured steps themselves: its 99% is the ceiling" in judged.answers[1].text
    assert facts.rivals == ["loo-sign", "grad-l2"]


def test_nothing_to_remove_is_said_and_never_a_share() -> None:
    judged = verdict(CASES["nothing to remove"])
    assert judged.answers[1].text.startswith("None: there is nothing to remove.")
    assert judged.leaders == judged.faithful == ()
    assert "nan" not in repr([answer.text for answer in judged.answers])


def test_evidence_against_the_label_is_told_apart() -> None:
    methods = {"random": method(0.0), "loo-sign": method(1.0, beyond=0.34), "grad-l2": method(0.96)}
    text = verdict(evidence(methods=methods)).answers[1].text
    assert "A further 34% is evidence against the label, which is not counted." in text


@pytest.mark.parametrize(
    ("seeds", "words"), [(1, "200 texts and one training"), (3, "200 texts and 3 trainings")]
)
def test_every_verdict_says_what_it_rests_on(seeds: int, words: str) -> None:
    for name in ("good", "tied", "not learned", "one method"):
        judged = verdict(replace(CASES[name], seeds=seeds, training_spread=0.02))
        assert any(words in answer.text for answer in judged.answers)
    spread = verdict(replace(CASES["good"], seeds=3, training_spread=0.02)).answers[1].text
    assert "varies by 2.0 points between trainings" in spread


def test_unusual_erased_texts_are_a_doubt_and_do_not_decide() -> None:
    unusual = replace(method(0.96), p={"crossfit": 0.001})
    methods = {"random": method(0.0), "loo-sign": unusual, "grad-l2": method(0.8)}
    judged = verdict(evidence(methods=methods, floors={"crossfit": 0.002}))
    [doubt] = [doubt for doubt in judged.doubts if doubt.kind == "outside"]
    assert (doubt.severity, doubt.methods) == ("caution", ("loo-sign",))
    assert judged.leaders == ("loo-sign",)


def test_an_adaptation_that_agrees_often_enough_is_measurable() -> None:
    assert verdict(CASES["adapted"]).headline.startswith("Use loo-sign.")
    assert not verdict(CASES["strayed"]).leaders


def test_what_leaves_the_check_open_is_named() -> None:
    wide = Interval(0.02, -0.16, 0.2, 100)
    text = verdict(evidence(behavior=behavior(shortfall=wide))).answers[0].text
    assert "guessing one class is right more often by 2.0 [-16.0, 20.0] points; accepted: 15%." in text
