"""One text measured: its label's probability as it is erased by each method, beside many random orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .curves import acu, racu
from .evaluator import Evaluator
from .explanation import class_number
from .masks import PERCENTS
from .methods import Method, parse
from .steps import BASELINE, Tests, erased

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Erasure:
    """What one method does to the text: all at the percents of the measurement."""

    probability: list[float]  # of the label
    pvalues: Mapping[str, list[float]]  # in-distribution, by test
    acu: float  # against the mean of the random orders
    racu: float


@dataclass(frozen=True)
class TextMeasurement:
    """A text, the label that was measured, and its erasure by each method; a rich console shows it."""

    text: str
    pair: str | None
    label: str
    percents: tuple[int, ...]
    orders: int
    mean: list[float]  # of the label's probability over the random orders
    lower: list[float]  # 5 % of the orders are below
    upper: list[float]  # 5 % are above
    methods: Mapping[str, Erasure]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __rich__(self) -> RenderableType:
        from rich.table import Table

        title = f"probability of {self.label} in %, by percent of the text erased"
        table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for heading in ("method", *map(str, self.percents), "ACU", "RACU"):
            table.add_column(heading, justify="left" if heading == "method" else "right")
        for name, erasure in self.methods.items():
            areas = (f"{100 * area:.0f}" for area in (erasure.acu, erasure.racu))
            table.add_row(name, *(f"{100 * value:.0f}" for value in erasure.probability), *areas)
            for test, values in erasure.pvalues.items():
                shown = (f"{value:.2f}".lstrip("0") for value in values)
                table.add_row(f"  p {test}", *shown, style="dim")
        orders = {f"random (mean of {self.orders})": self.mean, "  5 %": self.lower, "  95 %": self.upper}
        for name, values in orders.items():
            table.add_row(name, *(f"{100 * value:.0f}" for value in values), style="dim")
        return table


def measure_text(
    clf: Any,
    text: str,
    *,
    pair: str | None = None,
    label: str | int | None = None,
    methods: Sequence[str | Method] = ("loo-sign",),
    orders: int = 100,
    seed: int = 0,
    percents: Sequence[int] = PERCENTS,
    tests: Tests | None = None,
) -> TextMeasurement:
    """Is the explanation of this text true? Without a label, that of the predicted class is measured."""
    evaluator = Evaluator.of(clf)
    batch = evaluator.encode([text], None if pair is None else [pair])
    predicted = int(evaluator.logits(batch).argmax())
    number = predicted if label is None else class_number(evaluator.labels, label)
    copies = replace(batch[torch.zeros(orders, dtype=torch.long)], index=torch.arange(orders))
    random = parse(f"{BASELINE}(seed={seed})")
    frame = erased(evaluator, copies, torch.full((orders,), number), random, percents, {})
    shares = frame["probability"].to_numpy().reshape(len(percents), orders)
    mean = shares.mean(axis=1)
    found = {}
    for method in map(parse, methods):
        rows = erased(evaluator, batch, torch.tensor([number]), method, percents, tests or {})
        values = rows["probability"].tolist()
        pvalues = {test: rows[f"p_{test}"].tolist() for test in tests or {}}
        found[str(method)] = Erasure(values, pvalues, acu(values, mean.tolist()), racu(values, mean.tolist()))
    lower, upper = np.quantile(shares, [0.05, 0.95], axis=1)
    return TextMeasurement(
        text=text,
        pair=pair,
        label=evaluator.labels[number],
        percents=tuple(percents),
        orders=orders,
        mean=mean.tolist(),
        lower=lower.tolist(),
        upper=upper.tolist(),
        methods=found,
    )
