"""A TOML file → the runs it asks for, each after what it needs. What it says and means nothing is refused."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, get_args

from ..config import BASELINE, MeasureConfig, RoarConfig, Strategy, TrainConfig, Validation
from ..errors import InputError, unknown
from ..runs.run import task_of
from .planned import Run

Said = Mapping[str, Any]

PLAIN = "none/unmasked"
STRATEGIES = ["/".join(pair) for pair in product(get_args(Strategy), get_args(Validation))]
TABLES: dict[str, dict[str, Any]] = {
    "": {
        "tasks": list[str],
        "models": list[str],
        "seeds": list[int],
        "strategies": list[str],
        "workers": int,
        **dict.fromkeys(("train", "task", "measure", "roar"), dict),
    },
    "measure": {
        "strategies": list[str],
        "methods": list[str],
        "without": dict,
        **dict.fromkeys(("seed", "limit", "step"), int),
    },
    "roar": {
        "tasks": list[str],
        "models": list[str],
        "seeds": list[int],
        "methods": list[str],
        "step": int,
    },
}
"""What a grid file may say, besides options of `faithmeter train` in [train] and, for a task, [task.NAME]."""
KINDS = {
    list[str]: "a list of one or more texts",
    list[int]: "a list of one or more whole numbers",
    dict: "a table",
    int: "a whole number",
}
NEEDED = {
    "": {"tasks": '["RTE"]', "models": '["roberta-base"]', "seeds": "[0, 1]", "strategies": '["half/both"]'},
    "roar": {"methods": '["grad-l2"]'},
}
"""Entries that their table must have, and an example of each."""
LISTED = {
    "task": "tasks",
    "model": "models",
    "seed": "seeds",
    "strategy": "strategies",
    "validation": "strategies",
    **dict.fromkeys(("data", "text", "label", "pair", "valid", "test"), "tasks"),
}
"""Options of a training, and the lists that they come from; own data come as a task file."""


@dataclass(frozen=True)
class Grid:
    """What a file asks for: runs, each after what it needs, and how many processes should share them."""

    runs: list[Run]
    workers: int = 1


def read(path: str | Path, *, data_dir: str | Path | None = None) -> Grid:
    """The grid of a TOML file."""
    try:
        said = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} cannot be read as a grid: {error}") from error
    runs: dict[str, Run] = {}
    with _told(path):
        _require(said)
        for run in _expanded(said, data_dir):
            runs.setdefault(f"{run.config.digest}-{run.trained.digest}", run)
    return Grid(list(runs.values()), said.get("workers", 1))


def _expanded(said: Said, data_dir: str | Path | None) -> Iterator[Run]:
    """Task by task, so that early results are whole."""
    measure, roar = said.get("measure"), said.get("roar")
    for task, model, seed in product(said["tasks"], said["models"], said["seeds"]):
        options = said.get("train", {}) | said.get("task", {}).get(task, {})
        options |= {"task": task, "model": model, "seed": seed}
        if data_dir is not None:
            options["data_dir"] = str(data_dir)
        measured = () if measure is None else measure.get("strategies", said["strategies"])
        trainings = {
            pair: Run(_training(options, pair)) for pair in dict.fromkeys([*said["strategies"], *measured])
        }
        yield from trainings.values()
        if measure is not None and (config := _measurement(measure, task, seed)):
            yield from (Run(config, trainings[pair]) for pair in measured)
        if roar is not None and all(
            value in roar.get(name, [value])
            for name, value in (("tasks", task), ("models", model), ("seeds", seed))
        ):
            plain = Run(_training(options, PLAIN))
            yield plain
            for method in dict.fromkeys([BASELINE, *roar["methods"]]):
                yield from _roar(plain, method, roar.get("step", 10))


def _training(options: Said, pair: str) -> TrainConfig:
    strategy, _, validation = pair.partition("/")
    config = TrainConfig.from_dict({**options, "strategy": strategy, "validation": validation})
    task_of(config)  # a task that is not known is a mistake in the file
    return config


def _measurement(measure: Said, task: str, seed: int) -> MeasureConfig | None:
    """None for a task that is measured without any method: no methods would mean all of them."""
    from ..methods.registry import parse

    without = {str(parse(name)) for name, tasks in measure.get("without", {}).items() if task in tasks}
    methods = [name for names in _methods(measure) if not without.intersection(names) for name in names[1:]]
    options = {name: measure[name] for name in ("limit", "step") if name in measure}
    seed = measure.get("seed", seed)
    return MeasureConfig(methods=tuple(methods), seed=seed, **options) if methods else None


def _methods(measure: Said) -> list[tuple[str, str]]:
    """The methods to measure, each as its name and as its name with options: either can be left out."""
    from ..methods.registry import METHODS, parse

    methods = [parse(name) for name in measure.get("methods", METHODS)]
    return list(dict.fromkeys((method.name, str(method)) for method in methods))


def _roar(plain: Run, method: str, step: int) -> Iterator[Run]:
    from ..methods.registry import parse

    run, erasing = plain, parse(method)
    options = plain.config.to_dict()
    for percent in [*range(step, 100, step), 100]:
        config = RoarConfig(**options, method=str(erasing), code=erasing.code, percent=percent, step=step)
        run = Run(config, run)
        yield run


@contextmanager
def _told(place: object) -> Iterator[None]:
    """Mistakes with the place where they are."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


def _require(said: Said) -> None:
    """Every entry is known, is of its kind, and has an effect."""
    for table, entries in TABLES.items():
        for name, value in (said.get(table, {}) if table else said).items():
            _among(f"entry of [{table}]" if table else "entry", [name], entries)
            _require_kind(f"[{table}] {name}" if table else name, value, entries[name])
        for name, example in NEEDED.get(table, {}).items():
            if (table in said or not table) and name not in (said[table] if table else said):
                place = f"[{table}] " if table else ""
                raise InputError(f"{place}names no {name}; expected such as {name} = {example}")
    if said.get("workers", 1) < 1:
        raise InputError(f"workers is {said['workers']}; expected at least 1")
    _among("strategy", said["strategies"], STRATEGIES)
    _require_options("[train]", said.get("train", {}))
    _among("task with a table [task.NAME]", said.get("task", {}), said["tasks"])
    for name, table in said.get("task", {}).items():
        _require_kind(f"task.{name}", table, dict)
        _require_options(f"[task.{name}]", table)
    _require_measure(said.get("measure", {}), said["tasks"])
    _require_roar(said.get("roar", {}), said)


def _require_kind(entry: str, value: Any, kind: Any) -> None:
    [item] = getattr(kind, "__args__", [None])
    fits = isinstance(value, list) and value and all(type(one) is item for one in value)
    if not (fits if item else type(value) is kind):
        raise InputError(f"{entry} is {value!r}; expected {KINDS[kind]}")


def _require_options(entry: str, options: Said) -> None:
    for name in LISTED.keys() & options.keys():
        raise InputError(f"{entry} {name} has no place there; expected {LISTED[name]} = […] at the top")
    with _told(entry):
        TrainConfig.from_dict(options)


def _require_measure(measure: Said, tasks: list[str]) -> None:
    from ..methods.registry import parse

    _among("strategy in [measure]", measure.get("strategies", ()), STRATEGIES)
    with _told("[measure]"):
        MeasureConfig(**{name: measure[name] for name in ("seed", "limit", "step") if name in measure})
        methods = [name for names in _methods(measure) for name in names]
    for method, left_out in measure.get("without", {}).items():
        entry = f"[measure.without] {method}"
        with _told(entry):
            _among("method of this grid", [str(parse(method))], methods)
        _require_kind(entry, left_out, list[str])
        _among(f"task in {entry}", left_out, tasks)


def _require_roar(roar: Said, said: Said) -> None:
    from ..methods.registry import parse

    for name in ("tasks", "models", "seeds"):
        _among(f"{name.removesuffix('s')} in [roar]", roar.get(name, ()), said[name])
    with _told("[roar]"):
        RoarConfig(step=roar.get("step", 10))
        for method in roar.get("methods", ()):
            parse(method)


def _among(what: str, names: Iterable[Any], known: Iterable[Any]) -> None:
    for name in names:
        if name not in known:
            raise unknown(what, str(name), map(str, known))
