"""Words and tokens of a text as pieces of its characters, with the score of each piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

BLANK = "␣"
"""Placeholder for a token without visible characters."""
STRONGEST_WORDS = 3
"""Number of words whose scores are also written out, for readers who cannot see the colors."""


@dataclass(frozen=True)
class Piece:
    """A word or token of the explained text.

    Attributes:
        text: The characters, or a placeholder if there are none.
        start: Position of the first character in the text.
        end: Position after the last character.
        tokens: Numbers of its tokens, counted among the explained tokens.
        scores: Score by method; empty if nothing was explained.
    """

    text: str
    start: int
    end: int
    tokens: tuple[int, ...]
    scores: Mapping[str, float] = field(default_factory=dict)


def token_pieces(text: str, spans: Sequence[tuple[int, int]]) -> list[Piece]:
    """Return a piece for each token, given the tokens' character spans."""
    return [_piece(text, start, end, (number,)) for number, (start, end) in enumerate(spans)]


def word_pieces(
    text: str, spans: Sequence[tuple[int, int]], word_numbers: Sequence[int | None]
) -> list[Piece]:
    """Return a piece for each word; adjacent tokens with equal word numbers form a word."""
    pieces = []
    for _, group in groupby(range(len(spans)), key=word_numbers.__getitem__):
        tokens = tuple(group)
        start, end = min(spans[token][0] for token in tokens), max(spans[token][1] for token in tokens)
        pieces.append(_piece(text, start, end, tokens))
    return pieces


def piece_score(piece: Piece, scores: Sequence[float]) -> float:
    """Return the score of the piece's strongest token, with its sign."""
    return max((scores[token] for token in piece.tokens), key=abs)


def strongest(scores: Sequence[float], count: int = STRONGEST_WORDS) -> list[int]:
    """Return the positions of the `count` largest absolute scores, strongest first, ties leftmost first."""
    return sorted(range(len(scores)), key=lambda number: -abs(scores[number]))[:count]


def _piece(text: str, start: int, end: int, tokens: tuple[int, ...]) -> Piece:
    return Piece(text[start:end] or BLANK, start, end, tokens)
