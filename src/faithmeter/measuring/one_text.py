"""Explaining, erasing and probing of single texts; `explanation` holds what comes out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..config import BASELINE, UnitName
from ..errors import InputError
from ..methods.registry import Method, explain, parse
from ..models.classes import class_number
from ..models.encoding import share_unread
from ..models.evaluator import Evaluator, Model
from ..models.masks import PERCENTS
from ..models.tokens import Batch, in_units
from ..stats.curves import Curve, acu, racu
from ..stats.pvalues import of_steps
from ..verdict.evidence import MIN_ORDERS, ROUNDING
from .erase import Scored, states, trace_erasure, trace_scored
from .explanation import Erasure, Explanation, Piece, Probe, piece_score, token_pieces, word_pieces
from .plan import Tests, agreement_of, floors_of, require_tests, trained_with_of
from .trace import PHASES, Trace

ORDERS = 100
"""Default number of random orders."""


@dataclass(frozen=True)
class Trial:
    """How a text is erased to find out whether its explanation is faithful.

    Attributes:
        orders: Number of random orders to compare with.
        seed: Seed of the random orders.
        percents: Percentages of units to erase.
        tests: In-distribution tests; without them no area is trusted.
        unit: What is erased as one piece: that which was scored.
    """

    orders: int = ORDERS
    seed: int = 0
    percents: Sequence[int] = PERCENTS
    tests: Tests = field(default_factory=dict)
    unit: UnitName = "token"

    def __post_init__(self) -> None:
        require_tests(self.tests)
        if self.orders < MIN_ORDERS:
            few = f"expected at least {MIN_ORDERS}: fewer cannot tell a method from chance"
            raise InputError(f"orders is {self.orders}; {few}")


def explain_texts(
    clf: Model,
    tokens: Batch,
    methods: Sequence[str | Method] = ("loo-sign",),
    labels: Sequence[str | int | None] | None = None,
    unit: UnitName = "token",
) -> list[Explanation]:
    """Explain the predictions of several texts in one batch, without a verdict.

    Args:
        clf: The classifier.
        tokens: The texts, encoded.
        methods: Methods, or their names.
        labels: Class to explain for each text; None explains the predicted class.
        unit: What is scored as one piece.

    Raises:
        InputError: A method or label is unknown, or the numbers of texts and labels differ.
    """
    clf, batch = Evaluator.of(clf), in_units(tokens, unit)
    labels = [None] * len(batch) if labels is None else labels
    # a shorter list would silently explain other classes
    if len(labels) != len(batch):
        raise InputError(f"{len(batch)} texts with {len(labels)} labels; expected one label for each text")
    logits = clf.logits(batch)  # [B, C]
    classes: list[int] = logits.argmax(dim=1).tolist()
    for row, label in enumerate(labels):
        if label is not None:
            classes[row] = class_number(clf.labels, label)
    parsed, scores, signed = _parse_by_name(methods), {}, set()
    for name, method in parsed.items():
        scores[name] = explain(clf, batch, classes, method)
        if method.signed:
            signed.add(name)
    explanations = []
    for row, layout in enumerate(batch.layouts):
        units, explained = layout.of_units, batch.explained[row]
        of_row = {name: values[row, explained].tolist() for name, values in scores.items()}
        explanation = Explanation(
            text=units.text,
            pair=units.pair,
            truncated=units.truncated,
            label=clf.labels[classes[row]],
            **_read_prediction(clf, logits[row]),
            tokens=_with_scores(token_pieces(units.text, units.spans), of_row),
            words=_with_scores(word_pieces(units.text, units.spans, units.words), of_row),
            methods=tuple(parsed),
            signed=frozenset(signed),
            device=str(clf.device),
            precision=clf.precision,
        )
        explanations.append(explanation)
    return explanations


def verify_text(
    clf: Model,
    tokens: Batch,
    explanation: Explanation,
    methods: Sequence[str | Method],
    trial: Trial,
    progress: Callable[[str, int, int], object] | None = None,
) -> Explanation:
    """Return an explanation with its verdict, after erasing the text by its methods and in random orders.

    Args:
        clf: The classifier, best an `Evaluator` that has explained the text: evaluations are shared.
        tokens: The text, encoded.
        explanation: The explanation, of `explain_texts`.
        methods: The methods of the explanation.
        trial: Random orders, steps and tests.
        progress: Called after each method with its name, the number of methods finished, and the total.
    """
    # one evaluator for all: the methods and the random orders share inputs
    evaluator, percents = Evaluator.of(clf), trial.percents
    parsed = _parse_by_name(methods)
    batch, number = in_units(tokens, trial.unit), class_number(evaluator.labels, explanation.label)
    # one copy of the text for each order, numbered so that each draws an order of its own
    copies = replace(batch[torch.zeros(trial.orders, dtype=torch.long)], index=torch.arange(trial.orders))
    # the same orders whatever the methods, so that their chances compare
    random, labels = parse(f"{BASELINE}(seed={trial.seed})"), torch.full((trial.orders,), number)
    curves = _values(trace_erasure(evaluator, copies, labels, random, percents, {})).T
    done = progress or (lambda *_: None)
    done(BASELINE, 1, 1 + len(parsed))
    # what speaks for the lower value raises the number when it is erased
    sign = -1 if evaluator.predicts_number and number == 0 else 1
    erasures = {}
    for count, (name, method) in enumerate(parsed.items(), start=2):
        scores = torch.zeros(batch.explained.shape, dtype=torch.float64)  # [1, T]
        for place, token in zip(batch.explained.nonzero().tolist(), explanation.tokens, strict=True):
            scores[*place] = token.scores[name]
        scored = Scored(batch, labels[:1], method, scores)
        trace = trace_scored(evaluator, scored, percents, trial.tests, dict.fromkeys(PHASES, 0.0))
        erasures[name] = _compare(trace, curves, sign)
        done(name, count, 1 + len(parsed))
    lower, upper = np.quantile(curves, [0.05, 0.95], axis=1)
    return replace(
        explanation,
        percents=tuple(percents),
        orders=trial.orders,
        mean=curves.mean(axis=1).tolist(),
        lower=lower.tolist(),
        upper=upper.tolist(),
        erasures=erasures,
        floors=floors_of(trial.tests),
        trained_with=trained_with_of(trial.tests),
        unread=_share_unread(evaluator, tokens),
        agreement=agreement_of(evaluator),
    )


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
    variant = batch.masked(where, evaluator.mask_id)
    pvalues = {}
    if tests:
        logits, features = states(evaluator, variant)
        for name, test in tests.items():
            pvalues[name] = float(test.pvalues(features.numpy())[0])
    else:  # logits alone come from the cache
        logits = evaluator.logits(variant)
    return Probe(
        text=layout.text,
        pair=pair,
        truncated=layout.truncated,
        masked=tuple(numbers),
        **_read_prediction(evaluator, logits[0]),
        pvalues=pvalues,
        floors=floors_of(tests),
        words=tuple(word_pieces(layout.text, layout.spans, layout.words)),
        tokens=tuple(token_pieces(layout.text, layout.spans)),
        trained_with=trained_with_of(tests),
        device=str(evaluator.device),
        precision=evaluator.precision,
        agreement=agreement_of(evaluator),
    )


def _parse_by_name(methods: Sequence[str | Method]) -> dict[str, Method]:
    return {str(method): method for method in map(parse, methods)}


def _with_scores(pieces: Sequence[Piece], scores: Mapping[str, Sequence[float]]) -> tuple[Piece, ...]:
    """Return the pieces with their score by method, given the scores of the explained units."""
    scored = []
    for piece in pieces:
        own = {method: piece_score(piece, of_units) for method, of_units in scores.items()}
        scored.append(replace(piece, scores=own))
    return tuple(scored)


def _read_prediction(clf: Evaluator, logits: Tensor) -> dict[str, Any]:
    """Return the `probabilities` and the `value` of a text from its logits [C]; one of them is empty."""
    if clf.predicts_number:
        return {"probabilities": {}, "value": float(logits[1])}
    shares = dict(zip(clf.labels, logits.softmax(dim=0).tolist(), strict=True))
    return {"probabilities": shares, "value": None}


def _share_unread(clf: Evaluator, batch: Batch) -> float:
    """Return the share of the words of a single text that the model's tokenizer, if any, does not know."""
    tokenizer = getattr(clf, "tokenizer", None)
    if tokenizer is None or not batch.layouts:
        return 0.0
    return share_unread(batch.layouts[0], batch.input_ids[0][batch.explained[0]], tokenizer.unk_token_id)


def _values(trace: Trace) -> NDArray[np.float64]:
    """Return the quantity [N, S] whose curves are compared: the label's probability, or the number."""
    return trace.predictions if trace.numbers else trace.probabilities


def _compare(trace: Trace, curves: NDArray[np.float64], sign: int) -> Erasure:
    """Return a method's results from its trace of one text and the curves of random orders, [S, orders].

    With the sign -1, the area above the random orders counts.
    """

    def curve(values: NDArray[np.float64]) -> Curve:
        return Curve(trace.percents, tuple(sign * values), "probability", 1)

    values = _values(trace)[0]
    own, mean = curve(values), curve(curves.mean(axis=1))
    area = acu(own, mean)
    # equal areas differ in the last bits of sums; the method itself is one of the orders, so chance > 0
    as_good = sum(acu(curve(order), mean) >= area - ROUNDING for order in curves.T)
    pvalues, combined = {}, {}
    for test, steps in trace.pvalues.items():
        pvalues[test] = steps[0].tolist()
        combined[test] = of_steps(dict(zip(trace.percents, pvalues[test], strict=True)))
    chance = (1 + as_good) / (1 + curves.shape[1])
    return Erasure(values.tolist(), pvalues, combined, area, racu(own, mean), chance)
