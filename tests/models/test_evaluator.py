"""The evaluator: right logits, each evaluation once, bounded memory, any number of streams, clear errors."""

from __future__ import annotations

import copy
import threading
from contextlib import nullcontext

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits
from torch import Tensor

from faithmeter.errors import InputError
from faithmeter.measuring.erase import erase
from faithmeter.methods import explain
from faithmeter.models.classifier import Classifier
from faithmeter.models.evaluator import ENTRY_BYTES, Evaluator, Memory, pick, plan
from faithmeter.models.tokens import Batch
from toy import ARCHITECTURES, MASK, LookupClassifier, encoder, rows_batch, tiny


def total(ids: tuple[int, ...]) -> tuple[float, float]:
    """Two logits that tell every masking of a text apart."""
    return float(sum(token * 31**place for place, token in enumerate(ids))), float(len(ids))


@given(
    st.lists(st.tuples(st.lists(st.integers(5, 24), min_size=1, max_size=6), st.integers(0, 63)), max_size=12)
)
@settings(max_examples=40)
def test_variants_are_the_logits_of_the_masked_texts(asked: list[tuple[list[int], int]]) -> None:
    asked = asked or [([5], 1)]
    batch = rows_batch(*[text for text, _ in asked])
    where = torch.zeros_like(batch.explained)
    for row, (text, bits) in enumerate(asked):
        where[row, 1 : len(text) + 1] = torch.tensor(
            [bits >> i & 1 for i in range(len(text))], dtype=torch.bool
        )
    clf = LookupClassifier(total)
    answers = Evaluator(clf, budget=16).variants(batch, torch.arange(len(batch)), where)
    masked = [
        tuple(ids[:n].tolist())
        for ids, n in zip(batch.masked(where, MASK).input_ids, batch.attention_mask.sum(1), strict=True)
    ]
    assert answers.tolist() == [list(total(ids)) for ids in masked]
    assert sorted(clf.seen) == sorted(set(masked)), "each different input once"


def test_leave_one_out_costs_one_evaluation_for_each_token_and_one_more() -> None:
    clf = Evaluator(LookupClassifier(total))
    explain(clf, rows_batch([5, 6, 7, MASK, 8], [9]), [0, 0], "loo-sign")
    assert clf.evaluations == (4 + 1) + (1 + 1)


def test_a_second_call_and_another_method_cost_nothing() -> None:
    clf = Evaluator(LookupClassifier(total))
    batch = rows_batch([5, 6, 7, 8], [9, 10])
    first = explain(clf, batch, [0, 1], "loo-sign")
    before = clf.evaluations
    assert torch.equal(explain(clf, batch, [0, 1], "loo-sign"), first)
    assert torch.equal(explain(clf, batch, [0, 1], "loo-abs"), first.abs())
    explain(clf, batch[[1]], [0], "loo-sign")
    assert clf.evaluations == before


def test_the_same_text_twice_in_a_batch_is_evaluated_once() -> None:
    clf = Evaluator(LookupClassifier(total))
    scores = explain(clf, rows_batch([5, 6], [7, 8, 9], [5, 6]), [0, 0, 0], "loo-sign")
    assert clf.evaluations == 3 + 4
    assert torch.equal(scores[0], scores[2])


def test_a_masked_copy_shares_the_evaluations_of_its_text() -> None:
    clf = Evaluator(LookupClassifier(total))
    explain(clf, rows_batch([5, 6, 7]), [0], "loo-sign")
    clf.logits(rows_batch([5, MASK, 7]))
    assert clf.evaluations == 4


def test_texts_that_differ_in_token_types_only_are_different() -> None:
    model = tiny("bert")
    batch = model.encode(["the film", "the film"], ["a plot", "a plot"])
    assert batch.token_type_ids is not None
    batch.token_type_ids[1] = 0
    clf = Evaluator(model)
    logits = clf.logits(batch)
    assert clf.evaluations == 2
    torch.testing.assert_close(logits, model.logits(batch).detach())


def test_the_number_of_streams_changes_no_digit() -> None:
    model = tiny(dtype=torch.float32)
    batch = rows_batch(*[[5 + (i * j) % 20 for j in range(1, 3 + i)] for i in range(20)])
    for name in ("loo-sign", "int-grad-sign(steps=3)"):
        scores = [explain(Evaluator(model, streams=n, budget=64), batch, [0] * 20, name) for n in (1, 2, 5)]
        assert torch.equal(scores[0], scores[1])
        assert torch.equal(scores[0], scores[2])


def test_threads_of_torch_are_as_before() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    Evaluator(tiny(), streams=2).logits(rows_batch([5], [6, 7]))
    in_a_new_thread: list[int] = []
    thread = threading.Thread(target=lambda: in_a_new_thread.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    after = torch.get_num_threads()
    torch.set_num_threads(before)
    assert [after, *in_a_new_thread] == [2, 2]


def test_progress_adds_up_to_the_evaluations() -> None:
    done: list[int] = []
    clf = Evaluator(LookupClassifier(total), budget=8, progress=done.append)
    explain(clf, rows_batch([5, 6, 7], [8, 9]), [0, 0], "loo-sign")
    assert (sum(done), clf.evaluations) == (7, 7)
    assert len(done) > 1


def test_gradients_are_counted_one_for_each_text_and_step() -> None:
    clf = Evaluator(tiny())
    explain(clf, rows_batch([5, 6, 7], [8, 9]), [0, 0], "int-grad-sign(steps=4)")
    assert clf.evaluations == 2 * 4


def test_memory_forgets_what_was_not_asked_for_the_longest() -> None:
    memory = Memory(limit=2 * (8 + ENTRY_BYTES))
    memory.update({b"a": b"1" * 8, b"b": b"2" * 8})
    assert memory.get(b"a") == b"1" * 8
    memory.update({b"c": b"3" * 8})
    assert (memory.get(b"a"), memory.get(b"b"), memory.get(b"c")) == (b"1" * 8, None, b"3" * 8)
    assert memory.used <= memory.limit


def test_results_are_right_without_any_memory() -> None:
    batch = rows_batch([5, 6, 7, 8], [9, 10], [5, 6, 7, 8])
    clf = Evaluator(LookupClassifier(total), memory=0)
    expected = explain(LookupClassifier(total), batch, [0, 0, 0], "beam")
    assert torch.equal(explain(clf, batch, [0, 0, 0], "beam"), expected)
    assert len(clf.memory) == 0


@given(st.lists(st.integers(1, 512), max_size=60), st.integers(1, 2000))
def test_a_plan_holds_each_text_once_within_the_budget_and_hardly_padded(
    lengths: list[int], budget: int
) -> None:
    groups = [group.tolist() for group in plan(lengths, budget)]
    assert sorted(position for group in groups for position in group) == list(range(len(lengths)))
    for group in groups:
        longest = max(lengths[i] for i in group)
        assert len(group) * longest <= budget or len(group) == 1
        assert longest - min(lengths[i] for i in group) <= max(4, longest // 8)


def test_texts_are_padded_only_where_that_costs_less_than_another_micro_batch() -> None:
    variants = [25] * 24 + [24] * 23 + [22] * 21
    groups = [[variants[i] for i in group] for group in plan(variants, budget=1024, start=7)]
    assert groups == [[25] * 24, [24] * 23, [22] * 21], "the variants of three texts"
    single = [*range(20, 30)]
    assert [len(group) for group in plan(single, budget=1024, start=7)] == [5, 5], "4 tokens at most"
    assert len(plan(variants, budget=4096, start=100)) == 1, "a small model, to which a start is dear"


def test_logits_that_are_no_numbers_name_the_text() -> None:
    clf = LookupClassifier(lambda ids: (float("nan") if 9 in ids else 1.0, 0.0))
    with pytest.raises(InputError, match="text 1 are"):
        Evaluator(clf).logits(rows_batch([5, 6], [9]))


def test_an_error_in_a_stream_comes_out_as_it_is() -> None:
    def broken(ids: tuple[int, ...]) -> tuple[float]:
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes do not fit"):
        Evaluator(LookupClassifier(broken)).logits(rows_batch([5], [6]))


class SmallMemory(LookupClassifier):
    """A device that has room for a number of tokens; `refused` counts the passes that had none."""

    def __init__(self, room: int) -> None:
        super().__init__(total)
        self.room, self.refused = room, 0

    def logits(self, batch: Batch) -> Tensor:
        if batch.input_ids.numel() > self.room:
            self.refused += 1
            raise torch.OutOfMemoryError("no room for 2 GiB")
        return super().logits(batch)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(32, 200), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_a_device_without_memory_gets_smaller_micro_batches(
    sizes: list[int], room: int, streams: int
) -> None:
    batch = rows_batch(*[[5 + (i + j) % 20 for j in range(size)] for i, size in enumerate(sizes)])
    clf = SmallMemory(room)
    evaluator = Evaluator(clf, budget=4096, streams=streams)
    scores = explain(evaluator, batch, [0] * len(batch), "loo-sign")
    expected = Evaluator(LookupClassifier(total))
    assert torch.equal(scores, explain(expected, batch, [0] * len(batch), "loo-sign"))
    assert evaluator.evaluations == len(clf.seen) == expected.evaluations, "refused passes count nothing"
    assert clf.refused <= streams * (4096 // 32).bit_length(), "the budget is halved, not tried again"
    before = clf.refused
    evaluator.forget()
    explain(evaluator, batch, [0] * len(batch), "loo-sign")
    assert clf.refused == before, "the smaller budget stays"


def test_a_text_that_alone_exceeds_the_memory_is_one_line() -> None:
    with pytest.raises(InputError, match=r"a text of 8 tokens does not fit into the memory of cpu; expected"):
        Evaluator(SmallMemory(7)).logits(rows_batch([5, 6], [5, 6, 7, 8, 9, 10]))


def test_a_plain_error_about_memory_counts_as_one() -> None:
    calls: list[int] = []

    def short(ids: tuple[int, ...]) -> tuple[float]:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)")
        return (float(sum(ids)),)

    logits = Evaluator(LookupClassifier(short)).logits(rows_batch([5], [6]))
    assert logits[:, 0].tolist() == [7.0, 8.0]


def test_pick_takes_each_rows_label() -> None:
    assert pick(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1, 0])).tolist() == [2.0, 3.0]


def test_an_evaluator_is_its_classifier_for_all_else() -> None:
    model = tiny()
    clf = Evaluator(model)
    assert Evaluator.of(clf) is clf
    assert clf.labels == model.labels
    assert copy.copy(clf).clf is model
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = clf.no_such_thing


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_shortened_last_layer_leaves_the_logits_as_they_are(architecture: str) -> None:
    batch = rows_batch([5, 6, 7, 8, 9, 10], [11, 12])
    for dtype, bound in ((torch.float64, 1e-12), (torch.float32, 1e-6)):
        clf = Classifier(encoder(architecture).to(dtype), mask_id=MASK)
        with torch.inference_mode():
            whole = clf.logits(batch)
            with clf.classified_only():
                short = clf.logits(batch)
        torch.testing.assert_close(short, whole, rtol=0, atol=bound)


KEEPS_ANGLES = "ESM of transformers 4 keeps tensors of a forward pass without gradients for the next one"
WITH_GRADIENTS = [
    pytest.param(name, marks=pytest.mark.skipif(transformers.__version__ < "5", reason=KEEPS_ANGLES))
    if name == "esm"
    else name
    for name in ARCHITECTURES
]


@pytest.mark.parametrize("architecture", WITH_GRADIENTS)
def test_a_shortened_last_layer_leaves_the_gradients_as_they_are(architecture: str) -> None:
    batch = rows_batch([5, 6, 7, 8, 9, 10], [11, 12])
    for dtype, bound in ((torch.float64, 1e-12), (torch.float32, 1e-6)):
        clf = Classifier(encoder(architecture).to(dtype), mask_id=MASK)
        gradients = []
        for context in (nullcontext, clf.classified_only):
            words = clf.embed(batch.input_ids).detach().requires_grad_()
            with context():
                gradients += torch.autograd.grad(clf.logits_at(words, batch)[:, 1].sum(), words)
        whole, short = gradients
        torch.testing.assert_close(short, whole, rtol=0, atol=bound * max(1.0, float(whole.abs().max())))


@pytest.mark.parametrize("architecture", WITH_GRADIENTS)
def test_the_last_layer_of_every_encoder_works_on_one_position(architecture: str) -> None:
    """The end of its feed-forward part, and the projection of its attention's output."""
    clf = Classifier(encoder(architecture), mask_id=MASK)
    shapes: list[int] = []
    projections = (".attention.output.dense", ".attn.o", ".out_lin", ".attn.Wo")
    named = [(name, own) for name, own in clf.model.named_modules() if isinstance(own, torch.nn.Linear)]
    for ending in (
        [own for _, own in named if own.in_features == 32],
        [own for name, own in named if name.endswith(projections)],
    ):
        ending[-1].register_forward_hook(lambda module, inputs, output: shapes.append(output.shape[1]))
    evaluator = Evaluator(clf)
    evaluator.logits(rows_batch([5, 6, 7, 8, 9]))
    assert shapes[-2:] == [1, 1]
    explain(evaluator, rows_batch([5, 6, 7, 8]), torch.tensor([1]), "grad-l2")
    assert shapes[-2:] == [1, 1]
    clf.states(rows_batch([5, 6, 7, 8, 9]))
    assert shapes[-2:] == [7, 7], "features need all positions"


def test_a_head_that_reads_all_positions_keeps_its_last_layer() -> None:
    clf = Classifier(encoder("roberta"), mask_id=MASK)
    head = clf.model.classifier.forward
    clf.model.classifier.forward = lambda states: head(states.mean(dim=1, keepdim=True))  # type: ignore[union-attr]
    batch = rows_batch([5, 6, 7, 8, 9])
    expected = clf.logits(batch).detach()
    torch.testing.assert_close(Evaluator(clf).logits(batch), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("architecture", WITH_GRADIENTS)
def test_a_model_that_was_explained_can_be_copied(architecture: str) -> None:
    """The copy is a plain model: hooks of the original do not reach into it."""
    clf = Classifier(encoder(architecture), mask_id=MASK)
    batch = rows_batch([5, 6, 7], [8, 9, 10])
    evaluator = Evaluator(clf)
    evaluator.logits(batch)
    explain(evaluator, batch, [0, 1], "grad-l2")
    clf.features(batch)
    copied = copy.deepcopy(clf.model)
    with torch.inference_mode():
        assert torch.equal(copied(**batch.inputs).logits, clf.model(**batch.inputs).logits)


def test_evaluations_are_the_distinct_masked_texts_that_methods_ask_for() -> None:
    asked: set[tuple[int, ...]] = set()

    class Asking(Evaluator):
        def variants(self, batch: Batch, rows: Tensor, where: Tensor) -> Tensor:
            lengths = batch.attention_mask.sum(dim=1)[rows].tolist()
            ids = batch.input_ids[rows].masked_fill(where, MASK)
            asked.update(tuple(row[:n].tolist()) for row, n in zip(ids, lengths, strict=True))
            return super().variants(batch, rows, where)

    clf = LookupClassifier(total)
    evaluator = Asking(clf)
    batch = rows_batch([5, 6, 7, 8, 9], [10, 11, 12], [5, 6, 7, 8, 9], [13])
    for name in ("loo-sign", "loo-abs", "beam(width=3)"):
        for _ in erase(evaluator, batch, [0, 1, 0, 1], name):
            pass
    assert evaluator.evaluations == len(asked) == len(clf.seen) == len(set(clf.seen))
    assert set(clf.seen) == asked


def test_the_gram_matrix_does_not_depend_on_the_number_of_threads() -> None:
    embeddings = torch.randn(9000, 96, generator=torch.Generator().manual_seed(0))
    clf = LookupClassifier(total)
    clf.embedding_matrix = lambda: embeddings  # type: ignore[attr-defined]
    before, grams = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            grams.append(Evaluator(clf).gram)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*grams)
    torch.testing.assert_close(grams[0], embeddings.double().T @ embeddings.double())


def test_a_regression_on_masks_does_not_depend_on_the_number_of_threads() -> None:
    batch, scores = rows_batch([5 + number % 20 for number in range(250)]), []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            clf = Evaluator(LookupClassifier(lambda ids: (float(sum(ids)), 0.0)))
            scores.append(explain(clf, batch, [0], "ridge"))
    assert torch.equal(*scores)
