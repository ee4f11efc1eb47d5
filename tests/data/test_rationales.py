"""Tasks with rationales, read from small files of the official layouts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import faithmeter as fm
from faithmeter.data.rationales import unmark


def highlighted(row: dict) -> list[str]:
    return [row["text"][start:end] for start, end in row["supporting"]]


def write_esnli(folder: Path, label: str = "entailment") -> None:
    header = (
        "pairID,gold_label,Sentence1,Sentence2,Explanation_1,WorkerId,Sentence1_marked_1,Sentence2_marked_1"
    )
    rows = [
        f'1,{label},"A man sleeps, inside.",A man rests.,why,w,"A *man* *sleeps,* inside.",A man *rests.*'
    ]
    rows += ["2,neutral,Two dogs run.,They race.,why,w,Two dogs run.,They *race.*"]
    for name in ("esnli_train_1", "esnli_train_2", "esnli_dev", "esnli_test"):
        (folder / f"{name}.csv").write_text("\n".join([header, *rows]))


def test_esnli_marks_words_with_asterisks(tmp_path) -> None:
    write_esnli(tmp_path)
    splits = fm.task("e-SNLI", tmp_path).load()
    assert {name: len(split) for name, split in splits.items()} == {"train": 4, "validation": 2, "test": 2}
    row = next(row for row in splits["test"] if row["label"] == 0)
    assert (row["text"], row["context"]) == ("A man sleeps, inside.", "A man rests.")
    assert highlighted(row) == ["man", "sleeps,"]
    assert unmark("no marks") == ("no marks", ())
    write_esnli(tmp_path, label="maybe")
    with pytest.raises(
        fm.InputError, match=re.escape("line 2: label 'maybe' in 'gold_label'; expected one of entailment")
    ):
        fm.task("e-SNLI", tmp_path).load()


def write_hatexplain(folder: Path, **changes: object) -> None:
    votes = [
        {"label": label, "annotator_id": 1, "target": []} for label in ("normal", "offensive", "offensive")
    ]
    post = {"post_id": "p1", "annotators": votes, "rationales": [[0, 1, 1], [0, 1, 0]]}
    post |= {"post_tokens": ["you", "bad", "person"], **changes}
    split = [
        {"label": label, "annotator_id": 1, "target": []} for label in ("normal", "offensive", "hatespeech")
    ]
    posts = {"p1": post, "p2": {**post, "post_id": "p2", "annotators": split}}
    posts["p3"] = {"post_id": "p3", "annotators": [votes[0]] * 3, "rationales": [], "post_tokens": ["hello"]}
    (folder / "dataset.json").write_text(json.dumps(posts))
    divisions = {"train": ["p1", "p2", "p3"], "val": ["p3"], "test": ["p1", "p3"]}
    (folder / "post_id_divisions.json").write_text(json.dumps(divisions))


def test_hatexplain_takes_majorities_of_labels_and_marks(tmp_path) -> None:
    write_hatexplain(tmp_path)
    splits = fm.task("HateXplain", tmp_path).load()
    assert len(splits["train"]) == 2, "a post without a majority is left out"
    rows = {row["text"]: row for row in splits["test"]}
    assert highlighted(rows["you bad person"]) == ["bad", "person"]
    assert rows["you bad person"]["label"] == 2
    assert highlighted(rows["hello"]) == []
    for changes, message in (
        ({"rationales": [[1, 0]]}, "post p1: a rationale that does not fit its 3 tokens"),
        ({"annotators": None}, "expected the official layout"),
    ):
        write_hatexplain(tmp_path, **changes)
        with pytest.raises(fm.InputError, match=message):
            fm.task("HateXplain", tmp_path).load()
    (tmp_path / "dataset.json").write_text("[")
    with pytest.raises(fm.InputError, match="not JSON"):
        fm.task("HateXplain", tmp_path).load()


def write_movies(folder: Path, end: int = 4) -> None:
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs/neg_1.txt").write_text("a dull film .\nreally bad acting .\n")
    evidence = {"docid": "neg_1.txt", "start_token": 1, "end_token": end, "text": "dull film"}
    line = {"annotation_id": "neg_1.txt", "classification": "NEG", "evidences": [[evidence]], "query": "?"}
    for name in ("train", "val", "test"):
        (folder / f"{name}.jsonl").write_text(json.dumps(line) + "\n")


def test_movies_have_evidence_in_tokens_of_documents(tmp_path) -> None:
    write_movies(tmp_path, end=3)
    [row] = fm.task("movies", tmp_path).load()["test"]
    assert row["text"] == "a dull film . really bad acting ."
    assert (highlighted(row), row["label"]) == (["dull film"], 0)
    write_movies(tmp_path, end=99)
    with pytest.raises(fm.InputError, match="evidence outside of the 8 tokens"):
        fm.task("movies", tmp_path).load()
    (tmp_path / "test.jsonl").write_text('{"annotation_id": "x"}\n')
    with pytest.raises(fm.InputError):
        fm.task("movies", tmp_path).load()


def test_their_files_must_be_given() -> None:
    with pytest.raises(fm.InputError, match="movies is read from its official files; give their folder"):
        fm.task("movies").load()
