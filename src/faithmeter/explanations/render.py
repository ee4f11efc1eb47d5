"""Heat-maps of scores: colors, number format and words, for terminal, notebook, report and live page.

The pages get the same rules from `heat_style` (CSS) and `heat_script` (JavaScript).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple

Color = tuple[int, int, int]
"""Red, green and blue, each 0 to 255."""


class Tone(NamedTuple):
    """One meaning of a score, and its colors as a background and as a line, in light and in dark mode."""

    name: str
    light: Color
    dark: Color
    light_line: Color
    dark_line: Color


FOR = Tone("for", (214, 69, 65), (226, 92, 86), (194, 58, 54), (240, 138, 132))
AGAINST = Tone("against", (58, 110, 195), (84, 140, 226), (47, 95, 176), (141, 180, 242))
IMPORTANT = Tone("important", (240, 173, 0), (240, 173, 0), (168, 120, 0), (240, 192, 74))
"""Used where scores have no sign."""
TONES = (FOR, AGAINST, IMPORTANT)
FAINT = 0.1
"""Scores below this share of a text's strongest score stay uncolored."""
STRONGEST_WORDS = 3
"""Number of words whose scores are also written out, for readers who cannot see the colors."""
SCORE_DIGITS = 3
"""Significant digits of a written score."""
BLANK = "␣"
"""Replaces a token that consists of blanks only."""


@dataclass(frozen=True)
class Piece:
    """A word or a token of the explained text, with the numbers of its tokens among those explained."""

    text: str
    start: int
    end: int
    tokens: tuple[int, ...]


class Part(NamedTuple):
    """A stretch of text with the strength (0 to 1) and the tone of its background; `title` has the score."""

    text: str
    strength: float = 0.0
    tone: Tone = IMPORTANT
    title: str = ""


def token_pieces(text: str, spans: Sequence[tuple[int, int]]) -> list[Piece]:
    """Return each token as a piece of the text."""
    return [_piece(text, start, end, (number,)) for number, (start, end) in enumerate(spans)]


def word_pieces(
    text: str, spans: Sequence[tuple[int, int]], word_numbers: Sequence[int | None]
) -> list[Piece]:
    """Merge tokens into words: neighbors with equal word numbers are one word."""
    pieces = []
    for _, group in groupby(range(len(spans)), key=word_numbers.__getitem__):
        tokens = tuple(group)
        start, end = min(spans[token][0] for token in tokens), max(spans[token][1] for token in tokens)
        pieces.append(_piece(text, start, end, tokens))
    return pieces


def piece_score(piece: Piece, scores: Sequence[float]) -> float:
    """Return the score of the piece's strongest token, sign included."""
    return max((scores[token] for token in piece.tokens), key=abs)


def strongest(scores: Sequence[float], count: int = STRONGEST_WORDS) -> list[int]:
    """Return the positions of the largest absolute scores, strongest first, ties leftmost first."""
    return sorted(range(len(scores)), key=lambda number: -abs(scores[number]))[:count]


def score_tone(score: float, signed: bool) -> Tone:
    """Return the tone of a score; only signed scores speak for or against a class."""
    return (FOR if score > 0 else AGAINST) if signed else IMPORTANT


def format_score(score: float, signed: bool) -> str:
    """Format a score the way all outputs show it, e.g. `+0.123`; unsigned scores have no plus sign."""
    return f"{score + 0.0:{'+' if signed else ''}.{SCORE_DIGITS}g}"  # + 0.0 turns -0.0 into 0.0


def legend_parts(label: str, *, signed: bool, unsigned: bool) -> Iterator[Part]:
    """Yield the legend of signed scores, of unsigned ones, or of both."""
    if signed:
        yield Part(f" for {label} ", 1.0, FOR)
        yield Part(f" against {label} ", 1.0, AGAINST)
    if unsigned:
        yield Part(" important ", 1.0, IMPORTANT)
    yield Part("color intensity shows the strength of a score")


def part_html(part: Part) -> str:
    """Return the part as HTML for a page with `heat_style`."""
    if part.strength < FAINT:
        return escape(part.text)
    title = f" title='{escape(part.title)}'" if part.title else ""
    attributes = f"class='heat {part.tone.name}' style='--share:{part.strength:.3f}'{title}"
    return f"<span {attributes}>{escape(part.text)}</span>"


def part_terminal(part: Part) -> tuple[str, str]:
    """Return the text and its rich style; weak scores are pale, but remain visible."""
    if part.strength < FAINT:
        return part.text, ""
    depth = 0.25 + 0.75 * part.strength
    mixed = [round(255 + (channel - 255) * depth) for channel in part.tone.light]
    # hexadecimal, as a terminal's own "black" may be gray; the fullest blue needs white letters
    letters = "#ffffff" if part.tone is AGAINST and depth >= 0.8 else "#000000"
    return part.text, letters + " on #{:02x}{:02x}{:02x}".format(*mixed)


def heat_style(scope: str = ":root") -> str:
    """Return the style sheet of heat-maps: its colors, as variables of `scope`, and its rules."""
    variables = (
        f"  --{tone.name}{line}: light-dark(rgb({_channels(light)}), rgb({_channels(dark)}));"
        for tone in TONES
        for line, light, dark in (
            ("", tone.light, tone.dark),
            ("-line", tone.light_line, tone.dark_line),
        )
    )
    return f"{scope} {{\n" + "\n".join(variables) + "\n}\n" + _resource("heat.css")


def heat_script() -> str:
    """Return the script of heat-maps: the constants of this module, and `heat`, which applies them."""
    constants = {"FAINT": FAINT, "STRONGEST_WORDS": STRONGEST_WORDS, "SCORE_DIGITS": SCORE_DIGITS}
    return f"const HEAT = {json.dumps(constants)};\n" + _resource("heat.js")


def _piece(text: str, start: int, end: int, tokens: tuple[int, ...]) -> Piece:
    return Piece(text[start:end] or BLANK, start, end, tokens)


def _channels(color: Color) -> str:
    return " ".join(map(str, color))


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
