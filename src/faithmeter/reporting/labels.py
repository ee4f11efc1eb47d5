"""Names of models, tasks and metrics as tables, figures and pages print them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath

METRIC_NAMES = {"macro_f1": "macro F1", "micro_f1": "micro F1", "matthews": "Matthews"}


def metric_name(metric: str) -> str:
    """Return the display name of a metric, such as macro F1."""
    return METRIC_NAMES.get(metric, metric.replace("_", " "))


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return the last part of each path or hub name, or the whole name if that is not unique."""
    last = {name: PurePath(name.replace("\\", "/")).name or name for name in set(names)}
    counts = Counter(last.values())
    return {name: part if counts[part] == 1 else name for name, part in last.items()}
