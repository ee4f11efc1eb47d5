"""Display names of models, tasks and metrics in tables, figures and pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath

METRIC_NAMES = {"macro_f1": "macro F1", "micro_f1": "micro F1", "matthews": "Matthews"}


def metric_name(metric: str) -> str:
    """Return the display name of a metric, e.g. "macro F1" for "macro_f1"."""
    return METRIC_NAMES.get(metric, metric.replace("_", " "))


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Map each path or hub name to its last part, or to itself if the last part is not unique."""
    last = {name: PurePath(name.replace("\\", "/")).name or name for name in set(names)}
    counts = Counter(last.values())
    return {name: part if counts[part] == 1 else name for name, part in last.items()}
