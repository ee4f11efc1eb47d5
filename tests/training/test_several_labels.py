"""Several labels at once: rows, metrics, training, and one label explained and measured like two classes."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch

import faithmeter as fm
from faithmeter.stats.metrics import majority, mean_loss, predict, score
from faithmeter.store.run_store import RunStore
from toy import WORDS, tiny

JOY, SADNESS = 17, 25
ROWS = {"train": 160, "dev": 60, "test": 60}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder and made-up files in the layout of GoEmotions; `fun` is joy, `bad` sadness."""
    folder, rng = tmp_path_factory.mktemp("several"), random.Random(0)
    clf = tiny(dtype=torch.float32)
    clf.model.save_pretrained(folder / "encoder")
    clf.tokenizer.save_pretrained(folder / "encoder")
    (folder / "GoEmotions").mkdir()
    for name, count in ROWS.items():
        lines = []
        for number in range(count):
            words = rng.choices(WORDS, k=rng.randint(4, 9))
            labels = [n for n, word in ((JOY, "fun"), (SADNESS, "bad")) if word in words] or [27]
            lines.append(f"{' '.join(words)}\t{','.join(map(str, labels))}\t{name}{number}")
        (folder / "GoEmotions" / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def checkpoint(place: Path) -> Path:
    store = RunStore(place / "runs")
    own = {"task": "GoEmotions", "data_dir": str(place), "model": str(place / "encoder")}
    config = fm.TrainConfig(**own, epochs=1, batch_size=32, learning_rate=1e-3)
    record = fm.train(config, store)
    assert record.metric == "micro_f1"
    return store.folder(config)


def test_rows_have_a_number_for_each_label(place: Path) -> None:
    task = fm.task("GoEmotions", place)
    splits = task.load()
    assert {name: len(rows) for name, rows in splits.items()} == {"train": 160, "validation": 60, "test": 60}
    assert len(task.labels) == 28
    for row in splits["test"]:
        chosen = {n for n, value in enumerate(row["label"]) if value}
        words = row["text"].split()
        joy_and_sadness = {n for n, word in ((JOY, "fun"), (SADNESS, "bad")) if word in words}
        assert chosen == (joy_and_sadness or {27})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a text\t3,x\tid", "label 'x' in 'labels'; expected one of 0, 1, 2"),
        ("a text\t28\tid", "label '28' in 'labels'; expected one of 0, 1, 2"),
        ("  \t3\tid", "'text' is empty"),
        ("a text", "column"),
    ],
)
def test_wrong_rows_are_refused_in_one_line(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "GoEmotions").mkdir()
    for name in ROWS:
        (tmp_path / "GoEmotions" / f"{name}.tsv").write_text(f"a film\t1\tid\n{line}\n")
    with pytest.raises(fm.InputError, match=message) as caught:
        fm.task("GoEmotions", tmp_path).load()
    assert "\n" not in str(caught.value)


def test_metrics_of_several_labels_by_hand() -> None:
    labels = np.array([[1, 0], [1, 1], [0, 0]])
    logits = np.array([[2.0, 1.0], [0.5, -1.0], [-3.0, -2.0]])
    predictions = predict(logits, "multi-label")
    assert predictions.tolist() == [[1, 1], [1, 0], [0, 0]]
    # 2 hits of 3 predicted and 3 true; the F1 of the labels are 1 and 0
    assert score(["micro_f1", "macro_f1"], labels, predictions, 2) == pytest.approx(
        {"micro_f1": 2 / 3, "macro_f1": 0.5}
    )
    by_hand = np.mean(
        [
            -math.log(p if label else 1 - p)
            for label, p in zip(labels.ravel(), 1 / (1 + np.exp(-logits.ravel())), strict=True)
        ]
    )
    assert mean_loss(logits, labels) == pytest.approx(by_hand)
    # always the first label, never the second
    assert majority(["micro_f1"], labels, labels, 2)["micro_f1"] == pytest.approx(2 * 2 / (3 + 3))


def test_the_logit_of_one_label_is_explained(checkpoint: Path) -> None:
    clf = fm.load(checkpoint, label="joy")
    assert clf.labels == ("not joy", "joy")
    batch = clf.encode(["the film was fun", "a bad story but very good music"])
    raw = clf.model(**batch.inputs).logits[:, JOY]
    assert torch.allclose(clf.logits(batch).softmax(dim=1)[:, 1], raw.sigmoid(), atol=1e-6)
    assert torch.allclose(clf.states(batch)[0], clf.logits(batch))
    scores = fm.explain(clf, batch, [1, 1], "loo-sign")
    for row, column in batch.explained.nonzero().tolist():
        where = torch.zeros_like(batch.explained)
        where[row, column] = True
        masked = clf.model(**batch.masked(where, clf.mask_id).inputs).logits[row, JOY]
        assert float(scores[row, column]) == pytest.approx(float((raw[row] - masked) / 2), abs=1e-5)
    against = fm.explain(clf, batch, [0, 0], "loo-sign")
    assert torch.allclose(against, -scores, atol=1e-6)


def test_one_label_is_measured(faithmeter, checkpoint: Path, tmp_path: Path) -> None:
    options = ("--class", "joy", "-m", "grad-l2", "-o", tmp_path, "--json")
    measured = faithmeter("measure", checkpoint, *options)
    assert measured.code == 0, measured.err
    assert json.loads(measured.out)["metric"] == "macro_f1"


def test_a_check_needs_one_label(faithmeter, checkpoint: Path, tmp_path: Path) -> None:
    refused = faithmeter("check", checkpoint, "-o", tmp_path)
    assert (refused.code, refused.out) == (2, "")
    assert "gives several labels at once" in refused.err


def test_one_label_is_measured_in_python(place: Path, checkpoint: Path) -> None:
    clf, task = fm.load(checkpoint, label="sadness"), fm.task("GoEmotions", place)
    result = fm.measure(clf, task, ["grad-l2"])
    assert result.texts == ROWS["test"]
    truth = result.frame.drop_duplicates("row").set_index("row")["label"]
    assert truth.tolist() == [row[SADNESS] for row in task.load()["test"]["label"]]


def test_the_task_is_described(faithmeter, place: Path) -> None:
    result = faithmeter("list", "tasks", "GoEmotions", "--data-dir", place)
    assert result.code == 0, result.err
    assert "sadness" in result.out


@pytest.mark.slow
def test_one_label_goes_the_whole_way(faithmeter, checkpoint: Path) -> None:
    """Check, measure, explain one text, report."""
    store = checkpoint.parent
    check = faithmeter("check", checkpoint, "--class", "joy", "-o", store)
    assert check.code == 0, check.err
    for label in ("joy", "sadness"):
        measured = faithmeter(
            "measure", checkpoint, "--class", label, "-m", "loo-sign", "-o", store, "--json"
        )
        assert measured.code == 0, measured.err
        assert json.loads(measured.out)["metric"] == "macro_f1"
    areas = RunStore(store).frame("areas", method="loo-sign")
    assert {*areas["task"]} == {"GoEmotions: joy", "GoEmotions: sadness"}
    text = faithmeter("explain", checkpoint, "the film was fun", "--class", "joy")
    assert text.code == 0, text.err
    assert "probability of joy" in text.out
    report = faithmeter("report", store, "--model-card", checkpoint)
    assert report.code == 0, report.err
    assert "GoEmotions: joy" in (checkpoint / "README.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check",), "gives several labels at once (admiration, amusement, anger, annoyance, approval"),
        (("check", "--class", "jo"), "unknown label 'jo'; did you mean 'joy'"),
        (("explain", "--class", "fun"), "unknown label 'fun'"),
    ],
)
def test_a_label_must_be_chosen(
    faithmeter, checkpoint: Path, arguments: tuple[str, ...], message: str
) -> None:
    verb, *options = arguments
    text = ["the film"] if verb == "explain" else []
    result = faithmeter(verb, checkpoint, *text, *options)
    assert result.code == 2
    assert message in result.err
    assert "\n" not in result.err.strip()


def test_adapt_takes_models_of_exclusive_classes(faithmeter, checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("text\na film\n")
    result = faithmeter("adapt", checkpoint, "--data", tmp_path / "texts.csv", "--text", "text")
    assert result.code == 2
    assert "gives several labels at once; expected a classifier that chooses one class" in result.err


def test_a_model_of_exclusive_classes_takes_no_label(place: Path) -> None:
    with pytest.raises(fm.InputError, match="the model chooses one of its classes; leave it out"):
        fm.load(place / "encoder", label="LABEL_1")


@pytest.mark.slow
def test_own_files_of_several_labels_go_the_whole_way(faithmeter, place: Path, tmp_path: Path) -> None:
    """Train on a column for each label, then check and measure one label, also on a file of test texts."""
    rng = random.Random(1)
    for name, count in (("reviews", 240), ("held-out", 40)):
        lines = ["review,fun,bad"]
        for _ in range(count):
            words = rng.choices(WORDS, k=rng.randint(4, 9))
            lines.append(f"{' '.join(words)},{int('fun' in words)},{int('bad' in words)}")
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    store, columns = tmp_path / "runs", ("--text", "review", "--label", "fun,bad")
    data = ("--data", tmp_path / "reviews.csv", *columns, "--label-kind", "multi-label")
    options = ("--model", place / "encoder", "--epochs", 1, "-o", store, "--json")
    trained = faithmeter("train", *data, *options)
    assert trained.code == 0, trained.err
    record = json.loads(trained.out)
    assert (record["labels"], record["metric"]) == (["fun", "bad"], "micro_f1")
    [checkpoint] = store.glob("train-*")
    check = faithmeter("check", checkpoint, "--class", "bad", "-o", store)
    assert check.code == 0, check.err
    own = ("--test", tmp_path / "held-out.csv", *columns)
    for texts, file in ((24, ()), (40, own)):
        options = ("--class", "bad", "-m", "grad-l2", "-o", store, "--json")
        measured = faithmeter("measure", checkpoint, *file, *options)
        assert measured.code == 0, measured.err
        assert json.loads(measured.out)["texts"] == texts
