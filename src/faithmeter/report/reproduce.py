"""Command lines that reproduce the runs of records."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..config import AdaptConfig, Config, TrainConfig
from ..store.records import Manifest, Record, RoarRecord, TrainRecord
from ..store.run_store import RunStore

MEASURE_OPTIONS = ("classes", "seed", "limit", "step", "unit", "overlap", "complement")
"""Options of a measurement besides task, data and methods; other settings come from the checkpoint."""


def reproduce(records: Sequence[Record], root: Path, elsewhere: Mapping[str, str] = {}) -> list[str]:
    """Return the commands that produce these records in a store, training runs first.

    Runs of Recursive ROAR have no command of their own; a comment counts them.

    Args:
        records: Records in any order.
        root: Folder of the store.
        elsewhere: Paths of checkpoints whose training is not among the records, by fingerprint. A checkpoint
            that is not listed keeps the name under which it was measured.
    """
    trainings = [one for one in records if isinstance(one, TrainRecord) and not isinstance(one, RoarRecord)]
    # a measurement names its checkpoint by the weights; the training that made them knows the folder
    configs = {record.fingerprint: record.config for record in trainings}
    lines = [_train(record.config) for record in trainings]
    for record in records:
        if isinstance(record, Manifest):
            config = configs.get(record.config.checkpoint)
            place = RunStore(root).folder(config) if config else elsewhere.get(record.config.checkpoint)
            lines.append(["measure", str(place or record.trained.model), *_measure(record, config)])
    commands = [shlex.join(["faithmeter", *line, "-o", str(root)]) for line in lines]
    steps = sum(isinstance(record, RoarRecord) for record in records)
    if steps:
        commands.append(f"# {steps} runs of Recursive ROAR: run `faithmeter grid` with their grid file")
    return commands


def _train(config: TrainConfig) -> list[str]:
    """Return the command, arguments and options of a training run or an adaptation."""
    if not isinstance(config, AdaptConfig):
        return ["train", *_flags(config, TrainConfig.model_fields)]
    options = (name for name in AdaptConfig.model_fields if name not in ("model", "compare_code"))
    return ["adapt", config.model, *_flags(config, options)]


def _measure(record: Manifest, training: TrainConfig | None) -> Iterator[str]:
    """Yield the options of a measurement, except for those known from the training of its checkpoint."""
    config, data_dir = record.config, record.trained.data_dir
    if training is None and isinstance(record.trained, AdaptConfig):
        training = record.trained  # an adaptation is the training of its checkpoint
    trained = record.trained
    if trained.data and (training is None or trained.data != training.data):
        all_test = trained.data == trained.test  # texts that were given with --test alone
        for name in ("data", "valid", "test", "text", "label", "pair", "rationale"):
            value = getattr(trained, name)
            if value and not (all_test and name == "data"):
                yield from (f"--{name}", value)
    elif training is None or config.task != training.task_or_data:
        yield from ("--task", config.task)
    if data_dir and (training is None or data_dir != training.data_dir):
        yield from ("--data-dir", data_dir)
    for name in config.methods:  # own scores are read from their file again
        origin = record.scores.get(name, "")
        yield from ("--scores", f"{name}={origin}") if origin else ("-m", name)
    if config.label:
        yield from ("--class", config.label)
    yield from _flags(config, MEASURE_OPTIONS)


def _flags(config: Config, names: Iterable[str]) -> Iterator[str]:
    """Yield the options whose values differ from their defaults, and the task unless `data` replaces it."""
    changes = config.changes()
    for name in names:
        if name in changes or (name == "task" and not getattr(config, "data", "")):
            yield "--" + name.replace("_", "-")
            value = getattr(config, name)
            if value is not True:  # a flag stands alone
                yield str(value)
