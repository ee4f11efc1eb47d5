"""Views of a single text: its explanation as a heat map, and its measurement as a chart and a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..config import BASELINE
from ..verdict.formats import format_number, format_percent
from .blocks import Block, Chart, Column, HeatMap, Row, Sentence, Table, plain_row

if TYPE_CHECKING:
    from ..measuring.explanation import Explanation, Unit
    from ..measuring.one_text import TextMeasurement
    from ..verdict import Doubt

NAME = Column(("method",), "label", form="code")


def view_text(result: TextMeasurement) -> list[Block]:
    """Return the blocks of a measured text."""
    summary = result.verdict.summary
    top = Sentence(f"{summary.text}.", summary.mood, "top")
    answers = [Sentence(one.text, one.mood, "answer", f"{one.question}:") for one in result.verdict.answers]
    return [top, _text_chart(result), _text_table(result), *answers, *doubt_sentences(result.verdict.doubts)]


def view_explanation(result: Explanation) -> list[Block]:
    """Return the blocks of an explanation."""
    return [*_facts(result), *_heat_maps(result)]


def doubt_sentences(doubts: Iterable[Doubt]) -> list[Block]:
    """Return the doubts as sentences."""
    return [Sentence(f"{doubt.text}.", doubt.severity, "doubt") for doubt in doubts]


def _text_chart(result: TextMeasurement) -> Chart:
    """Return the chart of the method with the largest area against the mean of the random orders."""
    name, best = max(result.methods.items(), key=lambda item: item[1].acu)
    # a predicted number has its own unit
    scale = 100 if result.quantity == "probability" else 1
    curves = {}
    for label, values in {name: best.probability, BASELINE: result.mean}.items():
        curves[label] = [scale * value for value in values]
    area = f"ACU {_format_quantity(result, best.acu, 1)}"
    return Chart(_text_title(result), tuple(result.percents), curves, area)


def _text_title(result: TextMeasurement) -> str:
    probability = result.quantity == "probability"
    curve = f"probability of {result.label} in %" if probability else "predicted number"
    return f"{curve}, by percent of the text erased"


def _text_table(result: TextMeasurement) -> Table:
    """Return the curve of each method with its p-values, and those of the random orders."""
    rows: list[Row] = []
    for name, erasure in result.methods.items():
        points = (_format_quantity(result, value) for value in (*erasure.probability, erasure.acu))
        rows.append(plain_row(name, *points, format_percent(erasure.racu, 0)))
        for test, pvalues in erasure.pvalues.items():
            steps = (f"{p:.2f}".lstrip("0") for p in pvalues)  # .05: a table of eleven steps must fit
            rows.append(plain_row(f"p {test}", *steps, "", "", mark="grey"))
    orders = {f"random (mean of {result.orders})": result.mean, "5 %": result.lower, "95 %": result.upper}
    for name, values in orders.items():
        points = (_format_quantity(result, value) for value in values)
        rows.append(plain_row(name, *points, "", "", mark="grey"))
    columns = (Column((heading,)) for heading in (*map(str, result.percents), "ACU", "RACU"))
    return Table(_text_title(result), (NAME, *columns), tuple(rows))


def _format_quantity(result: TextMeasurement, value: float, decimals: int = 0) -> str:
    """Format a point of a curve or its ACU: a percentage, or a number in its own unit."""
    if result.quantity == "probability":
        return format_percent(value, decimals)
    return format_number(value, 2)


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


def _heat_map(result: Explanation, method: str, units: Sequence[Unit], words: tuple[str, ...]) -> HeatMap:
    scores = tuple(unit.scores[method] for unit in units)
    return HeatMap(words, scores, method=method, label=result.label, signed=method in result.signed)


def _with_gaps(units: Sequence[Unit], text: str | None = None) -> tuple[str, ...]:
    """Return the units with a blank before each that follows a gap in `text`; without it, all do."""
    words, end = [], 0
    # tokens of some models begin inside a word, where the text has no gap
    for number, unit in enumerate(units):
        gap = number > 0 if text is None else bool(text[end : unit.start])
        words.append(" " * gap + unit.text)
        end = unit.end
    return tuple(words)
