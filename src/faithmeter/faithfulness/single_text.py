"""One text measured: its label's probability as it is erased by each method, beside many random orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..config import BASELINE, SIGNIFICANCE_LEVEL
from ..errors import InputError
from ..methods.registry import Method, parse
from ..models.classifier import class_number
from ..models.evaluator import Evaluator
from ..models.masks import PERCENTS
from .curves import Curve, acu, racu
from .pvalues import format_pvalue, of_steps
from .trajectory import Tests, erased, floors_of

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import RenderableType

FEWEST = round(1 / SIGNIFICANCE_LEVEL) - 1
"""Random orders from which on a method that beats them all is beyond chance."""
ROUNDING = 1e-6
"""Areas nearer than this are equal: the same order, evaluated in another micro-batch."""


@dataclass(frozen=True)
class Erasure:
    """What one method does to the text: all at the percents of the measurement."""

    probability: list[float]  # of the label
    pvalues: Mapping[str, list[float]]  # in-distribution, by test
    p: Mapping[str, float]  # of the steps together, by test
    acu: float  # against the mean of the random orders
    racu: float
    chance: float  # the share of random orders that do as well, the method's own order counted as one


@dataclass(frozen=True)
class Doubt:
    """Why a measurement must not be trusted, in plain words; without a method it is about all of them."""

    kind: str  # unfaithful, outside, unchecked
    method: str | None
    text: str


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
    floors: Mapping[str, float]  # the smallest p-value that each test could give
    methods: Mapping[str, Erasure]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "doubts": [asdict(doubt) for doubt in doubts(self)]}

    def __rich__(self) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        title = f"probability of {self.label} in %, by percent of the text erased"
        table = Table(title=Text(title), title_justify="left", title_style="bold", box=None, pad_edge=False)
        for heading in ("method", *map(str, self.percents), "ACU", "RACU"):
            table.add_column(heading, justify="left" if heading == "method" else "right")
        for name, erasure in self.methods.items():
            areas = (f"{100 * area:.0f}" for area in (erasure.acu, erasure.racu))
            table.add_row(Text(name), *(f"{100 * value:.0f}" for value in erasure.probability), *areas)
            for test, values in erasure.pvalues.items():
                shown = (f"{value:.2f}".lstrip("0") for value in values)
                table.add_row(f"  p {test}", *shown, style="dim")
        orders = {f"random (mean of {self.orders})": self.mean, "  5 %": self.lower, "  95 %": self.upper}
        for name, values in orders.items():
            table.add_row(name, *(f"{100 * value:.0f}" for value in values), style="dim")
        return Group(table, *(Text(doubt.text, "yellow") for doubt in doubts(self)))


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
    progress: Callable[[str, int, int], object] | None = None,
) -> TextMeasurement:
    """Is the explanation of this text true? Without a label, that of the predicted class is measured.

    `progress` is called with a method that is done, how many are, and how many there are with `random`.
    """
    if orders < FEWEST:
        raise InputError(
            f"orders is {orders}; expected at least {FEWEST}: fewer cannot tell a method from chance"
        )
    evaluator, parsed = Evaluator.of(clf), [parse(method) for method in methods]
    batch = evaluator.encode([text], None if pair is None else [pair])
    predicted = int(evaluator.logits(batch).argmax())
    number = predicted if label is None else class_number(evaluator.labels, label)
    copies = replace(batch[torch.zeros(orders, dtype=torch.long)], index=torch.arange(orders))
    random = parse(f"{BASELINE}(seed={seed})")
    frame = erased(evaluator, copies, torch.full((orders,), number), random, percents, {})
    shares = frame["probability"].to_numpy().reshape(len(percents), orders)
    if progress is not None:
        progress(BASELINE, 1, 1 + len(parsed))
    found = {}
    for done, method in enumerate(parsed, start=2):
        rows = erased(evaluator, batch, torch.tensor([number]), method, percents, tests or {})
        found[str(method)] = _erasure(rows, shares, percents, tests or {})
        if progress is not None:
            progress(str(method), done, 1 + len(parsed))
    lower, upper = np.quantile(shares, [0.05, 0.95], axis=1)
    return TextMeasurement(
        text=text,
        pair=pair,
        label=evaluator.labels[number],
        percents=tuple(percents),
        orders=orders,
        mean=shares.mean(axis=1).tolist(),
        lower=lower.tolist(),
        upper=upper.tolist(),
        floors=floors_of(tests),
        methods=found,
    )


def doubts(measured: TextMeasurement) -> list[Doubt]:
    """What must not be trusted in a measurement, and why. The rules, all at the level of 5 %:

    - unfaithful: more of the random orders than that do as well as the method (`Erasure.chance`);
    - outside: the erased text is out of distribution (`Erasure.p`);
    - unchecked: there is no test, or none that could reject.
    """
    found = [doubt for name, erasure in measured.methods.items() for doubt in _unfaithful(name, erasure)]
    found += _all_outside(measured) or [
        doubt
        for name, erasure in measured.methods.items()
        for doubt in _outside(name, erasure, measured.percents)
    ]
    if why := unchecked(measured.floors):
        text = "nothing tells whether erased texts are normal to this model, so no area proves anything"
        found.append(Doubt("unchecked", None, f"{text}: {why}"))
    return found


def unchecked(floors: Mapping[str, float]) -> str:
    """Why p-values say nothing, empty where they do."""
    if not floors:
        return "name its task, and the check is made"
    floor = floors[judge(floors)]
    return (
        ""
        if floor < SIGNIFICANCE_LEVEL
        else f"there are too few validation texts for a p-value below {floor:.2g}"
    )


def judge(tests: Iterable[str]) -> str:
    """The test to go by: the cross-fitted one where there is one, as its p-values hold for a single text."""
    names = list(tests)
    return "crossfit" if "crossfit" in names else names[0]


def _unfaithful(name: str, erasure: Erasure) -> Iterator[Doubt]:
    if erasure.chance <= SIGNIFICANCE_LEVEL:
        return
    if erasure.acu <= ROUNDING:
        why = "erasing what it calls important hurts no more than erasing at random"
        yield Doubt("unfaithful", name, f"{name} is not faithful for this text: {why}")
    else:
        why = f"{erasure.chance:.0%} of random orders hurt as much"
        yield Doubt("unfaithful", name, f"{name} cannot be told from chance on this text: {why}")


def _all_outside(measured: TextMeasurement) -> list[Doubt]:
    """A text that is strange as it is makes every curve doubtful: once is enough to say so."""
    tested = [erasure for erasure in measured.methods.values() if erasure.p]
    tests = {judge(erasure.p) for erasure in tested}
    if len(tested) < 2 or any(erasure.p[test] >= SIGNIFICANCE_LEVEL for erasure in tested for test in tests):
        return []
    p = tested[0].pvalues[tests.pop()][0]
    said = "the text is out of distribution before anything is erased"
    said = f"{said} ({format_pvalue(p)}): do not trust any curve"
    return [Doubt("outside", None, said)] if p < SIGNIFICANCE_LEVEL else []


def _outside(name: str, erasure: Erasure, percents: Sequence[int]) -> Iterator[Doubt]:
    if not erasure.p:
        return
    test = judge(erasure.p)
    if erasure.p[test] >= SIGNIFICANCE_LEVEL:
        return
    steps = dict(zip(percents, erasure.pvalues[test], strict=True))
    below = [percent for percent in steps if percent < 100]  # as `of_steps` has it
    low = [percent for percent in below if steps[percent] < SIGNIFICANCE_LEVEL]
    to_the_end = low == [percent for percent in below if percent >= low[0]]
    where = f"from {low[0]} % on" if to_the_end else f"at {', '.join(map(str, low))} %"
    what = f"erased by {name}, the text is out of distribution {where} ({format_pvalue(erasure.p[test])})"
    yield Doubt("outside", name, f"{what}: do not trust its curve")


def _erasure(rows: DataFrame, shares: NDArray[np.float64], percents: Sequence[int], tests: Tests) -> Erasure:
    """A method beside the random orders, of which `shares` [S, orders] has the label's probability."""
    falling = rows["probability"].tolist()
    curve, mean = _curve(percents, falling), _curve(percents, shares.mean(axis=1))
    area = acu(curve, mean)
    pvalues = {test: rows[f"p_{test}"].tolist() for test in tests}
    as_good = sum(acu(_curve(percents, order), mean) >= area - ROUNDING for order in shares.T)
    return Erasure(
        probability=falling,
        pvalues=pvalues,
        p={test: of_steps(dict(zip(percents, values, strict=True))) for test, values in pvalues.items()},
        acu=area,
        racu=racu(curve, mean),
        chance=(1 + as_good) / (1 + shares.shape[1]),
    )


def _curve(percents: Sequence[int], values: Sequence[float] | NDArray[np.float64]) -> Curve:
    return Curve(tuple(percents), tuple(values), "probability", 1)
