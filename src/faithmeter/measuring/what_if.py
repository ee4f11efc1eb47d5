"""Prediction of a text with chosen tokens masked, and its in-distribution p-values."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from ..config import TrainedWith
from ..errors import InputError
from ..models.evaluator import Evaluator, Model
from ..models.tokens import Batch
from ..verdict import Measured, ProbeEvidence
from .erase import states
from .explanation import name_prediction, read_prediction
from .pieces import Piece, token_pieces, word_pieces
from .plan import Tests, agreement_of, floors_of, trained_with_of


@dataclass(frozen=True)
class Probe(Measured):
    """Prediction for a text with some of its explained tokens masked.

    Attributes:
        text: The explained text.
        pair: The context, or None.
        truncated: Whether the model could not read the end of the text.
        masked: Numbers of the masked tokens, counted among the explained tokens.
        prediction: Name of the most probable class, or the predicted number as text.
        probabilities: Probability of each class (0 to 1); empty if the model predicts a number.
        pvalues: In-distribution p-value by test; empty without tests.
        floors: Smallest possible p-value by test.
        words: Words of the text, with the numbers of their tokens.
        tokens: Explained tokens of the text.
        trained_with: Masking strategy of the model's training, as the tests assume it.
        value: Predicted number; None if the model chooses a class.
    """

    text: str
    pair: str | None
    truncated: bool
    masked: tuple[int, ...]
    prediction: str
    probabilities: Mapping[str, float]
    pvalues: Mapping[str, float]
    floors: Mapping[str, float]
    words: tuple[Piece, ...]
    tokens: tuple[Piece, ...]
    trained_with: TrainedWith = "unknown"
    device: str = "cpu"
    precision: str = "fp32"
    agreement: float = math.nan  # of an adapted model with the original
    value: float | None = None

    @property
    def evidence(self) -> ProbeEvidence:
        """Facts from which doubts and verdict are derived."""
        return ProbeEvidence(
            p=self.pvalues,
            masked=bool(self.masked),
            floors=self.floors,
            trained_with=self.trained_with,
            agreement=self.agreement,
            truncated=float(self.truncated),
            precision=self.precision,
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values, including doubts and verdict."""
        [answer] = self.verdict.answers
        doubts = [asdict(doubt) for doubt in self.doubts]
        return {**asdict(self), "doubts": doubts, "verdict": {"mood": answer.mood, "text": answer.text}}


def probe_text(
    clf: Model,
    text: str,
    *,
    pair: str | None = None,
    masked: Collection[int] = (),
    tests: Tests | None = None,
) -> Probe:
    """Classify a text with some of its explained tokens masked.

    Args:
        clf: The classifier.
        text: The explained text.
        pair: The context, for a model that reads two texts.
        masked: Numbers of the explained tokens to mask. To mask a word, pass the `tokens` of that word
            in an unmasked probe.
        tests: In-distribution tests by name, from `fit_tests`.

    Returns:
        The prediction, probabilities, p-values, and positions of words and tokens.

    Raises:
        InputError: A number in `masked` does not belong to an explained token.
    """
    evaluator = Evaluator.of(clf)
    batch: Batch = evaluator.encode([text], None if pair is None else [pair])
    layout = batch.layouts[0]
    positions = batch.explained[0].nonzero()[:, 0]  # [n]
    numbers = sorted(set(masked))
    if numbers and not 0 <= numbers[0] <= numbers[-1] < len(positions):
        raise InputError(
            f"masked holds {numbers[0] if numbers[0] < 0 else numbers[-1]}; expected numbers of explained "
            f"tokens, 0 to {len(positions) - 1}: this text has {len(positions)}"
        )
    where = torch.zeros_like(batch.explained)
    # numbers count explained tokens, positions all tokens of the row
    where[0, positions[numbers]] = True
    predicted, pvalues = _evaluate(evaluator, batch.masked(where, evaluator.mask_id), tests or {})
    return Probe(
        text=layout.text,
        pair=pair,
        truncated=layout.truncated,
        masked=tuple(numbers),
        prediction=name_prediction(**predicted),
        **predicted,
        pvalues=pvalues,
        floors=floors_of(tests),
        words=tuple(word_pieces(layout.text, layout.spans, layout.words)),
        tokens=tuple(token_pieces(layout.text, layout.spans)),
        trained_with=trained_with_of(tests),
        device=str(evaluator.device),
        precision=evaluator.precision,
        agreement=agreement_of(evaluator),
    )


def _evaluate(evaluator: Evaluator, batch: Batch, tests: Tests) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the class probabilities or the number, and the p-value by test, for a batch of one text."""
    logits, features = states(evaluator, batch) if tests else (evaluator.logits(batch), torch.empty(0))
    pvalues = {name: float(test.pvalues(features.numpy())[0]) for name, test in tests.items()}
    return read_prediction(evaluator, logits[0]), pvalues
