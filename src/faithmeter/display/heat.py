"""Heat maps of scores: colors, number format and words for terminal, notebook, report and live page.

Web pages apply the same rules through `heat_style` (CSS) and `heat_script` (JavaScript).
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
"""Red, green and blue channels, each from 0 to 255."""


class Tone(NamedTuple):
    """Meaning of a score, with its background and line colors in light and dark mode."""

    name: str
    light: Color
    dark: Color
    light_line: Color
    dark_line: Color


FOR = Tone("for", (214, 69, 65), (226, 92, 86), (194, 58, 54), (240, 138, 132))
AGAINST = Tone("against", (58, 110, 195), (84, 140, 226), (47, 95, 176), (141, 180, 242))
IMPORTANT = Tone("important", (240, 173, 0), (240, 173, 0), (168, 120, 0), (240, 192, 74))
"""Tone of unsigned scores."""
TONES = (FOR, AGAINST, IMPORTANT)
FAINT = 0.1
"""Scores below this fraction of a text's strongest score are not colored."""
STRONGEST_WORDS = 3
"""Number of words whose scores are also written out, for readers who cannot see the colors."""
SCORE_DIGITS = 3
"""Number of significant digits of a formatted score."""
BLANK = "␣"
"""Placeholder for a token without visible characters."""


@dataclass(frozen=True)
class Piece:
    """A word or token of the explained text.

    Attributes:
        text: The characters, or a placeholder if there are none.
        start: Position of the first character in the text.
        end: Position after the last character.
        tokens: Numbers of its tokens, counted among the explained tokens.
    """

    text: str
    start: int
    end: int
    tokens: tuple[int, ...]


class Part(NamedTuple):
    """A stretch of text in a heat map.

    Attributes:
        text: The characters.
        strength: Strength of the background, from 0 to 1.
        tone: Color of the background.
        title: Tooltip, which shows the score.
    """

    text: str
    strength: float = 0.0
    tone: Tone = IMPORTANT
    title: str = ""


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


def score_tone(score: float, signed: bool) -> Tone:
    """Return the tone of a score: for or against the class if signed, otherwise important."""
    return (FOR if score > 0 else AGAINST) if signed else IMPORTANT


def format_score(score: float, signed: bool) -> str:
    """Format a score the way all outputs show it, e.g. `+0.123`; unsigned scores have no plus sign."""
    return f"{score + 0.0:{'+' if signed else ''}.{SCORE_DIGITS}g}"  # + 0.0 turns -0.0 into 0.0


def legend_parts(label: str, *, signed: bool, unsigned: bool) -> Iterator[Part]:
    """Yield the parts of a legend for signed scores, unsigned scores, or both."""
    if signed:
        yield Part(f" for {label} ", 1.0, FOR)
        yield Part(f" against {label} ", 1.0, AGAINST)
    if unsigned:
        yield Part(" important ", 1.0, IMPORTANT)
    yield Part("color intensity shows the strength of a score")


def part_html(part: Part) -> str:
    """Return the part as HTML for a page that includes `heat_style`."""
    if part.strength < FAINT:
        return escape(part.text)
    title = f" title='{escape(part.title)}'" if part.title else ""
    attributes = f"class='heat {part.tone.name}' style='--share:{part.strength:.3f}'{title}"
    return f"<span {attributes}>{escape(part.text)}</span>"


def part_terminal(part: Part) -> tuple[str, str]:
    """Return the text of the part and its rich style, which is empty for a faint score."""
    if part.strength < FAINT:
        return part.text, ""
    depth = 0.25 + 0.75 * part.strength
    mixed = [round(255 + (channel - 255) * depth) for channel in part.tone.light]
    # hexadecimal, as a terminal may show "black" as gray; strong blue needs white letters
    letters = "#ffffff" if part.tone is AGAINST and depth >= 0.8 else "#000000"
    return part.text, letters + " on #{:02x}{:02x}{:02x}".format(*mixed)


def heat_style(scope: str = ":root") -> str:
    """Return the CSS of heat maps: colors as variables of the selector `scope`, and rules."""
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
    """Return the JavaScript of heat maps: the constants of this module, and `heat`, which applies them."""
    constants = {"FAINT": FAINT, "STRONGEST_WORDS": STRONGEST_WORDS, "SCORE_DIGITS": SCORE_DIGITS}
    return f"const HEAT = {json.dumps(constants)};\n" + _resource("heat.js")


def _piece(text: str, start: int, end: int, tokens: tuple[int, ...]) -> Piece:
    return Piece(text[start:end] or BLANK, start, end, tokens)


def _channels(color: Color) -> str:
    return " ".join(map(str, color))


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
