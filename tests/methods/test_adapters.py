"""Explainers of other libraries through the adapters: their own scores, our parity, recursion and cost."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from captum.attr import (
    FeatureAblation,
    IntegratedGradients,
    LayerIntegratedGradients,
    ShapleyValueSampling,
)

import faithmeter as fm
from decoders import SIZES, decoder, decoder_tokenizer
from faithmeter.methods import adapters
from faithmeter.methods.adapters import locate
from faithmeter.models.classifier import add_embeddings
from faithmeter.models.encoding import add_tokens
from faithmeter.models.evaluator import Evaluator
from faithmeter.models.tokens import in_units
from toy import encoder, tiny, word_tokenizer

TEXTS = ["the film was not good", "dull", "a <mask> story and <mask> plot", "very very fun music"]
PAIRS = ["who wrote it", "a very dull film", "it was fun", "was it"]
LABELS = [0, 2, 1, 0]
LAYER = {"n_steps": 20, "method": "riemann_right"}
PARITY = [
    (adapters.captum(LayerIntegratedGradients, **LAYER), "int-grad-sign(baseline=mask)"),
    (adapters.captum(IntegratedGradients, **LAYER), "int-grad-sign"),
    (adapters.captum(FeatureAblation), "loo-sign"),
]


@pytest.mark.parametrize("pairs", [False, True], ids=["texts", "pairs"])
@pytest.mark.parametrize("kind", ["roberta", "bert"])
@pytest.mark.parametrize(("theirs", "ours"), PARITY, ids=str)
def test_captum_gives_our_scores_and_our_erasures(theirs, ours: str, kind: str, pairs: bool) -> None:
    clf = tiny(kind)
    batch = clf.encode(TEXTS, PAIRS if pairs else None)
    torch.testing.assert_close(
        fm.explain(clf, batch, LABELS, theirs), fm.explain(clf, batch, LABELS, ours), rtol=0, atol=1e-6
    )
    for one, other in zip(
        fm.erase(clf, batch, LABELS, theirs), fm.erase(clf, batch, LABELS, ours), strict=True
    ):
        assert one[1].input_ids.tolist() == other[1].input_ids.tolist()


@pytest.mark.parametrize(("theirs", "ours"), PARITY, ids=str)
def test_captum_by_words_gives_our_scores_by_words(theirs, ours: str) -> None:
    clf = tiny()
    batch = in_units(clf.encode(["the film was not good. a dull story! down"]), "sentence")
    torch.testing.assert_close(
        fm.explain(clf, batch, [1], theirs), fm.explain(clf, batch, [1], ours), rtol=0, atol=1e-6
    )


def test_an_attribution_object_has_its_own_forward_function() -> None:
    clf = tiny()
    batch = clf.encode(TEXTS)
    own = FeatureAblation(lambda ids, mask: clf.model(input_ids=ids, attention_mask=mask).logits)
    method = adapters.captum(own, name="ablation", baselines=clf.mask_id)
    torch.testing.assert_close(
        fm.explain(clf, batch, LABELS, method), fm.explain(clf, batch, LABELS, "loo-sign"), rtol=0, atol=1e-6
    )
    wrong = adapters.captum(LayerIntegratedGradients, return_convergence_delta=True)
    with pytest.raises(fm.InputError, match="captum returned tuple"):
        fm.explain(clf, batch, LABELS, wrong)


def test_a_sampled_explainer_never_masks_special_or_context_tokens() -> None:
    """Shapley values add up to the fall from the text to the wholly masked one, context untouched."""
    clf = tiny()
    batch = clf.encode(["the film was good"], ["who wrote it"])
    torch.manual_seed(0)
    scores = fm.explain(clf, batch, [1], adapters.captum(ShapleyValueSampling, n_samples=5))
    masked = batch.masked(batch.explained, clf.mask_id)
    fall = (clf.logits(batch) - clf.logits(masked))[0, 1].item()
    assert scores.sum().item() == pytest.approx(fall, abs=1e-6)


def test_forward_passes_are_counted_whoever_makes_them() -> None:
    clf = tiny()
    batch = clf.encode(["the film was not good"])
    for method, evaluations in (
        (adapters.captum(FeatureAblation), 7),  # the text, five tokens, the feature of all others
        (adapters.attention("last"), 1),
        (adapters.texts(lambda texts: [clf.logits(batch)[0].tolist() and [1] * 5], name="one"), 1),
    ):
        evaluator = Evaluator(clf)
        fm.explain(evaluator, batch, [0], method)
        assert evaluator.evaluations == evaluations, method
    assert not clf.model._forward_hooks


def decoder_classifier(kind: str) -> fm.Classifier:
    model, tokenizer = decoder(kind).double(), decoder_tokenizer()
    add_tokens(tokenizer, "")
    add_embeddings(model, tokenizer)
    return fm.Classifier(model, tokenizer)


@pytest.mark.parametrize("architecture", ["roberta", "bert", "distilbert", "modernbert", *SIZES])
def test_attention_is_that_of_the_plain_formula(architecture: str) -> None:
    """From the first token, from all tokens (mean), or from the last token of a decoder."""
    reads_last = architecture in SIZES
    if reads_last:
        clf = decoder_classifier(architecture)
    else:
        clf = fm.Classifier(encoder(architecture), word_tokenizer())
    before = clf.model.config._attn_implementation
    batch = clf.encode(TEXTS)
    last, rollout = (fm.explain(clf, batch, LABELS, adapters.attention(kind)) for kind in ("last", "rollout"))
    assert clf.model.config._attn_implementation == before
    clf.model.set_attn_implementation("eager")
    for row in range(len(TEXTS)):
        n = int(batch.attention_mask[row].sum())
        inputs = {name: value[row : row + 1, :n] for name, value in batch.inputs.items()}
        with torch.no_grad():
            layers = [a[0].mean(dim=0) for a in clf.model(**inputs, output_attentions=True).attentions]
        flow = torch.eye(n, dtype=torch.float64)
        for layer in layers:
            mixed = layer + torch.eye(n, dtype=torch.float64)
            flow = mixed / mixed.sum(dim=1, keepdim=True) @ flow
        read = slice(None) if getattr(clf.model.config, "classifier_pooling", "") == "mean" else slice(0, 1)
        read = slice(n - 1, n) if reads_last else read
        places = batch.explained[row]
        for scores, expected in ((last, layers[-1]), (rollout, flow)):
            np.testing.assert_allclose(scores[row, places], expected[read].mean(dim=0)[places[:n]], atol=1e-7)


def test_attention_is_measured_again_at_every_step_and_has_no_sign() -> None:
    method = adapters.attention()
    assert (method.recursive, method.signed, method.name) == (True, False, "attention-rollout")
    with pytest.raises(fm.InputError, match="unknown kind of attention 'first'"):
        adapters.attention("first")


def test_a_function_of_texts_may_take_labels() -> None:
    clf = tiny()
    batch = clf.encode(TEXTS)

    def scores(texts: list[str], labels: list[int]) -> list[list[int]]:
        return [[label] * len(text.split()) for text, label in zip(texts, labels, strict=True)]

    method = adapters.texts(scores, name="labels")
    assert not method.recursive
    values = fm.explain(clf, batch, LABELS, method)
    assert [values[row][batch.explained[row]].unique().tolist() for row in range(4)] == [[n] for n in LABELS]
    wrong = adapters.texts(lambda texts: [[1]] * len(texts), name="wrong")
    with pytest.raises(fm.InputError, match=re.escape("has 1 scores; expected 5 (one for each token)")):
        fm.explain(clf, batch, LABELS, wrong)


def test_parts_are_located_one_after_the_other() -> None:
    assert locate("a b a", ["", "a ", "b ", "a", "</s>"], [9, 1, 2, 3, 9]) == [
        (0, 1, 1),
        (2, 3, 2),
        (4, 5, 3),
    ]


@pytest.mark.slow
def test_shap_explains_any_classifier_and_counts_what_it_asks() -> None:
    shap = pytest.importorskip("shap")
    clf = tiny()
    batch = clf.encode(TEXTS, PAIRS)
    scores = fm.explain(clf, batch, LABELS, adapters.shap(shap.explainers.Exact))
    expected = fm.explain(clf, batch, LABELS, "loo-sign")
    whole, nothing = clf.logits(batch), clf.logits(batch.masked(batch.explained, clf.mask_id))
    for row, label in enumerate(LABELS):
        fall = (whole - nothing)[row, label].item()
        assert scores[row].sum().item() == pytest.approx(fall, abs=1e-9), "Shapley values are efficient"
    assert scores[1].sum().item() == pytest.approx(expected[1].sum().item()), "one token: leave-one-out"
    assert (scores[2][batch.input_ids[2] == clf.mask_id] == 0).all()
    evaluator = Evaluator(clf)
    fm.explain(evaluator, batch[[0]], [0], adapters.shap(shap.explainers.Exact))
    assert evaluator.evaluations == 2**5
    with pytest.raises(fm.InputError, match="an object of shap explains whole texts only"):
        adapters.shap(object(), recursive=True)


@pytest.mark.slow
def test_shap_explains_texts_by_its_own_masker() -> None:
    shap = pytest.importorskip("shap")
    clf = tiny()

    def logits(texts: list[str]) -> np.ndarray:
        with torch.no_grad():
            return clf.logits(clf.encode([str(text) or "<mask>" for text in texts])).numpy()

    explainer = shap.Explainer(logits, shap.maskers.Text(clf.tokenizer, mask_token="<mask>"), silent=True)
    method = adapters.shap(explainer, name="shap")
    assert not method.recursive
    batch = clf.encode(TEXTS[:2])
    scores = fm.explain(clf, batch, LABELS[:2], method)
    assert (scores[batch.explained] != 0).all()


@pytest.mark.slow
def test_interpreto_occlusion_is_leave_one_out() -> None:
    interpreto = pytest.importorskip("interpreto")
    clf = tiny()
    batch = clf.encode(TEXTS)
    expected = fm.explain(clf, batch, LABELS, "loo-sign")
    scores = fm.explain(clf, batch, LABELS, adapters.interpreto(interpreto.Occlusion))
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-6)
    words = interpreto.Occlusion(clf.model, clf.tokenizer, granularity=interpreto.Granularity.WORD)
    method = adapters.interpreto(words, name="words")
    assert not method.recursive
    whole = [0, 1, 3]  # without masks: interpreto leaves them out
    torch.testing.assert_close(
        fm.explain(clf, batch[whole], [0, 2, 0], method), expected[whole], rtol=0, atol=1e-6
    )


def test_a_missing_library_is_named(monkeypatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "shap", None)
    clf = tiny()
    with pytest.raises(fm.InputError, match="shap is not installed"):
        fm.explain(clf, clf.encode(TEXTS[:1]), [0], adapters.shap(type("Exact", (), {})))
