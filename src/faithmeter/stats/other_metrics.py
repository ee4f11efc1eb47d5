"""Metrics of other papers on the same erasures: comprehensiveness, sufficiency, AUC, log-odds and NAOPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from ..errors import InputError
from .curves import Floats

ERASER_SHARES = (1, 5, 10, 20, 50)
"""Percents at which ERASER erases; those that were measured count by default."""
MIN_PROBABILITY = 1e-12
"""Smallest probability that a logarithm is taken of."""


class OtherMetric(NamedTuple):
    """Description of a metric."""

    title: str
    better: Literal["higher", "lower"]
    unit: Literal["%", ""]
    url: str


OTHER_METRICS = {
    "comprehensiveness": OtherMetric(
        "comprehensiveness", "higher", "%", "https://aclanthology.org/2020.acl-main.408/"
    ),
    "sufficiency": OtherMetric("sufficiency", "lower", "%", "https://aclanthology.org/2020.acl-main.408/"),
    "deletion": OtherMetric("deletion AUC", "lower", "%", "https://arxiv.org/abs/1806.07421"),
    "insertion": OtherMetric("insertion AUC", "higher", "%", "https://arxiv.org/abs/1806.07421"),
    "log_odds": OtherMetric("log-odds", "lower", "", "https://arxiv.org/abs/1704.02685"),
    "naopc": OtherMetric("NAOPC", "higher", "%", "https://arxiv.org/abs/2408.08137"),
}
"""Metrics by name, with their definitions; docs/metrics.md has the formulas."""


def text_metrics(
    erased: Floats, kept: Floats | None, percents: Sequence[int], shares: Sequence[int] | None = None
) -> dict[str, Floats]:
    """Return each metric of each text, arrays [N].

    Args:
        erased: Probability of the label with the most important percents erased, [N, S].
        kept: Probability with only these percents left, [N, S]; without it there is neither sufficiency nor
            insertion.
        percents: Percents erased, from 0 to 100.
        shares: Percents that comprehensiveness, sufficiency and log-odds average over; by default those of
            ERASER that were measured.
    """
    columns = list(map(list(percents).index, choose_shares(percents, shares)))
    whole, ratios = erased[:, :1], np.asarray(percents) / 100
    logs = np.log(np.maximum(erased, MIN_PROBABILITY))
    metrics = {
        "comprehensiveness": (whole - erased[:, columns]).mean(axis=1),
        "deletion": np.trapezoid(erased, ratios, axis=1),
        "log_odds": (logs[:, columns] - logs[:, :1]).mean(axis=1),
    }
    if kept is not None:
        metrics["sufficiency"] = (whole - kept[:, columns]).mean(axis=1)
        metrics["insertion"] = np.trapezoid(kept, ratios, axis=1)
    return {name: metrics[name] for name in OTHER_METRICS if name in metrics}


def choose_shares(percents: Sequence[int], shares: Sequence[int] | None = None) -> list[int]:
    """Return the percents to average over, which must have been measured."""
    if shares is None:
        usual = [share for share in ERASER_SHARES if share in percents]
        return usual or [percent for percent in percents if 0 < percent < 100] or [100]
    missing = [share for share in shares if share not in percents]
    if missing:
        raise InputError(f"{missing[0]} % was not measured; expected percents among {tuple(percents)}")
    if not shares:
        raise InputError("no shares were given; expected percents to average over")
    return list(shares)


def normalized_aopc(erased: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the NAOPC of each method and text: its AOPC between the worst and the best of all methods.

    AOPC is the mean fall of the probability over all steps. Texts on which all orders do equally well are
    NaN. The bounds are only as good as the searches among the methods, such as `beam` and
    `beam(worst=true)`.

    Args:
        erased: By method, the probability of the label at each percent erased, [N, S].
    """
    falls = np.stack([(values[:, :1] - values[:, 1:]).mean(axis=1) for values in erased.values()])  # [M, N]
    lowest, highest = falls.min(axis=0), falls.max(axis=0)
    width = highest - lowest
    normalized = np.divide(falls - lowest, width, out=np.full_like(falls, np.nan), where=width > 0)
    return dict(zip(erased, normalized, strict=True))
