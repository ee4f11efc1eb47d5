"""The pipeline gives what transformers gives, and beside it what the library's own functions give."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers.pipelines.pt_utils import KeyDataset

import faithmeter as fm
from faithmeter.runs.pipeline import Pipeline, pipeline
from faithmeter.stats.pvalues import simes
from toy import tiny

TEXT, PAIR = "the film was not good but very fun", "who wrote it"
BOTH = {"text": TEXT, "text_pair": PAIR}
FAST = {"orders": 19}
NAMED = ("Mary", "John", "Daniel", "Sandra", "Bill")
NAMES = [f"{first} {second}" for first in NAMED for second in ascii_lowercase]


@pytest.fixture(scope="module")
def clf() -> fm.Classifier:
    return tiny()


@pytest.fixture(scope="module")
def pipe(clf: fm.Classifier) -> Pipeline:
    return pipeline(clf, **FAST)


@pytest.fixture(scope="module")
def oracle(clf: fm.Classifier) -> Any:
    return transformers.pipeline("text-classification", model=clf.model, tokenizer=clf.tokenizer)


def test_a_text_that_costs_too_much_is_refused_before_it_is_read(pipe: Pipeline) -> None:
    """8 tokens, so 9 steps of 19 random orders and the method, 8 explanations of 9, and the prediction."""
    assert pipe(TEXT, max_evaluations=253)["label"]
    before = pipe.clf.evaluations
    for inputs in (TEXT, ["the film", TEXT]):
        with pytest.raises(fm.InputError, match=r"take 253 evaluations.*at most 252: .*\(max_evaluations\)"):
            pipe(inputs, max_evaluations=252)
    assert pipe.clf.evaluations == before
    with pytest.raises(fm.InputError, match="max_evaluations is 0; expected a whole number of at least 1"):
        pipe(TEXT, max_evaluations=0)


def test_progress_tells_of_evaluations_and_of_texts(pipe: Pipeline) -> None:
    calls: list[tuple[str, int, int]] = []
    pipeline(tiny(), **FAST)([TEXT, "the film"], progress=lambda *call: calls.append(call))
    assert [call for call in calls if call[0] == "explain"] == [("explain", done, 2) for done in range(3)]
    first = [done for phase, done, total in calls if (phase, total) == ("evaluations", 253)]
    assert first == sorted(first)
    assert 0 == first[0] < first[-1] <= 253


@pytest.mark.parametrize("one", [TEXT, BOTH, {"text": TEXT}, {"text": TEXT, "text_pair": None}])
def test_label_and_score_are_those_of_transformers(pipe: Pipeline, oracle: Any, one: Any) -> None:
    expected = oracle(BOTH if one is BOTH else {"text": TEXT})
    found = pipe(one)
    assert found["label"] == expected["label"]
    assert found["score"] == pytest.approx(expected["score"], abs=1e-6)


@pytest.mark.parametrize("top_k", [1, 2, None])
def test_top_k_is_that_of_transformers_with_each_class_explained(
    pipe: Pipeline, oracle: Any, clf: fm.Classifier, top_k: int | None
) -> None:
    found, expected = pipe(BOTH, top_k=top_k), oracle(BOTH, top_k=top_k)
    assert [one["label"] for one in found] == [one["label"] for one in expected]
    assert [one["score"] for one in found] == pytest.approx([one["score"] for one in expected], abs=1e-6)
    for one in found:
        words = fm.explain_text(clf, TEXT, pair=PAIR, label=one["label"], verify=False).words
        assert [word["score"] for word in one["explanation"]] == [word.scores["loo-sign"] for word in words]


@pytest.mark.parametrize("method", ["loo-sign", "grad-l2", "beam(width=2)"])
def test_explanation_and_acu_are_those_of_the_library(clf: fm.Classifier, method: str) -> None:
    found = pipeline(clf, method=method, orders=20, seed=2)(BOTH)
    explanation = fm.explain_text(clf, TEXT, pair=PAIR, method=[method], verify=False)
    name = explanation.methods[0]
    assert found["explanation"] == [
        {"word": word.text, "start": word.start, "end": word.end, "score": word.scores[name]}
        for word in explanation.words
    ]
    assert [TEXT[word["start"] : word["end"]] for word in found["explanation"]] == TEXT.split()
    measured = fm.explain_text(clf, TEXT, pair=PAIR, method=[method], orders=20, seed=2)
    assert found["acu"] == pytest.approx(measured.erasures[name].acu, abs=1e-12)
    json.dumps(found, allow_nan=False)


def test_a_list_gives_a_list_and_an_iterator_works_on_one_text_at_a_time(pipe: Pipeline) -> None:
    alone = [pipe(TEXT), pipe(BOTH)]
    assert pipe([TEXT, BOTH]) == alone
    assert pipe([]) == []
    taken = []

    def texts() -> Iterator[Any]:
        for one in (TEXT, BOTH):
            taken.append(one)
            yield one

    stream = pipe(texts())
    assert taken == []
    assert next(stream) == alone[0]
    assert taken == [TEXT]
    assert list(stream) == alone[1:]
    assert list(pipe(KeyDataset([{"review": TEXT}], "review"))) == alone[:1]


def test_options_can_be_changed_for_a_call(pipe: Pipeline, clf: fm.Classifier) -> None:
    assert pipe(TEXT, method="grad-l1") == pipeline(clf, method="grad-l1", **FAST)(TEXT)
    assert pipe.method == "loo-sign"
    assert pipe(TEXT, top_k=np.int64(1)) == [pipe(TEXT)]


@pytest.mark.parametrize("shift", [0.0, 50.0])
def test_the_p_value_is_simes_of_the_steps_and_agrees_with_the_doubts(
    clf: fm.Classifier, shift: float
) -> None:
    draw, words = Random(0), TEXT.split()
    masks = [set(draw.sample(range(len(words)), draw.randint(0, len(words)))) for _ in range(200)]
    texts = [" ".join("<mask>" if i in gone else word for i, word in enumerate(words)) for gone in masks]
    with torch.inference_mode():
        features = clf.features(clf.encode(texts)).float().numpy() + np.float32(shift)
    tests = {"crossfit": fm.MaSF(calibration="crossfit", trained_with="half").fit(features)}
    found = pipeline(clf, tests=tests, **FAST)(TEXT)
    steps = fm.explain_text(clf, TEXT, tests=tests, **FAST).erasures["loo-sign"].pvalues["crossfit"]
    assert found["p_value"] == simes(steps[:-1])
    outside = any("out of distribution" in doubt for doubt in found["doubts"])
    assert outside == (found["p_value"] < 0.05) == (shift > 0)
    assert found["trusted"] == (not found["doubts"])


def test_without_a_test_nothing_is_trusted(pipe: Pipeline) -> None:
    found = pipe(TEXT)
    assert found["p_value"] is None
    assert not found["trusted"]
    assert any("normal to this model" in doubt for doubt in found["doubts"])


def test_sentences_are_explained_as_units(pipe: Pipeline) -> None:
    found = pipe("the film was good. a dull plot", unit="sentence")
    assert [word["word"] for word in found["explanation"]] == ["the film was good.", "a dull plot"]


def test_a_text_beyond_the_limit_says_so() -> None:
    pipe = pipeline(tiny(max_position_embeddings=12), **FAST)
    assert not pipe(TEXT)["truncated"]
    assert pipe(f"{TEXT} {TEXT}")["truncated"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (3, "a int; expected a text"),
        (None, "a NoneType; expected a text"),
        (b"text", "a bytes; expected a text"),
        ((TEXT, PAIR), "a tuple; expected a text"),
        ([TEXT, 3], "a int; expected a text"),
        ([[TEXT, PAIR]], "a list; expected a text"),
        ({"txt": TEXT}, "did you mean 'text'"),
        ({"text": TEXT, "label": 1}, "unknown key of an input 'label'"),
        ({"text_pair": PAIR}, "expected strings for `text`"),
        ({"text": TEXT, "text_pair": 3}, "expected strings for `text`"),
        ("", "is empty"),
        ([TEXT, " "], "text 1 .* is empty"),
        ([TEXT, {"text": "", "text_pair": PAIR}], "text 1 .* is empty"),
    ],
)
def test_wrong_inputs_are_refused_before_any_work(pipe: Pipeline, wrong: Any, message: str) -> None:
    before = pipe.clf.evaluations
    with pytest.raises(fm.InputError, match=message):
        pipe(wrong)
    assert pipe.clf.evaluations == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "lo-sign"}, "did you mean 'loo-sign'"),
        ({"method": 3}, "method is 3; expected a name"),
        ({"method": "random"}, "random explains nothing"),
        ({"orders": 18}, "orders is 18; expected a whole number of at least 19"),
        ({"orders": 50.5}, "orders is 50.5"),
        ({"orders": "x"}, "orders is 'x'"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": None}, "seed is None"),
        ({"top_k": -1}, "top_k is -1"),
        ({"top_k": "2"}, "top_k is '2'"),
        ({"tests": "own"}, "tests is 'own'"),
        ({"unit": "letter"}, "unknown unit 'letter'"),
        ({"tests": [1]}, r"tests is \[1\]"),
        ({"tests": {"crossfit": 1}}, "tests is {'crossfit': 1}"),
    ],
)
def test_wrong_options_are_refused(
    clf: fm.Classifier, pipe: Pipeline, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(fm.InputError, match=message):
        pipeline(clf, **options)
    with pytest.raises(fm.InputError, match=message):
        pipe(TEXT, **options)


@pytest.mark.parametrize(("name", "said"), [("metod", "did you mean 'method'"), ("clf", "expected one of")])
def test_unknown_options_of_a_call_are_refused(pipe: Pipeline, name: str, said: str) -> None:
    with pytest.raises(fm.InputError, match=f"unknown option of a pipeline '{name}'; {said}"):
        pipe(TEXT, **{name: 1})


def test_a_checkpoint_of_ours_brings_its_tests_and_another_has_none(tmp_path: Path) -> None:
    store = fm.RunStore(tmp_path / "runs")
    rows = [f"{name} went to the {place}.,{place}" for name in NAMES for place in ("garden", "office")]
    (tmp_path / "stories.csv").write_text("\n".join(["story,place", *rows]), encoding="utf-8")
    config = fm.TrainConfig(data=str(tmp_path / "stories.csv"), text="story", label="place", epochs=1)
    fm.train(config, store)
    one = "Mary went to the garden."
    found = pipeline(store.folder(config), **FAST)(one)
    assert 0 < found["p_value"] <= 1
    assert len(list(store.folder(config).glob("masf-crossfit-*.safetensors"))) == 1
    assert pipeline(str(store.folder(config)), **FAST)(one) == found
    assert pipeline(store.folder(config), tests=None, **FAST)(one)["p_value"] is None
    clf = fm.load(store.folder(config))
    clf.model.save_pretrained(tmp_path / "other")
    clf.tokenizer.save_pretrained(tmp_path / "other")
    other = pipeline(tmp_path / "other", **FAST)(one)
    assert other["p_value"] is None
    assert other["acu"] == pytest.approx(found["acu"], abs=1e-6)


def test_a_model_of_pairs_refuses_a_single_text_before_any_work() -> None:
    clf = tiny()
    clf.takes_pair = True
    with pytest.raises(fm.InputError, match="trained on pairs of texts, and only one text was given"):
        fm.pipeline(clf, tests=None)([{"text": TEXT, "text_pair": TEXT}, TEXT])
