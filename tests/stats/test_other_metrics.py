"""Metrics of other papers: a case computed by hand, a re-derivation, and the bounds of NAOPC."""

from __future__ import annotations

import math
import random
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

import faithmeter as fm
from faithmeter.data import Task
from faithmeter.methods import METHODS, Method
from faithmeter.stats.other_metrics import choose_shares, normalized_aopc, text_metrics
from toy import WORDS, tiny

METHODS_HERE = ["loo-sign", "beam(width=3)", "beam(width=3,worst=true)"]


@pytest.fixture(scope="module")
def clf() -> fm.Classifier:
    return tiny()


@pytest.fixture(scope="module")
def task(tmp_path_factory) -> Task:
    path, rng = tmp_path_factory.mktemp("data") / "reviews.csv", random.Random(0)
    rows = [f"{' '.join(rng.choices(WORDS, k=rng.randint(3, 9)))},{'abc'[row % 3]}" for row in range(12)]
    path.write_text("\n".join(["text,label", *rows]))
    return fm.own_task(path, text="text", label="label", all_test=True)


@pytest.fixture(scope="module")
def result(clf: fm.Classifier, task: Task) -> fm.Result:
    once = Method("once", METHODS["loo-sign"].function, recursive=False)
    return fm.measure(clf, task, [once, *METHODS_HERE], complement=True)


def test_a_case_by_hand() -> None:
    erased = np.array([[0.8, 0.4, 0.2, 0.1], [0.5, 0.5, 0.5, 0.5]])  # at 0, 10, 50, 100 %
    kept = np.array([[0.1, 0.6, 0.7, 0.8], [0.5, 0.5, 0.5, 0.5]])
    metrics = text_metrics(erased, kept, (0, 10, 50, 100))
    assert metrics["comprehensiveness"].tolist() == pytest.approx([(0.4 + 0.6) / 2, 0])
    assert metrics["sufficiency"].tolist() == pytest.approx([(0.2 + 0.1) / 2, 0])
    assert metrics["deletion"].tolist() == pytest.approx([0.06 + 0.12 + 0.075, 0.5])
    assert metrics["insertion"].tolist() == pytest.approx([0.035 + 0.26 + 0.375, 0.5])
    assert metrics["log_odds"].tolist() == pytest.approx([(math.log(1 / 2) + math.log(1 / 4)) / 2, 0])
    at_ten = text_metrics(erased, None, (0, 10, 50, 100), shares=[10])
    assert at_ten["comprehensiveness"].tolist() == pytest.approx([0.4, 0])
    assert "sufficiency" not in at_ten
    assert choose_shares((0, 30, 100)) == [30]
    assert choose_shares((0, 100)) == [100]
    for shares, message in (([20], "20 % was not measured"), ([], "no shares were given")):
        with pytest.raises(fm.InputError, match=message):
            choose_shares((0, 10, 100), shares)


def test_naopc_is_one_for_the_best_and_zero_for_the_worst_order() -> None:
    orders = {"best": [[0.9, 0.1, 0.1]], "middle": [[0.9, 0.5, 0.1]], "worst": [[0.9, 0.9, 0.1]]}
    values = normalized_aopc({name: np.array(curve) for name, curve in orders.items()})
    assert {name: value.tolist() for name, value in values.items()} == {
        "best": [1.0],
        "middle": pytest.approx([0.5]),
        "worst": [0.0],
    }
    same = normalized_aopc({"a": np.array([[0.5, 0.5]]), "b": np.array([[0.5, 0.5]])})
    assert math.isnan(same["a"][0])


def test_comprehensiveness_and_sufficiency_are_those_of_eraser(clf, task, result) -> None:
    """Re-derived as ferret does it with masks: top share of the whole text's scores, by forward passes."""
    rows = task.load()["test"]
    comprehensiveness, sufficiency = [], []
    for text, label in zip(rows["text"], rows["label"], strict=True):
        batch = clf.encode([text])
        scores = fm.explain(clf, batch, [label], "loo-sign")[0]
        places = batch.explained[0].nonzero()[:, 0].tolist()
        order = sorted(places, key=lambda place: -scores[place].item())

        def probability(masked: list[int], batch=batch, label=label) -> float:
            ids = batch.input_ids.clone()
            ids[0, masked] = clf.mask_id
            with torch.no_grad():
                logits = clf.model(input_ids=ids, attention_mask=batch.attention_mask).logits
            return logits.softmax(dim=1)[0, label].item()

        whole = probability([])
        counts = [len(places) * share // 100 for share in (10, 20, 50)]
        comprehensiveness.append(np.mean([whole - probability(order[:count]) for count in counts]))
        sufficiency.append(np.mean([whole - probability(order[count:]) for count in counts]))
    metrics = result.metrics("once")
    assert metrics["comprehensiveness"] == pytest.approx(np.mean(comprehensiveness), abs=1e-6)
    assert metrics["sufficiency"] == pytest.approx(np.mean(sufficiency), abs=1e-6)


FERRET = {
    "comprehensiveness": [0.084308813, -0.148228931, 0.066265915, -0.143632946, 0.152545544, -0.100193827],
    "sufficiency": [0.054966266, -0.061588385, 0.123594352, -0.248528015, 0.201481485, -0.178805244],
}
"""Values of each text by ferret-xai 0.4.2 (transformers 4.57.6, torch 2.13.0): scripts/ferret_values.py."""


def test_comprehensiveness_and_sufficiency_are_those_of_ferret(tmp_path) -> None:
    """On the same scores and model, with masks in place of deleted tokens, to 1e-6."""
    case = runpy.run_path(str(Path(__file__).parents[2] / "scripts/ferret_values.py"))
    clf = fm.Classifier(case["build_model"](), case["build_tokenizer"]())
    lines = [f"{text},{label}" for text, label in zip(case["TEXTS"], case["LABELS"], strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["text,label", *lines]))
    task = fm.own_task(tmp_path / "t.csv", text="text", label="label", all_test=True)
    result = fm.measure(clf, task, {"sines": case["SCORES"]}, complement=True)
    columns = [result.curve("sines").percents.index(round(100 * share)) for share in case["SHARES"]]
    trace = result.seeds[0]["sines"]
    erased, kept = trace.probabilities, trace.kept
    for name, values in (("comprehensiveness", erased), ("sufficiency", kept)):
        falls = (erased[:, :1] - values[:, columns]).mean(axis=1)
        assert falls.tolist() == pytest.approx(FERRET[name], abs=1e-6)
        assert result.metrics("sines")[name] == pytest.approx(np.mean(FERRET[name]), abs=1e-6)
    assert np.ptp(FERRET["comprehensiveness"]) > 0.1, "the texts differ"


def test_a_measurement_has_all_metrics_and_its_searches_bound_naopc(result: fm.Result) -> None:
    table = result.metric_table()
    assert table.notna().all().all()
    metrics = {method: result.metrics(method) for method in result.methods}
    assert all(0 <= values["naopc"] <= 1 for values in metrics.values())
    assert metrics["beam(width=3)"]["naopc"] > metrics["random"]["naopc"]
    assert metrics["random"]["naopc"] > metrics["beam(width=3,worst=true)"]["naopc"]
    erased = {name: trace.probabilities for name, trace in result.seeds[0].items()}
    of_texts = np.stack(list(normalized_aopc(erased).values()))  # [M, N]
    assert (of_texts.max(axis=0) == 1).all(), "the best order of each text"
    assert (of_texts.min(axis=0) == 0).all(), "the worst order of each text"
    frame = result.frame[result.frame["method"] == "once"]
    ends = dict(iter(frame.groupby("percent")))
    assert ends[0]["kept"].tolist() == pytest.approx(ends[100]["probability"].tolist())
    assert ends[100]["kept"].tolist() == pytest.approx(ends[0]["probability"].tolist())
    with pytest.raises(fm.InputError, match="unknown measured method 'beam'"):
        result.metrics("beam")


def test_without_complement_and_search_some_metrics_are_undefined(clf, task, result) -> None:
    plain = fm.measure(clf, task, ["loo-sign"])
    metrics = plain.metrics("loo-sign")
    undefined = {name for name, value in metrics.items() if math.isnan(value)}
    assert undefined == {"sufficiency", "insertion", "naopc"}
    assert metrics["comprehensiveness"] == pytest.approx(result.metrics("loo-sign")["comprehensiveness"])
    recorded = plain.to_dict()["methods"]["loo-sign"]["metrics"]
    assert recorded.keys() == metrics.keys()
    assert "kept" not in plain.frame


@pytest.mark.slow
def test_insertion_and_deletion_are_those_of_interpreto(clf, task) -> None:
    interpreto = pytest.importorskip("interpreto")
    from interpreto.attributions.metrics import Deletion, Insertion

    text = "the film was not good and very dull it"  # nine tokens: a step for each
    label = 1
    explainer = interpreto.Occlusion(clf.model, clf.tokenizer, granularity=interpreto.Granularity.TOKEN)
    [output] = explainer([text], torch.tensor([label]))
    values = {}
    for name, metric in (("deletion", Deletion), ("insertion", Insertion)):
        values[name], _ = metric(clf.model, clf.tokenizer, n_perturbations=10).evaluate([output])
    scores = fm.explain(clf, clf.encode([text]), [label], "loo-sign")[0, 1:-1]
    order = scores.argsort(descending=True, stable=True).tolist()
    curves: dict[str, list[float]] = {"deletion": [], "insertion": []}
    batch = clf.encode([text])
    for count in range(10):
        for name, masked in (("deletion", order[:count]), ("insertion", order[count:])):
            where = torch.zeros_like(batch.explained)
            where[0, [place + 1 for place in masked]] = True
            logits = clf.logits(batch.masked(where, clf.mask_id))
            curves[name].append(logits.softmax(dim=1)[0, label].item())
    erased, kept = (np.array([curves[name]]) for name in ("deletion", "insertion"))
    percents = tuple(round(100 * count / 9) for count in range(10))
    ours = text_metrics(erased, kept, percents)
    for name, value in values.items():
        assert ours[name][0] == pytest.approx(value, abs=5e-3), name
