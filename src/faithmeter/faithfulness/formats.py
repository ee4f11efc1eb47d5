"""Formats of numbers and names that tables, card, page and terminal share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal

UNDEFINED = "–"


def format_percent(fraction: float, decimals: int = 1) -> str:
    """Format a fraction in percent, e.g. `35.2`; the exact value is rounded, halves to even.

    Undefined values (NaN) are a dash.
    """
    if math.isnan(fraction):
        return UNDEFINED
    rounded = (100 * Decimal(fraction)).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_EVEN)
    return f"{abs(rounded) if rounded == 0 else rounded}"  # not -0.0


def format_pvalue(p: float) -> str:
    """Format a p-value the way all outputs show it, e.g. `p = 0.030`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2f}" if p >= 0.1 else f"p = {p:.3f}"


def join_names(names: Sequence[str]) -> str:
    """Join names as in a sentence, e.g. `beam, loo-sign and grad-l2`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
