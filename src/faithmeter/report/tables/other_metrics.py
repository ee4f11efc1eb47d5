"""Table of the metrics of other papers, on the erasures of our runs."""

from __future__ import annotations

from dataclasses import replace

from ...stats.other_metrics import OTHER_METRICS
from ..aggregate import Frames
from ..blocks import Table
from .by_method import number_column, table_by_method

TITLE = "Metrics of other papers on the same erasures"
PREFERENCE = (
    "Prefer ACU with its check: it is compared with random erasure of the same texts, has an interval, and "
    "is trusted only if the erased texts are in distribution."
)


def other_metrics_table(frames: Frames) -> Table:
    """Return the metrics of each task, model and method; definitions are linked."""
    columns = {
        name: number_column(name, (metric.title, f"{metric.better} is better"), metric.unit)
        for name, metric in OTHER_METRICS.items()
    }
    table = table_by_method(frames, TITLE, columns, (PREFERENCE,), needs="comprehensiveness")
    return replace(table, definitions=tuple((metric.title, metric.url) for metric in OTHER_METRICS.values()))
