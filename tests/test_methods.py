"""Every method against a plain loop and against captum; laws; borders; names and options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pytest
import torch
from captum.attr import FeatureAblation, InputXGradient, IntegratedGradients, Saliency
from torch import Tensor

from faithmeter.errors import InputError
from faithmeter.evaluator import Evaluator
from faithmeter.masks import generator
from faithmeter.methods import METHODS, Method, explain, method, parse
from faithmeter.methods.integrated import integrated_gradient
from faithmeter.model import Classifier
from faithmeter.tokens import Batch
from toy import MASK, SIZE, LookupClassifier, rows_batch, tiny

NAMES = ["random", "grad-l1", "grad-l2", "inp-grad-sign", "inp-grad-abs"]
NAMES += ["int-grad-sign", "int-grad-abs", "loo-sign", "loo-abs", "beam"]
TEXTS = [
    "the film was not good",
    "dull",
    "a <mask> story and <mask> plot",
    "<mask> <mask>",
    "very very fun music",
]
PAIRS = ["who wrote it", "a very dull film", "it was fun", "the actors <mask> down", "was it"]
LABELS = [0, 2, 1, 1, 0]


def texts_batch(clf: Classifier, pairs: bool) -> Batch:
    return clf.encode(TEXTS, PAIRS if pairs else None)


# The plain loops: one text at a time, without padding, by the definitions of the paper.


def one_text(clf: Classifier, batch: Batch, row: int) -> dict[str, Tensor]:
    """Arguments of the Hugging Face model for one text, cut to its length."""
    n = int(batch.attention_mask[row].sum())
    return {name: tensor[row : row + 1, :n] for name, tensor in batch.inputs.items()}


def plain_logit(clf: Classifier, inputs: dict[str, Tensor], label: int) -> float:
    with torch.no_grad():
        return clf.model(**inputs).logits[0, label].item()


def plain_gradient(clf: Classifier, inputs: dict[str, Tensor], label: int, point: Tensor) -> Tensor:
    """[T, V]: by a one-hot input times the embedding matrix, at `point` [T, V]."""
    point = point.detach().clone().requires_grad_()
    others = {name: tensor for name, tensor in inputs.items() if name != "input_ids"}
    embeddings = (point @ clf.model.get_input_embeddings().weight)[None]
    clf.model(inputs_embeds=embeddings, **others).logits[0, label].backward()
    clf.model.zero_grad()
    assert point.grad is not None
    return point.grad


def plain_scores(clf: Classifier, inputs: dict[str, Tensor], label: int, name: str) -> Tensor:
    """[T]: all tokens of one text by the formula."""
    ids = inputs["input_ids"][0]
    onehot = torch.nn.functional.one_hot(ids, SIZE).double()
    if name == "grad-l1":
        return plain_gradient(clf, inputs, label, onehot).abs().sum(dim=1)
    if name == "grad-l2":
        return plain_gradient(clf, inputs, label, onehot).pow(2).sum(dim=1).sqrt()
    if name == "inp-grad-sign":
        return (plain_gradient(clf, inputs, label, onehot) * onehot).sum(dim=1)
    if name == "int-grad-sign":
        total = sum(plain_gradient(clf, inputs, label, onehot * i / 20) for i in range(1, 21))
        return (onehot * total / 20).sum(dim=1)
    assert name == "loo-sign"
    whole, scores = plain_logit(clf, inputs, label), []
    for position in range(len(ids)):
        masked = ids.clone()
        masked[position] = MASK
        scores.append(whole - plain_logit(clf, {**inputs, "input_ids": masked[None]}, label))
    return torch.tensor(scores, dtype=torch.float64)


@pytest.mark.parametrize("pairs", [False, True], ids=["texts", "pairs"])
@pytest.mark.parametrize("kind", ["roberta", "bert"])
@pytest.mark.parametrize("name", ["grad-l1", "grad-l2", "inp-grad-sign", "int-grad-sign", "loo-sign"])
def test_a_method_is_its_formula(name: str, kind: str, pairs: bool) -> None:
    clf = tiny(kind)
    batch = texts_batch(clf, pairs)
    scores = explain(clf, batch, LABELS, name)
    for row, label in enumerate(LABELS):
        inputs = one_text(clf, batch, row)
        n = inputs["input_ids"].shape[1]
        expected = plain_scores(clf, inputs, label, name) * batch.explained[row, :n]
        torch.testing.assert_close(scores[row, :n], expected, rtol=0, atol=1e-9)
        assert scores[row, n:].eq(0).all()


@pytest.mark.parametrize("name", ["inp-grad", "int-grad", "loo"])
def test_absolute_scores_are_the_sizes_of_the_signed_ones(name: str) -> None:
    clf = Evaluator(tiny())
    batch = texts_batch(clf, pairs=True)
    signed, absolute = (explain(clf, batch, LABELS, f"{name}-{variant}") for variant in ("sign", "abs"))
    assert torch.equal(absolute, signed.abs())
    assert signed.lt(0).any()


@pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require gradients")
@pytest.mark.parametrize("kind", ["roberta", "bert"])
@pytest.mark.parametrize(
    ("name", "captum"),
    [
        ("inp-grad-sign", lambda f, x: InputXGradient(f).attribute(x).sum(dim=-1)),
        (
            "int-grad-sign",
            lambda f, x: IntegratedGradients(f).attribute(x, n_steps=20, method="riemann_right").sum(dim=-1),
        ),
    ],
)
def test_captum_gives_the_same_gradients(
    name: str, captum: Callable[[Any, Tensor], Tensor], kind: str
) -> None:
    clf = tiny(kind)
    batch = texts_batch(clf, pairs=True)
    for row, label in enumerate(LABELS):
        one = batch[[row]]

        def logit(embeddings: Tensor, one: Batch = one, label: int = label) -> Tensor:
            expanded = one[[0] * len(embeddings)]
            return clf.logits_at(embeddings, expanded)[:, label]

        theirs = captum(logit, clf.embed(one.input_ids).detach()) * one.explained
        torch.testing.assert_close(explain(clf, one, [label], name), theirs.detach(), rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require gradients")
@pytest.mark.parametrize(("name", "order"), [("grad-l1", 1), ("grad-l2", 2)])
def test_captum_saliency_projected_on_the_vocabulary_is_grad(name: str, order: int) -> None:
    clf = tiny()
    batch = texts_batch(clf, pairs=False)[[0]]
    saliency = Saliency(lambda x: clf.logits_at(x, batch)[:, 0])
    gradient = saliency.attribute(clf.embed(batch.input_ids).detach(), abs=False)  # [1, T, E]
    projected = gradient @ clf.embedding_matrix().detach().T
    expected = projected.norm(p=order, dim=-1) * batch.explained
    torch.testing.assert_close(explain(clf, batch, [0], name), expected, rtol=0, atol=1e-6)


def test_captum_feature_ablation_is_leave_one_out() -> None:
    clf = tiny("bert")
    batch = texts_batch(clf, pairs=True)
    for row, label in enumerate(LABELS):
        one = batch[[row]]

        def logit(ids: Tensor, one: Batch = one, label: int = label) -> Tensor:
            return clf.logits(replace(one, input_ids=ids))[:, label]

        with torch.no_grad():
            theirs = FeatureAblation(logit).attribute(one.input_ids, baselines=MASK) * one.explained
        torch.testing.assert_close(explain(clf, one, [label], "loo-sign"), theirs.double(), rtol=0, atol=1e-6)


def test_integrated_gradients_add_up_to_the_change_from_the_baseline() -> None:
    clf = tiny()
    batch = texts_batch(clf, pairs=True)[[0, 2]]
    labels = torch.tensor([0, 1])
    words = clf.embed(batch.input_ids).detach()
    starts = {
        "zero": torch.zeros_like(words),
        "pad": clf.embed(torch.ones_like(batch.input_ids)),
        "mask": clf.embed(torch.full_like(batch.input_ids, MASK)),
    }
    for name, start in starts.items():
        scores = integrated_gradient(Evaluator(clf), batch, labels, steps=1000, baseline=name)
        ends = [clf.logits_at(point, batch).gather(1, labels[:, None])[:, 0] for point in (words, start)]
        torch.testing.assert_close(scores.sum(dim=1), (ends[0] - ends[1]).detach(), rtol=0, atol=5e-3)


def test_the_released_variant_weighs_gradients_and_leaves_the_baseline_out() -> None:
    clf = tiny()
    batch = texts_batch(clf, pairs=False)[[0]]
    words, pad = clf.embed(batch.input_ids).detach(), clf.embedding_matrix().detach()[1]
    total = torch.zeros_like(words)
    for i in range(1, 21):
        unscaled = words.clone().requires_grad_()
        clf.logits_at(pad + i / 20 * (unscaled - pad), batch)[0, 0].backward()
        total += unscaled.grad / 20
    expected = (total * words).sum(dim=-1) * batch.explained
    scores = explain(clf, batch, [0], "int-grad-sign(variant=released, baseline=pad)")
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["roberta", "bert"])
@pytest.mark.parametrize("name", NAMES)
def test_batching_padding_order_and_streams_change_nothing(name: str, kind: str) -> None:
    clf = tiny(kind, dtype=torch.float32)
    whole = texts_batch(clf, pairs=True)
    labels = torch.tensor(LABELS)
    scores = explain(Evaluator(clf, streams=1), whole, labels, name)
    width = whole.input_ids.shape[1]
    padded = torch.nn.functional.pad
    wider = replace(
        whole,
        input_ids=padded(whole.input_ids, (0, 7), value=1),
        token_type_ids=None if whole.token_type_ids is None else padded(whole.token_type_ids, (0, 7)),
        **{n: padded(getattr(whole, n), (0, 7)) for n in ("attention_mask", "content", "explained")},
    )
    order = torch.tensor([3, 1, 4, 0, 2])
    others = {
        "streams": explain(Evaluator(clf, streams=3, budget=20), whole, labels, name),
        "padding": explain(clf, wider, labels, name)[:, :width],
        "order": explain(clf, whole[order], labels[order], name)[order.argsort()],
        "one by one": torch.cat([explain(clf, whole[[i]], labels[[i]], name) for i in range(len(whole))]),
    }
    bound = 1e-6 * max(1.0, scores.abs().max().item())  # float32 has seven digits
    for what, other in others.items():
        torch.testing.assert_close(other, scores, rtol=0, atol=bound, msg=lambda m, what=what: f"{what}: {m}")


@pytest.mark.parametrize("name", NAMES)
def test_only_explained_tokens_are_scored_and_masked(name: str) -> None:
    seen: list[Tensor] = []
    clf = tiny()
    forward = clf.logits
    clf.logits = lambda batch: seen.append(batch.input_ids) or forward(batch)  # type: ignore[assignment]
    batch = texts_batch(clf, pairs=True)[[0]]
    scores = explain(clf, batch, [0], name)
    assert scores[~batch.explained].eq(0).all()
    assert scores[batch.explained].ne(0).any()
    for ids in seen:
        outside = ~batch.explained[0, : ids.shape[1]]
        assert ids[:, outside].eq(batch.input_ids[0, : ids.shape[1]][outside]).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_text_of_one_token_and_one_that_is_masked_already(name: str) -> None:
    batch = rows_batch([9], [MASK], [MASK, MASK])
    scores = explain(tiny(), batch, [0, 0, 0], name)
    assert scores.isfinite().all()
    if name.startswith(("loo", "beam")):
        assert scores[1:].eq(0).all(), "what is masked already has no score"


@pytest.mark.parametrize("name", [n for n in NAMES if n != "beam"])
def test_the_longest_text_beside_short_ones(name: str) -> None:
    long = [5 + i % 20 for i in range(510)]
    batch = rows_batch(long, [6, 7], [8] * 40)
    assert batch.input_ids.shape[1] == 512
    clf = Evaluator(
        tiny(dtype=torch.float32, hidden_size=8, num_hidden_layers=1, intermediate_size=8), budget=8192
    )
    scores = explain(clf, batch, [0, 1, 2], name)
    assert scores[0, 1:511].ne(0).any()
    alone = explain(clf, rows_batch([6, 7]), [1], name)
    if name != "random":  # which is drawn by row number
        torch.testing.assert_close(scores[1, :4], alone[0], rtol=0, atol=1e-6)


def test_leave_one_out_by_hand() -> None:
    worth = {5: 1.0, 6: -2.0, 7: 0.5}
    clf = LookupClassifier(lambda ids: (sum(worth.get(i, 0) for i in ids), 0.0))
    batch = rows_batch([5, 6, MASK, 7])
    assert explain(clf, batch, [0], "loo-sign").tolist() == [[0, 1.0, -2.0, 0, 0.5, 0]]
    assert explain(clf, batch, [0], "loo-abs").tolist() == [[0, 1.0, 2.0, 0, 0.5, 0]]
    assert explain(clf, batch, [1], "loo-sign").tolist() == [[0] * 6]


def test_random_is_drawn_from_seed_and_row_number() -> None:
    batch = replace(rows_batch([5, 6, 7], [5, 6, 7]), index=torch.tensor([40, 41]))
    scores = explain(tiny(), batch, [0, 0], "random(seed=3)")
    for row, number in enumerate((40, 41)):
        assert scores[row, 1:4].tolist() == generator(3, "method", number).random(3).tolist()
    assert not torch.equal(scores, explain(tiny(), batch, [0, 0], "random"))


def test_gradient_methods_leave_the_parameters_alone() -> None:
    clf = tiny()
    explain(clf, rows_batch([5, 6]), [0], "int-grad-sign(steps=2)")
    assert all(p.grad is None and p.requires_grad for p in clf.model.parameters())


def test_ten_methods_are_in_the_table() -> None:
    assert [name for name in METHODS if not name.startswith("test-")] == NAMES
    assert [name for name in NAMES if not METHODS[name].recursive] == ["random", "beam"]


def test_a_method_of_ones_own_works_by_name() -> None:
    @method("test-length", recursive=False)
    def length(
        clf: Any, batch: Batch, labels: Tensor, *, factor: float = 1.0, way: Literal["up", "down"] = "up"
    ):
        sign = {"up": 1, "down": -1}[way]
        return factor * sign * torch.arange(batch.input_ids.shape[1]).expand(batch.input_ids.shape)

    try:
        scores = explain(
            LookupClassifier(lambda ids: (0.0,)), rows_batch([5, 6]), [0], "test-length(factor=2)"
        )
        assert scores.tolist() == [[0, 2, 4, 0]]
        assert parse("test-length(way=down)").options == {"way": "down"}
        with pytest.raises(InputError, match="did you mean 'down'"):
            parse("test-length(way=dwn)")
    finally:
        del METHODS["test-length"]


@pytest.mark.parametrize(
    ("text", "options", "again"),
    [
        ("beam", {}, "beam"),
        ("beam()", {}, "beam"),
        (" beam( width = 20 ) ", {"width": 20}, "beam(width=20)"),
        (
            "int-grad-abs(steps=5,baseline=pad)",
            {"steps": 5, "baseline": "pad"},
            "int-grad-abs(baseline=pad,steps=5)",
        ),
        ("random(seed=0)", {"seed": 0}, "random(seed=0)"),
    ],
)
def test_names_with_options_are_parsed(text: str, options: dict[str, Any], again: str) -> None:
    parsed = parse(text)
    assert (parsed.options, str(parsed)) == (options, again)
    assert parse(parsed) is parsed
    assert parse(again) == parsed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bean", "unknown method 'bean'; did you mean 'beam'"),
        ("beam(size=3)", "has no option 'size'; its options and defaults: width=10"),
        ("loo-sign(x=1)", "has no option 'x'"),
        ("beam(width=many)", "expected a whole number"),
        ("beam(width=2.5)", "expected a whole number"),
        ("beam(width)", "expected a whole number"),
        ("int-grad-sign(baseline=pat)", "did you mean 'pad'"),
        ("beam(width=3", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_names_that_cannot_be_parsed_say_why(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(text)


def test_bad_labels_options_scores_and_logits_say_what_is_wrong() -> None:
    clf, batch = tiny(), rows_batch([5, 6], [7])
    with pytest.raises(InputError, match="one for each text"):
        explain(clf, batch, [0], "loo-sign")
    with pytest.raises(InputError, match=r"label 3 .* expected 0 to 2"):
        explain(clf, batch, [0, 3], "loo-sign")
    with pytest.raises(InputError, match="label -1"):
        explain(clf, batch, [0, -1], "grad-l2")
    with pytest.raises(InputError, match="width is 0"):
        explain(clf, batch, [0, 0], "beam(width=0)")
    with pytest.raises(InputError, match="steps is 0"):
        explain(clf, batch, [0, 0], "int-grad-sign(steps=0)")
    with pytest.raises(InputError, match=r"shape \(2,\)"):
        explain(clf, batch, [0, 0], Method("broken", lambda clf, batch, labels: torch.zeros(2)))
    clf.model.classifier.out_proj.weight.data.fill_(torch.nan)
    for name in ("loo-sign", "beam", "grad-l2", "int-grad-abs"):
        with pytest.raises(InputError, match="finite"):
            explain(clf, batch, [0, 0], name)
