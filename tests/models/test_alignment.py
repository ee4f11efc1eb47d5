"""Scores of words and spans on tokens, and every input that does not fit."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import faithmeter as fm
from faithmeter.models.alignment import align, align_text
from faithmeter.models.tokens import Layout, in_units, number_units
from toy import rows_batch, tiny

# "Unhappy men, no": tokens Un|happy|men|,|no; words Unhappy|men|,|no; between blanks Unhappy|men,|no
LAYOUT = Layout(
    "Unhappy men, no", None, ((0, 2), (2, 7), (8, 11), (11, 12), (13, 15)), (0, 0, 1, 2, 3), False
)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
        ([1, 2, 3, 4], [1, 1, 2, 3, 4]),
        ([1, 2, 3], [1, 1, 2, 2, 3]),
        (np.array([1.0, 2.0, 3.0]), [1, 1, 2, 2, 3]),
        (torch.tensor([1.0, 2.0, 3.0]), [1, 1, 2, 2, 3]),
        ([(8, 12, 2.5)], [0, 0, 2.5, 2.5, 0]),
        ([[13, 15, -1], [0, 8, 7]], [7, 7, 0, 0, -1]),
    ],
)
def test_scores_of_tokens_words_and_spans(scores, expected) -> None:
    assert align_text(LAYOUT, scores) == expected


def test_a_unit_has_the_sum_of_the_pieces_in_it() -> None:
    words = Layout(**{**vars(LAYOUT), "units": (0, 0, 1, 2, 3)})
    assert align_text(words, [1, 2, 3, 4, 5]) == [3, 3, 4, 5]
    assert align_text(words, [1, 2, 3, 4]) == [1, 2, 3, 4], "the score of a word is that of its unit"
    assert align_text(words, [1, 2, 3]) == [1, 2, 2, 3], "a larger piece counts in each unit"
    whole = Layout(**{**vars(LAYOUT), "units": (0,) * 5})
    assert align_text(whole, [1, 2, 3]) == [6]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (
            [1, 2],
            "has 2 scores; expected 5 (one for each token), 4 (words of the tokenizer), 3 (words between",
        ),
        ([1, 2, float("nan")], "nan among its scores; expected finite numbers"),
        ([1, 2, float("inf")], "inf among its scores; expected finite numbers"),
        ([1, 2, True], "True among its scores; expected finite numbers"),
        ([1, 2, "3"], "'3' among its scores; expected numbers, or [start, end, score]"),
        ([1, (0, 2, 1.0)], "numbers and spans are mixed"),
        ([(1, 7, 1.0)], "span 1 to 7 cuts the token 'Un' (0 to 2); expected spans of whole tokens"),
        ([(0, 9, 1.0)], "span 0 to 9 cuts the token 'men' (8 to 11)"),
        ([(0, 7, 1.0), (2, 11, 1.0)], "spans (0, 7) and (2, 11) overlap"),
        ([(13, 16, 1.0)], "span 13 to 16; expected a part of its 15 characters"),
        ([(7, 7, 1.0)], "span 7 to 7; expected a part"),
        ([(0.5, 7, 1.0)], "span 0.5 to 7.0; expected whole numbers"),
        ([(0, 7)], "(0, 7) among its scores; expected numbers, or [start, end, score]"),
        ([(0, 7, float("nan"))], "nan among its scores"),
        (3.0, "scores of a text are 3.0; expected a list"),
        ("abc", "scores of a text are 'abc'; expected a list"),
    ],
)
def test_scores_that_do_not_fit_are_refused_in_one_line(scores, message: str) -> None:
    with pytest.raises(fm.InputError, match=re.escape(message)) as error:
        align_text(LAYOUT, scores)
    assert "\n" not in str(error.value)


def test_rows_without_texts_and_a_wrong_number_of_lists_are_refused() -> None:
    with pytest.raises(fm.InputError, match="tokenized elsewhere"):
        align(rows_batch([5, 6]), [[1, 2]])
    with pytest.raises(fm.InputError, match="scores of 2 texts for 1"):
        align(tiny().encode(["the film"]), [[1, 2], [1, 2]])


@given(
    st.lists(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=4), min_size=1, max_size=6)
)
def test_every_token_of_a_word_between_blanks_has_its_score(words: list[list[str]]) -> None:
    """Words of pieces: the tokens are the pieces, the scores the numbers of the words."""
    spans, owners, at = [], [], 0
    for number, pieces in enumerate(words):
        for piece in pieces:
            spans.append((at, at + len(piece)))
            owners.append(number)
            at += len(piece)
        at += 1
    text = " ".join("".join(pieces) for pieces in words)
    layout = Layout(text, None, tuple(spans), tuple(owners), False)
    assert align_text(layout, list(range(len(words)))) == (
        owners if len(owners) > len(words) else list(range(len(words)))
    )
    by_span = [(match.start(), match.end(), n) for n, match in enumerate(re.finditer(r"\S+", text))]
    assert align_text(layout, by_span[::-1]) == owners


def test_units_are_runs_of_equal_keys() -> None:
    assert number_units((4, 4, None, 4)) == (0, 0, 1, 2)


def test_sentences_end_at_punctuation_with_a_blank_or_at_a_new_line() -> None:
    text = 'the film was 3.5 good. "a story!" who wrote it?\nplot'
    batch = in_units(tiny().encode([text]), "sentence")
    spans = batch.layouts[0].of_units.spans
    assert [text[start:end] for start, end in spans] == [
        "the film was 3.5 good.",
        '"a story!"',
        "who wrote it?",
        "plot",
    ]


def test_an_unknown_unit_and_rows_without_words_are_refused() -> None:
    with pytest.raises(fm.InputError, match="unknown unit 'words'; did you mean 'word'"):
        in_units(rows_batch([5, 6]), "words")
    with pytest.raises(fm.InputError, match="tokenized elsewhere"):
        in_units(rows_batch([5, 6]), "word")
