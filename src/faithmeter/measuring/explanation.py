"""Explanations of single texts: the score of each word and token by several methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ..config import UnitName
from ..errors import InputError
from ..files import write_csv
from ..methods.registry import Method, explain, parse
from ..models.classes import class_number
from ..models.evaluator import Evaluator, Model
from ..models.tokens import Batch, in_units
from ..verdict.formats import format_number
from .pieces import Piece, piece_score, strongest, token_pieces, word_pieces
from .rendered import Rendered


@dataclass(frozen=True)
class Unit:
    """A word or token of the explained text.

    Attributes:
        text: The characters, or a placeholder if there are none.
        start: Position of the first character in the text.
        end: Position after the last character.
        scores: Score by method.
    """

    text: str
    start: int
    end: int
    scores: Mapping[str, float]


@dataclass(frozen=True)
class Explanation(Rendered):
    """Scores of the words and tokens of one text for one class.

    Notebooks and `rich.print` show it as a heat map.

    Attributes:
        text: The explained text.
        pair: The context, which is not explained; None for a single text.
        truncated: Whether the text is longer than the model can read, so that its end was left out.
        label: Name of the explained class.
        probabilities: Probability of each class (0 to 1); empty if the model predicts a number.
        methods: Names of the methods.
        signed: Names of the methods whose negative scores speak against the label. Scores of other
            methods only tell how important a token is.
        tokens: The explained tokens, with `text`, `start`, `end` and `scores` by method.
        words: The words, each with the score of its strongest token, including the sign.
        device: Device that the model was evaluated on.
        precision: Data type that it was evaluated in.
        value: Predicted number; None if the model chooses a class.

    Example:
        >>> explanation = fm.explain_text(clf, text, pair=pair)
        >>> [word.text for word in explanation.words][:4]
        ['Sandra', 'moved', 'to', 'the']
    """

    text: str
    pair: str | None
    truncated: bool
    label: str
    probabilities: Mapping[str, float]
    methods: tuple[str, ...]
    signed: frozenset[str]
    tokens: tuple[Unit, ...]
    words: tuple[Unit, ...]
    device: str = "cpu"
    precision: str = "fp32"
    value: float | None = None

    def __repr__(self) -> str:
        words = []
        for method in self.methods:
            [place] = strongest([word.scores[method] for word in self.words], 1)
            words.append(f"{method}: {self.words[place].text!r}")
        return f"<Explanation for {self.label!r}, strongest word by {', '.join(words) or 'no method'}>"

    @property
    def prediction(self) -> str:
        """Name of the most probable class, or the predicted number as text."""
        return name_prediction(self.probabilities, self.value)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values, including the prediction."""
        units = {}
        for name, own in (("words", self.words), ("tokens", self.tokens)):
            units[name] = [{**vars(unit), "scores": dict(unit.scores)} for unit in own]
        return {
            "text": self.text,
            "pair": self.pair,
            "truncated": self.truncated,
            "label": self.label,
            "prediction": self.prediction,
            "probabilities": dict(self.probabilities),
            "value": self.value,
            "methods": list(self.methods),
            "device": self.device,
            "precision": self.precision,
            **units,
        }

    def rows(self, row: int = 0) -> list[dict[str, Any]]:
        """Return a row of a table for each word and method; `row` is the number of the text."""
        text = {"row": row, "prediction": self.prediction, "class": self.label}
        return [
            {
                **text,
                "method": method,
                "word": word.text,
                "start": word.start,
                "end": word.end,
                "score": score,
            }
            for word in self.words
            for method, score in word.scores.items()
        ]

    def to_csv(self, path: str | Path) -> None:
        """Write the scores of the words to a CSV file."""
        import pandas as pd

        write_csv(pd.DataFrame(self.rows()), path)


def explain_text(
    clf: Model,
    text: str,
    *,
    pair: str | None = None,
    methods: Sequence[str | Method] = ("loo-sign",),
    label: str | int | None = None,
    unit: UnitName = "token",
) -> Explanation:
    """Explain the prediction of one text.

    Args:
        clf: The classifier.
        text: The text to explain.
        pair: The context, for a model that reads two texts.
        methods: Methods, or their names with options in brackets, such as `"beam(width=20)"`.
        label: Name or number of the class to explain; None explains the predicted class. For a model that
            predicts a number, the classes are `lower value` and `higher value`, and None explains the
            side of 0 on which the number lies.
        unit: What is scored as one piece: token, word or sentence.

    Returns:
        The score of each word and token by each method.

    Raises:
        InputError: The text is empty, or a method or the label is unknown.

    Example:
        >>> explanation = fm.explain_text(clf, text, pair=pair, methods=["loo-sign", "grad-l2"])
        >>> explanation.methods
        ('loo-sign', 'grad-l2')
    """
    pairs = None if pair is None else [pair]
    return explain_texts(clf, [text], pairs=pairs, methods=methods, labels=[label], unit=unit)[0]


def explain_texts(
    clf: Model,
    texts: Sequence[str],
    *,
    pairs: Sequence[str] | None = None,
    methods: Sequence[str | Method] = ("loo-sign",),
    labels: Sequence[str | int | None] | None = None,
    unit: UnitName = "token",
) -> list[Explanation]:
    """Explain the predictions of several texts in one batch.

    Args:
        clf: The classifier.
        texts: The texts to explain.
        pairs: The context of each text, for a model that reads two texts.
        methods: Methods, or their names.
        labels: Class to explain for each text; None explains the predicted class.

    Returns:
        An explanation for each text, as `explain_text` returns it.

    Raises:
        InputError: A text is empty, a method or label is unknown, or the numbers of texts and labels differ.
    """
    clf = Evaluator.of(clf)
    labels = [None] * len(texts) if labels is None else labels
    # a shorter list would silently explain other classes
    if len(labels) != len(texts):
        raise InputError(f"{len(texts)} texts with {len(labels)} labels; expected one label for each text")
    batch: Batch = in_units(clf.encode(texts, pairs), unit)
    logits = clf.logits(batch)  # [B, C]
    classes: list[int] = logits.argmax(dim=1).tolist()
    for row, label in enumerate(labels):
        if label is not None:
            classes[row] = class_number(clf.labels, label)
    parsed = {str(method): method for method in map(parse, methods)}
    scores = {name: explain(clf, batch, classes, method) for name, method in parsed.items()}
    explanations = []
    for row, layout in enumerate(layout.of_units for layout in batch.layouts):
        positions = batch.explained[row].nonzero()[:, 0].tolist()
        of_row = {method: values[row, positions].tolist() for method, values in scores.items()}
        explanations.append(
            Explanation(
                text=layout.text,
                pair=layout.pair,
                truncated=layout.truncated,
                label=clf.labels[classes[row]],
                **read_prediction(clf, logits[row]),
                methods=tuple(parsed),
                signed=frozenset(name for name, method in parsed.items() if method.signed),
                tokens=_units(token_pieces(layout.text, layout.spans), of_row),
                words=_units(word_pieces(layout.text, layout.spans, layout.words), of_row),
                device=str(clf.device),
                precision=clf.precision,
            )
        )
    return explanations


def correlate_scores(one: Tensor, other: Tensor, batch: Batch) -> list[float]:
    """Return the rank correlation of two scores [B, T] of the units of each text.

    A text whose units have all the same score is left out: it has no order.
    """
    from scipy.stats import spearmanr

    correlations = []
    for row, explained in enumerate(batch.explained):
        left, right = (scores[row, explained].double().numpy() for scores in (one, other))
        if np.ptp(left) and np.ptp(right):
            correlations.append(float(spearmanr(left, right).statistic))
    return correlations


def read_prediction(clf: Evaluator, logits: Tensor) -> dict[str, Any]:
    """Return the `probabilities` and the `value` of a text from its logits [C]; one of them is empty."""
    if clf.predicts_number:
        return {"probabilities": {}, "value": float(logits[1])}
    return {
        "probabilities": dict(zip(clf.labels, logits.softmax(dim=0).tolist(), strict=True)),
        "value": None,
    }


def name_prediction(probabilities: Mapping[str, float], value: float | None) -> str:
    """Return the name of the most probable class, or the number as text."""
    if value is not None:
        return format_number(value, 2)
    # of equal probabilities the first class, as argmax has it
    return max(probabilities, key=probabilities.__getitem__)


def _units(pieces: Sequence[Piece], scores: Mapping[str, Sequence[float]]) -> tuple[Unit, ...]:
    """Return the pieces with their score by method, given the scores of the explained tokens."""
    units = []
    for piece in pieces:
        own = {method: piece_score(piece, of_tokens) for method, of_tokens in scores.items()}
        units.append(Unit(piece.text, piece.start, piece.end, own))
    return tuple(units)
