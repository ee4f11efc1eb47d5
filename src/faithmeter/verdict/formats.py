"""Formats of numbers and names, shared by tables, model card, web page and terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

from ..config import AGREEMENT, OWN_AGREEMENT

UNDEFINED = "–"
METRIC_NAMES = {"macro_f1": "macro F1", "micro_f1": "micro F1", "matthews": "Matthews"}
METRIC_NAMES |= {"pearson": "Pearson", "spearman": "Spearman", "r2": "R²"}
METRIC_NAMES |= {
    AGREEMENT: "agreement with the original",
    OWN_AGREEMENT: "agreement with itself on whole texts",
}
EXACT_DECIMALS = 6
"""Decimals that are kept before a number is rounded for display, half to even."""


def format_percent(fraction: float, decimals: int = 1) -> str:
    """Format a fraction as a percentage without the percent sign, e.g. `35.2`."""
    return format_number(100 * fraction, decimals)


def format_number(value: float, decimals: int = 1) -> str:
    """Format a number with a fixed number of decimals; NaN becomes a dash.

    Numbers that differ by the rounding of floats only, such as 0.3 and 0.1 + 0.2, look the same.
    """
    if not math.isfinite(value):
        return UNDEFINED if math.isnan(value) else str(value)
    # Decimal rounds what is written, not the binary fraction next to it; z writes -0.0 as 0.0
    return f"{Decimal(repr(round(float(value), EXACT_DECIMALS))):z.{decimals}f}"


def format_pvalue(p: float) -> str:
    """Format a p-value the way all outputs show it, e.g. `p = 0.030`."""
    # as many digits as tell it from the significance level; 0 would claim what no test with ranks can show
    return "p < 0.001" if p < 0.001 else f"p = {p:.2f}" if p >= 0.1 else f"p = {p:.3f}"


PLAIN_NAMES = {
    "loo-sign": "leave one out",
    "loo-abs": "leave one out, size only",
    "grad-l1": "size of the gradient",
    "grad-l2": "size of the gradient",
    "inp-grad-sign": "gradient times input",
    "inp-grad-abs": "gradient times input, size only",
    "int-grad-sign": "integrated gradients",
    "int-grad-abs": "integrated gradients, size only",
    "beam": "beam search",
    "search": "search for the best order",
}
"""What methods do, in plain words, by the code that names them everywhere."""


def describe_method(name: str) -> str:
    """Return the name of a method with what it does, e.g. `loo-sign (leave one out)`."""
    plain = PLAIN_NAMES.get(name.partition("(")[0])  # options do not change what a method is about
    return f"{name} ({plain})" if plain else name


def format_metric(metric: str) -> str:
    """Return the display name of a metric, e.g. "macro F1" for "macro_f1"."""
    return METRIC_NAMES.get(metric, metric.replace("_", " "))


def join_names(names: Sequence[str]) -> str:
    """Join names as in a sentence, e.g. `beam, loo-sign and grad-l2`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
