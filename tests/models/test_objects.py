"""Classifiers made from Python objects: sentence encoders with a fitted head, and any torch module."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor
from transformers import BertModel

import faithmeter as fm
from toy import SIZE, WITH_TYPES, encoder, tiny, word_tokenizer

TEXTS = ["the film was not good", "dull", "a very good story and fun music", "bad plot but good actors"] * 6
LABELS = np.arange(len(TEXTS)) % 4 % 3


class Transformer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.auto_model: BertModel = tiny("bert", dtype=torch.float32).model.bert
        self.tokenizer = word_tokenizer(model_input_names=WITH_TYPES)


class Pooling(torch.nn.Module):
    def __init__(self, mode: str) -> None:
        super().__init__()
        self.pooling_mode = mode


class Dense(torch.nn.Module):
    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(16, outputs)
        self.in_features, self.out_features, self.use_residual = 16, outputs, False
        self.activation_function = torch.nn.Identity()


class SentenceTransformer(torch.nn.Sequential):
    """A stand-in that has what is read of the library's class of this name, and `encode`."""

    def encode(self, texts: list[str]) -> np.ndarray[Any, Any]:
        rows = []
        for text in texts:
            with torch.inference_mode():
                states = self[0].auto_model(**self[0].tokenizer(text, return_tensors="pt")).last_hidden_state
            rows.append(states[0].mean(dim=0).numpy())
        return np.stack(rows)


@pytest.fixture
def body() -> SentenceTransformer:
    return SentenceTransformer(Transformer(), Pooling("mean")).eval()


def probabilities(clf: fm.Classifier) -> np.ndarray[Any, Any]:
    return clf.logits(clf.encode(TEXTS)).detach().softmax(dim=1).numpy()


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_those_of_the_fitted_head(body: SentenceTransformer, classes: int) -> None:
    names = np.array(["bad", "good", "so-so"])[LABELS % classes]
    head = LogisticRegression().fit(body.encode(TEXTS), names)
    clf = fm.Classifier(body, head=head)
    np.testing.assert_allclose(probabilities(clf), head.predict_proba(body.encode(TEXTS)), atol=1e-5)
    assert clf.labels == tuple(head.classes_)
    assert clf.tokenizer is body[0].tokenizer


def test_the_predictions_of_another_linear_head_are_kept(body: SentenceTransformer) -> None:
    head = RidgeClassifier(fit_intercept=False).fit(body.encode(TEXTS), LABELS)
    clf = fm.Classifier(body, head=head, labels=["a", "b", "c"])
    assert (probabilities(clf).argmax(axis=1) == head.predict(body.encode(TEXTS))).all()
    assert clf.labels == ("a", "b", "c")


def test_an_encoder_in_half_precision_keeps_the_coefficients_of_its_head(body: SentenceTransformer) -> None:
    head = LogisticRegression().fit(body.encode(TEXTS), LABELS)
    expected = head.predict_proba(body.encode(TEXTS))
    body.bfloat16()
    clf = fm.Classifier(body, head=head)
    assert clf.model.layers[-1].linear.weight.dtype == torch.float32
    np.testing.assert_allclose(probabilities(clf), expected, atol=0.1)


def test_a_setfit_model_is_read(body: SentenceTransformer) -> None:
    vectors = body.encode(TEXTS)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    head = LogisticRegression().fit(unit, LABELS)
    options = {"model_body": body, "labels": ["one", "two", "three"], "normalize_embeddings": True}
    clf = fm.Classifier(SimpleNamespace(**options, model_head=head))
    np.testing.assert_allclose(probabilities(clf), head.predict_proba(unit), atol=1e-5)
    assert clf.labels == ("one", "two", "three")


def test_a_differentiable_head_of_setfit_is_scaled_by_its_temperature(body: SentenceTransformer) -> None:
    head = torch.nn.Module()
    head.linear, head.temperature, head.eps, head.multitarget = torch.nn.Linear(16, 2), 0.5, 1e-5, False
    model = SimpleNamespace(model_body=body, model_head=head, labels=["no", "yes"])
    expected = head.linear(torch.from_numpy(body.encode(TEXTS))) / (0.5 + 1e-5)
    clf = fm.Classifier(model)
    torch.testing.assert_close(clf.logits(clf.encode(TEXTS)), expected, rtol=0, atol=1e-5)


def test_one_of_several_labels_is_chosen(body: SentenceTransformer) -> None:
    several = np.stack([LABELS == 0, LABELS == 1, LABELS > 0], axis=1).astype(int)
    head = OneVsRestClassifier(LogisticRegression()).fit(body.encode(TEXTS), several)
    names = ["a", "b", "c"]
    with pytest.raises(fm.InputError, match="gives several labels at once"):
        fm.Classifier(body, head=head, labels=names)
    clf = fm.Classifier(body, head=head, labels=names, label="b")
    expected = head.predict_proba(body.encode(TEXTS))[:, 1]
    np.testing.assert_allclose(probabilities(clf)[:, 1], expected, atol=1e-5)


def test_a_last_dense_layer_is_a_head_if_its_classes_are_named(body: SentenceTransformer) -> None:
    whole = SentenceTransformer(*body, Dense(3)).eval()
    with pytest.raises(fm.InputError, match="has no head; give its fitted linear head"):
        fm.Classifier(whole)
    clf = fm.Classifier(whole, labels=["a", "b", "c"])
    expected = whole[2].linear(torch.from_numpy(body.encode(TEXTS)))
    torch.testing.assert_close(clf.logits(clf.encode(TEXTS)), expected, rtol=0, atol=1e-5)


def test_it_is_saved_for_load_and_the_users_object_stays_as_it_is(
    body: SentenceTransformer, tmp_path: Path
) -> None:
    pooler = body[0].auto_model.pooler
    head = LogisticRegression().fit(body.encode(TEXTS), LABELS)
    clf = fm.Classifier(body, head=head, labels=["a", "b", "c"])
    clf.model.save_pretrained(tmp_path)
    clf.tokenizer.save_pretrained(tmp_path)
    again = fm.load(tmp_path)
    assert again.labels == clf.labels
    np.testing.assert_allclose(probabilities(again), probabilities(clf), atol=1e-6)
    assert body[0].auto_model.pooler is pooler


@pytest.mark.parametrize(
    ("head", "labels", "message"),
    [
        (KNeighborsClassifier(1).fit([[0], [1]], [0, 1]), None, "head is a KNeighbors.*; expected a fitted"),
        (LogisticRegression(), None, "head is a LogisticRegression; expected a fitted linear classifier"),
        (None, None, "has no head; give its fitted linear head"),
    ],
)
def test_heads_that_cannot_be_read_are_refused(
    body: SentenceTransformer, head: Any, labels: Any, message: str
) -> None:
    with pytest.raises(fm.InputError, match=message):
        fm.Classifier(body, head=head, labels=labels)


class Wrapped(torch.nn.Module):
    """A user's classifier around an encoder of transformers."""

    def __init__(self, output: str) -> None:
        super().__init__()
        self.inner = tiny("bert", dtype=torch.float32).model
        self.output = output

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        logits = self.inner(input_ids=input_ids, attention_mask=attention_mask).logits
        return {"tensor": logits, "tuple": (logits,), "dict": {"logits": logits}}[self.output]


class Layers(torch.nn.Module):
    """A user's classifier of torch's own layers."""

    def __init__(self, *, batch_first: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.positions = torch.nn.Embedding(64, 16)
        self.words = torch.nn.Embedding(SIZE, 16)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=batch_first)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(16, 3)
        self.batch_first = batch_first

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **_: Any) -> Tensor:
        states = self.words(input_ids) + self.positions(torch.arange(input_ids.shape[1]))
        states = states if self.batch_first else states.transpose(0, 1)
        states = self.encoder(states, src_key_padding_mask=attention_mask == 0)
        return self.head(states[:, 0] if self.batch_first else states[0])


class Words(torch.nn.Module):
    """The mean of word embeddings, without layers."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(SIZE, 16)
        self.head = torch.nn.Linear(16, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        attended = attention_mask[:, :, None]
        return self.head((self.words(input_ids) * attended).sum(dim=1) / attended.sum(dim=1))


@pytest.mark.parametrize("output", ["tensor", "tuple", "dict"])
def test_a_module_around_an_encoder_is_as_the_encoder(output: str) -> None:
    module = Wrapped(output).eval()
    ours = fm.Classifier(module, word_tokenizer(), labels=["a", "b", "c"])
    theirs = fm.Classifier(module.inner, word_tokenizer())
    batch = ours.encode(TEXTS[:4])
    labels = torch.tensor([0, 1, 2, 0])
    torch.testing.assert_close(ours.logits(batch), theirs.logits(batch))
    torch.testing.assert_close(ours.features(batch), theirs.features(batch))
    for method in ("loo-sign", "grad-l2", "int-grad-sign"):
        torch.testing.assert_close(
            fm.explain(ours, batch, labels, method), fm.explain(theirs, batch, labels, method)
        )
    assert ours.labels == ("a", "b", "c")


@pytest.mark.parametrize(("module", "states"), [(Layers, 3), (Words, 1)])
def test_modules_of_torch_alone_explain_and_erase_and_have_features(module: Any, states: int) -> None:
    clf = fm.Classifier(module(), word_tokenizer())
    batch = clf.encode(TEXTS[:3])
    labels = clf.logits(batch).argmax(dim=1)
    alone = torch.cat([clf.features(clf.encode([text])) for text in TEXTS[:3]])
    torch.testing.assert_close(clf.features(batch), alone, rtol=0, atol=1e-5)
    assert alone.shape == (3, states, 16)
    for method in ("loo-sign", "grad-l2", "int-grad-sign"):
        scores = fm.explain(clf, batch, labels, method)
        assert scores[batch.explained].abs().gt(0).any()
    last = dict(fm.erase(clf, batch, labels, "loo-sign"))[100]
    assert (last.input_ids[batch.explained] == clf.mask_id).all()
    assert fm.explain_text(clf, TEXTS[0], method=["grad-l2"], verify=False).label in clf.labels


def test_another_module_has_another_fingerprint() -> None:
    one, same, other = (fm.Classifier(module, word_tokenizer()) for module in (Layers(), Layers(), Words()))
    assert one.fingerprint == same.fingerprint != other.fingerprint


class Nothing(torch.nn.Module):
    def __init__(self, returns: Any = None, rows: int = SIZE) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(rows, 4)
        self.returns = returns

    def forward(self, input_ids: Tensor) -> Any:
        return self.returns


class Pixels(Nothing):
    def forward(self, pixels: Tensor) -> Any:
        return pixels


@pytest.mark.parametrize(
    ("module", "options", "message"),
    [
        (Nothing("text"), {}, r"the Nothing returns str; expected logits \[texts, classes\]"),
        (Nothing(torch.zeros(3)), {}, r"the Nothing returns \(3,\)"),
        (Nothing(torch.zeros(1, 4, 3)), {}, r"the Nothing returns \(1, 4, 3\)"),
        (Nothing(torch.zeros(1, 2), rows=3), {}, "embedding layers of the sizes 3; expected one with a row"),
        (Nothing(torch.zeros(1, 2)), {"labels": ["a"]}, r"labels are \['a'\], and the model gives 2 logits"),
        (Nothing(torch.zeros(1, 2)), {"head": 1}, "head was given with a Nothing; expected a Sentence"),
        (Pixels(), {}, "forward of the Pixels takes pixels; expected input_ids and attention_mask"),
        ("roberta-base", {}, "model is a str; expected a torch module, or load it with fm.load"),
    ],
)
def test_modules_that_cannot_be_used_are_refused(module: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(fm.InputError, match=message):
        fm.Classifier(module, word_tokenizer(), **options)


def test_states_of_another_shape_are_refused_where_they_are_needed() -> None:
    clf = fm.Classifier(Layers(batch_first=False), word_tokenizer())
    batch = clf.encode(TEXTS[:3])
    assert clf.logits(batch).shape == (3, 3)
    with pytest.raises(fm.InputError, match=r"for 1 texts of 8 tokens, expected .*: batch_first"):
        clf.features(batch)


def test_names_of_classes_replace_those_of_a_model() -> None:
    clf = fm.Classifier(encoder("bert"), mask_id=4, labels=["a", "b", "c"])
    assert clf.labels == ("a", "b", "c")
    with pytest.raises(fm.InputError, match="gives 3 logits; expected as many names"):
        fm.Classifier(encoder("bert"), mask_id=4, labels=["a", "b"])
