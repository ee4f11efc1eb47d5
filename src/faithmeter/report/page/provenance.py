"""Methods, settings, commands and digests, from which the numbers of a report can be reproduced."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from ...config import Config, MeasureConfig, TrainConfig
from ...methods.registry import find_method
from ...store.records import Record
from ..reproduce import reproduce

Records = Sequence[tuple[Path, Record]]

CONFIGS: dict[str, type[Config]] = {"Fine-tuning": TrainConfig, "Measurement": MeasureConfig}
ENVIRONMENT_FIELDS = ("python", "machine", "cores", "host", "commit")
MAX_LISTED_VALUES = 12
"""Maximum number of values listed for a setting; more are given as a count."""


def describe_methods(names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the name, description and notes (options, unit, recomputation) of each method."""
    return [_describe_method(name) for name in names]


def settings(records: Records) -> dict[str, dict[str, str]]:
    """Return the distinct settings, package versions and machines of the runs, by heading and name."""
    values = {title: _config_values(config, records) for title, config in CONFIGS.items()}
    versions: dict[str, list[Any]] = defaultdict(list)
    made_on: dict[str, list[Any]] = defaultdict(list)
    for _, record in records:
        for name, version in record.environment.versions.items():
            versions[name].append(version)
        for name in ENVIRONMENT_FIELDS:
            made_on[name].append(getattr(record.environment, name))
    values |= {"Versions": versions, "Made on": made_on}
    settings: dict[str, dict[str, str]] = {}
    for title, lists in values.items():
        texts = {name: _distinct(values) for name, values in lists.items()}
        filled = {name: text for name, text in texts.items() if text}
        settings |= {title: filled} if filled else {}
    return settings


def commands(records: Records, root: Path, page: Path) -> str:
    """Return the command lines that reproduce the runs and the page."""
    report = shlex.join(["faithmeter", "report", str(root), "-o", str(page)])
    return "\n".join([*reproduce([record for _, record in records], root), report])


def runs(records: Records) -> list[dict[str, str]]:
    """Return the folder name, digest, finishing time and record checksum of each run."""
    lines = []
    for folder, record in records:
        own = {"digest": record.digest, "finished": record.finished, "checksum": record.checksum}
        lines.append({"folder": folder.name, **own})
    return lines


def _config_values(config: type[Config], records: Records) -> dict[str, list[Any]]:
    """Return the values of each setting of one kind of run; methods have a list of their own."""
    configs = [record.config for _, record in records if record.kind == config.kind]
    values: dict[str, list[Any]] = {}
    for name in config.identity():
        # with data of your own, the field `task` of a config keeps its default
        own = [one for one in configs if name != "task" or not getattr(one, "data", "")]
        if name != "methods":
            values[name.replace("_", " ")] = list(map(attrgetter(name), own))
    return values


def _describe_method(name: str) -> dict[str, Any]:
    method = find_method(name)
    if method is None:
        return {"name": name, "about": "a method that is not part of faithmeter", "notes": []}
    options = [f"{option}={value}" for option, value in method.options_with_defaults.items()]
    again = "computed again at every step" if method.recursive else "computed once for all steps"
    unit = [f"scores in {method.score_unit}"] if method.unit else []
    return {"name": name, "about": method.about, "notes": [*options, *unit, again]}


def _distinct(values: Iterable[Any]) -> str:
    texts = {str(value) for value in values if value not in ("", None, ())}
    if len(texts) > MAX_LISTED_VALUES:  # such as the seeds of a large grid
        return f"{len(texts)} different ones"
    return ", ".join(sorted(texts, key=lambda text: (len(text), text)))  # 9 before 10
