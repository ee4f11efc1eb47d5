"""Methods, settings, commands and digests of a report: everything needed to reproduce its numbers."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ...config import Config, MeasureConfig, TrainConfig
from ...errors import InputError
from ...methods.registry import Method, parse
from ...runs.record import Record
from ..reproduce import reproduce

Records = Sequence[tuple[Path, Record]]

CONFIGS: dict[str, type[Config]] = {"Fine-tuning": TrainConfig, "Measurement": MeasureConfig}
ENVIRONMENT_FIELDS = ("python", "machine", "cores", "host", "commit")
MAX_LISTED_VALUES = 12
"""More values than this are counted, not listed."""


def find_method(name: str) -> Method | None:
    """Return a method by its name; None if it is one of your own that is not imported now."""
    try:
        return parse(name)
    except InputError:
        return None


def describe_methods(names: Iterable[str]) -> list[dict[str, Any]]:
    """Return for each method what it does, its options, and whether it is computed again at each step."""
    return [_describe_method(name) for name in names]


def settings(records: Records) -> dict[str, dict[str, str]]:
    """Return the settings of each kind of run, and the machines and versions it was made with."""
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
    """Return the command lines that fill the store and write the page again."""
    report = shlex.join(["faithmeter", "report", str(root), "-o", str(page)])
    return "\n".join([*reproduce([record for _, record in records], root), report])


def runs(records: Records) -> list[dict[str, str]]:
    """Return the folder, digest, time and checksum of each run."""
    names = ("digest", "finished", "checksum")
    return [
        {"folder": folder.name, **{name: getattr(record, name) for name in names}}
        for folder, record in records
    ]


def _config_values(config: type[Config], records: Records) -> dict[str, str]:
    configs = [record.config for _, record in records if record.kind == config.kind]
    names = config.identity()
    names = [name for name in names if name != "methods"]  # they have a list of their own
    return {name.replace("_", " "): _distinct(getattr(one, name) for one in configs) for name in names}


def _describe_method(name: str) -> dict[str, Any]:
    method = find_method(name)
    if method is None:
        return {"name": name, "about": "a method that is not part of faithmeter", "notes": []}
    options = [f"{option}={value}" for option, value in method.options_with_defaults.items()]
    again = "computed again at every step" if method.recursive else "computed once for all steps"
    unit = [f"scores in {method.unit}"] if method.unit else []
    return {"name": name, "about": method.about, "notes": [*options, *unit, again]}


def _distinct(values: Iterable[Any]) -> str:
    texts = {str(value) for value in values if value not in ("", None, ())}
    if len(texts) > MAX_LISTED_VALUES:
        return f"{len(texts)} different ones"
    return ", ".join(sorted(texts, key=lambda text: (len(text), text)))
