"""`faithmeter list`: lists of tasks, methods and runs, and JSON Schemas of files."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..config import AdaptConfig, MeasureConfig, RoarConfig, TrainConfig
from ..errors import DamageWarning, InputError, unknown
from .screen import Json, Store, join_values, marked, output, print_json, table

if TYPE_CHECKING:
    from ..data.task import Task
    from ..store.records import Record

CONFIGS = (TrainConfig, RoarConfig, AdaptConfig, MeasureConfig)
FILTERS = tuple(dict.fromkeys(["kind", *(name for config in CONFIGS for name in config.model_fields)]))
"""Names that `--where` knows: all fields of all configs."""
MAX_NAMED_METHODS = 3
"""Maximum number of methods listed by name; a longer list is given as a count."""
QUANTILES = (0, 25, 50, 75, 95, 100)
"""Percentiles at which text lengths are reported."""
Listing = tuple[Any, list[Any]]
"""JSON-ready values, and the tables and lines to print."""


def listing(
    what: Annotated[str, typer.Argument(help="tasks, methods, runs or schema")],
    name: Annotated[
        str | None,
        typer.Argument(help="a task or .toml task file to describe; for schema: grid, task, record, …"),
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="folder with the official files of the tasks")] = None,
    where: Annotated[
        list[str], typer.Option(help="condition on runs, e.g. strategy=half; may be repeated, all must hold")
    ] = [],  # noqa: B006
    store: Store = Path("runs"),
    as_json: Json = False,
) -> None:
    """List the tasks, one task in detail, the methods, the runs in a folder, or the JSON Schema of a file.

    Example: faithmeter list runs --where kind=train --where strategy=half
    """
    listings: dict[str, Callable[[], Listing]] = {
        "tasks": partial(tasks, data_dir),
        "methods": methods,
        "runs": partial(runs, store, where),
        "schema": partial(schema, name),
    }
    if what not in listings:
        raise unknown("list", what, listings)
    if name is not None and what not in ("tasks", "schema"):
        raise InputError(f"'list {what}' takes no name, but got {name!r}")
    if where and what != "runs":
        raise InputError(f"'list {what}' takes no --where, but got {where[0]!r}; only runs are filtered")
    value, tables = one_task(name, data_dir) if name is not None and what == "tasks" else listings[what]()
    if as_json:
        print_json(value)
    else:
        for part in tables:
            output.print(part, soft_wrap=not isinstance(part, Table))  # the terminal wraps lines


def tasks(data_dir: Path | None = None) -> Listing:
    """Return all tasks of the paper with their published sizes, without loading any rows."""
    from ..data import task as task_named
    from ..data.task import ROLES
    from ..paper.published import read_counts

    headings = ("task", "train/validation/test", "metric", "majority", "source", "here")
    rows = table("tasks: published sizes, and the source of the rows", *headings, numbers=False)
    values = []
    for name, numbers in read_counts().items():
        task = task_named(name, data_dir)
        source, metric = task.source, task.metric
        sizes = {split: sum(numbers["class_counts"][split]) for split in ROLES}
        majority = numbers["majority"]["test"][metric]
        place, here = f"{source.kind} {source.place}", "yes" if source.available else "no"
        rows.add_row(name, "/".join(map(str, sizes.values())), metric, f"{majority:.3f}", place, here)
        row = {"task": name, "sizes": sizes, "metric": metric, "majority": majority}
        values.append({**row, "source": asdict(source)})
    return values, [rows]


def describe_task(task: Task) -> dict[str, Any]:
    """Load a task, and return statistics and examples of its rows as JSON-ready values.

    `majority` is the test value of always predicting the most frequent training label, by metric; `words`
    has the lengths of the texts at the `QUANTILES`; `numbers` are minimum, mean and maximum of a regression
    task; `digests` are those of the splits.
    """
    from ..data.splits import digest
    from ..paper.published import read_counts
    from ..stats.metrics import majority

    splits = task.load()
    rows, counts, digests = {}, {}, {}
    for name, split in splits.items():
        rows[name] = split[:]
        counts[name] = _counts(rows[name]["label"], len(task.labels))
        digests[name] = digest(split)
    test = rows["test"]
    train = rows.get("train", test)
    words: dict[str, dict[int, int]] = {}
    examples = [{"label": _label_names(task, label)} for label in train["label"][:3]]
    for name in ("text", "context"):
        if name in train:
            # words between blanks, as people count: the tokens depend on the model
            lengths = sorted(len(text.split()) for split in rows.values() for text in split[name])
            words[name] = {percent: lengths[(len(lengths) - 1) * percent // 100] for percent in QUANTILES}
            for example, text in zip(examples, train[name], strict=False):
                example[name] = text
    published = read_counts().get(task.name.partition("(")[0])  # Anemia(labels=xor) is the published one
    numbers = train["label"] if task.kind == "regression" else []
    return {
        "task": task.name,
        "source": asdict(task.source),
        "as_published": task.own is None and published is not None and counts == published["class_counts"],
        "class_counts": {name: dict(zip(task.labels, of, strict=True)) for name, of in counts.items()},
        "majority": majority(task.metrics, train["label"], test["label"], len(task.labels)),
        "numbers": (min(numbers), sum(numbers) / len(numbers), max(numbers)) if numbers else None,
        "words": words,
        "examples": examples,
        "digests": digests,
    }


def _label_names(task: Task, label: float | list[int]) -> str:
    """Return the name of a label, the names of several, or a number."""
    if isinstance(label, list):
        return ", ".join(name for name, chosen in zip(task.labels, label, strict=True) if chosen)
    return task.labels[label] if isinstance(label, int) else f"{label:g}"


def _counts(labels: Sequence[Any], classes: int) -> list[int]:
    if isinstance(labels[0], float):  # numbers have no classes to count
        return [len(labels)]
    if isinstance(labels[0], list):  # several labels at once
        return list(map(sum, zip(*labels, strict=True)))
    return list(map(labels.count, range(classes)))


def one_task(name: str, data_dir: Path | None) -> Listing:
    """Return the description of one task, which is loaded for this purpose."""
    from ..data import task as task_named

    task = task_named(name, data_dir)
    description = describe_task(task)  # reads all rows
    return description, task_parts(task, description)


def task_parts(task: Task, description: Mapping[str, Any]) -> list[Any]:
    """Return the description of a task as lines and tables to print."""
    source, class_counts = description["source"], description["class_counts"]
    columns = f"text = {task.explained} (explained)" + (f", context = {task.context}" if task.context else "")
    lines = [
        marked(task.name, "bold", f" from {source['kind']}: {source['place']}"),
        f"{columns}, label = {task.label}; {task.metric} chooses the checkpoint",
        "these are the published splits" if description["as_published"] else "",
        source["note"],
    ]
    if description["numbers"]:
        low, mean, high = description["numbers"]
        lines.append(f"{task.labels[0]} from {low:g} to {high:g} in training, {mean:.3g} on average")
    counts = table("rows by label", "label", *class_counts)
    for label in task.labels:
        counts.add_row(label, *(f"{of_split[label]:,}" for of_split in class_counts.values()))
    counts.add_section()
    counts.add_row("all", *(f"{sum(of_split.values()):,}" for of_split in class_counts.values()))
    lengths = table("words: quantiles in %", "column", *map(str, QUANTILES))
    for column, quantiles in description["words"].items():
        lengths.add_row(column, *map(str, quantiles.values()))
    examples = table("the first rows", "label", "row", numbers=False)
    for example in description["examples"]:
        texts = "\n".join(f"{name}: {value:.300}" for name, value in example.items() if name != "label")
        examples.add_row(example["label"], texts)
    guess = "always the mean" if description["numbers"] else "class majority"
    baseline = join_values(description["majority"], ".3f")
    return [*filter(None, lines), counts, f"{guess} on test: {baseline}", lengths, examples]


def methods() -> Listing:
    """Return all methods, including those of plugins, with their options and defaults."""
    from ..methods.registry import METHODS, load_plugins

    load_plugins()  # installed packages register their methods when they are imported
    headings = ("method", "options and defaults", "description")
    rows = table("methods; options go in brackets: beam(width=20)", *headings, numbers=False)
    values = []
    for name, method in METHODS.items():
        values.append({"method": name, "options": method.defaults, "summary": method.about})
        options = ", ".join(f"{option}={value}" for option, value in method.defaults.items())
        rows.add_row(name, options, method.about)
    return values, [rows]


def schema(name: str | None) -> Listing:
    """Return the JSON Schema of a grid file, a task file, a record or a config."""
    from ..data.custom import TaskFile
    from ..grid.file import GridFile
    from ..store.records import record_schema

    schemas: dict[str, Callable[[], dict[str, Any]]] = {
        "grid": GridFile.model_json_schema,
        "task": TaskFile.model_json_schema,
        "record": record_schema,
        "train": TrainConfig.model_json_schema,
        "measure": MeasureConfig.model_json_schema,
    }
    if name not in schemas:
        raise unknown("schema", name or "", schemas)
    value = schemas[name]()
    return value, [json.dumps(value, indent=1, ensure_ascii=False)]


def runs(root: Path, where: list[str]) -> Listing:
    """Return the finished runs in a folder that meet all conditions, and the runs at work now.

    Raises:
        InputError: The folder holds no finished run, or a condition matches none of the runs.
    """
    from ..store.run_store import RunStore
    from ..store.trace_files import QUARANTINE

    conditions = list(map(_parse_condition, where))
    place = RunStore(root)
    records, running = list(place.records()), place.running()
    damaged = [*(root / QUARANTINE).glob("*")]
    if damaged:
        # each time, as a list without these runs would look like one of all
        warnings.warn(
            f"{root / QUARANTINE} holds {len(damaged)} damaged files or runs, which are not listed; run them "
            "again, then delete that folder",
            DamageWarning,
            stacklevel=2,
        )
    if not records and not running:
        raise InputError(
            f"{root} holds no finished run; expected a folder of runs, such as the one given to `train -o`"
        )
    for name, value in conditions:
        # a value that no run has is rather a typing error than a wish for an empty list
        known = set()
        for _, record in records:
            known.update(_filter_values(record, name))
        if value not in known:
            raise unknown(f"{name} of the runs in {root}", value, known - {""} or {"(none)"})
    headings = ("task", "model", "fine-tuning", "seed", "what", "finished", "folder")
    rows = table(f"runs in {root}", *headings, numbers=False)
    values = []
    for folder, record in records:
        if not all(value in _filter_values(record, name) for name, value in conditions):
            continue
        values.append({"folder": str(folder), **record.to_dict()})
        trained = record.trained
        rows.add_row(
            trained.task_or_data,
            Path(trained.model).name,
            f"{trained.strategy}/{trained.validation}",
            f"{trained.seed}",
            _summarize(record),
            record.finished,
            str(folder),
        )
    values += [{"kind": "running", **note} for note in running]
    return values, [_without_wrapping(rows), *([_running_table(running)] if running else [])]


def _running_table(running: list[dict[str, Any]]) -> Text:
    rows = table("at work now", "host", "process", "since", "run", numbers=False)
    for note in running:
        rows.add_row(note["host"], str(note["process"]), note["since"], note["run"])
    return _without_wrapping(rows)


def _summarize(record: Record) -> str:
    """Return a short description of the methods of a run; empty for a training run."""
    config = record.config
    if isinstance(config, RoarConfig):
        return f"{config.method} {config.percent} %"
    methods = _measured(record)
    return " ".join(methods) if len(methods) <= MAX_NAMED_METHODS else f"{len(methods)} methods"


def _without_wrapping(rows: Table) -> Text:
    """Return a table as text in its full width, so that no cell is wrapped or cut."""
    # folders are copied from this table, and a wrapped one cannot be
    wide = Console(width=10_000, color_system=None, markup=False, highlight=False)
    with wide.capture() as captured:
        wide.print(rows)
    return Text("\n".join(map(str.rstrip, captured.get().splitlines())))


def _parse_condition(condition: str) -> tuple[str, str]:
    name, equals, value = condition.partition("=")
    if not equals:
        raise InputError(f"--where {condition!r}; expected a name and a value, e.g. strategy=half")
    if name not in FILTERS:
        raise unknown("filter", name, FILTERS)
    return name, value


def _measured(record: Record) -> list[str]:
    """Return the names of the methods that a run measured; empty for other kinds of runs."""
    from ..store.records import Manifest

    return list(record.traces) if isinstance(record, Manifest) else []


def _filter_values(record: Record, name: str) -> set[str]:
    """Return the values of a field that `--where` matches for this run.

    A model also matches by the last part of its path, and `methods` by each method, with or without options.
    """
    trained = record.trained
    own = {"task": trained.task_or_data, "kind": record.kind}
    value = {**trained.to_dict(), **record.config.to_dict(), **own}.get(name, "")
    names = {str(value)}
    if name == "model":
        names.add(Path(value).name)
    if name == "methods":
        for method in _measured(record):
            names |= {method, method.partition("(")[0]}
    return names
