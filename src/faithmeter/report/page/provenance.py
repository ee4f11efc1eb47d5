"""Methods, settings, commands and digests, from which the numbers of a report can be reproduced."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
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
    environments = [record.environment for _, record in records]
    packages = dict.fromkeys(name for one in environments for name in one.versions)
    values["Versions"] = {
        name: _distinct(one.versions.get(name) for one in environments) for name in packages
    }
    values["Made on"] = {
        name: _distinct(getattr(one, name) for one in environments) for name in ENVIRONMENT_FIELDS
    }
    filled = {title: {name: text for name, text in one.items() if text} for title, one in values.items()}
    return {title: texts for title, texts in filled.items() if texts}


def commands(records: Records, root: Path, page: Path) -> str:
    """Return the command lines that reproduce the runs and the page."""
    report = shlex.join(["faithmeter", "report", str(root), "-o", str(page)])
    return "\n".join([*reproduce([record for _, record in records], root), report])


def runs(records: Records) -> list[dict[str, str]]:
    """Return the folder name, digest, finishing time and record checksum of each run."""
    names = ("digest", "finished", "checksum")
    return [
        {"folder": folder.name, **{name: getattr(record, name) for name in names}}
        for folder, record in records
    ]


def _config_values(config: type[Config], records: Records) -> dict[str, str]:
    configs = [record.config for _, record in records if record.kind == config.kind]
    names = config.identity()
    names = [name for name in names if name != "methods"]  # methods have their own list
    own_data = [one for one in configs if getattr(one, "data", "")]  # whose task is not the config's
    return {
        name.replace("_", " "): _distinct(
            getattr(one, name) for one in configs if name != "task" or one not in own_data
        )
        for name in names
    }


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
    if len(texts) > MAX_LISTED_VALUES:
        return f"{len(texts)} different ones"
    return ", ".join(sorted(texts, key=lambda text: (len(text), text)))
