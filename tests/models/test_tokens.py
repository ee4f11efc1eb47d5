"""Which token is special, explained or context, whatever the texts say."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import faithmeter as fm
from faithmeter.measuring.one_text import probe_text
from faithmeter.models.encoding import encode
from toy import encoder
from toy import letter_tokenizer as letters

WORDS = st.lists(st.sampled_from([*"abcdefg", "</s>", "<s>", "<pad>", "<mask>", "zzz"]), max_size=12)


def test_a_pair_by_hand() -> None:
    batch = fm.Classifier(encoder("roberta"), letters()).encode(["a b", "c"], ["d", "e f"])
    assert batch.input_ids.tolist() == [[0, 5, 6, 2, 2, 8, 2], [0, 7, 2, 2, 9, 10, 2]]
    assert batch.explained.int().tolist() == [[0, 1, 1, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0]]
    assert batch.content.int().tolist() == [[0, 1, 1, 0, 0, 1, 0], [0, 1, 0, 0, 1, 1, 0]]
    assert batch.attention_mask.all()
    assert batch.index.tolist() == [0, 1]
    assert batch.token_type_ids is None


def test_a_literal_separator_in_a_text_does_not_split_it() -> None:
    (row,) = encode(letters(), ["a </s> b"], ["c"], max_length=64)
    assert row["input_ids"] == [0, 5, 2, 6, 2, 2, 7, 2]
    assert row["kinds"] == [-1, 0, 0, 0, -1, -1, 1, -1]


def test_an_empty_context_is_no_error_and_leaves_the_text_explained() -> None:
    (row,) = encode(letters(), ["a"], [""], max_length=64)
    assert row["kinds"] == [-1, 0, -1, -1, -1]


@given(WORDS.filter(bool), WORDS)
def test_kinds_follow_the_texts_whatever_they_hold(text: list[str], context: list[str]) -> None:
    (row,) = encode(letters(), [" ".join(text)], [" ".join(context)], max_length=64)
    kinds = row["kinds"]
    assert kinds == [-1] + [0] * len(text) + [-1, -1] + [1] * len(context) + [-1]


@given(st.lists(st.integers(5, 11), min_size=1, max_size=9), st.lists(st.integers(5, 11), max_size=9))
def test_rows_of_ids_are_understood_like_texts(text: list[int], context: list[int]) -> None:
    row = [0, *text, 2, *((2, *context, 2) if context else ())]
    batch = fm.Batch.from_ids([row, [0, 5, 2, 1, 1]], special_ids=(0, 1, 2), pad_id=1)
    assert batch.explained[0, : len(row)].tolist() == [0 < i <= len(text) for i in range(len(row))]
    assert int(batch.content[0].sum()) == len(text) + len(context)
    assert batch.attention_mask.sum(dim=1).tolist() == [len(row), 3]
    assert not (batch.content & (batch.attention_mask == 0)).any()


@pytest.mark.parametrize("row", [[0, 2, 2, 7, 2], [0, 2], [], [1, 1]])
def test_an_empty_first_text_in_a_row_of_ids_is_refused(row: list[int]) -> None:
    with pytest.raises(fm.InputError, match="text 1 is empty"):
        fm.Batch.from_ids([[0, 5, 2], row], special_ids=(0, 1, 2), pad_id=1)


def test_the_longer_text_of_a_pair_is_truncated_first_and_it_is_said() -> None:
    cut, whole = encode(letters(), ["a b c d e", "a"], ["f", "g"], max_length=8)
    assert (cut["input_ids"], cut["truncated"]) == ([0, 5, 6, 7, 2, 2, 10, 2], True)
    assert (whole["input_ids"], whole["truncated"]) == ([0, 5, 2, 2, 11, 2], False)
    (exactly_full,) = encode(letters(), ["a b c"], ["f"], max_length=8)
    assert not exactly_full["truncated"]


def test_rows_of_a_batch_can_be_chosen_and_masked() -> None:
    batch = fm.Batch.from_ids([[0, 5, 6, 2], [0, 7, 2]], special_ids=(0, 1, 2), pad_id=1)
    second = batch[[1]]
    assert second.input_ids.tolist() == [[0, 7, 2, 1]]
    assert second.index.tolist() == [1]
    masked = batch.masked(batch.explained, 4)
    assert masked.input_ids.tolist() == [[0, 4, 4, 2], [0, 4, 2, 1]]
    assert batch.input_ids.tolist()[0] == [0, 5, 6, 2], "the batch itself is not changed"


def test_padding_does_not_touch_the_rows() -> None:
    rows = [[0, 5, 2], [0, *[6] * 20, 2]]
    batch = fm.Batch.from_ids(rows, special_ids=(0, 1, 2), pad_id=1)
    for row, ids, attended in zip(rows, batch.input_ids, batch.attention_mask, strict=True):
        assert ids[attended.bool()].tolist() == row
        assert torch.equal(ids[~attended.bool()], torch.full((22 - len(row),), 1))


class Counting:
    """A tokenizer that counts the texts it is given."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.texts = tokenizer, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokenizer, name)

    def __call__(self, texts: list[str], *arguments: Any, **options: Any) -> Any:
        self.texts += len(texts)
        return self.tokenizer(texts, *arguments, **options)


def test_a_text_is_tokenized_once_even_if_truncated() -> None:
    clf = fm.Classifier(encoder("roberta"), tokenizer := Counting(letters(model_max_length=8)))
    batch = clf.encode(["a b c d e f g", "a"])
    assert [layout.truncated for layout in batch.layouts] == [True, False]
    fm.explain_text(clf, "a b c d e f g", method=["loo-sign", "grad-l2"], verify=False)
    probe_text(clf, "a b", masked=[1])
    fm.explain_text(clf, "c d", method=["loo-sign"])
    assert tokenizer.texts == 2 + 1 + 1 + 1


def test_a_batch_keeps_the_place_of_every_explained_token() -> None:
    batch = fm.Classifier(encoder("roberta"), letters()).encode([" a  bc", "d"], ["e", "f g"])
    first, second = batch.layouts
    assert (first.text, first.pair, first.spans, first.words) == (" a  bc", "e", ((1, 2), (4, 6)), (0, 1))
    assert (second.text, second.pair, second.spans, second.words) == ("d", "f g", ((0, 1),), (0,))
    assert batch[[1]].layouts == (second,)
    assert batch[torch.tensor([False, True])].layouts == (second,)
    assert batch[1:].layouts == (second,)
    assert fm.Batch.from_ids([[0, 5, 2]], special_ids=(0, 1, 2), pad_id=1)[[0]].layouts == ()
