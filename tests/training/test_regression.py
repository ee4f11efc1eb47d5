"""Numbers as labels: rows, training, explanations of what raises the number, and their measurement."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

import faithmeter as fm
from faithmeter.store.run_store import RunStore
from toy import WORDS, tiny

POINTS = {"good": 1.0, "fun": 0.5, "bad": -1.0, "dull": -0.5}
COLUMNS = {"text": "review", "label": "stars", "label_kind": "regression"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder and a file whose numbers are the sums of the words' points."""
    folder, rng = tmp_path_factory.mktemp("numbers"), random.Random(0)
    clf = tiny(dtype=torch.float32, initializer_range=0.1)
    clf.model.save_pretrained(folder / "encoder")
    clf.tokenizer.save_pretrained(folder / "encoder")
    for name, count in (("reviews", 400), ("held-out", 80)):
        lines = ["review,stars"]
        for _ in range(count):
            words = rng.choices(WORDS, k=rng.randint(4, 9))
            lines.append(f"{' '.join(words)},{sum(POINTS.get(word, 0) for word in words)}")
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def checkpoint(place: Path) -> Path:
    store = RunStore(place / "runs")
    own = {"data": str(place / "reviews.csv"), **COLUMNS, "model": str(place / "encoder")}
    config = fm.TrainConfig(**own, epochs=6, batch_size=16, learning_rate=5e-3)
    record = fm.train(config, store)
    assert record.metric == "pearson"
    assert record.unmasked > 0.6
    assert record.majority["test"]["pearson"] == 0
    return store.folder(config)


def test_rows_have_numbers(place: Path) -> None:
    task = fm.own_task(place / "reviews.csv", **COLUMNS)
    assert (task.kind, task.labels, task.metric) == ("regression", ("stars",), "pearson")
    for row in task.load()["test"]:
        assert row["label"] == sum(POINTS.get(word, 0) for word in row["text"].split())


def test_whole_numbers_are_classes_unless_regression_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("t,l\n" + "".join(f"text {n},{n % 2}\n" for n in range(20)))
    assert fm.own_task(path, text="t", label="l").labels == ("0", "1")
    numbers = fm.own_task(path, text="t", label="l", label_kind="regression").load()["train"]["label"][:]
    assert {*numbers} == {0.0, 1.0}
    assert all(isinstance(number, float) for number in numbers)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("nan", "line 12: label 'nan' in 'l'; expected a finite number"),
        ("inf", "line 12: label 'inf' in 'l'; expected a finite number"),
        ("good", "line 12: label 'good' in 'l'; expected a finite number"),
        ("", "line 12: no label in 'l'"),
    ],
)
def test_labels_that_are_no_numbers_are_refused(tmp_path: Path, label: str, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t,l\n" + "".join(f"text,{n / 3}\n" for n in range(10)) + f"text,{label}\n")
    with pytest.raises(fm.InputError, match=message) as caught:
        fm.own_task(path, text="t", label="l", label_kind="regression")
    assert "\n" not in str(caught.value)


def test_one_number_for_all_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t,l\n" + "text,2.5\n" * 20)
    with pytest.raises(fm.InputError, match=r"all 20 rows have the number 2\.5 in 'l'; expected different"):
        fm.own_task(path, text="t", label="l", label_kind="regression")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "accuracy"}, "metric 'accuracy' is not for regression tasks; expected pearson, spearman"),
        ({"metric": "person"}, "unknown metric 'person'; did you mean 'pearson'"),
        ({"labels": ["low", "high"]}, "regression has no classes"),
        ({"label": ["stars", "review"]}, "label names 2 columns; expected one"),
    ],
)
def test_options_that_do_not_fit_numbers(place: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(fm.InputError, match=message):
        fm.own_task(place / "reviews.csv", **{**COLUMNS, **options})  # type: ignore[arg-type]


def test_scores_say_what_raises_the_number(checkpoint: Path) -> None:
    clf = fm.load(checkpoint)
    assert clf.labels == ("lower value", "higher value")
    batch = clf.encode(["the film was fun", "a bad story but very good music"])
    raw = clf.model(**batch.inputs).logits[:, 0]
    assert torch.allclose(clf.logits(batch), torch.stack([-raw, raw], dim=1))
    assert torch.allclose(clf.states(batch)[0], clf.logits(batch))
    raising, lowering = (fm.explain(clf, batch, [side, side], "loo-sign") for side in (1, 0))
    assert torch.allclose(raising, -lowering)
    for row, column in batch.explained.nonzero().tolist():
        where = torch.zeros_like(batch.explained)
        where[row, column] = True
        masked = clf.model(**batch.masked(where, clf.mask_id).inputs).logits[row, 0]
        assert float(raising[row, column]) == pytest.approx(float(raw[row] - masked), abs=1e-5)


def test_curves_are_correlations_of_numbers(place: Path, checkpoint: Path) -> None:
    clf = fm.load(checkpoint)
    task = fm.own_task(place / "held-out.csv", **COLUMNS, all_test=True)
    result = fm.measure(clf, task, ["loo-sign", "loo-abs"])
    rows = task.load()["test"]
    predicted = clf.logits(clf.encode(rows["text"][:]))[:, 1].detach().numpy()
    expected = np.corrcoef(predicted, rows["label"][:])[0, 1]
    assert result.curve("random").values[0] == pytest.approx(expected, abs=1e-5)
    assert result.curve("loo-sign").values[0] == result.curve("random").values[0]
    # the signed method knows the side of the label, so that the correlation turns negative
    assert min(result.curve("loo-sign").values) < -0.3
    assert result.acu("loo-sign") > result.acu("loo-abs") > 0
    assert result.majority == 0, "a constant has no correlation with anything"
    assert result.evidence.learned, "the lower bound of its lead over guessing is above 0"
    interval = result.intervals.acu("loo-sign")
    assert interval.lower < result.acu("loo-sign") < interval.upper
    assert {*result.context.others} == {"spearman", "r2"}


def test_a_text_with_a_low_number_is_explained_by_what_lowers_it(place: Path, checkpoint: Path) -> None:
    task = fm.own_task(place / "held-out.csv", **COLUMNS, all_test=True)
    result = fm.measure(fm.load(checkpoint), task, ["loo-sign"], limit=40)
    numbers = np.array(task.load()["test"]["label"][:])
    inputs = result.context.inputs
    assert inputs is not None
    assert inputs["label"].tolist() == numbers[:40].tolist()
    assert inputs["side"].tolist() == (numbers[:40] >= numbers.mean()).astype(int).tolist()


def test_one_text_is_measured_by_its_number(checkpoint: Path) -> None:
    clf = fm.load(checkpoint)
    text = "the good film was good fun and the music was good"
    up = fm.explain_text(clf, text, method=["loo-sign"], orders=19)
    down = fm.explain_text(clf, text, method=["loo-sign"], orders=19, label="lower value")
    value = float(clf.logits(clf.encode([text]))[0, 1])
    assert (up.to_dict()["quantity"], up.label) == ("number", "higher value")
    assert up.erasures["loo-sign"].probability[0] == pytest.approx(value, abs=1e-5)
    assert up.mean == pytest.approx(down.mean)
    area = np.trapezoid(
        np.subtract(up.mean, up.erasures["loo-sign"].probability), np.array(up.percents) / 100
    )
    assert up.erasures["loo-sign"].acu == pytest.approx(area)
    above = np.subtract(down.erasures["loo-sign"].probability, down.mean)
    assert down.erasures["loo-sign"].acu == pytest.approx(np.trapezoid(above, np.array(up.percents) / 100))
    assert "predicted number" in up._repr_html_()


def test_an_explanation_shows_the_number(checkpoint: Path) -> None:
    clf = fm.load(checkpoint)
    explanation = fm.explain_text(clf, "the film was very good", verify=False)
    value = float(clf.logits(clf.encode(["the film was very good"]))[0, 1])
    assert explanation.value == pytest.approx(value, abs=1e-5)
    assert explanation.probabilities == {}
    assert explanation.prediction == f"{value:.2f}"
    assert explanation.label == ("higher value" if value > 0 else "lower value")
    result = fm.pipeline(clf, tests=None, orders=19)("the film was very good")
    assert (result["label"], result["score"]) == (explanation.label, pytest.approx(value, abs=1e-5))
    with pytest.raises(fm.InputError, match="top_k is 2, and the model predicts a number"):
        fm.pipeline(clf, tests=None, orders=19, top_k=2)("the film")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("measure", "--task", "bAbI-1"),
            "the model predicts a number, and the labels of bAbI-1 are classes",
        ),
        (("measure", "--complement"), "complement is about probabilities, and the model predicts numbers"),
        (("measure", "--explain", "predicted"), "explain is 'predicted', and the model predicts numbers"),
        (("adapt", "--data", "reviews.csv", "--text", "review"), "predicts a number; expected a classifier"),
    ],
)
def test_what_is_for_classes_is_refused(
    faithmeter, place: Path, checkpoint: Path, arguments: tuple[str, ...], message: str
) -> None:
    verb, *options = (str(place / word) if word == "reviews.csv" else word for word in arguments)
    result = faithmeter(verb, checkpoint, *options, "-o", place / "refused")
    assert result.code == 2
    assert message in result.err
    assert "\n" not in result.err.strip()


def test_a_classifier_is_not_measured_on_numbers(place: Path) -> None:
    task = fm.own_task(place / "held-out.csv", **COLUMNS, all_test=True)
    with pytest.raises(fm.InputError, match="the model chooses a class, and the labels of held-out are num"):
        fm.measure(tiny(labels=2), task, ["grad-l2"])


def test_a_file_of_test_texts_is_measured_by_numbers(
    faithmeter, place: Path, checkpoint: Path, tmp_path: Path
) -> None:
    columns = ("--text", "review", "--label", "stars")
    options = ("--test", place / "held-out.csv", *columns, "-m", "grad-l2", "-o", tmp_path, "--json")
    measured = faithmeter("measure", checkpoint, *options)
    assert measured.code == 0, measured.err
    values = json.loads(measured.out)
    assert (values["metric"], values["texts"]) == ("pearson", 80)


def test_official_files_of_sts_are_read(tmp_path: Path) -> None:
    (tmp_path / "STS").mkdir()
    lines = ["\tid\tsentence1\tsentence2\tsimilarity"]
    lines += [f"{n}\tx{n}\ta man {n}\ta woman {n}\t{n % 6 - 0.2 * (n % 6 > 0):.1f}" for n in range(20)]
    for name in ("sts-train.csv", "sts-dev.csv"):
        (tmp_path / "STS" / name).write_text("\n".join(lines) + "\n")
    task = fm.task("STS", tmp_path)
    splits = task.load()
    assert {name: len(rows) for name, rows in splits.items()} == {"train": 16, "validation": 4, "test": 20}
    row = next(row for row in splits["test"] if row["text"] == "a man 7")
    assert (row["context"], row["label"]) == ("a woman 7", 0.8)


@pytest.mark.slow
def test_numbers_go_the_whole_way(faithmeter, checkpoint: Path) -> None:
    """Check, measure, explain one text, report, model card."""
    store = checkpoint.parent
    for verb, *options in (
        ("check", checkpoint, "-o", store),
        ("measure", checkpoint, "-m", "loo-sign", "-o", store),
        ("explain", checkpoint, "the film was good fun"),
        ("explain", checkpoint, "the film was good fun", "--class", "lower value"),
        ("report", store, "--output", store / "report.html", "--page-only"),
        ("report", store, "--model-card", checkpoint),
    ):
        result = faithmeter(verb, *options)
        assert result.code == 0, result.err
    assert "Pearson" in (store / "report.html").read_text()
    card = (checkpoint / "README.md").read_text()
    assert "Predicted number: stars" in card
    assert "| always the mean | 0.0 |" in card
