"""Every method against a plain loop and against captum; laws; borders; names and options."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pytest
import torch
from captum.attr import FeatureAblation, InputXGradient, IntegratedGradients, Saliency
from torch import Tensor

from faithmeter.errors import InputError
from faithmeter.methods import METHODS, PAPER, Method, absolute, default_methods, explain, method, parse
from faithmeter.methods.gradients import integrated_gradient
from faithmeter.models.classifier import Classifier
from faithmeter.models.evaluator import Evaluator
from faithmeter.models.masks import generator
from faithmeter.models.tokens import Batch
from toy import MASK, PAD, SIZE, LookupClassifier, rows_batch, tiny

NAMES = ["random", "grad-l1", "grad-l2", "inp-grad-sign", "inp-grad-abs"]
NAMES += ["int-grad-sign", "int-grad-abs", "loo-sign", "loo-abs", "beam", "search", "exhaustive"]
NAMES += ["ridge", "shapley", "int-grad-l2"]
WITHOUT_EXTRAS = [name for name in NAMES if name != "shapley"]  # which needs shapiq
FORMULAS = ["grad-l1", "grad-l2", "inp-grad-sign", "int-grad-sign", "loo-sign"]
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
        return plain_integrated(clf, inputs, label, torch.zeros(SIZE), steps=20)
    assert name == "loo-sign"
    whole, scores = plain_logit(clf, inputs, label), torch.zeros(len(ids)).double()
    for position in (ids != MASK).nonzero()[:, 0]:
        masked = ids.clone()
        masked[position] = MASK
        scores[position] = whole - plain_logit(clf, {**inputs, "input_ids": masked[None]}, label)
    return scores


def plain_integrated(
    clf: Classifier, inputs: dict[str, Tensor], label: int, start: Tensor, steps: int, variant: str = "paper"
) -> Tensor:
    """[T]: from the one-hot `start` [V] to the text."""
    onehot = torch.nn.functional.one_hot(inputs["input_ids"][0], SIZE).double()
    scores = torch.zeros(len(onehot)).double()
    for part in torch.arange(1, steps + 1).double() / steps:
        gradient = plain_gradient(clf, inputs, label, start + part * (onehot - start))
        # the authors differentiate by x, not by the point on the way to it, and multiply by x
        factor = onehot - start if variant == "paper" else part * onehot
        scores += (gradient * factor).sum(dim=1) / steps
    return scores


@pytest.mark.parametrize("pairs", [False, True], ids=["texts", "pairs"])
@pytest.mark.parametrize("kind", ["roberta", "bert"])
@pytest.mark.parametrize("name", FORMULAS)
def test_a_method_is_its_formula(name: str, kind: str, pairs: bool) -> None:
    clf = tiny(kind)
    batch = texts_batch(clf, pairs)
    require_scores(clf, batch, LABELS, name, lambda *text: plain_scores(clf, *text, name))


@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("baseline", ["zero", "pad", "mask"])
@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_integrated_gradients_with_options_are_their_formula(kind: str, baseline: str, variant: str) -> None:
    clf = tiny(kind)
    name = f"int-grad-sign(steps=4,baseline={baseline},variant={variant})"
    start = torch.zeros(SIZE)
    if baseline != "zero":
        start[{"pad": PAD, "mask": MASK}[baseline]] = 1
    require_scores(
        clf,
        texts_batch(clf, pairs=True),
        LABELS,
        name,
        lambda *text: plain_integrated(clf, *text, start, 4, variant),
    )


@pytest.mark.parametrize("baseline", ["zero", "mask"])
def test_integrated_gradients_without_the_factor_are_the_norm_of_the_mean_gradient(baseline: str) -> None:
    clf, start = tiny("roberta"), torch.zeros(SIZE)
    if baseline == "mask":
        start[MASK] = 1

    def plain(inputs: dict[str, Tensor], label: int) -> Tensor:
        onehot = torch.nn.functional.one_hot(inputs["input_ids"][0], SIZE).double()
        points = [start + part / 4 * (onehot - start) for part in (1, 2, 3, 4)]
        gradients = [plain_gradient(clf, inputs, label, point) for point in points]
        return torch.stack(gradients).mean(dim=0).norm(dim=1)

    name = f"int-grad-l2(steps=4,baseline={baseline})"
    require_scores(clf, texts_batch(clf, pairs=True), LABELS, name, plain)


def require_scores(
    clf: Classifier,
    batch: Batch,
    labels: list[int],
    name: str,
    plain: Callable[[dict[str, Tensor], int], Tensor],
) -> None:
    """The method's scores are those of the plain loop where a token is explained, and 0 elsewhere."""
    scores = explain(clf, batch, labels, name)
    for row, label in enumerate(labels):
        inputs = one_text(clf, batch, row)
        n = inputs["input_ids"].shape[1]
        expected = plain(inputs, label) * batch.explained[row, :n]
        torch.testing.assert_close(scores[row, :n], expected, rtol=0, atol=1e-9)
        assert scores[row, n:].eq(0).all()


@pytest.mark.parametrize("name", ["inp-grad", "int-grad", "loo"])
def test_absolute_scores_are_the_sizes_of_the_signed_ones(name: str) -> None:
    clf = Evaluator(tiny())
    batch = texts_batch(clf, pairs=True)
    signed, absolute = (explain(clf, batch, LABELS, f"{name}-{variant}") for variant in ("sign", "abs"))
    assert torch.equal(absolute, signed.abs())
    assert signed.lt(0).any()


def vocabulary_norm(clf: Classifier, saliency: Tensor, order: int) -> Tensor:
    return (saliency @ clf.embedding_matrix().detach().T).norm(p=order, dim=-1)


CAPTUM: dict[str, Callable[[Classifier, Any, Tensor], Tensor]] = {
    "grad-l1": lambda clf, f, x: vocabulary_norm(clf, Saliency(f).attribute(x, abs=False), 1),
    "grad-l2": lambda clf, f, x: vocabulary_norm(clf, Saliency(f).attribute(x, abs=False), 2),
    "inp-grad-sign": lambda clf, f, x: InputXGradient(f).attribute(x).sum(dim=-1),
    "int-grad-sign": lambda clf, f, x: (
        IntegratedGradients(f).attribute(x, n_steps=20, method="riemann_right").sum(dim=-1)
    ),
}


@pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require gradients")
@pytest.mark.parametrize("pairs", [False, True], ids=["texts", "pairs"])
@pytest.mark.parametrize("kind", ["roberta", "bert"])
@pytest.mark.parametrize("name", CAPTUM)
def test_captum_gives_the_same_gradients(name: str, kind: str, pairs: bool) -> None:
    clf = tiny(kind)
    batch = texts_batch(clf, pairs)
    scores = explain(clf, batch, LABELS, name)
    for row, label in enumerate(LABELS):
        one = batch[[row]]

        def logit(embeddings: Tensor, one: Batch = one, label: int = label) -> Tensor:
            return clf.logits_at(embeddings, one[[0] * len(embeddings)])[:, label]

        theirs = CAPTUM[name](clf, logit, clf.embed(one.input_ids).detach()) * one.explained
        torch.testing.assert_close(scores[[row]], theirs.detach(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("pairs", [False, True], ids=["texts", "pairs"])
@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_captum_feature_ablation_is_leave_one_out(kind: str, pairs: bool) -> None:
    clf = tiny(kind)
    batch = texts_batch(clf, pairs)
    scores = explain(clf, batch, LABELS, "loo-sign")
    for row, label in enumerate(LABELS):
        one = batch[[row]]

        def logit(ids: Tensor, one: Batch = one, label: int = label) -> Tensor:
            return clf.logits(replace(one, input_ids=ids))[:, label]

        with torch.no_grad():
            theirs = FeatureAblation(logit).attribute(one.input_ids, baselines=MASK) * one.explained
        torch.testing.assert_close(scores[[row]], theirs.double(), rtol=0, atol=1e-6)


def test_integrated_gradients_add_up_to_the_change_from_the_baseline() -> None:
    clf = tiny()
    batch = texts_batch(clf, pairs=True)[[0, 2]]
    labels = torch.tensor([0, 1])
    words = clf.embed(batch.input_ids).detach()
    starts = {
        "zero": torch.zeros_like(words),
        "pad": clf.embed(torch.full_like(batch.input_ids, PAD)),
        "mask": clf.embed(torch.full_like(batch.input_ids, MASK)),
    }
    for name, start in starts.items():
        scores = integrated_gradient(Evaluator(clf), batch, labels, steps=1000, baseline=name)
        ends = [clf.logits_at(point, batch).gather(1, labels[:, None])[:, 0] for point in (words, start)]
        torch.testing.assert_close(scores.sum(dim=1), (ends[0] - ends[1]).detach(), rtol=0, atol=1e-3)


@pytest.mark.parametrize("kind", ["roberta", "bert"])
@pytest.mark.parametrize("name", WITHOUT_EXTRAS)
def test_batching_padding_order_streams_and_threads_change_nothing(name: str, kind: str) -> None:
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
    before = torch.get_num_threads()
    torch.set_num_threads(2 if before == 1 else 1)
    threads = explain(clf, whole, labels, name)
    torch.set_num_threads(before)
    others = {
        "threads": threads,
        "streams": explain(Evaluator(clf, streams=3, budget=20), whole, labels, name),
        "padding": explain(clf, wider, labels, name)[:, :width],
        "order": explain(clf, whole[order], labels[order], name)[order.argsort()],
        "one by one": torch.cat([explain(clf, whole[[i]], labels[[i]], name) for i in range(len(whole))]),
    }
    # Texts share passes, so the shape of a micro-batch rounds logits and gradients in the seventh digit.
    bound = 1e-6 if name.startswith(("random", "beam")) else 1e-5 * scores.abs().max().item()
    for what, other in others.items():
        torch.testing.assert_close(other, scores, rtol=0, atol=bound, msg=lambda m, what=what: f"{what}: {m}")
        for row, values, explained in zip(scores, other, whole.explained, strict=True):
            ranks = [values[explained].argsort().tolist(), row[explained].argsort().tolist()]
            assert ranks[0] == ranks[1], f"{what}: ranks"


@pytest.mark.parametrize("name", WITHOUT_EXTRAS)
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


@pytest.mark.parametrize("name", FORMULAS)
def test_a_text_of_one_token_and_one_that_is_masked_already(name: str) -> None:
    clf, batch = tiny(), rows_batch([9], [MASK], [MASK, MASK])
    require_scores(clf, batch, [0, 1, 2], name, lambda *text: plain_scores(clf, *text, name))
    if name == "loo-sign":
        assert explain(clf, batch, [0, 1, 2], name)[1:].eq(0).all(), "what is masked already has no score"


def test_ranks_of_a_text_of_one_token_and_of_one_that_is_masked_already() -> None:
    batch = rows_batch([9], [MASK], [MASK, MASK])
    assert explain(tiny(), batch, [0, 1, 2], "beam").tolist() == [[0, 1, 0, 0], [0] * 4, [0] * 4]
    assert explain(tiny(), batch, [0, 1, 2], "random").gt(0).equal(batch.explained)


@pytest.mark.parametrize("kind", ["roberta", "bert"])
@pytest.mark.parametrize("name", FORMULAS)
def test_the_longest_text_beside_short_ones(name: str, kind: str) -> None:
    clf = tiny(kind, hidden_size=8, num_hidden_layers=1, intermediate_size=8)
    every = 15 if name == "loo-sign" else 1  # the other tokens are masked already, which spares passes
    batch = rows_batch([MASK if i % every else 5 + i % 20 for i in range(510)], [6, 7], [8] * 20)
    assert batch.input_ids.shape[1] == 512
    require_scores(clf, batch, [0, 1, 2], name, lambda *text: plain_scores(clf, *text, name))


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


@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_candidates_of_leave_one_out_are_masked_and_the_others_estimated(kind: str) -> None:
    """By a plain loop: the two largest effects by the gradient, then the slope of the estimates."""
    clf = tiny(kind)
    batch, labels = texts_batch(clf, pairs=False), torch.tensor(LABELS)
    full = explain(clf, batch, labels, "loo-sign")
    rough = explain(clf, batch, labels, "int-grad-sign(baseline=mask,steps=1)")
    scores = explain(clf, batch, labels, "loo-sign(candidates=2)")
    for row, open_tokens in enumerate(batch.explained & (batch.input_ids != clf.mask_id)):
        places = sorted(open_tokens.nonzero()[:, 0].tolist(), key=lambda i: -rough[row, i].abs().item())
        first, others = places[:2], places[2:]
        assert scores[row, first].tolist() == pytest.approx(full[row, first].tolist(), abs=1e-12)
        squares = sum(rough[row, i].item() ** 2 for i in first)
        slope = max(0.0, sum(rough[row, i].item() * full[row, i].item() for i in first) / (squares or 1.0))
        expected = [slope * rough[row, i].item() for i in others]
        assert scores[row, others].tolist() == pytest.approx(expected, abs=1e-9)


def test_as_many_candidates_as_tokens_are_leave_one_out() -> None:
    clf, labels = Evaluator(tiny()), [0, 1]
    batch = rows_batch([5, 6, 7, MASK, 8], [9])
    assert torch.equal(
        explain(clf, batch, labels, "loo-sign(candidates=6)"), explain(clf, batch, labels, "loo-sign")
    )
    absolute_scores = explain(clf, batch, labels, "loo-abs(candidates=2)")
    assert torch.equal(absolute_scores, explain(clf, batch, labels, "loo-sign(candidates=2)").abs())
    with pytest.raises(InputError, match="expected at least 1, or 0 for all tokens"):
        explain(clf, batch, labels, "loo-sign(candidates=-1)")


@pytest.mark.parametrize("tokens", [1, 12, 13, 40, 512])
def test_the_default_methods_explain_a_text_in_few_evaluations_whatever_its_length(tokens: int) -> None:
    costs = {name: parse(name).evaluations(tokens) for name in default_methods() if name != "random"}
    ceiling = costs.pop("search(most=150)")
    assert ceiling == max(13, min(5 * tokens, 150)), "once, not at every step"
    assert sum(costs.values()) == 1 + 10 + min(tokens, 12) + 2
    assert all(parse(name).recursive for name in costs)


def test_a_candidate_is_an_evaluation_and_so_is_what_finds_it() -> None:
    clf = Evaluator(tiny())
    explain(clf, rows_batch(range(5, 15)), [0], "loo-sign(candidates=3)")
    assert clf.evaluations == parse("loo-sign(candidates=3)").evaluations(10) == 1 + 1 + 3


def test_the_table_has_the_papers_ten_methods_and_five_more_and_defaults_have_their_names() -> None:
    assert list(METHODS) == NAMES
    assert [*PAPER] == NAMES[:10]
    assert [parse(name).name for name in default_methods()] == [
        *("random", "grad-l2", "int-grad-sign", "loo-sign", "search")
    ]
    assert [name for name in NAMES if not METHODS[name].recursive] == [
        *("random", "beam", "search", "exhaustive", "ridge", "shapley")
    ]
    assert [name for name in NAMES if METHODS[name].signed] == [
        *("inp-grad-sign", "int-grad-sign", "loo-sign", "ridge", "shapley")
    ]
    assert all(one.about and not one.code for one in METHODS.values())
    assert len({one.about for one in METHODS.values()}) == len(METHODS)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, Method]:
    """The table of methods, which forgets what a test registers."""
    copy = dict(METHODS)
    monkeypatch.setattr("faithmeter.methods.registry.METHODS", copy)
    return copy


def test_a_method_of_ones_own_works_by_name(table: dict[str, Method]) -> None:
    @method("length", recursive=False)
    def length(
        clf: Any, batch: Batch, labels: Tensor, *, factor: float = 1.0, way: Literal["up", "down"] = "up"
    ):
        """Later tokens first.

        More of it.
        """
        sign = {"up": 1, "down": -1}[way]
        return factor * sign * torch.arange(batch.input_ids.shape[1]).expand(batch.input_ids.shape)

    clf, batch = LookupClassifier(lambda ids: (0.0,)), rows_batch([5, 6])
    assert explain(clf, batch, [0], "length(factor=2)").tolist() == [[0, 2, 4, 0]]
    assert parse("length(way=down)").options == {"way": "down"}
    with pytest.raises(InputError, match="did you mean 'down'"):
        parse("length(way=dwn)")
    assert (table["length"].signed, table["length"].about) == (True, "Later tokens first.")
    method("size", signed=False)(length)
    method("abs")(absolute(length))
    assert not table["size"].signed
    assert not table["abs"].signed
    assert len({table[name].code for name in ("length", "size", "abs")} - {""}) == 3


def test_an_edited_method_is_another_and_a_name_is_given_once(table: dict[str, Method], tmp_path) -> None:
    file = tmp_path / "mine.py"
    codes = []
    for power in (1, 1, 2):
        file.write_text(
            "import faithmeter as fm\n"
            f"@fm.method('mine')\ndef mine(clf, batch, labels):\n    return clf.scores ** {power}\n"
        )
        runpy.run_path(str(file), run_name="mine")
        codes.append(table["mine"].code)
    assert codes[0] == codes[1] != codes[2]
    assert [len(code) for code in codes] == [12] * 3
    for name in ("mine", "loo-sign"):
        with pytest.raises(InputError, match=f"method '{name}' exists already, in .*; give yours"):
            method(name)(lambda clf, batch, labels: None)
    assert table["loo-sign"] is METHODS["loo-sign"]


def test_a_method_without_source_has_the_digest_of_what_it_does(table: dict[str, Method]) -> None:
    codes = {}
    bodies = ("labels + 1", "labels + 2", "labels.abs()", "labels.exp()", "[0 for _ in labels]")
    bodies += ("(lambda: 1)()", "(lambda: 2)()")
    for body in bodies:
        space: dict[str, Any] = {}
        exec(f"def typed(clf, batch, labels):\n    return {body}", space)  # as in an interpreter
        method("typed")(space["typed"])
        codes[body] = table["typed"].code
    assert len(set(codes.values())) == len(codes)
    again: dict[str, Any] = {}
    exec("def typed(clf, batch, labels):\n    return [0 for _ in labels]", again)
    method("typed")(again["typed"])
    assert table["typed"].code == codes["[0 for _ in labels]"]


def test_an_error_inside_a_method_names_it() -> None:
    def broken(clf: Any, batch: Batch, labels: Tensor, *, k: int) -> Tensor:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost") as caught:
        explain(LookupClassifier(lambda ids: (0.0,)), rows_batch([5]), [0], Method("mine", broken, {"k": 3}))
    assert caught.value.__notes__ == ["in method mine(k=3)"]


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
        ("bean", "unknown method 'bean'; did you mean 'beam'.* --import"),
        ("beam(size=3)", "has no option 'size'; its options and defaults: width=10, of=logit"),
        ("loo-sign(x=1)", "has no option 'x'"),
        ("beam(width=many)", "expected a whole number"),
        ("beam(width=2.5)", "expected a whole number"),
        ("beam(width)", "expected a whole number"),
        ("loo-sign(of=logits)", "did you mean 'logit'"),
        ("random(of=logit)", "has no option 'of'"),
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
    with pytest.raises(InputError, match=r"beam\(width=0\): expected at least 1, such as width=10"):
        explain(clf, batch, [0, 0], "beam(width=0)")
    with pytest.raises(InputError, match=r"steps=0\): expected at least 1"):
        explain(clf, batch, [0, 0], "int-grad-sign(steps=0)")
    for given, message in ((torch.zeros(2), r"a tensor of \(2,\)"), (None, "NoneType"), ([[0.5]], "list")):
        with pytest.raises(InputError, match=rf"method broken gave {message}; expected a tensor of \(2, 4\)"):
            explain(clf, batch, [0, 0], Method("broken", lambda *_, given=given: given))
    with pytest.raises(InputError, match=r"labels of type torch\.float32; expected whole numbers"):
        explain(clf, batch, torch.tensor([0.0, 1.7]), "loo-sign")
    with pytest.raises(InputError, match="labels of type"):
        explain(clf, batch, [0, 1.7], "loo-sign")
    clf.model.classifier.out_proj.weight.data.fill_(torch.nan)
    for name in ("loo-sign", "beam", "grad-l2", "int-grad-abs"):
        with pytest.raises(InputError, match="finite"):
            explain(clf, batch, [0, 0], name)
