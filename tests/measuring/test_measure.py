"""Erasure to curves and p-values: against a plain loop, and laws of a classifier whose truth is known."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import faithmeter as fm
from faithmeter.data import Task
from faithmeter.measuring import texts
from faithmeter.measuring.erase import trace_erasure
from faithmeter.measuring.fitting import Masking, fit_tests
from faithmeter.measuring.result import Result
from faithmeter.methods import METHODS, parse
from faithmeter.models.evaluator import Evaluator
from toy import MASK, WORDS, LookupClassifier, rows_batch, tiny

METHODS_HERE = ["loo-sign", "grad-l2", "inp-grad-abs", "beam(width=2)"]


@pytest.fixture(scope="module")
def reviews(tmp_path_factory) -> Task:
    path, rng = tmp_path_factory.mktemp("data") / "reviews.csv", random.Random(0)
    lines = ["review,aside,stars"]
    for row in range(300):
        lines.append(
            f"{' '.join(rng.choices(WORDS, k=rng.randint(1, 9)))},{rng.choice(WORDS)},{'abc'[row % 3]}"
        )
    path.write_text("\n".join(lines))
    return fm.own_task(path, text="review", label="stars", pair="aside")


@pytest.fixture(scope="module")
def clf() -> fm.Classifier:
    return tiny()


@pytest.fixture(scope="module")
def tests(clf: fm.Classifier, reviews: Task) -> dict[str, fm.MaSF]:
    return fit_tests(clf, reviews, trained_with="half")


@pytest.fixture(scope="module")
def result(clf: fm.Classifier, reviews: Task, tests) -> Result:
    return fm.measure(clf, reviews, ["random(seed=3)", *METHODS_HERE], tests=tests)


def plain_loop(clf: fm.Classifier, text: str, pair: str, label: int, row: int, method: str) -> pd.DataFrame:
    """Algorithm 3 of the paper for one text, one forward pass at a time."""
    batch = replace(clf.encode([text], [pair]), index=torch.tensor([row]))
    places = batch.explained[0].nonzero()[:, 0].tolist()
    masked: list[int] = []
    rows, scores = [], None
    for percent in range(0, 101, 10):
        where = torch.zeros_like(batch.explained)
        where[0, masked] = True
        now = batch.masked(where, clf.mask_id)
        if scores is None or parse(method).recursive:
            scores = fm.explain(clf, now, [label], method)[0]
        order = sorted((p for p in places if p not in masked), key=lambda p: -scores[p].item())
        masked += order[: len(places) * percent // 100 - len(masked)]
        where[0, masked] = True
        with torch.inference_mode():
            logits = clf.logits(batch.masked(where, clf.mask_id))[0]
        numbers = sorted(places.index(place) for place in masked)
        rows.append((percent, numbers, int(logits.argmax()), float(logits.softmax(dim=0)[label])))
    return pd.DataFrame(rows, columns=["percent", "masked", "prediction", "probability"])


def test_the_predicted_class_is_explained_instead_of_the_label(clf, reviews, tests, tmp_path) -> None:
    """The decision of the model for the whole text is explained, in traces of their own."""
    texts = reviews.load()["test"]
    of_label = fm.measure(clf, reviews, ["loo-sign"], limit=8, tests=tests, cache_dir=tmp_path)
    kept = fm.measure(
        clf, reviews, ["loo-sign"], limit=8, explain="predicted", tests=tests, cache_dir=tmp_path
    )
    trace = kept.seeds[0]["loo-sign"]
    whole = clf.logits(clf.encode(texts["text"][:8], texts["context"][:8])).argmax(dim=1)
    assert trace.targets.tolist() == whole.tolist()
    assert of_label.seeds[0]["loo-sign"].targets.tolist() == texts["label"][:8] != whole.tolist()
    for row in range(8):
        text = texts[row]
        expected = plain_loop(clf, text["text"], text["context"], int(whole[row]), row, "loo-sign")
        assert trace.probabilities[row] == pytest.approx(expected.probability.to_numpy(), abs=1e-6)
        assert [trace.masked(row, step) for step in range(11)] == expected.masked.tolist()
    assert kept.metric == "own_agreement", "not the agreement with another model"
    assert kept.curve("random").values[0] == 1
    assert kept.context.recalibrations == (tests["crossfit"].own_recalibration,)
    assert len([*(tmp_path / "traces").iterdir()]) == 2


def test_an_unknown_class_to_explain_is_refused(clf, reviews) -> None:
    with pytest.raises(fm.InputError, match="explain 'everything'"):
        fm.measure(clf, reviews, ["loo-sign"], explain="everything")  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["random", *METHODS_HERE])
def test_every_text_goes_the_way_of_a_plain_loop(clf, reviews: Task, result: Result, method: str) -> None:
    texts = reviews.load()["test"]
    named = "random(seed=3)" if method == "random" else method
    for row in (0, 7, 21):
        text = texts[row]
        expected = plain_loop(clf, text["text"], text["context"], text["label"], row, named)
        found = result.frame[(result.frame["method"] == method) & (result.frame["row"] == row)]
        assert found[["percent", "masked", "prediction"]].values.tolist() == (
            expected[["percent", "masked", "prediction"]].values.tolist()
        )
        np.testing.assert_allclose(found["probability"], expected["probability"], atol=1e-7)
        batch = replace(clf.encode([text["text"]], [text["context"]]), index=torch.tensor([row]))
        scores = fm.explain(clf, batch, [text["label"]], named)[batch.explained]
        np.testing.assert_allclose(found["scores"].iloc[0], scores, atol=1e-12)
        assert found["scores"].iloc[1:].isna().all()


def test_curves_are_the_metric_of_the_frame_and_areas_lie_between_them(result: Result) -> None:
    frame = result.frame[(result.frame["method"] == "loo-sign") & (result.frame["percent"] == 30)]
    curve = result.curve("loo-sign")
    assert curve.values[3] == pytest.approx((frame["label"] == frame["prediction"]).mean())
    assert result.acu("loo-sign") == pytest.approx(fm.acu(curve, result.curve("random")))
    assert result.acu("random") == 0.0
    assert result.methods == ["random", *METHODS_HERE]
    assert result.texts == 30


def test_pvalues_are_those_of_the_masked_texts_alone(clf, reviews, tests, result: Result) -> None:
    texts = reviews.load()["test"]
    batch = clf.encode([texts[5]["text"]], [texts[5]["context"]])
    frame = result.frame[(result.frame["method"] == "grad-l2") & (result.frame["row"] == 5)]
    for percent, where in ((0, torch.zeros_like(batch.explained)), (100, batch.explained)):
        with torch.inference_mode():
            features = clf.features(batch.masked(where, clf.mask_id)).float()
        for name, test in tests.items():
            assert frame[frame["percent"] == percent][f"p_{name}"].item() == test.pvalues(features)[0]
    at_half = result.pvalues("grad-l2", "crossfit")[50]
    rows = result.frame[(result.frame["method"] == "grad-l2") & (result.frame["percent"] == 50)]
    assert at_half.p == fm.simes(rows["p_crossfit"])
    steps = [step.p for step in result.pvalues("grad-l2", "crossfit").values()]
    assert result.p("grad-l2", "crossfit") == fm.simes(steps[:-1]) >= min(steps[:-1])


def test_slices_and_order_of_methods_change_no_number(clf, reviews, tests, result, monkeypatch) -> None:
    monkeypatch.setattr(texts, "SLICE", 7)
    other = fm.measure(clf, reviews, ["grad-l2", "loo-sign", "random(seed=3)"], tests=tests)
    columns = ["row", "percent", "masked", "prediction", "probability", "p_crossfit"]
    for method in ("random", "grad-l2", "loo-sign"):
        one, two = (
            frame[frame["method"] == method].sort_values(["row", "percent"])[columns].reset_index(drop=True)
            for frame in (result.frame, other.frame)
        )
        pd.testing.assert_frame_equal(one, two, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda clf, task, _: fm.measure(clf, task, ["random"], limit=-5), "limit is -5"),
        (
            lambda clf, task, _: fm.measure(clf, task, ["random"], percents=(10, 50)),
            "increasing whole numbers",
        ),
        (lambda clf, task, _: fm.measure(clf, task, ["random"], percents=(0, 12.5, 100)), "whole numbers"),
        (lambda clf, task, _: fit_tests(clf, task, trained_with="hal"), "unknown trained_with 'hal'"),
        (lambda clf, task, _: fit_tests(clf, task, scope="al"), "unknown scope 'al'"),
        (lambda *given: given[2].acu("lo"), "unknown measured method 'lo'"),
        (lambda *given: given[2].curve("loo-sign", "f1"), "unknown metric 'f1'"),
        (lambda *given: given[2].p("loo-sign", "cross"), "unknown test 'cross'"),
    ],
)
def test_mistakes_are_told(clf, reviews, result: Result, call, message: str) -> None:
    with pytest.raises(fm.InputError, match=message):
        call(clf, reviews, result)


def test_one_name_stands_for_a_list_of_one(clf, reviews: Task) -> None:
    """A name in place of a list was read as letters."""
    assert fm.measure(clf, reviews, "grad-l2", limit=12).methods == ["random", "grad-l2"]


def test_a_text_in_place_of_a_task_is_told_what_measures_it(clf) -> None:
    for text, hint in (("bAbI-1", r"fm\.task\('bAbI-1'\)"), ("a good film", "explain_text")):
        with pytest.raises(fm.InputError, match=hint):
            fm.measure(clf, text)


def test_texts_without_labels_are_measured_by_the_predictions(clf, reviews: Task) -> None:
    rows = reviews.load()["test"].select(range(12))
    pairs = list(zip(rows["text"][:], rows["context"][:], strict=True))
    result = fm.measure(clf, pairs, ["grad-l2"])
    assert (result.metric, result.curve("grad-l2").values[0]) == ("own_agreement", 1.0)
    predicted = clf.logits(clf.encode(*map(list, zip(*pairs, strict=True)))).argmax(dim=1).tolist()
    first = result.frame[(result.frame["method"] == "grad-l2") & (result.frame["percent"] == 0)]
    assert first["label"].tolist() == predicted
    alone = fm.measure(clf, [text for text, _ in pairs], ["grad-l2"], percents=(0, 100))
    assert alone.texts == 12
    for wrong in ([], [1, 2], [("a", "b", "c")]):
        with pytest.raises(fm.InputError, match="expected a list of texts"):
            fm.measure(clf, wrong)


def test_a_seed_is_an_option_of_the_baseline(clf, reviews: Task) -> None:
    seeded = fm.measure(clf, reviews, ["random(seed=1)", "random(seed=2)"], limit=12)
    assert seeded.methods == ["random", "random(seed=2)"], "the first is the baseline"
    other = fm.measure(clf, reviews, ["random(seed=2)", "random"], limit=12)
    assert other.methods == ["random"]
    columns = ["row", "percent", "masked"]
    steps = {
        (name, seed): frame[frame["method"] == name][columns].values.tolist()
        for frame, name, seed in (
            (seeded.frame, "random", 1),
            (seeded.frame, "random(seed=2)", 2),
            (other.frame, "random", 2),
        )
    }
    assert steps["random", 2] == steps["random(seed=2)", 2] != steps["random", 1]


def test_a_curve_is_computed_once(clf, reviews: Task, monkeypatch) -> None:
    from faithmeter.measuring import groups

    result, calls = fm.measure(clf, reviews, ["grad-l2"], limit=12), []

    def counting(*given):
        calls.append(given)
        return score(*given)

    score = groups.score
    monkeypatch.setattr(groups, "score", counting)
    assert result.acu("grad-l2") == result.acu("grad-l2")
    result.racu("grad-l2"), result.to_dict()
    assert len(calls) == 2 * 11 * len(reviews.metrics)  # eleven steps of two methods, once for each metric


def test_some_of_the_texts_and_other_metrics(clf, reviews: Task, result: Result) -> None:
    few = fm.measure(clf, reviews, ["random(seed=3)", "loo-sign"], limit=12)
    assert result.first(12).acu("loo-sign") == pytest.approx(few.acu("loo-sign"))
    assert few.majority == few.frame.drop_duplicates("row")["label"].value_counts(normalize=True).max()
    both = fm.measure(clf, replace(reviews, metrics=("accuracy", "macro_f1")), ["loo-sign"], limit=12)
    others = both.to_dict()["methods"]["loo-sign"]["others"]
    assert list(others) == ["macro_f1"]
    assert others["macro_f1"]["acu"] == both.acu("loo-sign", "macro_f1") != both.acu("loo-sign")
    assert others["macro_f1"]["curve"]["values"] == both.curve("loo-sign", "macro_f1").values


WEIGHTS = torch.linspace(-2, 3, 30).tolist()


@pytest.mark.parametrize(("sign", "better"), [(1, True), (-1, False)])
def test_ranking_by_true_importance_beats_random_and_its_reverse_does_not(sign: int, better: bool) -> None:
    """The second class wins while the words that are left weigh more than 0.5."""

    def logits(ids: tuple[int, ...]) -> list[float]:
        return [0.5, sum(WEIGHTS[token] for token in ids if token > MASK)]

    rng = np.random.default_rng(0)
    batch = rows_batch(*(rng.integers(5, 25, size=rng.integers(4, 12)).tolist() for _ in range(60)))
    evaluator = Evaluator(LookupClassifier(logits))
    labels = evaluator.logits(batch).argmax(dim=1)
    batch, labels = batch[labels == 1], labels[labels == 1]

    @fm.method("by-weight")
    def by_weight(clf, batch, labels):
        return sign * torch.tensor(WEIGHTS)[batch.input_ids]

    try:
        curves = {}
        for name in ("by-weight", "random"):
            trace = trace_erasure(evaluator, batch, labels, parse(name), range(0, 101, 10), {})
            curves[name] = trace.predictions.mean(axis=0).tolist()
    finally:
        del METHODS["by-weight"]
    assert (fm.acu(curves["by-weight"], curves["random"]) > 0.05) == better
    assert (fm.acu(curves["by-weight"], curves["random"]) < -0.05) != better


def test_a_text_that_loses_no_token_is_not_evaluated_again() -> None:
    clf = LookupClassifier(lambda ids: [0.0, float(len(ids))])
    trace_erasure(
        Evaluator(clf), rows_batch([5, 6]), torch.tensor([0]), parse("random"), range(0, 101, 10), {}
    )
    assert len(clf.seen) == 3  # of two tokens none, one and both are masked


@pytest.mark.parametrize(
    ("strategy", "masked_rows"), [("half", {1, 3}), ("all", {0, 1, 2, 3}), ("none", set())]
)
def test_the_check_is_fitted_on_texts_masked_as_in_training(strategy: str, masked_rows: set[int]) -> None:
    batch = rows_batch(*([5] * 40 for _ in range(4)))
    where = Masking(trained_with=strategy).draw(batch)
    assert {int(row) for row in where.any(dim=1).nonzero()} == masked_rows
    assert not (where & ~batch.explained).any()


def test_a_model_of_unknown_training_is_checked_against_whole_texts(clf, reviews: Task, tests) -> None:
    """A plainly trained model passed, as the tests were fitted on masked texts, which it never knew."""
    unknown, plain = fit_tests(clf, reviews), fit_tests(clf, reviews, trained_with="none")
    split = reviews.load()["validation"]
    with torch.inference_mode():
        features = clf.features(clf.encode(split["text"][:], split["context"][:])).float().numpy()
    expected = fm.MaSF(calibration="published").fit(features)
    np.testing.assert_allclose(unknown["published"].columns_, expected.columns_, atol=1e-6)
    np.testing.assert_array_equal(unknown["crossfit"].statistics_, plain["crossfit"].statistics_)
    assert not np.array_equal(unknown["crossfit"].statistics_, tests["crossfit"].statistics_)
    result = fm.measure(clf, reviews, ["grad-l2"], limit=12, tests=unknown)
    assert result.to_dict()["trained_with"] == "unknown"
    assert "training" in [doubt.kind for doubt in result.doubts]
    assert not any("fine-tuned with masks" in answer.text for answer in result.verdict.answers)
    text = fm.explain_text(clf, "the film was good", tests=unknown, orders=19)
    assert (text.trained_with, "training" in [doubt.kind for doubt in text.doubts]) == ("unknown", True)


def test_one_class_alone_is_refused(clf, tmp_path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("review,stars\n" + "\n".join(f"good film,{'a' if i < 100 else 'b'}" for i in range(101)))
    test = tmp_path / "test.csv"
    test.write_text("review,stars\ngood,a\nbad,a\n")
    task = fm.own_task(path, text="review", label="stars", test=test)
    with pytest.raises(fm.InputError, match="all 2 texts of one to be measured have the label 'a'"):
        fm.measure(clf, task, ["random"])


def test_logits_that_are_no_numbers_are_refused(reviews: Task) -> None:
    broken = tiny()
    broken.model.classifier.out_proj.weight.data.fill_(torch.nan)
    with pytest.raises(fm.InputError, match="logits for text"):
        fm.measure(broken, reviews, ["random"])


def test_too_few_validation_texts_are_refused(clf, tmp_path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("review,stars\n" + "\n".join(f"good film,{'ab'[i % 2]}" for i in range(30)))
    with pytest.raises(fm.InputError, match="the check needs at least 20"):
        fit_tests(clf, fm.own_task(path, text="review", label="stars"))


def test_the_result_is_plain_values(result: Result) -> None:
    found = result.to_dict()
    assert found["methods"]["loo-sign"]["acu"] == result.acu("loo-sign")
    assert found["methods"]["beam(width=2)"]["curve"]["percents"][-1] == 100
    assert found["methods"]["loo-sign"]["pvalues"]["crossfit"][0]["p"] <= 1
    assert set(found["floors"]) == {"published", "crossfit"}


def test_a_model_with_permuted_classes_has_the_same_result(reviews: Task) -> None:
    order = [2, 0, 1]
    plain, permuted = tiny(), tiny()
    plain.model.config.id2label = dict(enumerate(reviews.labels))
    permuted.model.config.id2label = {
        place: reviews.labels[number].upper() for place, number in enumerate(order)
    }
    with torch.no_grad():
        for name in ("weight", "bias"):
            tensor = getattr(permuted.model.classifier.out_proj, name)
            tensor.copy_(tensor[order].clone())
    one, other = (fm.measure(clf, reviews, ["loo-sign"], limit=12) for clf in (plain, permuted))
    assert one.curve("loo-sign") == other.curve("loo-sign")
    assert one.majority == other.majority
    assert [order[number] for number in other.frame["label"]] == one.frame["label"].tolist()
    assert not one.context.classes_by_number


def test_classes_without_names_are_matched_by_number(clf: fm.Classifier, reviews: Task) -> None:
    assert fm.measure(clf, reviews, [], limit=8).context.classes_by_number
