"""Scores that were computed elsewhere: measured like a method, refused in one line if they do not fit."""

from __future__ import annotations

import json
import random
import re

import pytest
import torch

import faithmeter as fm
from faithmeter.data import Task
from faithmeter.measuring.fitting import fit_tests
from faithmeter.methods import METHODS
from faithmeter.methods.own_scores import own_scores, register_scores
from toy import WORDS, tiny


@pytest.fixture(scope="module")
def reviews(tmp_path_factory) -> Task:
    path, rng = tmp_path_factory.mktemp("data") / "reviews.csv", random.Random(0)
    rows = [
        f"{' '.join(rng.choices(WORDS, k=rng.randint(2, 9)))} {row},{'abc'[row % 3]}" for row in range(70)
    ]
    path.write_text("review,stars\n" + "\n".join(rows))
    return fm.own_task(path, text="review", label="stars", all_test=True)


@pytest.fixture(scope="module")
def clf() -> fm.Classifier:
    return tiny()


@pytest.fixture(scope="module")
def scores(clf: fm.Classifier, reviews: Task) -> list[list[float]]:
    """Leave-one-out of the whole texts, as someone else may have computed it."""
    rows = reviews.load()["test"]
    batch = clf.encode(rows["text"])
    values = fm.explain(clf, batch, rows["label"], "loo-sign")
    return [row[at].tolist() for row, at in zip(values, batch.explained, strict=True)]


def test_rows_of_a_file_are_test_texts_in_its_order(reviews: Task) -> None:
    splits = reviews.load()
    assert list(splits) == ["test"]
    assert [text.split()[-1] for text in splits["test"]["text"]] == list(map(str, range(70)))
    with pytest.raises(fm.InputError, match="has no validation rows: all its rows are test texts"):
        fit_tests(tiny(), reviews)


@pytest.mark.parametrize("kind", ["list", "rows", "texts", "file"])
def test_own_scores_are_measured_like_the_method_they_come_from(clf, reviews, scores, kind, tmp_path) -> None:
    """Not recursive: the same scores decide at every step."""
    texts = reviews.load()["test"]["text"]
    own = {"list": scores, "rows": dict(enumerate(scores)), "texts": dict(zip(texts, scores, strict=True))}
    lines = [json.dumps({"row": row, "scores": values}) for row, values in enumerate(scores)]
    (tmp_path / "mine.jsonl").write_text("\n".join(lines))
    value = own_scores("mine", tmp_path / "mine.jsonl") if kind == "file" else own[kind]
    result = fm.measure(clf, reviews, {"mine": value}, limit=20)
    once = fm.methods.Method("once", METHODS["loo-sign"].function, recursive=False)
    expected = fm.measure(clf, reviews, [once], limit=20)
    assert result.curve("mine").values == expected.curve("once").values
    frames = [each.frame[each.frame["method"] != "random"] for each in (result, expected)]
    assert frames[0]["probability"].tolist() == pytest.approx(frames[1]["probability"].tolist(), abs=1e-12)
    columns = ["row", "percent", "masked", "prediction"]
    assert frames[0][columns].values.tolist() == frames[1][columns].values.tolist()
    [note] = [doubt for doubt in result.verdict.doubts if doubt.kind == "explained-once"]
    assert note.methods == ("mine",)
    assert "explained once" in note.text
    assert result.evaluations["mine"] < expected.evaluations["once"]


def test_a_mapping_names_methods_too(clf, reviews, scores) -> None:
    result = fm.measure(clf, reviews, {"mine": scores, "ours": "loo-sign"}, limit=10)
    assert result.methods == ["random", "mine", "ours"]
    with pytest.raises(fm.InputError, match="which is the baseline"):
        fm.measure(clf, reviews, {"random": scores})
    with pytest.raises(fm.InputError, match="a method named 'my scores'"):
        fm.measure(clf, reviews, {"my scores": scores})


def test_one_text_takes_scores_by_its_text(clf) -> None:
    text = "the film was good"
    result = fm.explain_text(clf, text, method={"mine": {text: [1, 2, 3, 4]}}, orders=19)
    assert set(result.methods) == {"mine"}


def test_a_pair_is_found_by_text_and_context(clf) -> None:
    batch = clf.encode(["the film", "the film"], ["good", "bad"])
    mine = own_scores("mine", {("the film", "good"): [1, 2], ("the film", "bad"): [3, 4]})
    scores = fm.explain(clf, batch, [0, 0], mine)
    assert scores[batch.explained].tolist() == [1, 2, 3, 4]


def test_bad_scores_are_refused_before_any_work(clf, reviews, scores, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the model was asked")

    monkeypatch.setattr(clf, "logits", fail)
    many = [*scores[:65], [1.0], *scores[66:]]
    for bad, message in (
        (scores[:65], "mine has no scores for text 65"),
        (many, "has 1 scores; expected"),
        ([*scores[:65], [float("nan")] * len(scores[65]), *scores[66:]], "nan among its scores"),
        ([*scores[:65], [10**400] * len(scores[65]), *scores[66:]], "0 among its scores; expected finite"),
        ([0.5] * 70, "scores of a text are 0.5; expected a list"),
        (3, "scores of mine are 3; expected a list for each text"),
        ({"another text": [1.0]}, "mine has scores for the text 'another text', which is not among the 70"),
        ([*scores, [1.0]], "mine has scores for row 70, which is not among the 70 test texts"),
        (dict(enumerate(scores[:-1])), "mine has no scores for text 69"),
    ):
        with pytest.raises(fm.InputError, match=re.escape(message)):
            fm.measure(clf, reviews, {"mine": bad})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ('{"row": 0}', "no column 'scores'"),
        ('{"scores": [1]}', "expected either 'row', the number of a text, or 'text'"),
        ('{"row": 0, "text": "a", "scores": [1]}', "expected either 'row'"),
        ('{"row": "0", "scores": [1]}', "'row' is '0'; expected a whole number or a text"),
        ('{"row": 0, "scores": 1}', "'scores' is 1; expected a list"),
        ('{"text": "a", "context": 5, "scores": [1]}', "'context' is 5; expected the second text beside"),
        ('{"row": 0, "context": "a", "scores": [1]}', "'context' is 'a'; expected the second text beside"),
        ('{"row": 0, "scores": [1]}\n{"row": 0, "scores": [2]}', "row 0 a second time"),
    ],
)
def test_a_damaged_file_names_its_line(tmp_path, line: str, message: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(line)
    with pytest.raises(fm.InputError, match=re.escape(message)) as error:
        own_scores("mine", path)
    assert f"{path}, line " in str(error.value)


def test_the_identity_of_scores_is_their_content(tmp_path) -> None:
    one, other = own_scores("mine", [[1.0]]), own_scores("mine", [[1.5]])
    assert one.code != other.code
    assert one.code == own_scores("mine", [torch.tensor([1.0])]).code
    keys: list[object] = [0, "0", ("0", "a"), ("0", "b"), "('0', 'a')"]
    assert len({own_scores("mine", {key: [1.0]}).code for key in keys}) == len(keys)


def test_no_file_takes_the_name_of_a_method(tmp_path) -> None:
    path = tmp_path / "beam.jsonl"
    path.write_text('{"row": 0, "scores": [1]}')
    with pytest.raises(fm.InputError, match="a method 'beam' exists already; name yours: --scores NAME="):
        register_scores([str(path)])
    [mine] = register_scores([f"mine={path}"])
    assert mine.scores == str(path)
    with pytest.raises(fm.InputError, match="a method 'mine' exists already; name yours: --scores NAME="):
        register_scores([f"mine={path}", f"mine={path}"])
    del METHODS["mine"]
