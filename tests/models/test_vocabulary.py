"""Share of a text's words that a tokenizer does not know, by hand and on an embedded model."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForSequenceClassification

import faithmeter as fm
from faithmeter.models.encoding import share_unread
from faithmeter.models.loading import load_tokenizer, resolve
from faithmeter.models.tokens import Layout

ARABIC = "كان الفيلم رائعا وممتعا للغاية"


def layout(text: str, spans: list[tuple[int, int]]) -> Layout:
    return Layout(text, None, tuple(spans), tuple(range(len(spans))), False)


def test_a_word_of_pieces_is_read_and_one_of_letters_is_not() -> None:
    pieces = [(0, 4), (4, 8)]  # know|ledge as two pieces
    letters = [(9 + i, 10 + i) for i in range(5)]
    known = layout("knowhows scary", pieces + letters)
    assert share_unread(known, torch.arange(7), None) == 0.5
    assert share_unread(layout("knowhows", pieces), torch.arange(2), None) == 0


def test_an_unknown_token_is_not_read() -> None:
    text = layout("good gwrtz", [(0, 4), (5, 10)])
    assert share_unread(text, torch.tensor([7, 3]), 3) == 0.5
    assert share_unread(text, torch.tensor([7, 3]), None) == 0


@pytest.mark.parametrize("text", ["a b c", "12345 67890", "电影非常好看而且精彩"])
def test_short_words_numbers_and_ideographs_do_not_count(text: str) -> None:
    letters = layout(text, [(at, at + 1) for at in range(len(text))])
    assert share_unread(letters, torch.arange(len(text)), None) == 0


def test_words_beyond_the_limit_do_not_count() -> None:
    assert share_unread(layout("good gwrtz", [(0, 4)]), torch.tensor([7]), 3) == 0


@pytest.fixture(scope="module")
def clf() -> fm.Classifier:
    """The embedded English encoder with a head that was never trained."""
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(resolve("embedded"), num_labels=2)
    return fm.Classifier(model, load_tokenizer("embedded"))


def test_an_arabic_text_is_not_trusted_on_an_english_model(clf: fm.Classifier) -> None:
    result = fm.explain_text(clf, ARABIC, method=["loo-sign", "grad-l2"], orders=19)
    assert result.unread == 1
    assert result.verdict.trusted == result.verdict.faithful == ()
    for answer in result.verdict.answers:
        assert (answer.mood, answer.text.split(":")[0]) == ("bad", "the model does not know these words")
    assert "100% of the words of this text are not in the model's vocabulary" in str(result.verdict)


def test_a_text_in_its_language_is_read(clf: fm.Classifier) -> None:
    result = fm.explain_text(clf, "Mary went to the kitchen.", method=["loo-sign"], orders=19)
    assert result.unread == 0
