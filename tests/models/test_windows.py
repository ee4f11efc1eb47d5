"""Windows of long texts: where they lie, a text's logits, features and scores, and what they cost."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import faithmeter as fm
from decoders import save_decoder
from faithmeter.errors import InputError
from faithmeter.measuring.costs import bound_evaluations
from faithmeter.measuring.erase import keep_erased, states, trace_erasure
from faithmeter.methods import METHODS, adapters, parse
from faithmeter.models.evaluator import Evaluator
from faithmeter.models.tokens import in_units
from faithmeter.models.windows import window_starts
from toy import WITH_TYPES, tiny, word_tokenizer

LONG = "the film was not good and the plot very dull but the music good"  # 14 words, read 8 at once
FIRST, SECOND = "the film was not good and the plot", "the plot very dull but the music good"
TEN = "the film was not good and the plot very dull"
SHORT = "it was fun"
BUILT_IN = [name for name in METHODS if name not in ("random", "shapley")]  # which needs shapiq


def classifier(overlap: int = 2, *, limit: int = 10, kind: str = "roberta") -> fm.Classifier:
    names = WITH_TYPES if kind == "bert" else ["input_ids", "attention_mask"]
    tokenizer = word_tokenizer(model_max_length=limit, model_input_names=names)
    return fm.Classifier(tiny(kind).model, tokenizer, overlap=overlap)


def words(clf: fm.Classifier, batch: fm.Batch) -> list[str]:
    special = {*clf.tokenizer.all_special_ids} - {clf.mask_id}
    return [clf.tokenizer.decode([i for i in ids if i not in special]) for ids in batch.input_ids.tolist()]


@given(st.integers(2, 300), st.integers(2, 40), st.data())
def test_windows_cover_a_text_and_are_as_few_as_possible(length: int, room: int, data: st.DataObject) -> None:
    length += room
    overlap = data.draw(st.integers(0, room - 1))
    starts = window_starts(length, room, overlap)
    steps = [two - one for one, two in pairwise(starts)]
    assert (starts[0], starts[-1]) == (0, length - room)
    assert all(0 < step <= room - overlap for step in steps)
    assert max(steps) - min(steps) <= 1
    assert room + (len(starts) - 2) * (room - overlap) < length, "one window less would not do"


def test_a_text_is_read_in_two_windows_by_hand() -> None:
    clf = classifier()
    batch = clf.encode([LONG, SHORT])
    windows = clf.windows(batch)
    assert windows is not None
    assert words(clf, windows.batch) == [FIRST, SECOND, SHORT]
    assert windows.counts == [2, 1]
    assert batch.explained.sum(dim=1).tolist() == [14, 3]
    assert not any(layout.truncated for layout in batch.layouts)
    logits, features = clf.states(batch)
    one, two, short = (clf.states(clf.encode([text])) for text in (FIRST, SECOND, SHORT))
    torch.testing.assert_close(logits, torch.cat([(one[0] + two[0]) / 2, short[0]]))
    torch.testing.assert_close(features, torch.cat([torch.maximum(one[1], two[1]), short[1]]))
    torch.testing.assert_close(clf.logits(batch), logits)
    torch.testing.assert_close(Evaluator(clf).logits(batch), logits)


def test_the_gradient_of_a_token_in_two_windows_is_that_of_both() -> None:
    clf = classifier()
    batch = clf.encode([LONG])

    def gradient(batch: fm.Batch) -> torch.Tensor:
        embeddings = clf.embed(batch.input_ids).detach().requires_grad_()
        return torch.autograd.grad(clf.logits_at(embeddings, batch)[0, 1], embeddings)[0][0]

    one, two = (gradient(clf.encode([text])) for text in (FIRST, SECOND))
    expected = torch.zeros(16, one.shape[1], dtype=one.dtype)
    expected[[*range(9), 15]] += one / 2
    expected[[0, *range(7, 16)]] += two / 2
    torch.testing.assert_close(gradient(batch), expected)
    words = clf.embed(batch.input_ids)[0].detach()
    scores = fm.explain(clf, batch, [1], "inp-grad-sign")
    torch.testing.assert_close(scores[0, 1:15], (words * expected).sum(dim=1)[1:15])


def test_leave_one_out_masks_a_token_in_both_windows_and_pays_only_for_changed_ones() -> None:
    clf = classifier()
    evaluator = Evaluator(clf)
    scores = fm.explain(evaluator, clf.encode([LONG]), [0], "loo-sign")[0, 1:15]
    assert evaluator.evaluations == 2 + 14 + 2, "two whole windows, and one more for each of two shared words"
    whole = clf.logits(clf.encode([FIRST, SECOND]))[:, 0].mean()
    for place in range(14):
        masked = [*LONG.split()]
        masked[place] = "<mask>"
        parts = clf.encode([" ".join(masked[:8]), " ".join(masked[6:])])
        assert scores[place].item() == pytest.approx(
            (whole - clf.logits(parts)[:, 0].mean()).item(), abs=1e-12
        )


@pytest.mark.parametrize("name", ["random", *BUILT_IN])
def test_every_method_explains_windows_in_any_batch(name: str) -> None:
    clf = classifier()
    batch, labels = clf.encode([TEN, SHORT]), torch.tensor([0, 1])
    wide, narrow = (
        trace_erasure(Evaluator(clf, budget=budget), batch, labels, parse(name), (0, 50, 100), {})
        for budget in (4096, 1)
    )
    for one, two in zip(wide.steps, narrow.steps, strict=True):
        assert one.tolist() == two.tolist()
    assert wide.probabilities == pytest.approx(narrow.probabilities, abs=1e-7)
    assert [[len(wide.masked(text, step)) for step in range(3)] for text in (0, 1)] == [[0, 5, 10], [0, 1, 3]]


@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_texts_that_fit_give_the_same_bits(kind: str) -> None:
    texts, pairs = ["the film was good", SHORT], ["it was", "good and bad"]
    plain, windowed = (classifier(overlap, limit=14, kind=kind) for overlap in (0, 3))
    for pair in (None, pairs):
        batches = [clf.encode(texts, pair) for clf in (plain, windowed)]
        assert torch.equal(batches[0].input_ids, batches[1].input_ids)
        for one, two in zip(plain.states(batches[0]), windowed.states(batches[1]), strict=True):
            assert torch.equal(one, two)
        for name in BUILT_IN:
            scores = [
                fm.explain(clf, batch, [0, 1], name)
                for clf, batch in zip((plain, windowed), batches, strict=True)
            ]
            assert torch.equal(*scores)


@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_the_shorter_text_of_a_pair_is_in_each_window(kind: str) -> None:
    clf = classifier(1, limit=11, kind=kind)
    for text, pair in ((TEN, "who wrote it"), ("who wrote it", TEN)):
        batch = clf.encode([text], [pair])
        windows = clf.windows(batch)
        assert windows is not None
        parts = [
            ("the film was not", "who wrote it"),
            ("not good and the", "who wrote it"),
            ("the plot very dull", "who wrote it"),
        ]
        if pair == TEN:
            parts = [(two, one) for one, two in parts]
        expected = clf.encode(*map(list, zip(*parts, strict=True)))
        assert torch.equal(windows.batch.input_ids, expected.input_ids)
        if kind == "bert":
            assert torch.equal(windows.batch.token_type_ids, expected.token_type_ids)
        torch.testing.assert_close(clf.logits(batch)[0], clf.logits(expected).mean(dim=0))


def test_a_second_long_text_is_truncated_to_half_a_window_and_it_is_said() -> None:
    clf = classifier(1, limit=12)  # room for 8 tokens of two texts
    for text, pair, explained in ((LONG, "a b c d e f", 14), ("it was very very fun and good", LONG, 4)):
        batch = clf.encode([text], [pair])
        assert batch.layouts[0].truncated
        assert int(batch.explained.sum()) == len(batch.layouts[0].spans) == explained
        assert clf.logits(batch).isfinite().all()


def test_words_fall_together_in_all_windows() -> None:
    clf = classifier()
    batch = in_units(clf.encode(["the film was not good. and the plot very dull"]), "sentence")
    evaluator = Evaluator(clf)
    where = batch.explained & (batch.explained.cumsum(dim=1) == 1)
    masked = evaluator.variants(batch, torch.tensor([0]), where)
    by_hand = clf.encode(["<mask> <mask> <mask> <mask> <mask> <mask> and the plot very dull"])
    torch.testing.assert_close(masked, clf.logits(by_hand))
    label = torch.tensor([0])
    trace = trace_erasure(evaluator, batch, label, parse("loo-sign"), (0, 50, 100), {})
    kept = keep_erased(evaluator, batch, label, trace)
    # at 100 % everything is erased, so that all is left of the complement
    assert kept[0, -1] == pytest.approx(trace.probabilities[0, 0], abs=1e-7)


def test_evaluations_and_bounds_count_windows() -> None:
    clf = classifier()
    evaluator, batch = Evaluator(clf), clf.encode([LONG, SHORT])
    assert evaluator.count_windows(batch) == [2, 1]
    states(evaluator, batch)
    assert evaluator.evaluations == 3
    seen: list[int] = []
    evaluator = Evaluator(clf, progress=seen.append)
    fm.explain(evaluator, batch, [0, 0], "grad-l2")
    assert (evaluator.evaluations, sum(seen)) == (3, 3)
    one = bound_evaluations(parse("loo-sign"), [14], (0, 50, 100))
    assert bound_evaluations(parse("loo-sign"), [14, 14], (0, 50, 100), [2, 1]) == 3 * one


def test_padding_and_masks_change_nothing_for_a_decoder(tmp_path: Path) -> None:
    clf = fm.load(save_decoder("gpt2", tmp_path), add_mask_token=True, overlap=1)
    clf.model.double()
    clf.max_length = 5
    text = "the film was not good and dull"
    batch = clf.encode([text, "fun"])
    windows = clf.windows(batch)
    assert windows is not None
    assert windows.counts[1] == 1
    alone = torch.cat([clf.logits(clf.encode([one])) for one in (text, "fun")])
    torch.testing.assert_close(clf.logits(batch), alone)
    scores = fm.explain(clf, batch, [0, 0], "loo-sign")
    for row, one in enumerate((text, "fun")):
        expected = fm.explain(clf, clf.encode([one]), [0], "loo-sign")[0]
        torch.testing.assert_close(scores[row, : len(expected)], expected)


def test_other_libraries_refuse_windows_in_one_line() -> None:
    clf = classifier()
    batch = clf.encode([SHORT, LONG])
    with pytest.raises(InputError, match=r"text 1 is read in windows.*expected texts of at most 10 tokens"):
        fm.explain(clf, batch, [0, 0], adapters.attention("last"))
    fm.explain(clf, batch[:1], [0], adapters.attention("last"))


@pytest.mark.parametrize("overlap", [-1, 3, 4])
def test_an_overlap_that_leaves_no_room_is_refused(overlap: int) -> None:
    with pytest.raises(
        InputError, match=rf"overlap is {overlap}, .* expected 0 \(truncate longer texts\) to 2"
    ):
        classifier(overlap)


def test_ready_made_rows_whose_context_fills_the_window_are_refused() -> None:
    clf = classifier()
    rows = fm.Batch.from_ids([[0, *[5] * 9, 2, 2, *[6] * 8, 2]], special_ids=(0, 1, 2), pad_id=1)
    with pytest.raises(InputError, match="text 0: 12 of its tokens are in each window of 10"):
        clf.logits(rows)
