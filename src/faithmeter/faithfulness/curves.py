"""Performance as texts are erased (Curve), and how far it falls below random erasure (ACU, RACU)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

FLAT = 1e-12  # a smaller area under the random curve is rounding: nothing was lost by erasing


@dataclass(frozen=True)
class Curve:
    """A metric over `n` texts at rising percents of erased tokens, from 0 to 100."""

    percents: tuple[int, ...]
    values: tuple[float, ...]
    metric: str
    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(float(value) for value in self.values))
        object.__setattr__(self, "percents", whole_percents(self.percents))
        steps = self.percents
        if len(self.values) != len(steps):
            raise InputError(f"curve with {len(self.values)} values at {len(steps)} percents; give one each")
        _require_finite(self.values)
        if self.n < 1:
            raise InputError(f"curve over {self.n} texts; expected at least one")


def whole_percents(percents: Sequence[float]) -> tuple[int, ...]:
    """Percents that a curve can be over, as whole numbers."""
    steps = tuple(percents)
    rising = all(a < b for a, b in pairwise(steps))
    if len(steps) < 2 or steps[0] != 0 or steps[-1] != 100 or not rising or any(step % 1 for step in steps):
        raise InputError(f"percents are {steps}; expected rising whole numbers from 0 to 100")
    return tuple(int(step) for step in steps)


def acu(curve: Curve | Sequence[float], baseline: Curve | Sequence[float]) -> float:
    """Area from the random baseline down to the curve, as a fraction: at most 1 for a metric in [0, 1].

    Plain values are taken as evenly spaced from 0 to 100 % erased.
    """
    ratios, values, random = _together(curve, baseline)
    return float(absolute_area(values, random, ratios))


def racu(curve: Curve | Sequence[float], baseline: Curve | Sequence[float]) -> float:
    """ACU divided by the area from the baseline down to its own fully erased level.

    1 is reached by falling to that level at once; signed scores may fall below it and exceed 1. Where the
    baseline on the whole loses nothing there is nothing to divide by, and the result is nan.
    """
    ratios, values, random = _together(curve, baseline)
    return float(relative_area(values, random, ratios))


def absolute_area(
    values: NDArray[np.float64], random: NDArray[np.float64], ratios: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the ACU of many curves [..., S] at once."""
    return np.asarray(np.trapezoid(random - values, ratios, axis=-1))


def relative_area(
    values: NDArray[np.float64], random: NDArray[np.float64], ratios: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the RACU of many curves [..., S] at once; nan where it is undefined."""
    possible = absolute_area(random[..., -1:], random, ratios)
    area = absolute_area(values, random, ratios)
    return np.divide(area, possible, out=np.full_like(area, np.nan), where=possible >= FLAT)


def _together(
    curve: Curve | Sequence[float], baseline: Curve | Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The common axis in [0, 1] and the values of both."""
    if isinstance(curve, Curve) and isinstance(baseline, Curve):
        for what in ("metric", "n"):
            mine, other = getattr(curve, what), getattr(baseline, what)
            if mine != other:
                raise InputError(
                    f"curve of {what}={mine!r}, baseline of {what}={other!r}; measure both on the same texts"
                )
    (ratios, values), (others, random) = _points(curve), _points(baseline)
    if ratios.shape != others.shape or not np.allclose(ratios, others):
        raise InputError(
            f"curve at {_percents(ratios)} %, baseline at {_percents(others)} %; erase both in the same steps"
        )
    return ratios, values, random


def _points(curve: Curve | Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if isinstance(curve, Curve):
        return np.asarray(curve.percents) / 100, np.asarray(curve.values)
    values = np.asarray(curve, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise InputError(f"curve of shape {values.shape}; expected one row of values from 0 to 100 % erased")
    _require_finite(values)
    return np.linspace(0, 1, len(values)), values


def _require_finite(values: Sequence[float] | NDArray[np.float64]) -> None:
    if not np.isfinite(values).all():
        raise InputError(
            f"curve with values {list(values)}; expected finite numbers: was a metric undefined?"
        )


def _percents(ratios: NDArray[np.float64]) -> str:
    return ", ".join(f"{100 * ratio:g}" for ratio in ratios)
