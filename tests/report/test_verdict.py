"""Sentences of a report's verdict, from rows that are checked by hand."""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd
import pytest

from faithmeter.report.page.shared_texts import COLUMNS as SHARED
from faithmeter.report.page.verdict import Verdict, together, verdicts
from faithmeter.store.frames import COLUMNS

Rows = list[dict[str, Any]]


def areas(**columns: Any) -> dict[str, Any]:
    """A row of the frame `areas`."""
    training = {"task": "RTE", "model": "org/tiny", "seed": 0, "strategy": "half", "validation": "both"}
    result = {"scope": "explained", "method": "random", "texts": 200, "metric": "accuracy", "acu": 0.0}
    return {
        **training,
        **result,
        "racu": 0.0,
        "p_published": 0.5,
        "p_crossfit": 0.5,
        "acu_lower": math.nan,
        "acu_upper": math.nan,
        "leaders": (),
        "texts_needed": None,
        "digest": "digest",
        "floor_published": 0.01,
        "floor_crossfit": 0.01,
        "precision": "fp32",
        "agreement": float("nan"),
        "p_wholly_masked": 0.5,
        "racu_divisor": 0.2,
        "outside_share": 0.0,
        "truncated": 0.0,
        "classes_by_number": False,
        "whole": 0.9,
        "majority": 0.5,
        "converged": True,
        **columns,
    }


def unmasked(value: float, **columns: Any) -> dict[str, Any]:
    """A row of the frame `train`: test performance on unmasked texts."""
    return {**areas(**columns), "split": "test", "masking": "0", "value": value}


def judge(
    rows: Rows, trained: Rows | None = None, *, near: Rows | None = None, **published: float
) -> Verdict:
    frames = {kind: pd.DataFrame(columns=list(columns)) for kind, columns in COLUMNS.items()}
    frames["areas"] = pd.DataFrame(rows)
    frames["train"] = pd.DataFrame(trained or [unmasked(0.9)])
    frames["shared"] = pd.DataFrame(near or [], columns=list(SHARED))
    [verdict] = verdicts(frames, {("RTE", "tiny", name): value for name, value in published.items()})
    return verdict


def seeds(method: str, *values: float, **columns: Any) -> list[dict[str, Any]]:
    return [areas(method=method, acu=value, seed=seed, **columns) for seed, value in enumerate(values)]


BASE = seeds("random", 0, 0, 0)


def test_a_clear_winner() -> None:
    verdict = judge(
        [*BASE, *seeds("a", 0.30, 0.31, 0.32), *seeds("b", 0.10, 0.11, 0.12)],
        [unmasked(0.9), unmasked(0.91, strategy="none", validation="unmasked")],
    )
    first, second, third = verdict.sentences
    assert (verdict.task, verdict.model, verdict.leaders) == ("RTE", "tiny", ("a",))
    assert first.text == (
        "Yes: there is no sign that texts masked at random are out of distribution for the model, fine-tuned "
        "with masks (cross-fitted p = 0.50); it has 90.0% accuracy on whole texts, 50.0% by guessing their "
        "most frequent label; on all test texts, 1.0 points less than a plainly fine-tuned one."
    )
    assert re.fullmatch(
        r"It is a, whose area below random erasure \(ACU\) is 31.0% \[30\.\d, 3[12]\.\d\], "
        r"20.0 points ahead of b\.",
        second.text,
    )
    assert "they hold for these 200 texts and 3 seeds" in third.text
    assert [sentence.mood for sentence in verdict.sentences] == ["good", "good", "good"]


def test_performance_by_labels_of_a_model_is_agreement() -> None:
    verdict = judge([areas(metric="agreement"), areas(method="a", acu=0.3, metric="agreement")])
    assert "90.0% agreement with the original on whole texts" in verdict.sentences[0].text


def test_one_seed_has_no_interval() -> None:
    verdict = judge([areas(), areas(method="a", acu=0.3), areas(method="b", acu=0.29)])
    text = verdict.sentences[1].text
    assert "[" not in text
    assert text == (
        "Judged by area alone, it is a, whose area below random erasure (ACU) is 30.0%, 1.0 points ahead of "
        "b; without an interval, another seed or other texts may change the order."
    )
    assert verdict.sentences[1].mood == "caution"


def test_overlapping_intervals_leave_it_undecided() -> None:
    near = [*seeds("a", 0.25, 0.30, 0.35), *seeds("b", 0.24, 0.29, 0.34)]
    rows = [*BASE, *near, *seeds("c", 0.01, 0.02, 0.03)]
    verdict = judge(rows)
    assert verdict.leaders == ("a", "b")
    assert verdict.sentences[1].text.startswith("Not decided: a and b cannot be told apart; the largest area")


def test_a_published_value_is_told_only_where_there_is_one() -> None:
    rows = [areas(), areas(method="a", acu=0.3)]
    assert " The paper reports 32.6%." in judge(rows, a=32.6).sentences[1].text
    assert "paper" not in judge(rows, b=32.6).sentences[1].text


def test_without_a_plain_model_the_price_of_masks_is_open() -> None:
    text = judge([areas(), areas(method="a", acu=0.3)]).sentences[0].text
    assert "no plainly fine-tuned model here" in text
    assert "nan" not in text


def test_masks_that_cost_performance() -> None:
    plain = unmasked(0.95, strategy="none", validation="unmasked")
    assert judge([areas(), areas(method="a", acu=0.3)], [unmasked(0.9), plain]).sentences[0].mood == "caution"


def test_masked_texts_out_of_distribution() -> None:
    verdict = judge([areas(p_crossfit=0.0004), areas(method="a", acu=0.3)])
    first, second, third = verdict.sentences
    assert [first.mood, second.mood, third.mood] == ["bad", "bad", "bad"]
    assert first.text.startswith("No: for the model, fine-tuned with masks, texts masked at random are")
    assert "(cross-fitted p < 0.001)" in first.text
    assert second.text.startswith("None can be named while the model is not measurable")
    assert "so do not trust any area" in third.text
    assert verdict.leaders == ()


def test_a_method_that_leaves_strange_texts_cannot_win() -> None:
    verdict = judge([*BASE, *seeds("a", 0.30, 0.31, 0.32, p_crossfit=0.01), *seeds("b", 0.10, 0.11, 0.12)])
    assert verdict.leaders == ("b",)
    assert "Texts erased by a are out of distribution (cross-fitted p = 0.010)" in verdict.sentences[2].text


def test_p_values_of_seeds_are_one_by_simes() -> None:
    rows = [areas(seed=seed, p_crossfit=p) for seed, p in enumerate((0.03, 0.5, 0.9))]
    assert "(cross-fitted p = 0.090)" in judge([*rows, *seeds("a", 0.3, 0.3, 0.3)]).sentences[0].text


def test_methods_no_better_than_random() -> None:
    verdict = judge([*BASE, *seeds("a", 0.3, 0.3, 0.3), *seeds("b", -0.02, 0.01, 0.02)])
    assert "b: not clearly better than a random order." in verdict.sentences[2].text
    assert judge([areas(), areas(method="a", acu=-0.1)]).sentences[1].text.startswith("None is clearly")


def test_what_did_not_learn_is_left_out() -> None:
    rows = [*BASE, *seeds("a", 0.3, 0.3, 0.3)]
    for row in rows:
        row["converged"] = row["seed"] > 0
    assert "1 of 3 seeds did not learn the task" in judge(rows).sentences[2].text
    for unlearned in (
        {"converged": False},
        {"whole": 0.5},
    ):  # by the task's threshold, or no better than guessing
        verdict = judge([{**row, **unlearned} for row in rows])
        assert verdict.sentences[0].text.startswith("No: it did not learn the task with any of 3 seeds (")
        assert "50.0% by guessing" in verdict.sentences[0].text
        assert "The model did not learn the task" in verdict.sentences[2].text
        assert verdict.leaders == ()


def on_fifty(**values: float) -> Rows:
    return [{**areas(method=name), "texts": 50, "acu": value} for name, value in values.items()]


@pytest.mark.parametrize(("beam", "mood"), [(0.28, "good"), (0.45, "caution")])
def test_areas_on_other_texts_are_compared_on_those_they_share(beam: float, mood: str) -> None:
    """Beam's 0.41 on 50 texts does not beat 0.31 on 200."""
    rows = [*BASE, *seeds("a", 0.30, 0.31, 0.32), *seeds("b", 0.10, 0.11, 0.12)]
    rows += seeds("beam", 0.40, 0.41, 0.42, texts=50)
    verdict = judge(rows, near=on_fifty(a=0.40, b=0.1, beam=beam))
    second = verdict.sentences[1]
    assert (verdict.leaders, second.mood) == (("a",), mood)
    assert "20.0 points ahead of b." in second.text
    told = f" On the 50 texts that both were measured on, beam has {beam:.1%} and a 40.0%."
    assert second.text.endswith(told)


def test_a_check_that_could_not_have_rejected_tells_nothing() -> None:
    rows = [areas(floor_crossfit=0.09), areas(method="a", acu=0.3, floor_crossfit=0.09)]
    assert judge(rows).sentences[0].text.startswith("Not known: nothing tells whether masked")


def test_masked_fine_tuning_is_judged_and_the_plain_one_warned_of() -> None:
    plain = {"strategy": "none", "validation": "unmasked", "p_crossfit": 0.001}
    verdict = judge(
        [areas(), areas(method="a", acu=0.3), areas(**plain), areas(method="b", acu=0.9, **plain)]
    )
    assert verdict.leaders == ("a",)
    assert "so do not trust any erasure on it" in verdict.sentences[2].text


def test_few_texts_and_no_test() -> None:
    rows = [areas(), areas(method="a", acu=0.3, texts=50)]
    untested = {"p_crossfit": float("nan"), "p_published": float("nan")}
    verdict = judge([{**row, **untested} for row in rows])
    assert verdict.sentences[0].text.startswith("Not known: nothing tells whether masked")
    assert "a: measured on 50 texts only, so small differences mean little" in verdict.sentences[2].text


def test_many_models_in_three_sentences() -> None:
    good = judge([*BASE, *seeds("a", 0.3, 0.3, 0.3)])
    bad = judge([areas(p_crossfit=0.001), areas(method="a", acu=0.3)])
    first, second, third = together([good, bad]).sentences
    assert first.text == "1 of 2 models are measurable; not measurable: RTE (tiny)."
    assert second.text == "In the lead most often, alone or tied: a (1 of 2)."
    assert third.text == "There are reservations about RTE (tiny): see below."
    assert together([good]) is good
    unchecked = judge([areas(floor_crossfit=0.09), areas(method="a", acu=0.3, floor_crossfit=0.09)])
    assert not unchecked.measurable
    first = together([good, bad, unchecked]).sentences[0].text
    assert first == "1 of 3 models are measurable; not measurable: RTE (tiny); not known: RTE (tiny)."
    adapted = judge([*BASE, *seeds("a", 0.3, 0.3, 0.3, agreement=0.99)])
    third = together([good, adapted]).sentences[2]
    assert (third.mood, third.text) == (
        "good",
        "Nothing measured here speaks against the numbers; read the notes on RTE (tiny) below.",
    )
    many = together([bad] * 5).sentences[2].text
    assert many == "There are reservations about RTE (tiny), RTE (tiny), RTE (tiny) and 2 more: see below."
