"""Views of a single text: its explanation as a heat map, and its verdict as a chart and a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..config import BASELINE
from ..verdict.formats import format_percent
from .blocks import Block, Chart, Column, HeatMap, Row, Sentence, Table, plain_row

if TYPE_CHECKING:
    from ..measuring.explanation import Explanation, Piece
    from ..verdict.doubts import Doubt

NAME = Column(("method",), "label", form="code")


def view_explanation(result: Explanation) -> list[Block]:
    """Return the blocks of an explanation: its colors, and its verdict if it was verified."""
    return [*view_colors(result), *(view_verdict(result) if result.verified else ())]


def view_colors(result: Explanation) -> list[Block]:
    """Return the prediction, and the words and tokens in colors."""
    return [*_facts(result), *_heat_maps(result)]


def view_verdict(result: Explanation) -> list[Block]:
    """Return the blocks of the verdict on an explanation, without its colors."""
    verdict = result.verdict
    top = Sentence(verdict.summary.text, verdict.summary.mood, "top")
    answers = [Sentence(one.text, one.mood, "answer", f"{one.question}:") for one in verdict.answers]
    return [top, _text_chart(result), _text_table(result), *answers, *doubt_sentences(verdict.doubts)]


def _text_chart(result: Explanation) -> Chart:
    """Return the chart of the method with the largest area against the mean of the random orders."""
    name, best = max(result.erasures.items(), key=lambda item: item[1].acu)
    # a predicted number has its own unit
    scale = 100 if result.value is None else 1
    curves = {}
    for label, values in {name: best.probability, BASELINE: result.mean}.items():
        curves[label] = [scale * value for value in values]
    area = f"ACU {result.format(best.acu, 1)}"
    return Chart(_text_title(result), tuple(result.percents), curves, area)


def _text_title(result: Explanation) -> str:
    curve = f"probability of {result.label} in %" if result.value is None else "predicted number"
    return f"{curve}, by percent of the text erased"


def _text_table(result: Explanation) -> Table:
    """Return the curve of each method with its p-values, and those of the random orders."""
    rows: list[Row] = []
    for name, erasure in result.erasures.items():
        points = map(result.format, (*erasure.probability, erasure.acu))
        rows.append(plain_row(name, *points, format_percent(erasure.racu, 0)))
        for test, pvalues in erasure.pvalues.items():
            steps = (f"{p:.2f}".lstrip("0") for p in pvalues)  # .05: a table of eleven steps must fit
            rows.append(plain_row(f"p {test}", *steps, "", "", mark="grey"))
    orders = {f"random (mean of {result.orders})": result.mean, "5 %": result.lower, "95 %": result.upper}
    for name, values in orders.items():
        rows.append(plain_row(name, *map(result.format, values), "", "", mark="grey"))
    columns = (Column((heading,)) for heading in (*map(str, result.percents), "ACU", "RACU"))
    return Table(_text_title(result), (NAME, *columns), tuple(rows))


def _facts(result: Explanation) -> Iterator[Block]:
    probabilities = ", ".join(f"{name} {p:.1%}" for name, p in result.probabilities.items())
    yield Sentence(f"prediction {result.prediction}" + (f" ({probabilities})" if probabilities else ""))
    if result.pair is not None:
        yield Sentence(f"context: {result.pair}")
    if result.truncated:
        yield Sentence("the text is longer than the model can read: its end was left out", "caution")
    if result.precision != "fp32":
        yield Sentence(f"evaluated in {result.precision}")


def _heat_maps(result: Explanation) -> Iterator[Block]:
    """Yield the words of each method and, unless each word is one token, its tokens."""
    for method in result.methods:
        yield _heat_map(result, method, result.words, _with_gaps(result.words, result.text))
        if len(result.tokens) != len(result.words):
            tokens = _heat_map(result, method, result.tokens, _with_gaps(result.tokens))
            yield replace(tokens, pieces="tokens")


def _heat_map(result: Explanation, method: str, units: Sequence[Piece], words: tuple[str, ...]) -> HeatMap:
    scores = tuple(unit.scores[method] for unit in units)
    return HeatMap(words, scores, method=method, label=result.label, signed=method in result.signed)


def _with_gaps(units: Sequence[Piece], text: str | None = None) -> tuple[str, ...]:
    """Return the units with a blank before each that follows a gap in `text`; without it, all do."""
    words, end = [], 0
    # tokens of some models begin inside a word, where the text has no gap
    for number, unit in enumerate(units):
        gap = number > 0 if text is None else bool(text[end : unit.start])
        words.append(" " * gap + unit.text)
        end = unit.end
    return tuple(words)


def doubt_sentences(doubts: Iterable[Doubt]) -> list[Block]:
    """Return the doubts as sentences."""
    sentences: list[Block] = []
    for doubt in doubts:
        sentences.append(Sentence(f"{doubt.text}.", doubt.severity, "doubt"))
    return sentences
