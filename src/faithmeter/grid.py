"""A TOML file → many runs in the order of their needs, done once each, by any number of processes."""

from __future__ import annotations

import time
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from .config import Config, MeasureConfig, RoarConfig, TrainConfig
from .errors import InputError, unknown
from .runs import filled_config, task_of
from .store import Busy, RunStore, environment, write_json

BASELINE = "random"
PLAIN = "none/unmasked"
PATIENCE = 2.0
"""Seconds until runs that other processes work on are looked at again."""
TABLES: dict[str, dict[str, type]] = {
    "": {
        **dict.fromkeys(("tasks", "models", "seeds", "strategies"), list),
        **dict.fromkeys(("train", "task", "measure", "roar"), dict),
        "workers": int,
    },
    "measure": {"strategies": list, "methods": list, "without": dict, "seed": int, "limit": int, "step": int},
    "roar": {"tasks": list, "models": list, "seeds": list, "methods": list, "step": int},
}
"""What a grid file may say, besides options of `faithmeter train` in [train] and, for a task, [task.NAME]."""


NEEDED = {"tasks": '["RTE"]', "models": '["roberta-base"]', "seeds": "[0, 1]", "strategies": '["half/both"]'}
KINDS = {list: "list", dict: "table", int: "whole number"}


@dataclass(frozen=True)
class Run:
    """One record to be: its config, and the run it needs. A measurement's config is filled in from that."""

    config: Config
    after: Run | None = None

    @property
    def trained(self) -> TrainConfig:
        """The fine-tuning that this run is, or is about."""
        config = self.after.config if isinstance(self.config, MeasureConfig) and self.after else self.config
        assert isinstance(config, TrainConfig)
        return config

    @property
    def name(self) -> str:
        trained = self.trained
        words = [self.config.kind, trained.data or trained.task, Path(trained.model).name]
        words += [f"{trained.strategy}/{trained.validation}", f"seed {trained.seed}"]
        if isinstance(self.config, RoarConfig):
            words += [self.config.method, f"{self.config.percent} %"]
        return " ".join(words)

    def located(self, store: RunStore) -> Config | None:
        """The config whose digest names the record; None while what a measurement needs is not there."""
        if not isinstance(self.config, MeasureConfig):
            return self.config
        record = store.peek(self.trained)
        if record is None:
            return None
        return filled_config(self.config, self.trained, record["fingerprint"], record["data"])

    def done(self, store: RunStore) -> bool:
        config = self.located(store)
        return config is not None and store.peek(config) is not None


@dataclass(frozen=True)
class Grid:
    """What a file asks for: runs, each after what it needs, and how many processes should share them."""

    runs: list[Run]
    workers: int = 1


def read(path: str | Path, *, data_dir: str | Path | None = None) -> Grid:
    """The grid of a TOML file."""
    path = Path(path)
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} cannot be read as a grid: {error}") from error
    for table in TABLES:
        _require(path, table, said.get(table, {}) if table else said)
    for name, example in NEEDED.items():
        if not said.get(name):
            raise InputError(f"{path} names no {name}; expected such as {name} = {example}")
    runs: dict[str, Run] = {}
    for run in _expanded(said, data_dir):
        runs.setdefault(f"{run.config.digest}-{run.trained.digest}", run)
    return Grid(list(runs.values()), said.get("workers", 1))


def _expanded(said: Mapping[str, Any], data_dir: str | Path | None) -> Iterator[Run]:
    """Task by task, so that early results are whole."""
    measure, roar = said.get("measure"), said.get("roar")
    for task, model, seed in product(said["tasks"], said["models"], said["seeds"]):
        options = said.get("train", {}) | said.get("task", {}).get(task, {})
        if data_dir is not None:
            options = options | {"data_dir": str(data_dir)}
        trainings = {
            pair: Run(_training({**options, "task": task, "model": model, "seed": seed}, pair))
            for pair in dict.fromkeys([*said["strategies"], *(measure or {}).get("strategies", ())])
        }
        yield from trainings.values()
        if measure is not None:
            for pair in measure.get("strategies", said["strategies"]):
                yield Run(_measurement(measure, task, seed), trainings[pair])
        if roar is not None and _chosen(roar, said, task, model, seed):
            plain = trainings.get(PLAIN) or Run(
                _training({**options, "task": task, "model": model, "seed": seed}, PLAIN)
            )
            yield plain
            for method in dict.fromkeys([BASELINE, *roar["methods"]]):
                yield from _roar(plain, method, roar.get("step", 10))


def _training(options: Mapping[str, Any], pair: str) -> TrainConfig:
    strategy, _, validation = str(pair).partition("/")
    config = TrainConfig.from_dict({**options, "strategy": strategy, "validation": validation})
    task_of(config)  # a task that is not known is a mistake in the file
    return config


def _measurement(measure: Mapping[str, Any], task: str, seed: int) -> MeasureConfig:
    from .methods import METHODS, parse

    without = measure.get("without", {})
    names = measure.get("methods", list(METHODS))
    methods = [str(parse(name)) for name in names if task not in without.get(name, ())]
    options = {name: measure[name] for name in ("limit", "step") if name in measure}
    return MeasureConfig(methods=" ".join(methods), seed=measure.get("seed", seed), **options)


def _chosen(roar: Mapping[str, Any], said: Mapping[str, Any], *place: Any) -> bool:
    if not roar.get("methods"):
        raise InputError('[roar] names no methods; expected such as methods = ["grad-l2"]')
    wanted = (roar.get(name, said[name]) for name in ("tasks", "models", "seeds"))
    return all(value in values for value, values in zip(place, wanted, strict=True))


def _roar(plain: Run, method: str, step: int) -> Iterator[Run]:
    from .methods import parse

    run = plain
    options = {option.name: getattr(plain.config, option.name) for option in TrainConfig.options()}
    for percent in [*range(step, 100, step), 100]:
        run = Run(RoarConfig(**options, method=str(parse(method)), percent=percent, step=step), run)
        yield run


def _require(path: Path, table: str, said: Mapping[str, Any]) -> None:
    for name, value in said.items():
        if name not in TABLES[table]:
            raise unknown(
                f"entry of [{table}] in {path}" if table else f"entry of {path}", name, TABLES[table]
            )
        expected = TABLES[table][name]
        if not isinstance(value, expected):
            raise InputError(f"{path}: {name} is {value!r}; expected a {KINDS[expected]}")


def execute(
    runs: Sequence[Run],
    store: RunStore,
    work: Callable[[Run], object],
    tell: Callable[[Run, str], object],
) -> list[Run]:
    """Do what is not done, and return the runs that failed. A failure is recorded, and the rest goes on.

    `tell` hears of every run once: done, finished, failed, or blocked by one that failed. A run that another
    process works on is waited for.
    """
    pending, failed = list(runs), set[Run]()
    while pending:
        waiting: list[Run] = []
        for run in pending:
            if run.done(store):
                tell(run, "done")
            elif run.after is not None and run.after in failed:
                failed.add(run)
                tell(run, "blocked")
            elif run.after is not None and not run.after.done(store):
                # not finished yet, or put aside since
                waiting += [run] if run.after in waiting else [run.after, run]
            else:
                outcome = _attempt(run, store, work)
                if outcome == "busy":
                    waiting.append(run)
                    continue
                if outcome == "failed":
                    failed.add(run)
                tell(run, outcome)
        if waiting == pending:
            time.sleep(PATIENCE)
        pending = waiting
    return [run for run in runs if run in failed]


def _attempt(run: Run, store: RunStore, work: Callable[[Run], object]) -> str:
    file = _failure(run, store)
    try:
        work(run)
    except Busy:
        return "busy"
    except Exception as error:  # recorded, so that one bad run costs nothing but itself
        write_json(
            file,
            {
                "run": run.name,
                "config": run.config.to_dict(),
                "error": f"{type(error).__name__}: {error}",
                "traceback": traceback.format_exc(),
                "failed": datetime.now(UTC).isoformat(timespec="seconds"),
                "environment": environment(),
            },
        )
        return "failed"
    file.unlink(missing_ok=True)
    return "finished"


def _failure(run: Run, store: RunStore) -> Path:
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in run.name)
    return store.root / "failures" / f"{name}-{run.trained.digest}.json"


def failures(runs: Iterable[Run], store: RunStore) -> dict[str, Path]:
    """Where the tracebacks of failed runs are."""
    return {run.name: file for run in runs if (file := _failure(run, store)).exists()}


def seconds(runs: Sequence[Run], store: RunStore) -> dict[Run, tuple[float, str] | None]:
    """What each run is expected to take, and how that is known: by runs here, or the published times."""
    frame = store.frame("seconds")
    frame["model"] = [Path(str(model)).name for model in frame["model"]]
    totals = frame.groupby(["kind", "task", "model", "digest"])["seconds"].sum()
    here = totals.groupby(["kind", "task", "model"]).mean().to_dict()
    found: dict[Run, tuple[float, str] | None] = {}
    for run in runs:
        trained = run.trained
        known = here.get((run.config.kind, trained.data or trained.task, Path(trained.model).name))
        told = _published_seconds(run) if known is None else None
        found[run] = (
            (known, "measured here") if known is not None else None if told is None else (told, "published")
        )
    return found


def _published_seconds(run: Run) -> float | None:
    """By the paper's wall-times, on one A100, of its models: each method is explained, evaluated, checked."""
    from .methods import METHODS

    size = {"roberta-base": "base_hhmm", "roberta-large": "large_hhmm"}.get(Path(run.trained.model).name)
    task = run.trained.task
    if size is None:
        return None
    if not isinstance(run.config, MeasureConfig):
        return _published("walltime_fine_tune", size).get((task,))
    methods = [name.partition("(")[0] for name in run.config.methods.split()] or list(METHODS)
    explained = _published("walltime_importance_measures", size)
    each = sum(
        _published(f"walltime_{part}", size).get((task,), 0.0) for part in ("faithfulness", "in_distribution")
    )
    return sum(explained.get((task, method), 0.0) + each for method in methods)


@cache
def _published(name: str, size: str) -> dict[tuple[str, ...], float]:
    """Seconds by task, or by task and method."""
    from .published import table

    rows = table(name).dropna(subset=[size])
    keys = [column for column in ("dataset", "importance_measure") if column in rows]
    times = [cell.split(":") for cell in rows[size]]
    found = (3600.0 * int(hours) + 60.0 * int(minutes) for hours, minutes in times)
    return dict(zip(rows[keys].itertuples(index=False, name=None), found, strict=True))
