"""Rendering of scores: words out of tokens, formats, tones, and what the pages receive."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import faithmeter
from faithmeter.measuring.explanation import BLANK, piece_score, strongest, token_pieces, word_pieces
from faithmeter.report.heat import (
    AGAINST,
    FOR,
    IMPORTANT,
    TONES,
    Part,
    format_score,
    score_tone,
)
from faithmeter.report.html import heat_script, heat_style, part_html
from faithmeter.report.terminal import part_text

TEXT = "not  unfunny"
SPANS = [(0, 3), (4, 4), (5, 7), (7, 12)]
WORDS = [0, 1, 2, 2]


def test_tokens_with_equal_word_numbers_are_one_word() -> None:
    assert [piece.text for piece in token_pieces(TEXT, SPANS)] == ["not", BLANK, "un", "funny"]
    words = word_pieces(TEXT, SPANS, WORDS)
    assert [(word.text, word.start, word.end, word.tokens) for word in words] == [
        ("not", 0, 3, (0,)),
        (BLANK, 4, 4, (1,)),
        ("unfunny", 5, 12, (2, 3)),
    ]
    assert [piece_score(word, [0.5, 0.0, 1.0, -2.0]) for word in words] == [0.5, 0.0, -2.0]


def test_the_strongest_come_first_and_ties_leftmost() -> None:
    assert strongest([1.0, -3.0, 0.0, 3.0, 1.0]) == [1, 3, 0]


@pytest.mark.parametrize(
    ("score", "signed", "text"),
    [
        (0.12345, True, "+0.123"),
        (-2.0, True, "-2"),
        (-0.0, True, "+0"),
        (0.5, False, "0.5"),
        (1e-7, True, "+1e-07"),
    ],
)
def test_only_signed_scores_have_a_plus_sign(score: float, signed: bool, text: str) -> None:
    assert format_score(score, signed) == text


def test_tones_follow_the_sign_where_there_is_one() -> None:
    assert [score_tone(score, True) for score in (1, -1)] == [FOR, AGAINST]
    assert [score_tone(score, False) for score in (1, -1)] == [IMPORTANT, IMPORTANT]


def test_faint_scores_are_uncolored_everywhere() -> None:
    faint, full = Part("<b>", 0.09, FOR, "+0.1"), Part("<b>", 1.0, FOR, "+1")
    assert (part_html(faint), part_text(faint)) == ("&lt;b&gt;", ("<b>", ""))
    assert part_html(full) == "<span class='heat for' style='--share:1.000' title='+1'>&lt;b&gt;</span>"
    assert part_text(full) == ("<b>", "#000000 on #d64541")


def test_pages_receive_colors_and_constants() -> None:
    for tone in TONES:
        assert re.search(rf"--{tone.name}: light-dark\(rgb\({' '.join(map(str, tone.light))}\)", heat_style())
    assert '"FAINT": 0.1' in heat_script()


def test_no_page_repeats_a_color_of_the_heat_map() -> None:
    root = Path(faithmeter.__file__).parent
    colors = "|".join(r"[, ]+".join(map(str, color)) for tone in TONES for color in tone[1:3])
    copies = [
        path.name
        for folder in ("serve", "explanations")
        for path in (root / folder).rglob("*.*")
        if path.suffix in (".css", ".js", ".html", ".py") and path.name != "render.py"
        if re.search(colors, path.read_text(encoding="utf-8"))
    ]
    assert copies == []
