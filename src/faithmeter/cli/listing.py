"""`faithmeter list`: what there is: tasks, methods, runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..config import MeasureConfig, RoarConfig, TrainConfig
from ..errors import InputError, unknown
from .screen import Json, Store, marked, output, print_json, table

if TYPE_CHECKING:
    from ..runs.record import Record
    from ..tasks.summary import Detail

FILTERS = tuple(
    dict.fromkeys(
        [
            "kind",
            *(name for config in (TrainConfig, RoarConfig, MeasureConfig) for name in config.model_fields),
        ]
    )
)
FEW = 3
"""More methods than these are counted instead of named."""
Shown = tuple[Any, list[Any]]
"""Plain values for JSON, and what to print."""


def listing(
    what: Annotated[str, typer.Argument(help="tasks, methods or runs")],
    name: Annotated[
        str | None, typer.Argument(help="one task to describe in detail, or a .toml task file")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="folder with the official files of the tasks")] = None,
    where: Annotated[
        list[str], typer.Option(help="of runs, such as strategy=half; may be repeated, all must hold")
    ] = [],  # noqa: B006
    store: Store = Path("runs"),
    as_json: Json = False,
) -> None:
    """List the tasks, one task in detail, the methods, or the runs in a folder.

    Example: faithmeter list runs --where kind=train --where strategy=half
    """
    shown: dict[str, Callable[[], Shown]] = {
        "tasks": partial(tasks, data_dir),
        "methods": methods,
        "runs": partial(runs, store, where),
    }
    if what not in shown:
        raise unknown("list", what, shown)
    if name is not None and what != "tasks":
        raise InputError(f"'list {what}' takes no name, but got {name!r}")
    if where and what != "runs":
        raise InputError(f"'list {what}' takes no --where, but got {where[0]!r}; only runs are filtered")
    value, tables = one_task(name, data_dir) if name is not None else shown[what]()
    if as_json:
        print_json(value)
    else:
        for part in tables:
            output.print(part, soft_wrap=not isinstance(part, Table))  # lines are left to the terminal


def tasks(data_dir: Path | None) -> Shown:
    from ..tasks.summary import overview

    lines = overview(data_dir)
    headings = ("task", "train/validation/test", "metric", "majority", "source", "here")
    shown = table("tasks: published sizes, and where the rows would come from", *headings, numbers=False)
    for line in lines:
        sizes = "/".join(f"{line.sizes[split]}" for split in ("train", "validation", "test"))
        place = f"{line.source.kind} {line.source.place}"
        here = "yes" if line.source.available else "no"
        shown.add_row(line.task.name, sizes, line.task.metric, f"{line.majority:.3f}", place, here)
    values = [
        {
            "task": line.task.name,
            "sizes": line.sizes,
            "metric": line.task.metric,
            "majority": line.majority,
            "source": asdict(line.source),
        }
        for line in lines
    ]
    return values, [shown]


def one_task(name: str, data_dir: Path | None) -> Shown:
    from ..tasks import task
    from ..tasks.summary import detail

    found = detail(task(name, data_dir))
    return description(found), described(found)


def description(found: Detail) -> dict[str, Any]:
    """A task in plain values."""
    from ..tasks.summary import QUANTILES

    return {
        "task": found.task.name,
        "source": asdict(found.source),
        "as_published": found.as_published,
        "class_counts": {
            s: dict(zip(found.task.labels, c, strict=True)) for s, c in found.class_counts.items()
        },
        "majority": found.majority,
        "words": {column: dict(zip(QUANTILES, q, strict=True)) for column, q in found.lengths.items()},
        "examples": found.examples,
        "digests": found.digests,
    }


def described(found: Detail) -> list[Any]:
    """What was understood of a task, to print."""
    from ..tasks.summary import QUANTILES

    task = found.task
    columns = f"text = {task.explained} (explained)" + (f", context = {task.context}" if task.context else "")
    lines = [
        marked(task.name, "bold", f" from {found.source.kind}: {found.source.place}"),
        f"{columns}, label = {task.label}; {task.metric} chooses the checkpoint",
        "these are the published splits" if found.as_published else "",
        found.source.note,
    ]
    counts = table("rows by label", "label", *found.class_counts)
    for number, label in enumerate(task.labels):
        counts.add_row(label, *(f"{c[number]:,}" for c in found.class_counts.values()))
    counts.add_section()
    counts.add_row("all", *(f"{sum(c):,}" for c in found.class_counts.values()))
    lengths = table("words: quantiles in %", "column", *map(str, QUANTILES))
    for column, quantiles in found.lengths.items():
        lengths.add_row(column, *map(str, quantiles))
    examples = table("the first rows", "label", "row", numbers=False)
    for example in found.examples:
        texts = [f"{name}: {value:.300}" for name, value in example.items() if name != "label"]
        examples.add_row(example["label"], "\n".join(texts))
    baseline = ", ".join(f"{name} {value:.3f}" for name, value in found.majority.items())
    return [line for line in lines if line] + [
        counts,
        f"class majority on test: {baseline}",
        lengths,
        examples,
    ]


def methods() -> Shown:
    from ..methods.registry import METHODS, load_plugins

    load_plugins()
    headings = ("method", "options and defaults", "what it is")
    shown = table("methods; options go in brackets: beam(width=20)", *headings, numbers=False)
    values = []
    for name, method in METHODS.items():
        values.append({"method": name, "options": method.defaults, "summary": method.about})
        shown.add_row(name, ", ".join(f"{k}={v}" for k, v in method.defaults.items()), method.about)
    return values, [shown]


def runs(root: Path, where: list[str]) -> Shown:
    """The runs in which all conditions hold; in print the folder comes last and is never cut."""
    from ..runs.store import RunStore

    conditions = [_condition(said) for said in where]
    records = list(RunStore(root).records())
    if not records:
        raise InputError(
            f"{root} holds no finished run; expected a folder of runs, such as that of `train -o`"
        )
    for name, value in conditions:
        found = {text for _, record in records for text in _known_as(record, name)}
        if value not in found:
            raise unknown(f"{name} of the runs in {root}", value, found - {""} or {"(none)"})
    headings = ("task", "model", "fine-tuning", "seed", "what", "finished", "folder")
    shown = table(f"runs in {root}", *headings, numbers=False)
    values = []
    for folder, record in records:
        if not all(value in _known_as(record, name) for name, value in conditions):
            continue
        values.append({"folder": str(folder), **record.to_dict()})
        trained = record.trained
        shown.add_row(
            trained.task_or_data,
            Path(trained.model).name,
            f"{trained.strategy}/{trained.validation}",
            f"{trained.seed}",
            _what(record),
            record.finished,
            str(folder),
        )
    return values, [_uncut(shown)]


def _what(record: Record) -> str:
    config = record.config
    if isinstance(config, RoarConfig):
        return f"{config.method} {config.percent} %"
    methods = _measured(record)
    return " ".join(methods) if len(methods) <= FEW else f"{len(methods)} methods"


def _uncut(shown: Table) -> Text:
    """A table as wide as it needs to be: a terminal wraps its lines, a file has them whole."""
    wide = Console(width=10_000, color_system=None, markup=False, highlight=False)
    with wide.capture() as captured:
        wide.print(shown)
    return Text("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _condition(said: str) -> tuple[str, str]:
    name, equals, value = said.partition("=")
    if not equals:
        raise InputError(f"--where {said!r}; expected such as strategy=half")
    if name not in FILTERS:
        raise unknown("filter", name, FILTERS)
    return name, value


def _measured(record: Record) -> list[str]:
    """Return the methods that a run measured."""
    return list(record.methods) if record.kind == "measure" else []


def _known_as(record: Record, name: str) -> set[str]:
    """What a run goes by: a model by its path and its name, a measurement by each of its methods."""
    trained = record.trained
    own = {"task": trained.task_or_data, "kind": record.kind}
    value = {**trained.to_dict(), **record.config.to_dict(), **own}.get(name, "")
    names = {str(value)}
    if name == "model":
        names.add(Path(value).name)
    if name == "methods":
        names |= {text for method in _measured(record) for text in (method, method.partition("(")[0])}
    return names
