"""Agreement with rationales: by hand, and on stories whose supporting facts are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

import faithmeter as fm
from faithmeter.data import splits
from faithmeter.measuring.plausibility import PLAUSIBILITY, average_precision, mark_rationale, score_text
from faithmeter.methods import adapters
from faithmeter.models.classes import MULTI_LABEL
from faithmeter.models.loading import load_tokenizer, resolve
from toy import tiny


def test_a_case_by_hand() -> None:
    marks = mark_rationale([(0, 2), (3, 5), (6, 8), (9, 11)], [(3, 8)])
    assert marks.tolist() == [False, True, True, False]
    scores = np.array([0.9, 0.8, 0.1, 0.2])
    result = score_text(scores, marks)  # the two highest: the first and the second
    assert result["token_f1"] == 2 * 1 / (2 + 2)
    assert result["token_iou"] == 1 / 3
    assert result["auprc"] == pytest.approx((1 / 2 + 2 / 4) / 2)  # at recall 1/2 and 1
    perfect = score_text(marks.astype(float), marks)
    assert perfect == {"token_f1": 1.0, "token_iou": 1.0, "auprc": 1.0}


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=12))
def test_average_precision_is_that_of_scikit_learn(units: list[tuple[int, bool]]) -> None:
    """With many equal scores, and at least one marked unit."""
    scores, marks = np.array([float(score) for score, _ in units]), np.array([mark for _, mark in units])
    marks[0] = True
    assert average_precision(marks, scores) == pytest.approx(
        average_precision_score(marks, scores), abs=1e-12
    )


def test_supporting_facts_are_the_rationales_of_stories(monkeypatch) -> None:
    """Scores that are the facts agree wholly; their opposite does not; neither changes faithfulness."""
    from transformers import AutoModelForSequenceClassification

    task = fm.task("bAbI-1")
    model = AutoModelForSequenceClassification.from_pretrained(
        resolve("embedded"), id2label=dict(enumerate(task.labels))
    )
    clf = fm.Classifier(model, load_tokenizer("embedded"))
    monkeypatch.setattr(splits, "GENERATED", {"train": (40, 1), "test": (12, 2)})  # small and quick
    monkeypatch.setattr(splits, "_load", splits._load.__wrapped__)  # what is cached has all stories
    rows = task.load()["test"]
    facts = [[(start, end, 1.0) for start, end in spans] for spans in rows["supporting"]]
    others = [[(start, end, -1.0) for start, end in spans] for spans in rows["supporting"]]
    result = fm.measure(clf, task, {"facts": facts, "others": others}, percents=(0, 50, 100))
    assert result.plausibility["facts"]["auprc"] == 1.0
    assert result.plausibility["facts"]["token_f1"] == 1.0
    assert result.plausibility["others"]["token_f1"] < result.plausibility["random"]["token_f1"]
    table = result.plausibility_table()
    assert list(table.columns) == ["method", "acu", "token_f1", "token_iou", "auprc"]
    recorded = result.to_dict()["methods"]["facts"]
    assert recorded["plausibility"]["auprc"] == 1.0
    assert "plausibility" not in result.table()


@pytest.mark.parametrize(("kind", "options"), [("regression", {}), ("multi-label", {"label": "a"})])
def test_numbers_and_several_labels_have_rationales_too(tmp_path, kind: str, options: dict[str, str]) -> None:
    labels = {"regression": [0.5, 1.5, 2.5, 3.5], "multi-label": [["a"], [], ["a", "b"], ["b"]]}[kind]
    rows = [
        {"text": text, "label": label, "why": [0, 1]}
        for text, label in zip(("it good", "a bad", "the fun", "the dull"), labels, strict=True)
    ]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, rows)))
    columns = {"text": "text", "label": "label", "rationale": "why"}
    task = fm.own_task(tmp_path / "own.jsonl", **columns, label_kind=kind, all_test=True)
    model = tiny(labels=len(task.labels) if kind == "multi-label" else 1).model
    if kind == "multi-label":
        model.config.problem_type, model.config.id2label = MULTI_LABEL, dict(enumerate(task.labels))
    clf = fm.Classifier(model, tiny().tokenizer, **options)
    last = adapters.texts(lambda texts: [[0.0, 1.0] for _ in texts], name="last")
    assert fm.measure(clf, task, last).plausibility["last"] == dict.fromkeys(PLAUSIBILITY, 1.0)


def test_texts_without_rationales_have_no_plausibility(tmp_path) -> None:
    from toy import tiny

    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"the film {'ab'[n % 2]},{n % 2}\n" for n in range(4)))
    task = fm.own_task(tmp_path / "t.csv", text="x", label="y", all_test=True)
    result = fm.measure(tiny(labels=2), task, ["grad-l2"], percents=(0, 100))
    assert result.plausibility == {}
