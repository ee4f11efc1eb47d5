"""Provenance: methods, settings, commands and digests, from which the numbers of runs can be reproduced."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

from ..config import AdaptConfig, Config, MeasureConfig, TrainConfig
from ..methods.registry import find_method
from ..store.records import Manifest, Record, RoarRecord, TrainRecord
from ..store.run_store import RunStore
from .blocks import Column, Row, Section, Table, plain_row

Records = Sequence[tuple[Path, Record]]

CONFIGS: dict[str, type[Config]] = {"Fine-tuning": TrainConfig, "Measurement": MeasureConfig}
ENVIRONMENT_FIELDS = ("python", "machine", "cores", "host", "commit")
MAX_LISTED_VALUES = 12
"""Maximum number of values listed for a setting; more are given as a count."""
WORDS = "words"
"""Mark of cells with sentences, which may take several lines."""
MEASURE_OPTIONS = ("classes", "seed", "limit", "step", "unit", "overlap", "complement")
"""Options of a measurement besides task, data and methods; other settings come from the checkpoint."""


def methods_table(names: Iterable[str]) -> Table:
    """Return what each method computes, with its options and its unit."""
    rows = []
    for name in names:
        method = find_method(name)
        notes: list[str] = []
        about = "a method that is not part of faithmeter"
        if method is not None:
            about = method.about
            notes += map("{0[0]}={0[1]}".format, method.options_with_defaults.items())
            notes += [f"scores in {method.score_unit}"] if method.unit else []
            notes.append(
                "computed again at every step" if method.recursive else "computed once for all steps"
            )
        [label] = plain_row(name)
        rows.append((label, *plain_row(about, " · ".join(notes), mark=WORDS)))
    columns = (Column(("method",), "label", "code"), *map(Column, [("computes",), ("how",)]))
    return Table("Methods", columns, tuple(rows))


def settings_sections(records: Records) -> list[Section]:
    """Return the settings of the runs, the versions and the machines, as folded tables."""
    sections = []
    for title, values in settings(records).items():
        rows: list[Row] = []
        for name, text in values.items():
            rows.append((*plain_row(name), *plain_row(text, mark=WORDS)))
        table = Table(title, (Column(("setting",), "label"), Column(("values",))), tuple(rows))
        sections.append(Section(title, (table,), folded=True))
    return sections


def digests_section(records: Records) -> Section:
    """Return the folder, digest, finishing time and record checksum of each run, as a folded table."""
    rows = []
    for folder, record in records:
        rows.append(plain_row(record.digest, folder.name, record.finished, record.checksum))
    columns = (
        Column(("digest",), "label", "code"),
        Column(("run",)),
        Column(("finished",)),
        Column(("checksum of the record",), form="code"),
    )
    title = f"Digests of {len(rows)} run{'s' * (len(rows) != 1)}"
    return Section(title, (Table("Runs in this report", columns, tuple(rows)),), folded=True)


def settings(records: Records) -> dict[str, dict[str, str]]:
    """Return the distinct settings, package versions and machines of the runs, by heading and name."""
    values = dict(zip(CONFIGS, (_config_values(config, records) for config in CONFIGS.values()), strict=True))
    versions: dict[str, list[Any]] = defaultdict(list)
    made_on: dict[str, list[Any]] = defaultdict(list)
    for _, record in records:
        for name, version in record.environment.versions.items():
            versions[name].append(version)
        for name in ENVIRONMENT_FIELDS:
            made_on[name].append(getattr(record.environment, name))
    values |= {"Versions": versions, "Made on": made_on}
    settings: dict[str, dict[str, str]] = defaultdict(dict)
    for title, lists in values.items():
        for name, used in lists.items():
            if text := _distinct(used):
                settings[title][name] = text
    return dict(settings)


def commands(records: Records, root: Path, page: Path) -> str:
    """Return the command lines that reproduce the runs and the page."""
    report = shlex.join(["faithmeter", "report", str(root), "-o", str(page)])
    return "\n".join([*reproduce(list(map(itemgetter(1), records)), root), report])


def reproduce(records: Sequence[Record], root: Path, elsewhere: Mapping[str, str] = {}) -> list[str]:
    """Return the commands that produce these records in a store, training runs first.

    Runs of Recursive ROAR have no command of their own; a comment counts them.

    Args:
        records: Records in any order.
        root: Folder of the store.
        elsewhere: Paths of checkpoints whose training is not among the records, by fingerprint. A checkpoint
            that is not listed keeps the name under which it was measured.
    """
    configs, steps = {}, 0
    trainings: list[list[str]] = []
    lines: list[list[str]] = []
    for record in records:
        if isinstance(record, RoarRecord):
            steps += 1
        elif isinstance(record, TrainRecord):
            # a measurement names its checkpoint by the weights; the training that made them knows the folder
            configs[record.fingerprint] = record.config
            trainings.append(_train(record.config))
    for record in records:
        if isinstance(record, Manifest):
            config = configs.get(record.config.checkpoint)
            place = RunStore(root).folder(config) if config else elsewhere.get(record.config.checkpoint)
            lines.append(["measure", str(place or record.trained.model), *_measure(record, config)])
    commands = []
    for line in (*trainings, *lines):
        commands.append(shlex.join(["faithmeter", *line, "-o", str(root)]))
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


def _distinct(values: Iterable[Any]) -> str:
    texts = {str(value) for value in values if value not in ("", None, ())}
    if len(texts) > MAX_LISTED_VALUES:  # such as the seeds of a large grid
        return f"{len(texts)} different ones"
    return ", ".join(sorted(texts, key=lambda text: (len(text), text)))  # 9 before 10
