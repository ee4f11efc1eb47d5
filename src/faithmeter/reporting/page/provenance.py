"""Records → how to get the same numbers again: methods, settings, commands, digests."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...config import Config, MeasureConfig, TrainConfig
from ...errors import InputError
from ...methods.registry import Method, parse

Record = Mapping[str, Any]
Records = Sequence[tuple[Path, Record]]

MEASURED = ("seed", "limit", "step")
"""What a measurement may be asked for besides its methods; the rest it takes from the checkpoint."""

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
    environments = [record["environment"] for _, record in records]
    packages = dict.fromkeys(name for one in environments for name in one["versions"])
    found["Versions"] = {
        name: _distinct(one["versions"].get(name) for one in environments) for name in packages
    }
    found["Made on"] = {name: _distinct(one.get(name) for one in environments) for name in PLACES}
    said = {title: {name: value for name, value in one.items() if value} for title, one in found.items()}
    return {title: values for title, values in said.items() if values}


def commands(records: Records, root: Path, page: Path) -> str:
    """Command lines that fill the store and write the page again."""
    known = {record["digest"]: folder for folder, record in records if record["kind"] == "train"}
    lines = [_train(record, root) for _, record in records if record["kind"] == "train"]
    lines += [_measure(record, known, root) for _, record in records if record["kind"] == "measure"]
    others = sum(record["kind"] not in ("train", "measure") for _, record in records)
    if others:
        lines.append(f"# {others} runs of Recursive ROAR are made by `faithmeter grid` with its file")
    return "\n".join([*lines, shlex.join(["faithmeter", "report", str(root), "-o", str(page)])])


def runs(records: Records) -> list[dict[str, str]]:
    names = ("digest", "finished", "checksum")
    return [{"folder": folder.name, **{name: record[name] for name in names}} for folder, record in records]


def _asked(config: type[Config], records: Records) -> dict[str, str]:
    configs = [record["config"] for _, record in records if record["kind"] == config.kind]
    names = config.identity()
    names = [name for name in names if name != "methods"]  # they are listed one by one
    return {name.replace("_", " "): _distinct(one.get(name) for one in configs) for name in names}


def _method(name: str) -> dict[str, Any]:
    found = known(name)
    if found is None:
        return {"name": name, "what": "a method that is not part of faithmeter", "options": []}
    options = [f"{option}={value}" for option, value in found.options_with_defaults.items()]
    again = "asked again at every step" if found.recursive else "asked once: its first answer is the order"
    return {"name": name, "what": found.about, "options": [*options, again]}


def _train(record: Record, root: Path) -> str:
    said = _flags(TrainConfig, record["config"], TrainConfig.model_fields)
    return shlex.join(["faithmeter", "train", *said, "-o", str(root)])


def _measure(record: Record, known: Mapping[str, Path], root: Path) -> str:
    """A checkpoint that the store does not hold is named as it was given, with the task."""
    config = record["config"]
    folder = known.get(record["train_digest"])
    place = [str(folder)] if folder else [record["trained"]["model"], "--task", config["task"]]
    chosen = [part for name in config["methods"] for part in ("-m", name)]
    said = _flags(MeasureConfig, config, MEASURED)
    return shlex.join(["faithmeter", "measure", *place, *chosen, *said, "-o", str(root)])


def _flags(kind: type[Config], config: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    """The options that differ from their defaults, and the task in any case but that of own data."""
    defaults = {name: field.default for name, field in kind.model_fields.items()}
    for name in names:
        value = config.get(name, defaults[name])
        if value == defaults[name] and (name != "task" or config["data"]):
            continue
        yield "--" + name.replace("_", "-")
        if value is not True:
            yield str(value)


def _distinct(values: Iterable[Any]) -> str:
    said = sorted(
        {str(value) for value in values if value not in ("", None, [])}, key=lambda text: (len(text), text)
    )
    return ", ".join(said) if len(said) <= MANY else f"{len(said)} different ones"
