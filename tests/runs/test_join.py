"""A measurement is a join of traces: what is kept is not computed again, and nothing else is taken for it."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import faithmeter as fm
from faithmeter.data import Task
from faithmeter.errors import DamageWarning
from faithmeter.measuring import erase, texts
from faithmeter.measuring.fitting import fit_tests
from faithmeter.models.evaluator import Evaluator
from faithmeter.store.traces import find_gaps
from toy import WORDS, tiny

DEAR = ["loo-sign", "loo-abs"]


@pytest.fixture(scope="module")
def reviews(tmp_path_factory) -> Task:
    path, rng = tmp_path_factory.mktemp("data") / "reviews.csv", random.Random(0)
    lines = [
        f"{row} {' '.join(rng.choices(WORDS, k=rng.randint(2, 9)))},{'abc'[row % 3]}" for row in range(300)
    ]
    path.write_text("\n".join(["review,stars", *lines]))
    return fm.own_task(path, text="review", label="stars")


@pytest.fixture(scope="module")
def clf() -> fm.Classifier:
    return tiny()


@pytest.fixture(scope="module")
def fitted(clf: fm.Classifier, reviews: Task) -> dict[str, fm.MaSF]:
    return fit_tests(clf, reviews)


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "SLICE", 8)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is done from now on: rows explained by method, evaluations, and rows tokenized."""
    done: dict[str, Any] = {"explained": Counter(), "evaluations": 0, "tokenized": Counter()}
    explain, gather, read = erase.explain, Evaluator.gather, texts.read_rows

    def counted_explain(clf, batch, labels, method):
        done["explained"].update((str(method), row) for row in batch.index.tolist())
        return explain(clf, batch, labels, method)

    def counted_gather(self, work, batch, rows):
        done["evaluations"] += len(rows)
        return gather(self, work, batch, rows)

    def counted_read(clf, split, rows, unit="token"):
        done["tokenized"].update(rows)
        return read(clf, split, rows, unit)

    monkeypatch.setattr(erase, "explain", counted_explain)
    monkeypatch.setattr(Evaluator, "gather", counted_gather)
    monkeypatch.setattr("faithmeter.runs.join.read_rows", counted_read)
    return done


def forget(work: dict[str, Any]) -> None:
    work["explained"].clear()
    work["tokenized"].clear()
    work["evaluations"] = 0


def same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(one, other, check_exact=True)


def test_a_cheap_method_after_two_dear_ones_costs_only_itself(clf, reviews, tmp_path, work) -> None:
    fm.measure(clf, reviews, DEAR, limit=20, cache_dir=tmp_path)
    forget(work)
    alone = fm.measure(clf, reviews, ["grad-l2"], limit=20).evaluations_alone["grad-l2"]
    forget(work)
    result = fm.measure(clf, reviews, [*DEAR, "grad-l2"], limit=20, cache_dir=tmp_path)
    assert {name for name, _ in work["explained"]} == {"grad-l2"}
    assert work["evaluations"] == result.evaluations["grad-l2"] == alone
    assert result.methods == ["random", *DEAR, "grad-l2"]
    forget(work)
    again = fm.measure(clf, reviews, [*DEAR, "grad-l2"], limit=20, cache_dir=tmp_path)
    assert work["evaluations"] == 0
    assert not work["tokenized"]
    same(again.frame, result.frame)
    assert again.evaluations == result.evaluations, "what is read cost what it cost"


def test_a_larger_limit_costs_only_the_new_texts(clf, reviews, tmp_path, work) -> None:
    few = fm.measure(clf, reviews, ["loo-sign"], limit=11, cache_dir=tmp_path)
    forget(work)
    many = fm.measure(clf, reviews, ["loo-sign"], limit=22, cache_dir=tmp_path)
    assert min(row for _, row in work["explained"]) == 11
    assert work["tokenized"] == Counter(range(11, 22))
    whole = fm.measure(clf, reviews, ["loo-sign"], limit=22)
    pd.testing.assert_frame_equal(many.frame, whole.frame, atol=1e-6)
    assert many.acu("loo-sign") == whole.acu("loo-sign")
    forget(work)
    again = fm.measure(clf, reviews, ["loo-sign"], limit=11, cache_dir=tmp_path)
    assert work["evaluations"] == 0
    same(again.frame, few.frame)


def test_another_test_and_another_metric_explain_nothing_again(clf, reviews, fitted, tmp_path, work) -> None:
    plain = fm.measure(clf, reviews, ["loo-sign"], limit=20, cache_dir=tmp_path)
    whole = fm.measure(clf, reviews, ["loo-sign"], limit=20, tests=fitted)
    forget(work)
    checked = fm.measure(clf, reviews, ["loo-sign"], limit=20, tests=fitted, cache_dir=tmp_path)
    assert not work["explained"]
    assert 0 < work["evaluations"] < plain.evaluations["loo-sign"] + plain.evaluations["random"]
    for test in fitted:
        np.testing.assert_array_equal(checked.frame[f"p_{test}"], whole.frame[f"p_{test}"])
    forget(work)
    other = fm.measure(
        clf, reviews, ["loo-sign"], limit=20, metric="macro_f1", tests=fitted, cache_dir=tmp_path
    )
    refitted = fit_tests(clf, reviews, trained_with="all")
    texts = len(reviews.load()["validation"])
    assert texts < work["evaluations"] <= 11 * texts, "of the fit alone: one rate for each text, then nine"
    assert other.metric == "macro_f1"
    forget(work)
    third = fm.measure(clf, reviews, ["loo-sign"], limit=20, tests=refitted, cache_dir=tmp_path)
    assert not work["explained"]
    assert third.p("loo-sign", "crossfit") != checked.p("loo-sign", "crossfit")


def test_fewer_texts_of_a_longer_trace_are_completed_alone(clf, reviews, fitted, tmp_path, work) -> None:
    fm.measure(clf, reviews, ["grad-l2"], limit=22, cache_dir=tmp_path)
    whole = fm.measure(clf, reviews, ["grad-l2"], limit=10, tests=fitted)
    forget(work)
    few = fm.measure(clf, reviews, ["grad-l2"], limit=10, tests=fitted, cache_dir=tmp_path)
    assert not work["explained"]
    assert work["tokenized"] == Counter(range(10))
    for test in fitted:
        np.testing.assert_array_equal(few.frame[f"p_{test}"], whole.frame[f"p_{test}"])
    forget(work)
    again = fm.measure(clf, reviews, ["grad-l2"], limit=10, tests=fitted, cache_dir=tmp_path)
    assert work["evaluations"] == 0
    same(again.frame, few.frame)
    many = fm.measure(clf, reviews, ["grad-l2"], limit=22, tests=fitted, cache_dir=tmp_path)
    assert work["tokenized"] == Counter(range(10, 22))
    assert many.texts == 22


def test_a_complement_explains_nothing_again(clf, reviews, tmp_path, work) -> None:
    whole = fm.measure(clf, reviews, ["loo-sign"], limit=20, complement=True)
    fm.measure(clf, reviews, ["loo-sign"], limit=20, cache_dir=tmp_path)
    forget(work)
    kept = fm.measure(clf, reviews, ["loo-sign"], limit=20, complement=True, cache_dir=tmp_path)
    assert not work["explained"]
    np.testing.assert_allclose(kept.frame["kept"], whole.frame["kept"], atol=1e-12)
    forget(work)
    again = fm.measure(clf, reviews, ["loo-sign"], limit=20, complement=True, cache_dir=tmp_path)
    assert work["evaluations"] == 0
    same(again.frame, kept.frame)


def test_own_scores_are_a_trace_whose_code_is_their_content(clf, reviews, tmp_path, work) -> None:
    numbers = [[1.0] * len(text.split()) for text in reviews.load()["test"]["text"]]
    for scores, explained in (
        (numbers, True),
        (numbers, False),
        ([[2.0] * len(row) for row in numbers], True),
    ):
        forget(work)
        fm.measure(clf, reviews, {"mine": scores}, limit=10, cache_dir=tmp_path)
        assert bool(work["explained"]) == explained
    assert len([*tmp_path.glob("traces/*/mine-*")]) == 2


def test_a_name_for_another_method_is_another_trace(clf, reviews, tmp_path) -> None:
    first, other = (
        fm.measure(clf, reviews, {"mine": name}, limit=10, cache_dir=tmp_path).frame
        for name in ("loo-sign", "loo-abs")
    )
    assert len([*tmp_path.glob("traces/*/mine-*")]) == 2
    assert first["scores"].tolist() != other["scores"].tolist()


def test_traces_of_other_settings_are_not_taken(clf, reviews, tmp_path, work) -> None:
    def explains(*given: Any, **options: Any) -> bool:
        forget(work)
        fm.measure(*given, limit=10, cache_dir=tmp_path, **options)
        return bool(work["explained"])

    assert explains(clf, reviews, ["random(seed=1)", "loo-sign"])
    assert not explains(clf, reviews, ["random(seed=1)", "loo-sign"])
    assert explains(clf, reviews, ["random(seed=2)", "loo-sign"])
    assert {name for name, _ in work["explained"]} == {"random(seed=2)"}
    assert explains(clf, reviews, ["loo-sign"], percents=(0, 50, 100))
    assert explains(clf, reviews, ["loo-sign"], unit="word")
    assert explains(clf, reviews, ["loo-sign"], split="validation")
    assert explains(clf, reviews, ["loo-sign(of=margin)"])
    assert explains(tiny(dtype=torch.float32), reviews, ["loo-sign"])


def test_a_kill_loses_only_the_slice_at_work(clf, reviews, tmp_path, work) -> None:
    whole = fm.measure(clf, reviews, ["loo-sign"], limit=20)
    steps: list[tuple[str, int, int]] = []

    def killed(*step: Any) -> None:
        steps.append(step)
        if step == ("random", 20, 20):  # in the third slice, between two methods
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fm.measure(clf, reviews, ["loo-sign"], limit=20, cache_dir=tmp_path, progress=killed)
    forget(work)
    options = {"limit": 20, "cache_dir": tmp_path}
    again = fm.measure(clf, reviews, ["loo-sign"], **options, progress=lambda *step: steps.append(step))
    assert {row for _, row in work["explained"]} == {*range(16, 20)}
    assert [file.name for file in tmp_path.glob("traces/*/loo-sign-*/*.parquet")] == ["0-20.parquet"]
    same(again.frame, whole.frame)
    assert again.evaluations == whole.evaluations
    assert steps[-1] == ("loo-sign", 20, 20)
    assert [done for name, done, _ in steps if name == "loo-sign"] == sorted(
        done for name, done, _ in steps if name == "loo-sign"
    ), "progress counts all that is done"


def test_a_damaged_slice_costs_only_itself(clf, reviews, fitted, tmp_path, work, monkeypatch) -> None:
    monkeypatch.setattr("faithmeter.runs.join.merge_slices", lambda *_: None)
    whole = fm.measure(clf, reviews, ["loo-sign"], limit=20, tests=fitted, cache_dir=tmp_path)
    [file] = tmp_path.glob("traces/*/loo-sign-*/8-16.parquet")
    damage(file)
    forget(work)
    with pytest.warns(DamageWarning):
        again = fm.measure(clf, reviews, ["loo-sign"], limit=20, tests=fitted, cache_dir=tmp_path)
    assert {*work["explained"]} == {("loo-sign", row) for row in range(8, 16)}
    pd.testing.assert_frame_equal(again.frame, whole.frame, atol=1e-7)


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("name", ["0-20", "p-crossfit-*-0-20", "kept-0-20"])
def test_a_damaged_file_is_put_aside_and_computed_again(clf, reviews, fitted, tmp_path, work, name) -> None:
    options: dict[str, Any] = {"limit": 20, "tests": fitted, "complement": True, "cache_dir": tmp_path}
    whole = fm.measure(clf, reviews, ["loo-sign"], **options)
    [file] = tmp_path.glob(f"traces/*/loo-sign-*/{name}.parquet")
    content = file.read_bytes()
    damage(file)
    forget(work)
    with pytest.warns(DamageWarning, match=rf"{file.name} is not as it was written"):
        again = fm.measure(clf, reviews, ["loo-sign"], **options)
    pd.testing.assert_frame_equal(again.frame, whole.frame, atol=1e-7)
    assert bool(work["explained"]) == (name == "0-20")
    [aside] = (tmp_path / "quarantine").iterdir()
    assert aside.name.endswith(file.name)
    assert aside.read_bytes() != content
    forget(work)
    fm.measure(clf, reviews, ["loo-sign"], **options)
    assert work["evaluations"] == 0


def test_damaged_texts_are_located_again_without_the_model(clf, reviews, tmp_path, work) -> None:
    whole = fm.measure(clf, reviews, ["loo-sign"], limit=20, cache_dir=tmp_path)
    [file] = tmp_path.glob("traces/*/texts/0-20.parquet")
    damage(file)
    forget(work)
    with pytest.warns(DamageWarning):
        again = fm.measure(clf, reviews, ["loo-sign"], limit=20, cache_dir=tmp_path)
    same(again.context.inputs, whole.context.inputs)
    assert work["evaluations"] == 0
    assert work["tokenized"] == Counter(range(20))


def test_digits_do_not_depend_on_the_batch_size(clf, reviews, monkeypatch) -> None:
    """Areas and masks are equal; probabilities up to the rounding of sums in another order."""
    monkeypatch.setattr(texts, "SLICE", 64)
    results = []
    for budget in (32, 4096):
        monkeypatch.setattr("faithmeter.models.evaluator.token_budget", lambda *_, budget=budget: budget)
        results.append(fm.measure(clf, reviews, ["loo-sign", "grad-l2"], limit=24))
    one, other = results
    columns = ["method", "row", "percent", "masked", "prediction"]
    same(one.frame[columns], other.frame[columns])
    np.testing.assert_allclose(one.frame["probability"], other.frame["probability"], atol=1e-6)
    assert one.areas == other.areas


def test_a_model_without_a_fingerprint_keeps_no_traces(reviews, tmp_path) -> None:
    class Nameless(Evaluator):
        fingerprint = ""

    with pytest.raises(fm.InputError, match="no fingerprint, by which kept traces are found"):
        fm.measure(Nameless(tiny()), reviews, ["loo-sign"], cache_dir=tmp_path)


def test_gaps_end_at_slices_and_at_the_limit(monkeypatch) -> None:
    monkeypatch.setattr(texts, "SLICE", 64)
    assert find_gaps([], 48) == [range(48)]
    after = [range(48, 64), range(64, 128), range(128, 192), range(192, 200)]
    assert find_gaps([range(48)], 200) == after
    assert find_gaps([range(64), range(100, 128)], 110) == [range(64, 100)]
    assert find_gaps([range(200)], 200) == []


def test_a_slice_is_pure(clf, reviews) -> None:
    """What a worker is given decides what it returns: nothing is read, and nothing is remembered."""
    from faithmeter.measuring.plan import Settings, parse_methods

    methods = {str(method): method for method in parse_methods(["loo-sign", "grad-l2"])}
    work = erase.Work(Evaluator(clf), methods, settings=Settings(percents=(0, 50, 100)))
    batch, labels = texts.read_rows(work.evaluator, reviews.load()["test"], range(3, 9))
    part = erase.Slice(batch, labels, ("grad-l2", "loo-sign"))
    first, again = erase.trace_slice(work, part), erase.trace_slice(work, part)
    assert first.keys() == {"grad-l2", "loo-sign"}
    for name, trace in first.items():
        assert trace.rows.tolist() == [*range(3, 9)]
        np.testing.assert_array_equal(trace.logits, again[name].logits)
        assert trace.evaluations == again[name].evaluations
