"""A result is computed from logits alone: as the frames of one seed, several seeds, unequal texts."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import faithmeter as fm
from faithmeter.measuring import groups
from faithmeter.measuring.pool import join_contexts
from faithmeter.measuring.result import Result
from faithmeter.measuring.trace import Trace
from faithmeter.stats.behavior import Behavior, recalibrate
from faithmeter.stats.comparisons import rank_methods
from faithmeter.stats.curves import Curve
from faithmeter.stats.intervals import Interval, resample_texts
from faithmeter.stats.metrics import score
from faithmeter.stats.predictions import Predictions
from faithmeter.verdict.formats import format_percent
from faithmeter.verdict.sentences import verdict
from traces import FLOORS, PERCENTS, context, falling, perfect, result, trace, traces

LABELS = np.arange(60) % 2
SHARES = {"random": 0.9, "loo-sign": 0.3, "grad-l2": 0.5, "search": 0.2}


def test_a_measurement_without_a_step_between_whole_and_nothing_is_not_checked() -> None:
    """Its verdict ended with an error: the check had no masking rate to judge."""
    wrong = np.stack([LABELS, 1 - LABELS], axis=1)
    seed = traces({"random": wrong, "loo-sign": wrong}, LABELS, percents=(0, 100), p={"crossfit": 0.5})
    known = perfect(2)._replace(limits=(0.01,) * 9, references=200)
    judged = result(seed, recalibrations=(known,))
    assert judged.behavior is None
    assert judged.unusual("loo-sign") is None
    assert judged.verdict.answers[0].text.startswith("Not known: masked texts were not checked.")


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "resample_texts", partial(resample_texts, resamples=199))
    monkeypatch.setattr(groups, "rank_methods", partial(rank_methods, swaps=199))


def seed(number: int = 0, **options: Any) -> dict[str, Trace]:
    p = {"published": 0.4, "crossfit": 0.3}
    return traces(falling(SHARES, LABELS, number), LABELS, p=p, **options)


@pytest.mark.parametrize(("number", "metric", "classes"), [(0, "accuracy", 3), (1, "matthews", 2)])
def test_one_seed_is_what_the_frame_of_its_texts_says(number: int, metric: str, classes: int) -> None:
    """By plain loops over a frame, and by the public formulas."""
    rng = np.random.default_rng(number)
    labels = rng.permutation(np.arange(30) % classes)
    predictions = {name: rng.integers(classes, size=(30, 11)) for name in SHARES}
    p = {test: rng.uniform(0.001, 1, (30, 11)) for test in FLOORS}
    one = traces(predictions, labels, classes=classes, p=p)
    found = result(one, classes=classes, metric=metric, threshold=0.2, trained_with="half")
    frame, evidence = found.frame, found.evidence
    intervals = resample_texts(Predictions(labels, predictions, classes, metric, PERCENTS), resamples=199)
    random = found.curve("random")
    for name in SHARES:
        steps = [step for _, step in frame[frame["method"] == name].groupby("percent")]
        values = [score([metric], step["label"], step["prediction"], classes)[metric] for step in steps]
        curve = Curve(PERCENTS, tuple(values), metric, 30)
        assert found.curve(name) == curve
        assert found.acu(name) == fm.acu(curve, random)
        assert found.racu(name) == pytest.approx(fm.racu(curve, random), nan_ok=True)
        assert found.interval(name, "acu") == intervals.acu(name)
        assert evidence.methods[name].area == found.interval(name).or_mean()
        for test in FLOORS:
            each = [fm.simes(step[f"p_{test}"]) for step in steps]
            assert [step.p for step in found.pvalues(name, test).values()] == each
            assert found.p(name, test) == evidence.methods[name].p[test] == fm.simes(each[:-1])
    below = (p["crossfit"] < 0.05).mean(axis=0)
    assert evidence.outside_share == pytest.approx(below[:-1].max())
    assert evidence.p_wholly_masked == fm.simes(p["crossfit"][:, -1])
    assert (evidence.whole, evidence.converged) == (random.values[0], random.values[0] > 0.2)
    assert evidence.group == found.leaders == found.ranking.leaders
    table = found.table()
    assert table["method"].tolist() == found.ranked
    assert table["acu"].tolist() == [found.acu(name) for name in found.ranked]
    described = found.to_dict()
    assert described["methods"]["search"]["acu"] == found.acu("search")
    assert described["verdict"]["leaders"] == found.verdict.leaders


def test_several_seeds_are_pooled_over_seeds_and_texts() -> None:
    seeds = [seed(number) for number in range(3)]
    pooled = result(*seeds)
    arrays = {name: np.stack([one[name].predictions for one in seeds]) for name in SHARES}
    predictions = Predictions(LABELS, arrays, 2, "accuracy", PERCENTS)
    intervals = resample_texts(predictions, resamples=199)
    for name in SHARES:
        each = [result(one).acu(name) for one in seeds]
        assert pooled.seed_areas(name, "acu") == each
        assert pooled.acu(name) == pytest.approx(np.mean(each))
        assert pooled.interval(name, "acu") == intervals.acu(name)
        assert repr(pooled.interval(name, "racu")) == repr(intervals.racu(name))
        assert pooled.curve_intervals(name) == intervals.curve(name)
        assert pooled.curve(name).values[3] == pytest.approx(
            np.mean([one[name].predictions[:, 3] == LABELS for one in seeds])
        )
    own = pooled.group("loo-sign").select(["loo-sign", "grad-l2"]).predictions("mean")
    assert pooled.leaders == rank_methods(own, "faithfulness", swaps=199).leaders
    assert pooled.evidence.seeds == 3
    alone = [result(one) for one in seeds]
    assert pooled.p("grad-l2", "crossfit") == fm.simes([one.p("grad-l2", "crossfit") for one in alone])
    assert pooled.evidence.racu_divisor == pytest.approx(
        np.mean([one.evidence.racu_divisor for one in alone])
    )
    assert "3 seeds" in repr(pooled)


def test_a_seed_that_did_not_learn_is_left_out_and_named() -> None:
    guessing = {name: replace(one, logits=one.logits[:, ::-1]) for name, one in seed(1).items()}
    guessing = {name: replace(one, logits=0 * one.logits) for name, one in guessing.items()}
    some = result(seed(0), guessing, threshold=0.6)
    assert (len(some.used), some.evidence.unlearned_seeds) == (1, 1)
    assert some.acu("loo-sign") == result(seed(0)).acu("loo-sign")
    assert "1 of 2 seeds did not learn the task and are left out" in [doubt.text for doubt in some.doubts]
    none = result(guessing, guessing, threshold=0.6)
    assert (len(none.used), none.evidence.learned) == (2, False)
    assert "did not learn the task with any of 2 seeds" in none.verdict.answers[0].text


@pytest.mark.parametrize("change", ["rows", "labels", "steps"])
def test_seeds_on_other_texts_are_not_pooled_and_named(change: str) -> None:
    other = seed(2)
    if change == "rows":
        other = {name: replace(one, rows=one.rows + 1) for name, one in other.items()}
    elif change == "labels":
        other = {name: replace(one, targets=1 - one.targets) for name, one in other.items()}
    else:
        percents = (0, 5, *PERCENTS[2:])
        other = {name: replace(one, percents=percents) for name, one in other.items()}
    pooled = result(seed(0), other, seed(1))
    assert len(pooled.used) == 2
    assert repr(pooled.acu("loo-sign")) == repr(result(seed(0), seed(1)).acu("loo-sign"))
    [doubt] = [doubt for doubt in pooled.doubts if doubt.kind == "other-texts"]
    assert doubt.text == "1 of 3 seeds were measured on other texts and are left out"


def test_methods_on_fewer_texts_have_their_own_areas_and_are_compared_on_the_shared_ones() -> None:
    one = seed(0)
    one["again"] = replace(one["loo-sign"], method="again").first(20)
    mixed = result(one, trained_with="half")
    few = result({name: each.first(20) for name, each in one.items()})
    assert (mixed.texts, mixed.texts_of("again")) == (60, 20)
    assert mixed.acu("again") == few.acu("again") == few.acu("loo-sign")
    assert mixed.acu("loo-sign") == result(seed(0)).acu("loo-sign") != few.acu("loo-sign")
    assert mixed.interval("again") == few.interval("again")
    assert mixed.rivals == ["loo-sign", "grad-l2"]
    assert mixed.ranking == result(seed(0)).ranking
    areas = {name: few.area(name) for name in one if name != "random"}
    assert mixed.shared_areas("again", "loo-sign") == (20, areas)
    both = f"On the 20 texts that both were measured on, again has {format_percent(areas['again'])}%"
    accepted = Behavior((50,), (Interval(0, -0.01, 0.01),), (Interval(-0.2, -0.3, -0.1),), 60, 60)
    assert both in verdict(replace(mixed.evidence, behavior=accepted)).answers[1].text
    assert mixed.first(20).methods == list(one)
    assert "again" not in mixed.first(21).methods


def test_seeds_with_fewer_texts_are_cut_to_those_of_all() -> None:
    short = {name: one.first(40) for name, one in seed(1).items()}
    pooled = result(seed(0), short)
    first = result(*({name: one.first(40) for name, one in seed(n).items()} for n in (0, 1)))
    assert pooled.texts == 40
    assert pooled.interval("grad-l2") == first.interval("grad-l2")


def test_a_method_that_only_some_seeds_have_is_measured_with_these() -> None:
    first, second = seed(0), seed(1)
    second.pop("search")
    pooled = result(first, second)
    assert (pooled.seeds_of("search"), pooled.seeds_of("loo-sign")) == (1, 2)
    assert pooled.acu("search") == result(first).acu("search")
    assert pooled.rivals == ["loo-sign", "grad-l2"]
    assert pooled.shared_areas("search", "loo-sign")[1]["loo-sign"] == result(first).area("loo-sign")


def test_the_ceiling_is_the_mean_over_seeds() -> None:
    seeds = [seed(0), seed(1)]
    pooled, alone = result(*seeds), [result(one) for one in seeds]
    assert pooled.ceiling is not None
    assert pooled.share_of_ceiling("grad-l2") == pytest.approx(
        np.mean([one.share_of_ceiling("grad-l2") for one in alone])
    )
    without = {name: one for name, one in seeds[0].items() if name != "search"}
    assert result(without).ceiling is None
    assert math.isnan(result(without).share_of_ceiling("loo-sign"))


def test_numbers_have_areas_in_their_metric() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=30)
    noise = rng.normal(size=(30, 11)) * np.linspace(0, 3, 11)
    guesses = truth[:, None] + noise
    logits = np.stack([-guesses, guesses], axis=2).astype(np.float32)
    flat = trace("random", np.zeros((30, 11), int), truth)
    one = {"random": replace(flat, logits=logits, numbers=True)}
    one["grad-l2"] = replace(one["random"], method="grad-l2", logits=logits[:, ::-1].copy())
    numbers = result(one, metric="pearson", floors={})
    curve = numbers.curve("random")
    assert curve.values[4] == pytest.approx(np.corrcoef(truth, logits[:, 4, 1])[0, 1])
    assert numbers.evidence.kind == "acu"
    assert numbers.acu("grad-l2") == fm.acu(numbers.curve("grad-l2"), curve)
    assert math.isnan(numbers.area("grad-l2", "faithfulness"))
    assert numbers.to_dict()["methods"]["grad-l2"]["metrics"]["deletion"] is not None


def test_agreement_with_rationales_follows_from_the_scores() -> None:
    inputs = pd.DataFrame(
        {
            "row": [0, 1],
            "starts": [[0, 2, 4, 6]] * 2,
            "ends": [[1, 3, 5, 7]] * 2,
            "rationale": [[(0, 3)], None],  # the first two units, of the first text only
        }
    )
    one = result(seed(0), inputs=inputs)
    assert one.plausibility["loo-sign"] == {"token_f1": 1.0, "token_iou": 1.0, "auprc": 1.0}
    assert result(seed(0), inputs=inputs.drop(columns="rationale")).plausibility == {}


def test_contexts_of_seeds_are_joined_with_care() -> None:
    one = context(floors=FLOORS, precision="fp32", agreement=0.99, truncated=0.1)
    other = context(floors={"crossfit": 0.01}, precision="bf16", agreement=0.95, classes_by_number=True)
    both = join_contexts([one, other])
    assert both.floors == {"crossfit": 0.01}
    assert (both.precision, both.agreement, both.truncated) == ("bf16", 0.95, 0.1)
    assert both.classes_by_number


def test_traces_that_do_not_belong_together_are_refused() -> None:
    one = seed(0)
    with pytest.raises(fm.InputError, match="at least one"):
        Result((), context())
    with pytest.raises(fm.InputError, match="unknown measured method 'random'"):
        result({"loo-sign": one["loo-sign"]})
    one["loo-sign"] = replace(one["loo-sign"], targets=1 - LABELS)
    with pytest.raises(fm.InputError, match="loo-sign was measured on other texts or steps than random"):
        result(one)
    with pytest.raises(fm.InputError, match="no floor of the test 'published'"):
        result(seed(0), floors={})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: one.acu("lo"), "unknown measured method 'lo'"),
        (lambda one: one.curve("loo-sign", "f1"), "unknown metric 'f1'"),
        (lambda one: one.p("loo-sign", "cross"), "unknown test 'cross'"),
        (lambda one: one.area("loo-sign", "auc"), "unknown kind of area 'auc'"),
    ],
)
def test_unknown_names_are_told(call: Any, message: str) -> None:
    with pytest.raises(fm.InputError, match=message):
        call(result(seed(0)))


def calibrated(texts: int, sharpness: float, random: int) -> dict[str, Trace]:
    """Traces of a model whose logits fade with the share masked, times a sharpness."""
    rng = np.random.default_rng(random)
    evidence = 2 * rng.normal(size=texts)
    labels = (rng.random(texts) < 1 / (1 + np.exp(-2 * evidence))).astype(int)
    flat = trace("random", np.zeros((texts, 11), int), labels)
    logits = np.stack([-evidence, evidence], axis=1)[:, None] * np.ones((11, 1))
    logits[:, 1:] *= sharpness
    return {"random": replace(flat, logits=logits.astype(np.float32))}


@pytest.mark.parametrize(("sharpness", "outcome"), [(1.0, "accepted"), (6.0, "rejected")])
def test_the_behavioral_check_compares_test_texts_with_validation_texts(
    sharpness: float, outcome: str
) -> None:
    validation, test = calibrated(400, sharpness, 1), calibrated(400, sharpness, 2)
    random = validation["random"]
    known = recalibrate(random.logits, random.targets, random.percents)
    measured = result(test, recalibrations=(known,))
    assert measured.behavior is not None
    assert measured.behavior.outcome == outcome
    assert measured.behavior.percents == PERCENTS[1:-1]
    assert measured.evidence.measurable == (outcome == "accepted")
    assert result(test).behavior is None


def test_one_seed_that_is_rejected_decides_for_all() -> None:
    good, bad = calibrated(400, 1.0, 2), calibrated(400, 6.0, 2)
    knowns = []
    for sharpness in (1.0, 6.0):
        random = calibrated(400, sharpness, 1)["random"]
        knowns.append(recalibrate(random.logits, random.targets, random.percents))
    both = result(good, bad, recalibrations=tuple(knowns))
    assert both.behavior is not None
    assert both.behavior.outcome == "rejected"
    assert result(good, bad, recalibrations=(knowns[0],)).behavior is None
