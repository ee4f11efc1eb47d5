"""Fitting of what the behavioral check needs: on masked validation texts, saved with the tests."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import faithmeter as fm
from faithmeter.data import Task
from faithmeter.measuring.fitting import (
    CROSSFIT,
    Masking,
    fit_recalibration,
    fit_tests,
    fit_tests_on,
    trace_masked,
)
from faithmeter.measuring.plan import recalibration_of
from faithmeter.measuring.trace import Trace
from faithmeter.models.classes import match_classes
from faithmeter.report.view import areas_table
from faithmeter.stats.masf import MaSF, rows_held_out
from faithmeter.stats.pvalues import count_unusual, rejected_ranks
from toy import WORDS, tiny


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Task:
    path, rng = tmp_path_factory.mktemp("data") / "reviews.csv", random.Random(0)
    rows = [f"{' '.join(rng.choices(WORDS, k=rng.randint(3, 9)))},{'abc'[row % 3]}" for row in range(1200)]
    path.write_text("\n".join(["review,stars", *rows]))
    return fm.own_task(path, text="review", label="stars")


@pytest.fixture(scope="module")
def clf() -> fm.Classifier:
    return tiny()


@pytest.fixture(scope="module")
def trace(clf: fm.Classifier, reviews: Task) -> Trace:
    """Validation texts, masked at random, with the p-values of the cross-fitted test."""
    split = reviews.split("validation")
    tests = fit_tests_on(clf, split, Masking())
    return trace_masked(clf, split, {CROSSFIT: tests[CROSSFIT]}, len(split), 0)


def test_the_check_is_fitted_beside_the_tests(
    clf: fm.Classifier, reviews: Task, trace: Trace, tmp_path: Path
) -> None:
    tests = fit_tests(clf, reviews)
    known = recalibration_of(tests)
    assert known is not None
    assert known.percents == tuple(range(10, 100, 10))
    assert known.texts == len(reviews.split("validation"))
    assert len(known.biases[0]) == 3
    file = tmp_path / "test.safetensors"
    tests["crossfit"].save(file, fingerprint="f")
    again = MaSF.load(file, fingerprint="f")
    assert (again.recalibration, again.own_recalibration) == (known, recalibration_of(tests, own=True))
    assert again.own_recalibration == fit_recalibration(trace, None, rows_held_out(len(trace)))
    assert recalibration_of({}) is None


def test_limits_reject_one_in_twenty_texts_that_the_test_did_not_learn_from(trace: Trace) -> None:
    references = rows_held_out(len(trace))
    known = fit_recalibration(trace, None, references)
    assert known.references == len(references)
    pvalues = trace.pvalues[CROSSFIT][references][:, 1:10]
    below = (pvalues < np.array(known.limits)).sum(axis=0)
    assert (below < 0.05 * (len(references) + 1)).all()
    assert ((pvalues <= np.array(known.limits)).sum(axis=0) >= rejected_ranks(len(references))).all()
    assert known.at((10, 90)).limits == (known.limits[0], known.limits[-1])


def test_too_few_references_give_no_limits(trace: Trace) -> None:
    known = fit_recalibration(trace, None, np.arange(18))
    assert (known.limits, known.references) == ((), 0)


def test_a_measurement_counts_unusual_texts(clf: fm.Classifier, reviews: Task) -> None:
    tests = fit_tests(clf, reviews)
    result = fm.measure(clf, reviews, ["loo-sign"], limit=20, tests=tests)
    unusual = result.unusual("loo-sign")
    known = recalibration_of(tests)
    assert unusual is not None
    assert known is not None
    pvalues = result.seeds[0]["loo-sign"].pvalues[CROSSFIT][:, 1:10]
    assert unusual == count_unusual(pvalues, known.limits, known.references)
    assert result.evidence.is_outside("loo-sign") == (unusual.p < 0.05)
    [note] = [note for note in areas_table(result).notes if "unusual" in note]
    assert f"loo-sign {100 * unusual.share:.0f}%" in note
    assert fm.measure(clf, reviews, ["loo-sign"], limit=20, tests=None).unusual("loo-sign") is None


def test_classes_of_the_task_become_those_of_the_model(reviews: Task, trace: Trace) -> None:
    split, references = reviews.split("validation"), rows_held_out(len(trace))
    same = fit_recalibration(trace, match_classes("abc", "abc"), references)
    other = fit_recalibration(trace, match_classes("cab", "abc"), references)
    counts = np.bincount(split["label"], minlength=3)
    assert same.constant == counts.argmax()
    assert other.constant == match_classes("cab", "abc").numbers[int(counts.argmax())]


def test_without_labels_the_predictions_for_whole_texts_take_their_place(
    clf: fm.Classifier, reviews: Task, trace: Trace
) -> None:
    split = reviews.split("validation")
    known = fit_recalibration(trace, None, rows_held_out(len(trace)))
    batch = clf.encode(split["text"])
    predicted = clf.logits(batch).argmax(dim=1).numpy()
    assert known.constant == np.bincount(predicted, minlength=3).argmax()


def test_texts_without_labels_are_checked_against_the_own_predictions(
    clf: fm.Classifier, reviews: Task
) -> None:
    tests, texts = fit_tests(clf, reviews), reviews.split("test")["text"][:30]
    own, labeled = fm.measure(clf, texts, [], tests=tests), fm.measure(clf, reviews, [], tests=tests)
    assert own.context.recalibrations == (recalibration_of(tests, own=True),)
    assert labeled.context.recalibrations == (recalibration_of(tests),)
    assert own.context.recalibrations != labeled.context.recalibrations
