"""Explanation of a single text: words and tokens with their scores, curves beside random orders, verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import TrainedWith
from ..errors import InputError
from ..files import write_csv
from ..verdict.evidence import EqualByFields, ProbeEvidence, TextEvidence, TextMethodEvidence
from ..verdict.formats import format_number, format_percent
from ..verdict.sentences import Measured
from .plain import Rendered, facts_of

if TYPE_CHECKING:
    from pandas import DataFrame

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
        places = [*chain.from_iterable(map(spans.__getitem__, tokens))]
        pieces.append(_piece(text, min(places), max(places), tokens))
    return pieces


def piece_score(piece: Piece, scores: Sequence[float]) -> float:
    """Return the score of the piece's strongest token, with its sign."""
    return max(map(scores.__getitem__, piece.tokens), key=abs)


def strongest(scores: Sequence[float], count: int = STRONGEST_WORDS) -> list[int]:
    """Return the positions of the `count` largest absolute scores, strongest first, ties leftmost first."""
    return sorted(range(len(scores)), key=lambda number: -abs(scores[number]))[:count]


def _piece(text: str, start: int, end: int, tokens: tuple[int, ...]) -> Piece:
    return Piece(text[start:end] or BLANK, start, end, tokens)


NUMBER_DECIMALS = 2
UNVERIFIED = (
    *("percents", "orders", "mean", "lower", "upper", "erasures"),
    *("floors", "trained_with", "unread", "agreement"),
)
"""Fields that an explanation without a verdict leaves empty."""


@dataclass(frozen=True, eq=False)
class Erasure(EqualByFields):
    """Results of one method on one text; each list has a value for each percentage erased.

    Attributes:
        probability: Probability of the label; of a model that predicts numbers, the number.
        pvalues: By test, the in-distribution p-values.
        p: By test, the combined p-value of the steps below 100 %.
        acu: Area between the mean of the random orders and this curve, as a fraction or in the unit of the
            number; for `lower value` the area above that mean.
        racu: `acu` relative to that of a curve that falls at once; NaN if undefined.
        chance: Share of orders that do at least as well, among the random orders and the method's own.
    """

    probability: list[float]
    pvalues: Mapping[str, list[float]]
    p: Mapping[str, float]
    acu: float
    racu: float
    chance: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading(EqualByFields, Measured):
    """Text as the model reads it, what the model says of it, and what its check assumes.

    Attributes:
        text: The text.
        pair: The context, which is not explained; None for a single text.
        truncated: Whether the text is longer than the model can read, so that its end was left out.
        probabilities: Probability of each class (0 to 1); empty if the model predicts a number.
        value: Predicted number; None if the model chooses a class.
        tokens: The explained tokens.
        words: The words, with the numbers of their tokens.
        floors: By test, the smallest p-value that it can give.
        trained_with: Masking strategy of the training that the tests assume.
        agreement: Agreement of an adapted model with the original, as a fraction; NaN for any other model.
        device: Device that the model was evaluated on.
        precision: Data type that it was evaluated in.
    """

    text: str
    pair: str | None
    truncated: bool
    probabilities: Mapping[str, float]
    value: float | None
    tokens: tuple[Piece, ...]
    words: tuple[Piece, ...]
    floors: Mapping[str, float] = field(default_factory=dict)
    trained_with: TrainedWith = "unknown"
    agreement: float = math.nan
    device: str = "cpu"
    precision: str = "fp32"

    @property
    def prediction(self) -> str:
        """Name of the most probable class, or the predicted number as text."""
        if self.value is not None:
            return format_number(self.value, NUMBER_DECIMALS)
        # of equal probabilities the first class, as argmax has it
        return max(self.probabilities, key=self.probabilities.__getitem__)

    @property
    def _facts(self) -> dict[str, Any]:
        """Facts that the evidence has as they are."""
        facts = facts_of(self, ("floors", "trained_with", "precision", "agreement"))
        return {**facts, "truncated": float(self.truncated)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation(Reading, Rendered):
    """Scores of the words and tokens of one text for one class and, unless left out, how faithful they are.

    Notebooks and `rich.print` show a heat map, the curve of the best method, and the verdict. `words` and
    `tokens` have `text`, `start`, `end` and `scores` by method; a word has the score of its strongest token,
    including the sign.

    Attributes:
        label: Name of the explained class.
        methods: Names of the methods.
        signed: Names of the methods whose negative scores speak against the label. Scores of other
            methods only tell how important a token is.
        percents: Percentages of tokens erased, one for each step; empty if nothing was erased.
        orders: Number of random orders.
        mean: Mean of the random orders' curves, at each percentage.
        lower: 5th percentile of the random orders.
        upper: 95th percentile of the random orders.
        erasures: Results of erasing by method; empty without a verdict.
        unread: Share of the words that the tokenizer does not know (see `models.encoding`).

    Example:
        >>> explanation = fm.explain_text(clf, text, pair=pair, verify=False)
        >>> [word.text for word in explanation.words][:4]
        ['Sandra', 'moved', 'to', 'the']
    """

    label: str
    methods: tuple[str, ...] = ()
    signed: frozenset[str] = frozenset()
    percents: tuple[int, ...] = ()
    orders: int = 0
    mean: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    erasures: Mapping[str, Erasure] = field(default_factory=dict)
    unread: float = 0.0

    def __repr__(self) -> str:
        words = []
        for method in self.methods:
            [place] = strongest([word.scores[method] for word in self.words], 1)
            words.append(f"{method}: {self.words[place].text!r}")
        answer = f"; {self.verdict.headline}" if self.verified else ""
        strongest_words = ", ".join(words) or "no method"
        return f"<Explanation for {self.label!r}, strongest word by {strongest_words}{answer}>"

    @property
    def verified(self) -> bool:
        """Whether the text was erased by the methods and in random orders, which the verdict needs."""
        return bool(self.percents)

    def format(self, value: float, decimals: int = 0) -> str:
        """Format a point of a curve or its ACU: a percentage, or a number in its own unit."""
        if self.value is None:
            return format_percent(value, decimals)
        return format_number(value, NUMBER_DECIMALS)

    @property
    def evidence(self) -> TextEvidence:
        """Facts from which doubts and verdict are derived.

        Raises:
            InputError: Nothing was erased.
        """
        if not self.verified:
            raise InputError("this explanation was not verified; expected fm.explain_text with verify=True")
        methods = {}
        for name, erasure in self.erasures.items():
            steps = {}
            for test, pvalues in erasure.pvalues.items():
                steps[test] = dict(zip(self.percents, pvalues, strict=True))
            methods[name] = TextMethodEvidence(erasure.acu, erasure.chance, erasure.p, steps)
        return TextEvidence(methods=methods, unread=self.unread, **self._facts)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values, including the prediction and, if there is one, the verdict."""
        values = asdict(self) | {"prediction": self.prediction, "methods": list(self.methods)}
        del values["signed"]
        for piece in (*values["words"], *values["tokens"]):
            del piece["tokens"]
        if not self.verified:
            for name in UNVERIFIED:
                del values[name]
            return values
        verdict = self.verdict
        verdicts = {answer.question: {"mood": answer.mood, "text": answer.text} for answer in verdict.answers}
        summary = {"mood": verdict.summary.mood, "text": verdict.summary.text}
        return values | {
            "quantity": "probability" if self.value is None else "number",
            "doubts": list(map(asdict, verdict.doubts)),
            "verdicts": verdicts,
            "summary": summary,
        }

    def rows(self, row: int = 0) -> list[dict[str, Any]]:
        """Return a row of a table for each word and method; `row` is the number of the text."""
        rows = []
        for word in self.words:
            place = {"word": word.text, "start": word.start, "end": word.end}
            for method, score in word.scores.items():
                text = {"row": row, "prediction": self.prediction, "class": self.label, "method": method}
                rows.append({**text, **place, "score": score})
        return rows

    def table(self) -> DataFrame:
        """Return a frame with a row for each method.

        Columns: method, acu and racu (see `Erasure`), chance (share of orders as good), `p_…` for each test.
        """
        import pandas as pd

        rows = []
        for name, erasure in self.erasures.items():
            row = {"method": name, "acu": erasure.acu, "racu": erasure.racu, "chance": erasure.chance}
            for test, p in erasure.p.items():
                row[f"p_{test}"] = p
            rows.append(row)
        return pd.DataFrame(rows)

    def to_csv(self, path: str | Path) -> None:
        """Write the scores of the words to a CSV file."""
        import pandas as pd

        write_csv(pd.DataFrame(self.rows()), path)


@dataclass(frozen=True, kw_only=True, eq=False)
class Probe(Reading):
    """Prediction for a text with some of its explained tokens masked.

    Attributes:
        masked: Numbers of the masked tokens, counted among the explained tokens.
        pvalues: In-distribution p-value by test; empty without tests.
    """

    masked: tuple[int, ...]
    pvalues: Mapping[str, float]

    @property
    def evidence(self) -> ProbeEvidence:
        """Facts from which doubts and verdict are derived."""
        return ProbeEvidence(p=self.pvalues, masked=bool(self.masked), **self._facts)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values, including doubts and verdict."""
        [answer] = self.verdict.answers
        values = asdict(self) | {"prediction": self.prediction}
        for piece in (*values["words"], *values["tokens"]):
            del piece["scores"]
        doubts = list(map(asdict, self.doubts))
        return {**values, "doubts": doubts, "verdict": {"mood": answer.mood, "text": answer.text}}
