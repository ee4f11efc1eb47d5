"""Kinds of areas that a result reports: what is plotted, and how curves become a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .curves import Floats, absolute_area, relative_area
from .faithfulness import removed_share, share_beyond
from .metrics import MEAN

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
