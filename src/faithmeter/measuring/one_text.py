"""Measurement of one text: the probability of its label, or its number, compared with random orders."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ..config import BASELINE, TrainedWith, UnitName
from ..errors import InputError
from ..files import write_csv
from ..methods.registry import parse
from ..models.classes import class_number
from ..models.encoding import share_unread
from ..models.evaluator import Evaluator, Model
from ..models.masks import PERCENTS
from ..models.tokens import Batch, in_units
from ..stats.curves import Curve, acu, racu
from ..stats.intervals import Interval
from ..stats.pvalues import of_steps
from ..verdict import MIN_ORDERS, ROUNDING, Measured, TextEvidence, TextMethodEvidence
from ..verdict.equality import EqualByFields
from ..verdict.formats import format_number, format_percent
from .erase import trace_erasure
from .plan import Names, Tests, agreement_of, floors_of, parse_methods, trained_with_of
from .rendered import Rendered
from .trace import Trace

if TYPE_CHECKING:
    from pandas import DataFrame

Quantity = Literal["probability", "number"]
NUMBER_DECIMALS = 2
ORDERS = 100
"""Default number of random orders."""


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


@dataclass(frozen=True, eq=False)
class TextMeasurement(EqualByFields, Measured, Rendered):
    """Measurement of several methods on one text; `rich.print` shows it as a table.

    Attributes:
        text: The explained text.
        pair: The context, or None.
        label: Name of the measured class.
        percents: Percentages of tokens erased, one for each step.
        orders: Number of random orders.
        mean: Mean of the random orders' curves, at each percentage.
        lower: 5th percentile of the random orders.
        upper: 95th percentile of the random orders.
        floors: By test, the smallest p-value that it can give.
        methods: Results by method.
        trained_with: Masking strategy of the training that the tests assume.
        truncated: Whether the model could not read the end of the text.
        unread: Share of the words that the tokenizer does not know (see `models.vocabulary`).
        device: Device that the model was evaluated on.
        precision: Data type that it was evaluated in.
        agreement: Agreement of an adapted model with the original, as a fraction; NaN for any other model.
        quantity: `probability`, or `number` for a model that predicts numbers.

    Example:
        >>> result = fm.measure_text(clf, "Mary went to the garden.", methods=["loo-sign"], orders=19)
        >>> result.methods["loo-sign"].acu <= 1
        True
    """

    text: str
    pair: str | None
    label: str
    percents: tuple[int, ...]
    orders: int
    mean: list[float]
    lower: list[float]
    upper: list[float]
    floors: Mapping[str, float]
    methods: Mapping[str, Erasure]
    trained_with: TrainedWith = "unknown"
    truncated: bool = False
    unread: float = 0.0
    device: str = "cpu"
    precision: str = "fp32"
    agreement: float = math.nan
    quantity: Quantity = "probability"

    def __repr__(self) -> str:
        areas = ", ".join(f"{name} {self._format(acu, 1)}" for name, (acu, _) in self.areas.items())
        unit = " in %" if self.quantity == "probability" else ""
        return f"<TextMeasurement of {self.label!r} against {self.orders} random orders, ACU{unit}: {areas}>"

    def _format(self, value: float, decimals: int = 0) -> str:
        """Format a point of a curve or its ACU: a percentage, or a number in its own unit."""
        if self.quantity == "probability":
            return format_percent(value, decimals)
        return format_number(value, NUMBER_DECIMALS)

    def table(self) -> DataFrame:
        """Return a frame with a row for each method.

        Columns: method, acu and racu (see `Erasure`), chance (share of orders as good), `p_…` for each test.
        """
        import pandas as pd

        rows = []
        for name, erasure in self.methods.items():
            areas = {"method": name, "acu": erasure.acu, "racu": erasure.racu, "chance": erasure.chance}
            rows.append(areas | {f"p_{test}": p for test, p in erasure.p.items()})
        return pd.DataFrame(rows)

    def to_csv(self, path: str | Path) -> None:
        """Write `table()` to a CSV file."""
        write_csv(self.table(), path)

    @property
    def areas(self) -> dict[str, tuple[float, float]]:
        """ACU and RACU by method."""
        return {name: (erasure.acu, erasure.racu) for name, erasure in self.methods.items()}

    def bounds(self, method: str) -> dict[str, Interval]:
        """Return an empty dict: a single text has no confidence intervals."""
        return {}

    @property
    def evidence(self) -> TextEvidence:
        """Facts from which doubts and verdict are derived."""
        methods = {}
        for name, erasure in self.methods.items():
            steps = {}
            for test, pvalues in erasure.pvalues.items():
                steps[test] = dict(zip(self.percents, pvalues, strict=True))
            methods[name] = TextMethodEvidence(erasure.acu, erasure.chance, erasure.p, steps)
        return TextEvidence(
            methods=methods,
            floors=self.floors,
            trained_with=self.trained_with,
            truncated=float(self.truncated),
            unread=self.unread,
            precision=self.precision,
            agreement=self.agreement,
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values, including doubts and verdict."""
        verdict = self.verdict
        verdicts = {answer.question: {"mood": answer.mood, "text": answer.text} for answer in verdict.answers}
        reasons = [asdict(doubt) for doubt in verdict.doubts]
        summary = {"mood": verdict.summary.mood, "text": verdict.summary.text}
        return {**asdict(self), "doubts": reasons, "verdicts": verdicts, "summary": summary}


def measure_text(
    clf: Model,
    text: str,
    *,
    pair: str | None = None,
    label: str | int | None = None,
    methods: Names = ("loo-sign",),
    orders: int = ORDERS,
    seed: int = 0,
    percents: Sequence[int] = PERCENTS,
    tests: Tests | None = None,
    unit: UnitName = "token",
    progress: Callable[[str, int, int], object] | None = None,
) -> TextMeasurement:
    """Measure the faithfulness of explanations of one text.

    Args:
        clf: A classifier, or an `Evaluator` that shares its evaluations.
        text: The text to explain and erase.
        pair: The context, for a model that reads two texts.
        label: Name or number of the class; by default the predicted one. A model that predicts a number has
            the classes `lower value` and `higher value`; the default is the sign of the number.
        methods: Names of methods, or methods; or a mapping, see `measure`.
        orders: Random orders to compare with, at least 19.
        seed: Seed of the random orders.
        percents: Percentages of tokens to erase: increasing whole numbers, the first 0 and the last 100.
        tests: In-distribution tests, from `fit_tests`; without them no area is trusted.
        unit: What is scored and erased as one piece: token, word or sentence.
        progress: Called after each method with its name, the number of methods finished, and the total.

    Returns:
        The probability of the label, or the number, at each percentage, areas, p-values, doubts and verdict.

    Raises:
        InputError: An option is not valid, or the text has no token to erase.

    Example:
        >>> result = fm.measure_text(clf, "Mary went to the garden.", methods=["loo-sign"], orders=19)
        >>> result.percents[-1]
        100
    """
    if orders < MIN_ORDERS:
        raise InputError(
            f"orders is {orders}; expected at least {MIN_ORDERS}: fewer cannot tell a method from chance"
        )
    if not text.strip():
        raise InputError("the text is empty; expected at least one word to erase")
    # one evaluator for all: the methods and the random orders share inputs
    evaluator, parsed = Evaluator.of(clf), parse_methods(methods)
    tokens: Batch = evaluator.encode([text], None if pair is None else [pair])
    batch = in_units(tokens, unit)
    predicted = int(evaluator.logits(batch).argmax())
    number = predicted if label is None else class_number(evaluator.labels, label)
    # one copy of the text for each order, numbered so that each draws an order of its own
    copies = replace(batch[torch.zeros(orders, dtype=torch.long)], index=torch.arange(orders))
    # the same orders whatever the methods, so that their chances compare
    random = parse(f"{BASELINE}(seed={seed})")
    quantity: Quantity = "number" if evaluator.predicts_number else "probability"
    curves = _values(trace_erasure(evaluator, copies, torch.full((orders,), number), random, percents, {})).T
    # what speaks for the lower value raises the number when it is erased
    sign = -1 if quantity == "number" and number == 0 else 1
    if progress is not None:
        progress(BASELINE, 1, 1 + len(parsed))
    erasures = {}
    for done, method in enumerate(parsed, start=2):
        trace = trace_erasure(evaluator, batch, torch.tensor([number]), method, percents, tests or {})
        pvalues = {test: values[0].tolist() for test, values in trace.pvalues.items()}
        erasures[str(method)] = _compare(_values(trace)[0], curves, percents, pvalues, sign)
        if progress is not None:
            progress(str(method), done, 1 + len(parsed))
    lower, upper = np.quantile(curves, [0.05, 0.95], axis=1)
    return TextMeasurement(
        text=text,
        pair=pair,
        label=evaluator.labels[number],
        percents=tuple(percents),
        orders=orders,
        mean=curves.mean(axis=1).tolist(),
        lower=lower.tolist(),
        upper=upper.tolist(),
        floors=floors_of(tests),
        methods=erasures,
        trained_with=trained_with_of(tests),
        truncated=batch.layouts[0].truncated if batch.layouts else False,
        unread=_share_unread(evaluator, tokens),
        device=str(evaluator.device),
        precision=evaluator.precision,
        agreement=agreement_of(evaluator),
        quantity=quantity,
    )


def _share_unread(clf: Evaluator, batch: Batch) -> float:
    """Return the share of the words of a single text that the model's tokenizer, if any, does not know."""
    tokenizer = getattr(clf, "tokenizer", None)
    if tokenizer is None or not batch.layouts:
        return 0.0
    return share_unread(batch.layouts[0], batch.input_ids[0][batch.explained[0]], tokenizer.unk_token_id)


def _values(trace: Trace) -> NDArray[np.float64]:
    """Return the quantity [N, S] whose curves are compared: the label's probability, or the number."""
    return trace.predictions if trace.numbers else trace.probabilities


def _compare(
    values: NDArray[np.float64],
    curves: NDArray[np.float64],
    percents: Sequence[int],
    pvalues: Mapping[str, list[float]],
    sign: int,
) -> Erasure:
    """Return a method's results from its curve `values` [S] and those of random orders, [S, orders].

    With the sign -1, the area above the random orders counts.
    """
    curve, mean = _curve(percents, sign * values), _curve(percents, sign * curves.mean(axis=1))
    area = acu(curve, mean)
    # equal areas differ in the last bits of sums; the method itself is one of the orders, so chance > 0
    as_good = sum(acu(_curve(percents, sign * order), mean) >= area - ROUNDING for order in curves.T)
    return Erasure(
        probability=values.tolist(),
        pvalues=pvalues,
        p={test: of_steps(dict(zip(percents, steps, strict=True))) for test, steps in pvalues.items()},
        acu=area,
        racu=racu(curve, mean),
        chance=(1 + as_good) / (1 + curves.shape[1]),
    )


def _curve(percents: Sequence[int], values: Sequence[float] | NDArray[np.float64]) -> Curve:
    return Curve(tuple(percents), tuple(values), "probability", 1)
