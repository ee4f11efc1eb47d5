"""Grid files: TOML files that define the runs of a grid. Entries without an effect are errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, create_model

from ..config import (
    BASELINE,
    Count,
    MeasureConfig,
    Percent,
    Precision,
    RoarConfig,
    Seed,
    Text,
    TrainConfig,
    Validated,
)
from ..errors import InputError, located, unknown
from ..files import read_toml
from ..runs.measured import task_of
from .execution import Run

PLAIN = "none/unmasked"
"""Strategy and validation of the training runs of Recursive ROAR, which mask nothing."""
StrategyPair = Literal[
    "half/both",
    "half/masked",
    "half/unmasked",
    "all/both",
    "all/masked",
    "all/unmasked",
    "none/both",
    "none/masked",
    "none/unmasked",
]
"""The `strategy` and the `validation` of a `TrainConfig`, joined by a slash."""
LISTED = {
    "task": "tasks",
    "model": "models",
    "seed": "seeds",
    "strategy": "strategies",
    "validation": "strategies",
    **dict.fromkeys(("data", "text", "label", "label_kind", "metric", "pair", "valid", "test"), "tasks"),
}
"""Training options that a list at the top of the file sets, with the name of the list.

Data of your own are named in a task file.
"""


class _TrainTable(Validated):
    kind: ClassVar[str] = "train"

    def __init__(self, **values: Any) -> None:
        for name in values.keys() & LISTED.keys():
            raise InputError(f"{name} cannot be set here; expected {LISTED[name]} = […] at the top")
        super().__init__(**values)


TRAIN_OPTIONS: dict[str, Any] = {
    name: (field.annotation, field) for name, field in TrainConfig.model_fields.items() if name not in LISTED
}
TrainTable: type[Validated] = create_model(
    "TrainTable",
    __base__=_TrainTable,
    __doc__="Options of `faithmeter train`: [train] sets them for all tasks, [task.NAME] for one.",
    **TRAIN_OPTIONS,
)


class MeasureTable(Validated):
    """Settings of the measurements of a grid's checkpoints."""

    kind: ClassVar[str] = "measure"

    strategies: list[StrategyPair] | None = Field(
        default=None, min_length=1, description="training runs to measure; default: all of the grid"
    )
    methods: list[Text] | None = Field(
        default=None,
        min_length=1,
        description="names of methods with their options; default: the paper's and your own",
    )
    without: dict[str, list[Text]] = Field(
        default={}, description="by method, the tasks on which it is not measured"
    )
    seed: Seed | None = Field(default=None, description="default: the seed of the training run")
    limit: Count = Field(default=0, description="measure only the first texts; 0 measures all")
    step: Percent = Field(default=10, description="percent of the tokens erased per step")
    precision: Precision = Field(
        default="auto", description="data type that models are evaluated in; auto is fp32"
    )


class RoarTable(Validated):
    """Settings of Recursive ROAR; tasks, models and seeds default to those of the grid."""

    kind: ClassVar[str] = "roar"

    tasks: list[Text] | None = Field(default=None, min_length=1, description="default: all of the grid")
    models: list[Text] | None = Field(default=None, min_length=1, description="default: all of the grid")
    seeds: list[Seed] | None = Field(default=None, min_length=1, description="default: all of the grid")
    methods: list[Text] = Field(
        min_length=1, examples=[["grad-l2"]], description="methods that choose the tokens to erase"
    )
    step: Percent = Field(default=10, description="percent of the tokens erased per step")


class GridFile(Validated):
    """Entries of a grid file; each combination of task, model, seed and strategy is a training run."""

    kind: ClassVar[str] = "grid"

    tasks: list[Text] = Field(
        min_length=1, examples=[["RTE"]], description="names of tasks, or task files ending in .toml"
    )
    models: list[Text] = Field(
        min_length=1, examples=[["roberta-base"]], description="folders, hub names, or 'embedded'"
    )
    seeds: list[Seed] = Field(
        min_length=1, examples=[[0, 1]], description="one training run for each, with all its randomness"
    )
    strategies: list[StrategyPair] = Field(
        min_length=1,
        examples=[["half/both"]],
        description="which rows of a mini-batch are masked / which validation score selects the epoch",
    )
    workers: int = Field(default=1, ge=1, description="processes that share the runs")
    train: TrainTable = Field(default=TrainTable(), description="options of all training runs")  # type: ignore[valid-type]
    task: dict[str, TrainTable] = Field(  # type: ignore[valid-type]
        default={}, description="by task, options of its training runs"
    )
    measure: MeasureTable | None = Field(
        default=None, description="which checkpoints are measured and checked, and how; default: none"
    )
    roar: RoarTable | None = Field(default=None, description="Recursive ROAR for comparison; default: none")


@dataclass(frozen=True)
class Grid:
    """Runs of a grid, each after the run that it needs, and the number of processes that share them."""

    runs: list[Run]
    workers: int = 1


def read(path: str | Path, *, data_dir: str | Path | None = None) -> Grid:
    """Read a grid file.

    Args:
        path: The TOML file.
        data_dir: Folder of the datasets, instead of the one named in the file.

    Returns:
        The runs, without duplicates, and the number of processes.

    Raises:
        InputError: The file is not TOML, or an entry is unknown, of the wrong type or without an effect.
    """
    entries = read_toml(Path(path))
    runs: dict[str, Run] = {}
    with located(path):
        file = GridFile(**entries)
        _require_known(file)
        # of equal runs, such as the start of several methods' Recursive ROAR, the first place counts
        for run in _expand(file, data_dir):
            runs.setdefault(f"{run.config.digest}-{run.trained.digest}", run)
    return Grid(list(runs.values()), file.workers)


def _expand(file: GridFile, data_dir: str | Path | None) -> Iterator[Run]:
    """Yield the runs task by task, so that the first tasks are finished early."""
    for task, model, seed in product(file.tasks, file.models, file.seeds):
        tables = [file.train, *([file.task[task]] if task in file.task else [])]
        options = {name: value for table in tables for name, value in _entries(table).items()}
        options |= {"task": task, "model": model, "seed": seed}
        if data_dir is not None:
            options["data_dir"] = str(data_dir)
        # a strategy that is only measured is trained, too
        measured = () if file.measure is None else file.measure.strategies or file.strategies
        trainings = {
            pair: Run(_train_config(options, pair)) for pair in dict.fromkeys([*file.strategies, *measured])
        }
        yield from trainings.values()
        config = None if file.measure is None else _measure_config(file.measure, task, seed)
        if config is not None:
            yield from (Run(config, trainings[pair]) for pair in measured)
        if file.roar is not None and _roar_covers(file.roar, task, model, seed):
            plain = Run(_train_config(options, PLAIN))
            yield plain
            # Recursive ROAR needs a random order of its own to compare with
            for method in dict.fromkeys([BASELINE, *file.roar.methods]):
                yield from _roar_steps(plain, method, file.roar.step)


def _entries(table: Validated) -> dict[str, Any]:
    """Return the entries that the file sets in a table, without defaults."""
    # a default in [task.NAME] must not undo what [train] sets
    return table.model_dump(exclude_unset=True)


def _train_config(options: dict[str, Any], pair: str) -> TrainConfig:
    strategy, _, validation = pair.partition("/")
    config = TrainConfig(**{**options, "strategy": strategy, "validation": validation})
    task_of(config)  # raises an InputError if the task is unknown
    return config


def _measure_config(table: MeasureTable, task: str, seed: int) -> MeasureConfig | None:
    """Return the config of a task's measurement; None if all methods are excluded.

    An empty list of methods in a config would mean all of them.
    """
    from ..methods.registry import parse

    without = {str(parse(name)) for name, tasks in table.without.items() if task in tasks}
    methods = tuple(names[1] for names in _methods(table) if not without.intersection(names))
    if not methods:
        return None
    seed = seed if table.seed is None else table.seed
    return MeasureConfig(
        methods=methods, seed=seed, limit=table.limit, step=table.step, precision=table.precision
    )


def _methods(table: MeasureTable) -> list[tuple[str, str]]:
    """Return each method's name without and with its options; `without` accepts either."""
    from ..methods.registry import PAPER, default_methods, parse

    methods = [parse(name) for name in table.methods or default_methods(PAPER)]
    return list(dict.fromkeys((method.name, str(method)) for method in methods))


def _roar_covers(table: RoarTable, task: str, model: str, seed: int) -> bool:
    return (
        task in (table.tasks or [task])
        and model in (table.models or [model])
        and seed in (table.seeds or [seed])
    )


def _roar_steps(plain: Run, method: str, step: int) -> Iterator[Run]:
    from ..methods.registry import parse

    run, erasing = plain, parse(method)
    options = plain.config.to_dict()
    for percent in [*range(step, 100, step), 100]:
        config = RoarConfig(**options, method=str(erasing), code=erasing.code, percent=percent, step=step)
        # each step explains the model of the one before it
        run = Run(config, run)
        yield run


def _require_known(file: GridFile) -> None:
    """Raise an InputError if a table names a task, model, seed or method that is not in the grid."""
    from ..methods.registry import parse

    _require_among("task with a table [task.NAME]", file.task, file.tasks)
    if file.measure is not None:
        with located("[measure]"):
            methods = [name for names in _methods(file.measure) for name in names]
        for method, tasks in file.measure.without.items():
            with located(f"[measure.without] {method}"):
                _require_among("method of this grid", [str(parse(method))], methods)
                _require_among("task of this grid", tasks, file.tasks)
    if file.roar is not None:
        with located("[roar]"):
            _require_among("task of this grid", file.roar.tasks or (), file.tasks)
            _require_among("model of this grid", file.roar.models or (), file.models)
            _require_among("seed of this grid", file.roar.seeds or (), file.seeds)
            for method in file.roar.methods:
                parse(method)


def _require_among(what: str, names: Iterable[object], known: Iterable[object]) -> None:
    for name in names:
        if name not in known:
            raise unknown(what, str(name), map(str, known))
