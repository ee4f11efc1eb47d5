"""Performance curves of erasure (`Curve`), and their areas below random erasure (ACU, RACU, faithfulness)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .metrics import MEAN

Floats = NDArray[np.float64]
MIN_AREA = 1e-12
"""Areas under the random curve below this are rounding error: erasing lost no performance."""


@dataclass(frozen=True)
class Curve:
    """Performance at increasing percentages of erased tokens.

    Attributes:
        percents: Percentages of erased tokens: increasing whole numbers, the first 0 and the last 100.
        values: Performance at each percentage, as a fraction.
        metric: Name of the metric.
        n: Number of texts.

    Raises:
        InputError: Percents and values do not match, or a value is not finite.

    Example:
        >>> Curve((0, 50, 100), (0.9, 0.6, 0.5), metric="accuracy", n=200).values[-1]
        0.5
    """

    percents: tuple[int, ...]
    values: tuple[float, ...]
    metric: str
    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(map(float, self.values)))
        object.__setattr__(self, "percents", whole_percents(self.percents))
        steps = self.percents
        if len(self.values) != len(steps):
            raise InputError(f"curve with {len(self.values)} values at {len(steps)} percents; give one each")
        _require_finite(self.values)
        if self.n < 1:
            raise InputError(f"curve over {self.n} texts; expected at least one")


def whole_percents(percents: Sequence[float]) -> tuple[int, ...]:
    """Return percentages as integers; raise an InputError unless whole and increasing from 0 to 100."""
    steps = tuple(percents)
    rising = all(map(operator.lt, steps, steps[1:]))
    if len(steps) < 2 or steps[0] != 0 or steps[-1] != 100 or not rising or any(step % 1 for step in steps):
        raise InputError(f"percents are {steps}; expected increasing whole numbers from 0 to 100")
    return tuple(map(int, steps))


def acu(curve: Curve | Sequence[float], baseline: Curve | Sequence[float]) -> float:
    """Return the area between the random baseline and the curve below it (ACU).

    Args:
        curve: A `Curve`, or plain values that are evenly spaced from 0 to 100 % erased.
        baseline: Curve of erasure in random order, in the same form.

    Returns:
        A fraction: at most 1 for a metric from 0 to 1, negative if the curve is above the baseline.

    Raises:
        InputError: The curves differ in metric, number of texts or percents.

    Example:
        >>> fm.acu([1.0, 0.0, 0.0], [1.0, 0.5, 0.0])
        0.25
    """
    ratios, values, random = _align(curve, baseline)
    return float(absolute_area(values, random, ratios))


def racu(curve: Curve | Sequence[float], baseline: Curve | Sequence[float]) -> float:
    """Return the ACU relative to the area between the baseline and its fully erased level (RACU).

    A curve that falls to that level at once has a RACU of 1; a curve that falls below it may exceed 1.

    Args:
        curve: A `Curve`, or plain values, as for `acu`.
        baseline: Curve of erasure in random order, in the same form.

    Returns:
        A fraction; NaN if the baseline loses no performance.

    Raises:
        InputError: The curves do not have the same percentages, as for `acu`.

    Example:
        >>> fm.racu([1.0, 0.0, 0.0], [1.0, 0.5, 0.0])
        0.5
    """
    ratios, values, random = _align(curve, baseline)
    area = float(relative_area(values, random, ratios))
    return math.nan if math.isnan(area) else area  # one NaN: containers compare by identity first


def racu_divisor(baseline: Curve) -> float:
    """Return the area between the baseline and its fully erased level, by which RACU divides."""
    return acu(replace(baseline, values=baseline.values[-1:] * len(baseline.values)), baseline)


def absolute_area(values: Floats, random: Floats, ratios: Floats) -> Floats:
    """Return the ACU of curves [..., S] at the fractions `ratios` [S]."""
    return np.asarray(np.trapezoid(random - values, ratios, axis=-1))


def relative_area(values: Floats, random: Floats, ratios: Floats) -> Floats:
    """Return the RACU of curves [..., S] at the fractions `ratios` [S]; NaN where it is undefined."""
    possible = absolute_area(random[..., -1:], random, ratios)
    area = absolute_area(values, random, ratios)
    return np.divide(area, possible, out=np.full_like(area, np.nan), where=possible >= MIN_AREA)


def _align(
    curve: Curve | Sequence[float], baseline: Curve | Sequence[float]
) -> tuple[Floats, Floats, Floats]:
    """Return the fractions erased and the values of both curves; raise an InputError if they do not match."""
    if isinstance(curve, Curve) and isinstance(baseline, Curve):
        for name in ("metric", "n"):
            own, other = getattr(curve, name), getattr(baseline, name)
            if own != other:
                raise InputError(
                    f"curve of {name}={own!r}, baseline of {name}={other!r}; measure both on the same texts"
                )
    (ratios, values), (others, random) = _points(curve), _points(baseline)
    if ratios.shape != others.shape or not np.allclose(ratios, others):
        raise InputError(
            f"curve at {_percents(ratios)} %, baseline at {_percents(others)} %; erase both in the same steps"
        )
    return ratios, values, random


def _points(curve: Curve | Sequence[float]) -> tuple[Floats, Floats]:
    if isinstance(curve, Curve):
        return np.asarray(curve.percents) / 100, np.asarray(curve.values)
    values = np.asarray(curve, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise InputError(f"curve of shape {values.shape}; expected one row of values from 0 to 100 % erased")
    _require_finite(values)
    return np.linspace(0, 1, len(values)), values


def _require_finite(values: Sequence[float] | Floats) -> None:
    if not np.isfinite(values).all():
        raise InputError(
            f"curve with values {list(values)}; expected finite numbers: was a metric undefined?"
        )


def _percents(ratios: Floats) -> str:
    return ", ".join(map("{:g}".format, 100 * ratios))


MIN_REMOVABLE = 0.02
"""Removable area, in probability, below which there is nothing whose share could be told."""


def removable_area(random: Floats, ratios: Floats) -> Floats:
    """Return the area [...] below random erasure [..., S] of falling at once to the wholly masked level."""
    at_once = np.broadcast_to(random[..., -1:], random.shape).copy()
    at_once[..., 0] = random[..., 0]  # before the first step nothing is erased
    return absolute_area(at_once, random, ratios)


def removed_share(values: Floats, random: Floats, ratios: Floats) -> Floats:
    """Return the faithfulness [...] of curves [..., S], at most 1; NaN where there is nothing to remove."""
    clipped = np.maximum(values, random[..., -1:])
    return _share(absolute_area(clipped, random, ratios), random, ratios)


def share_beyond(values: Floats, random: Floats, ratios: Floats) -> Floats:
    """Return the area [...] of curves [..., S] below the wholly masked level, over the removable area."""
    level = random[..., -1:]
    below = absolute_area(np.minimum(values, level), np.broadcast_to(level, values.shape), ratios)
    return _share(below, random, ratios)


def _share(area: Floats, random: Floats, ratios: Floats) -> Floats:
    removable = removable_area(random, ratios)
    return np.divide(area, removable, out=np.full_like(area, np.nan), where=removable >= MIN_REMOVABLE)


METRIC = ""
"""Quantity that stands for the metric of the task, whatever it is."""


class Kind(NamedTuple):
    """Kind of area between the curve of a method and that of random erasure."""

    title: str
    quantity: str
    """What the curves show: `METRIC`, or `MEAN` for the mean probability of the label."""
    area: Callable[[Floats, Floats, Floats], Floats]
    """Function of curves [..., S], random curves [..., S] and fractions erased [S]; returns areas [...]."""
    lowest: float = -math.inf
    highest: float = math.inf
    """Limits of the area, whatever the curves; bounds of intervals respect them."""

    def of_metric(self, metric: str) -> str:
        """Return what the curves show if the task has this metric."""
        return metric if self.quantity == METRIC else self.quantity


KINDS: dict[str, Kind] = {
    "faithfulness": Kind("faithfulness", MEAN, removed_share, highest=1.0),
    "beyond": Kind("beyond", MEAN, share_beyond, lowest=0.0),
    "acu": Kind("ACU", METRIC, absolute_area, -1.0, 1.0),  # of metrics that lose at most 1
    "racu": Kind("RACU", METRIC, relative_area),
}
"""Kinds by name."""
PROBABILITY = MEAN
"""Quantity of the label's probability, whose curve is its mean over texts."""
