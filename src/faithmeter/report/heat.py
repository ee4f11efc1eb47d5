"""Colors of scores in heat maps, for terminal, notebook, report and live page.

Web pages apply the same rules through `html.heat_style` (CSS) and `html.heat_script` (JavaScript).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from ..measuring.explanation import strongest
from .blocks import HeatMap

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
SCORE_DIGITS = 3
"""Number of significant digits of a formatted score."""


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

    @property
    def is_colored(self) -> bool:
        return self.strength >= FAINT


def score_tone(score: float, signed: bool) -> Tone:
    """Return the tone of a score: for or against the class if signed, otherwise important."""
    return (FOR if score > 0 else AGAINST) if signed else IMPORTANT


def format_score(score: float, signed: bool) -> str:
    """Format a score the way all outputs show it, e.g. `+0.123`; unsigned scores have no plus sign."""
    return f"{score + 0.0:{'+' if signed else ''}.{SCORE_DIGITS}g}"  # + 0.0 turns -0.0 into 0.0


def heat_parts(heat_map: HeatMap) -> Iterator[Part]:
    """Yield the words of a heat map as colored parts; a blank before a word is not colored."""
    largest = max(map(abs, heat_map.scores)) or 1.0  # without a score other than 0, nothing is colored
    for word, score in zip(heat_map.words, heat_map.scores, strict=True):
        text = word.removeprefix(" ")
        yield Part(word[: len(word) - len(text)])
        tone = score_tone(score, heat_map.signed)
        yield Part(text, abs(score) / largest, tone, format_score(score, heat_map.signed))


def list_strongest(heat_map: HeatMap) -> str:
    """Return the strongest words with their scores."""
    words = []
    for at in strongest(heat_map.scores):
        score = format_score(heat_map.scores[at], heat_map.signed)
        words.append(f"{heat_map.words[at].removeprefix(' ')} {score}")
    return ", ".join(words)


def heat_lines(maps: Iterable[HeatMap]) -> Iterator[tuple[str, str, list[Part]]]:
    """Yield the lines of a grid of heat maps: the method once, what its pieces are, and the parts.

    The last line of a method lists its strongest words, for readers who cannot see the colors.
    """
    for method, group in groupby(maps, key=attrgetter("method")):
        own = list(group)
        for name, one in zip([method, *[""] * (len(own) - 1)], own, strict=True):
            yield name, one.pieces, list(heat_parts(one))
        yield "", "strongest", [Part(list_strongest(own[0]))]  # of the words: tokens come after them


def legend_parts(maps: Sequence[HeatMap]) -> Iterator[Part]:
    """Yield the parts of the legend of heat maps of one label, with signed or unsigned scores, or both."""
    label, kinds = maps[0].label, set(map(attrgetter("signed"), maps))
    if True in kinds:
        yield Part(f" for {label} ", 1.0, FOR)
        yield Part(f" against {label} ", 1.0, AGAINST)
    if False in kinds:
        yield Part(" important ", 1.0, IMPORTANT)
    yield Part("color intensity shows the strength of a score")
