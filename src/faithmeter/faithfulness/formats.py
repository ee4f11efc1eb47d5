"""Formats of numbers and names that tables, card, page and terminal share."""

from __future__ import annotations

import math
from collections.abc import Sequence

UNDEFINED = "–"


def format_percent(fraction: float, decimals: int = 1) -> str:
    """Format a fraction in percent, e.g. `35.2`."""
    return format_number(100 * fraction, decimals)


def format_number(value: float, decimals: int = 1) -> str:
    """Format a number, rounding its exact value half to even; an undefined value becomes a dash."""
    return UNDEFINED if math.isnan(value) else f"{value:z.{decimals}f}"


def format_pvalue(p: float) -> str:
    """Format a p-value the way all outputs show it, e.g. `p = 0.030`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2f}" if p >= 0.1 else f"p = {p:.3f}"


def join_names(names: Sequence[str]) -> str:
    """Join names as in a sentence, e.g. `beam, loo-sign and grad-l2`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
