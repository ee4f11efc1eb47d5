"""Records → how to get the same numbers again: methods, settings, commands, digests."""

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

KINDS: dict[str, type[Config]] = {"Fine-tuning": TrainConfig, "Measurement": MeasureConfig}
PLACES = ("python", "machine", "cores", "host", "commit")
MANY = 12
"""More values than this are counted, not listed."""


def known(method: str) -> Method | None:
    """None if it was registered by whoever measured it, but not here."""
    try:
        return parse(method)
    except InputError:
        return None


def methods(names: Iterable[str]) -> list[dict[str, Any]]:
    """For each method what it is about, its options, and whether it is asked again."""
    return [_method(name) for name in names]


def settings(records: Records) -> dict[str, dict[str, str]]:
    """For each kind of run what was asked for, and where and with what it was made."""
    found = {title: _asked(config, records) for title, config in KINDS.items()}
    environments = [record.environment for _, record in records]
    packages = dict.fromkeys(name for one in environments for name in one.versions)
    found["Versions"] = {name: _distinct(one.versions.get(name) for one in environments) for name in packages}
    found["Made on"] = {name: _distinct(getattr(one, name) for one in environments) for name in PLACES}
    said = {title: {name: value for name, value in one.items() if value} for title, one in found.items()}
    return {title: values for title, values in said.items() if values}


def commands(records: Records, root: Path, page: Path) -> str:
    """Return the command lines that fill the store and write the page again."""
    report = shlex.join(["faithmeter", "report", str(root), "-o", str(page)])
    return "\n".join([*reproduce([record for _, record in records], root), report])


def runs(records: Records) -> list[dict[str, str]]:
    names = ("digest", "finished", "checksum")
    return [
        {"folder": folder.name, **{name: getattr(record, name) for name in names}}
        for folder, record in records
    ]


def _asked(config: type[Config], records: Records) -> dict[str, str]:
    configs = [record.config for _, record in records if record.kind == config.kind]
    names = config.identity()
    names = [name for name in names if name != "methods"]  # they are listed one by one
    return {name.replace("_", " "): _distinct(getattr(one, name) for one in configs) for name in names}


def _method(name: str) -> dict[str, Any]:
    found = known(name)
    if found is None:
        return {"name": name, "what": "a method that is not part of faithmeter", "options": []}
    options = [f"{option}={value}" for option, value in found.options_with_defaults.items()]
    again = "asked again at every step" if found.recursive else "asked once: its first answer is the order"
    return {"name": name, "what": found.about, "options": [*options, again]}


def _distinct(values: Iterable[Any]) -> str:
    said = sorted(
        {str(value) for value in values if value not in ("", None, ())}, key=lambda text: (len(text), text)
    )
    return ", ".join(said) if len(said) <= MANY else f"{len(said)} different ones"
