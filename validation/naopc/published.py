"""Published numbers beside ours, and why some differ."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .data import Published, aopc_scores

TOLERANCE = 1e-6
FLOAT32 = 1e-5
"""Largest difference that is put down to float32: the published probability of a whole text already differs
from the table's by up to 4e-6."""


def compare_published(file: Published) -> pd.DataFrame:
    """Return each published number beside ours, with the reason if they differ by more than 1e-6."""
    methods = file.scores.explanation_method.unique()
    known = {method: file.ranks(method) for method in methods}
    ours = aopc_scores(file.probabilities, {name: ranks for name, (ranks, _) in known.items()})
    fits = pd.DataFrame(
        [(method, row, fit) for method, (_, all_fit) in known.items() for row, fit in enumerate(all_fit)],
        columns=["method", "id", "fits"],
    )
    limits = file.limits.assign(width=lambda frame: frame.upper_limit - frame.lower_limit)
    published = file.scores.rename(columns={"explanation_method": "method"}).merge(limits, on="id")
    published["naopc"] = (published.comprehensiveness - published.lower_limit) / published.width
    both = published.merge(ours, on=["method", "id"], suffixes=("", "_ours")).merge(fits, on=["method", "id"])
    ranges = ours[ours.method == "best"].merge(ours[ours.method == "worst"], on="id", suffixes=("", "_worst"))
    ranges = ranges.rename(columns={"comprehensiveness": "upper", "comprehensiveness_worst": "lower"})
    both = both.merge(ranges[["id", "upper", "lower"]], on="id")
    rows = limits.merge(ranges[["id", "words", "upper", "lower"]], on="id").assign(method="", fits=True)
    pairs = [
        (both, "comprehensiveness", "comprehensiveness", "comprehensiveness_ours"),
        (both, "sufficiency", "sufficiency", "sufficiency_ours"),
        (both, "naopc", "naopc", "naopc_ours"),
        (rows, "upper limit", "upper_limit", "upper"),
        (rows, "lower limit", "lower_limit", "lower"),
    ]
    parts = []
    for frame, column, theirs, mine in pairs:
        part = frame[["id", "method", "words", "fits", "upper_limit", "upper", "lower"]].assign(
            dataset=file.dataset, model=file.model, column=column, published=frame[theirs], ours=frame[mine]
        )
        parts.append(part)
    numbers = pd.concat(parts, ignore_index=True)
    numbers["reason"] = name_reasons(numbers)
    return numbers.drop(columns=["fits", "words", "upper_limit", "upper", "lower"])


def name_reasons(numbers: pd.DataFrame) -> list[str]:
    """Return why each published number differs from ours; `equal` if it does not.

    - `other words`: the attribution has other words than the table. These texts begin with "..." or hold a
      hyphen. For "...", the authors' scoring also shifts the attribution by a word and masks the last special
      token, for which there are no logits.
    - `one word`: both limits coincide, and NAOPC is undefined (ours is NaN; the authors write 0).
    - `maximum from 0`: the authors' search for the upper limit starts at a sum of falls of 0 before the last
      step, so an upper limit with a negative sum is too high.
    - `float32`: the scores come from another forward pass than the table.
    """
    difference = (numbers.published - numbers.ours).abs()
    normalized = numbers.column == "naopc"
    too_high = numbers.upper_limit - numbers.upper > TOLERANCE
    width = (numbers.upper - numbers.lower).where(normalized, 1)
    reasons = {
        "other words": ~numbers.fits,
        "one word": normalized & (numbers.words == 1),
        "equal": difference <= TOLERANCE,
        "maximum from 0": too_high & (normalized | (numbers.column == "upper limit")),
        "float32": (numbers.method != "") & (difference * width <= FLOAT32),
    }
    return [str(reason) for reason in np.select([*reasons.values()], [*reasons], "unexplained")]


def count_reasons(numbers: pd.DataFrame) -> pd.DataFrame:
    """Return how many numbers of each column of each file have each reason, and the largest difference."""
    difference = (numbers.published - numbers.ours).abs().where(numbers.reason != "other words")
    groups = numbers.assign(difference=difference).groupby(["dataset", "model", "column", "reason"])
    return groups.difference.agg(numbers="size", largest_difference="max").reset_index()


def list_named(numbers: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers that are not equal; NAOPC that differs by its AOPC's float32 is only counted."""
    follows = (numbers.column == "naopc") & (numbers.reason == "float32")
    return numbers[(numbers.reason != "equal") & ~follows]
