"""Fitting of what the behavioral check needs: on masked validation texts, saved with the tests."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import faithmeter as fm
from faithmeter.measuring.fitting import fit_recalibration
from faithmeter.measuring.plan import recalibration_of
from faithmeter.models.classes import match_classes
from faithmeter.stats.masf import MaSF
from toy import WORDS, tiny


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> fm.Task:
    path, rng = tmp_path_factory.mktemp("data") / "reviews.csv", random.Random(0)
    rows = [f"{' '.join(rng.choices(WORDS, k=rng.randint(3, 9)))},{'abc'[row % 3]}" for row in range(200)]
    path.write_text("\n".join(["review,stars", *rows]))
    return fm.own_task(path, text="review", label="stars")


@pytest.fixture(scope="module")
def clf() -> fm.Classifier:
    return tiny()


def test_the_check_is_fitted_beside_the_tests(clf: fm.Classifier, reviews: fm.Task, tmp_path: Path) -> None:
    tests = fm.fit_tests(clf, reviews)
    known = recalibration_of(tests)
    assert known is not None
    assert known.percents == tuple(range(10, 100, 10))
    assert known.texts == len(reviews.split("validation"))
    assert len(known.biases[0]) == 3
    file = tmp_path / "test.safetensors"
    tests["crossfit"].save(file, fingerprint="f")
    again = MaSF.load(file, fingerprint="f")
    assert (again.recalibration, again.own_recalibration) == (known, recalibration_of(tests, own=True))
    assert again.own_recalibration == fit_recalibration(clf, reviews.split("validation"), None)
    assert recalibration_of({}) is None


def test_classes_of_the_task_become_those_of_the_model(clf: fm.Classifier, reviews: fm.Task) -> None:
    split = reviews.split("validation")
    same = fit_recalibration(clf, split, match_classes("abc", "abc"))
    other = fit_recalibration(clf, split, match_classes("cab", "abc"))
    assert same is not None
    assert other is not None
    counts = np.bincount(split["label"], minlength=3)
    assert same.constant == counts.argmax()
    assert other.constant == match_classes("cab", "abc").numbers[int(counts.argmax())]


def test_without_labels_the_predictions_for_whole_texts_take_their_place(
    clf: fm.Classifier, reviews: fm.Task
) -> None:
    split = reviews.split("validation")
    known = fit_recalibration(clf, split, None)
    batch = clf.encode(split["text"])
    predicted = clf.logits(batch).argmax(dim=1).numpy()
    assert known is not None
    assert known.constant == np.bincount(predicted, minlength=3).argmax()


def test_texts_without_labels_are_checked_against_the_own_predictions(
    clf: fm.Classifier, reviews: fm.Task
) -> None:
    tests, texts = fm.fit_tests(clf, reviews), reviews.split("test")["text"][:30]
    own, labeled = fm.measure(clf, texts, [], tests=tests), fm.measure(clf, reviews, [], tests=tests)
    assert own.context.recalibrations == (recalibration_of(tests, own=True),)
    assert labeled.context.recalibrations == (recalibration_of(tests),)
    assert own.context.recalibrations != labeled.context.recalibrations
