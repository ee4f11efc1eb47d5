"""Explanation: what the words and tokens of one text add to a class, by several methods, and its looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InputError
from ..methods.registry import Method, explain, parse
from ..models.classifier import class_number
from ..models.evaluator import Evaluator, Model
from ..models.tokens import encode, token_spans

if TYPE_CHECKING:
    from rich.console import RenderableType

FOR, AGAINST, IMPORTANT = (214, 69, 65), (58, 110, 195), (240, 173, 0)
"""Red and blue, and amber where scores have no sign, as RGB."""
FAINT = 0.1
"""Scores below this share of a text's strongest one stay uncolored."""
TOP = 3
"""Words whose scores are spelled out, for those who see no colors."""


class Part(NamedTuple):
    """A piece of text on a color, the fuller the nearer its strength is to 1; `title` tells the score."""

    text: str
    strength: float = 0.0
    color: tuple[int, int, int] = IMPORTANT
    title: str = ""


@dataclass(frozen=True)
class Unit:
    """A word or a token of the explained text, and its score by each method."""

    text: str
    start: int
    end: int
    scores: Mapping[str, float]


@dataclass(frozen=True)
class Explanation:
    """The scores of one text for the class `label`. It shows itself in a notebook and in a rich console.

    A word is what the tokenizer splits into tokens; its score is that of its strongest token, sign included.
    """

    text: str
    pair: str | None
    truncated: bool
    label: str
    probabilities: Mapping[str, float]
    methods: tuple[str, ...]
    signed: frozenset[str]
    """Those methods whose negative scores speak against the label; other scores are only more or less."""
    tokens: tuple[Unit, ...]
    words: tuple[Unit, ...]

    @property
    def prediction(self) -> str:
        return max(self.probabilities, key=self.probabilities.__getitem__)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        shown = {"text": self.text, "pair": self.pair, "truncated": self.truncated, "label": self.label}
        units = {"words": self.words, "tokens": self.tokens}
        return {
            **shown,
            "prediction": self.prediction,
            "probabilities": dict(self.probabilities),
            "methods": list(self.methods),
            **{name: [{**vars(unit), "scores": dict(unit.scores)} for unit in units[name]] for name in units},
        }

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><th style='text-align:left;padding-right:1em'>{escape(method)}</th>"
            f"<td style='color:gray;padding-right:1em'>{kind}</td><td>{''.join(map(_html, parts))}</td></tr>"
            for method, kind, parts in self._lines()
        ]
        legend = " ".join(map(_html, self._legend()))
        facts = "".join(f"<div>{escape(fact)}</div>" for fact in self._facts())
        return (
            f"<div style='font-family:sans-serif;line-height:1.7'>{facts}<table>{''.join(rows)}</table>"
            f"<div style='font-size:smaller'>{legend}</div></div>"
        )

    def __rich__(self) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        for method, kind, parts in self._lines():
            table.add_row(Text(method, "bold"), Text(kind, "dim"), Text.assemble(*map(_terminal, parts)))
        legend = Text(" ").join(Text(*_terminal(part)) for part in self._legend())
        return Group(*map(Text, self._facts()), table, legend)

    def _facts(self) -> list[str]:
        chances = ", ".join(f"{name} {p:.1%}" for name, p in self.probabilities.items())
        facts = [f"prediction {self.prediction} ({chances})"]
        if self.pair is not None:
            facts.append(f"context: {self.pair}")
        if self.truncated:
            facts.append("the text is longer than the model can read: its end was left out")
        return facts

    def _legend(self) -> Iterator[Part]:
        if self.signed:
            yield Part(f" for {self.label} ", 1.0, FOR)
            yield Part(f" against {self.label} ", 1.0, AGAINST)
        if len(self.signed) < len(self.methods):
            yield Part(" important ", 1.0, IMPORTANT)
        yield Part("the fuller the color, the stronger")

    def _lines(self) -> Iterator[tuple[str, str, list[Part]]]:
        """(method, what is shown, parts): tokens only where they are not the words themselves."""
        for method in self.methods:
            signed = method in self.signed
            yield method, "words", list(_parts(self.words, method, signed, self.text))
            if len(self.tokens) != len(self.words):
                yield "", "tokens", list(_parts(self.tokens, method, signed))
            strongest = sorted(self.words, key=lambda word: -abs(word.scores[method]))[:TOP]
            spelled = ", ".join(f"{word.text} {_number(word.scores[method], signed)}" for word in strongest)
            yield "", "strongest", [Part(spelled)]


def explain_text(
    clf: Model,
    text: str,
    *,
    pair: str | None = None,
    methods: Sequence[str | Method] = ("loo-sign",),
    label: str | int | None = None,
) -> Explanation:
    """Why the model gives `text` this label; without a label, why it predicts what it predicts."""
    pairs = None if pair is None else [pair]
    return explain_texts(clf, [text], pairs=pairs, methods=methods, labels=[label])[0]


def explain_texts(
    clf: Model,
    texts: Sequence[str],
    *,
    pairs: Sequence[str] | None = None,
    methods: Sequence[str | Method] = ("loo-sign",),
    labels: Sequence[str | int | None] | None = None,
) -> list[Explanation]:
    """An explanation of each text. A label is a class's name or number; None means the predicted class."""
    clf = Evaluator.of(clf)
    labels = [None] * len(texts) if labels is None else labels
    if len(labels) != len(texts):
        raise InputError(f"{len(texts)} texts with {len(labels)} labels; expected one label for each text")
    batch = clf.encode(texts, pairs)
    probabilities = clf.logits(batch).softmax(dim=1)  # [B, C]
    predicted = probabilities.argmax(dim=1).tolist()
    classes = [
        guess if label is None else class_number(clf.labels, label)
        for guess, label in zip(predicted, labels, strict=True)
    ]
    parsed = {str(method): method for method in map(parse, methods)}
    scores = {name: explain(clf, batch, classes, method) for name, method in parsed.items()}
    truncated = encode(clf.tokenizer, texts, pairs, max_length=clf.max_length)["truncated"]
    explanations = []
    for row, text in enumerate(texts):
        pair = None if pairs is None else pairs[row]
        positions = batch.explained[row].nonzero()[:, 0].tolist()
        text, spans, words = token_spans(clf, text, pair, positions, batch.input_ids[row].tolist())
        tokens = [
            _unit(text, *span, {method: scores[method][row, position].item() for method in scores})
            for span, position in zip(spans, positions, strict=True)
        ]
        explanations.append(
            Explanation(
                text=text,
                pair=pair,
                truncated=truncated[row],
                label=clf.labels[classes[row]],
                probabilities=dict(zip(clf.labels, probabilities[row].tolist(), strict=True)),
                methods=tuple(parsed),
                signed=frozenset(name for name, method in parsed.items() if method.signed),
                tokens=tuple(tokens),
                words=tuple(_merged(text, tokens, words)),
            )
        )
    return explanations


def page(explanations: Iterable[Explanation], *, title: str = "Explanations") -> str:
    """A self-contained HTML page of explanations."""
    body = "<hr>".join(explanation._repr_html_() for explanation in explanations)
    head = f"<meta charset='utf-8'><title>{escape(title)}</title>"
    return f"<!doctype html><html lang='en'><head>{head}</head><body>{body}</body></html>\n"


def _unit(text: str, start: int, end: int, scores: Mapping[str, float]) -> Unit:
    return Unit(text[start:end] or "␣", start, end, scores)  # a token may be a blank


def _merged(text: str, tokens: Sequence[Unit], words: Sequence[int]) -> Iterator[Unit]:
    """Words out of tokens: neighbors with the same word number."""
    groups: list[list[Unit]] = []
    for i, token in enumerate(tokens):
        if i and words[i] == words[i - 1]:
            groups[-1].append(token)
        else:
            groups.append([token])
    for group in groups:
        start, end = min(token.start for token in group), max(token.end for token in group)
        scores = {m: max((token.scores[m] for token in group), key=abs) for m in group[0].scores}
        yield _unit(text, start, end, scores)


def _parts(units: Sequence[Unit], method: str, signed: bool, text: str | None = None) -> Iterator[Part]:
    """Units in a row: a blank between them where the text has one, or, without a text, everywhere."""
    strongest = max(abs(unit.scores[method]) for unit in units) or 1.0
    before = 0
    for number, unit in enumerate(units):
        blank = number > 0 if text is None else bool(text[before : unit.start])
        score = unit.scores[method]
        color = (FOR if score > 0 else AGAINST) if signed else IMPORTANT
        yield Part(" " * blank)
        yield Part(unit.text, abs(score) / strongest, color, _number(score, signed))
        before = unit.end


def _number(score: float, signed: bool) -> str:
    return f"{score:{'+' if signed else ''}.3g}"


def _html(part: Part) -> str:
    if not part.strength:
        return escape(part.text)
    channels = ",".join(map(str, part.color))
    letters = ";color:#fff" if part.color == AGAINST and part.strength > 0.8 else ""
    style = f"background:rgba({channels},{part.strength:.2f});border-radius:3px{letters}"
    return f"<span style='{style}' title='{part.title}'>{escape(part.text)}</span>"


def _terminal(part: Part) -> tuple[str, str]:
    """Text and style. The color is paler the weaker the score is, but never so pale that it is lost."""
    if part.strength < FAINT:
        return part.text, ""
    depth = 0.25 + 0.75 * part.strength
    mixed = [round(255 + (channel - 255) * depth) for channel in part.color]
    # spelled out, as a terminal's own "black" may be gray; blue at its fullest wants white letters
    letters = "#ffffff" if part.color == AGAINST and depth >= 0.8 else "#000000"
    return part.text, letters + " on #{:02x}{:02x}{:02x}".format(*mixed)
