"""`faithmeter list`: what there is: tasks, methods, runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from ..config import MeasureConfig, RoarConfig, TrainConfig
from ..errors import InputError, unknown
from .screen import Json, Store, output, print_json, table

if TYPE_CHECKING:
    from ..tasks.overview import Detail

FILTERS = tuple(
    dict.fromkeys(
        [
            "kind",
            *(
                option.name
                for config in (TrainConfig, RoarConfig, MeasureConfig)
                for option in config.options()
            ),
        ]
    )
)
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
        for table in tables:
            output.print(table)


def tasks(data_dir: Path | None) -> Shown:
    from ..tasks.overview import overview

    lines = overview(data_dir)
    headings = ("task", "train/validation/test", "metric", "majority", "source", "here")
    shown = table("tasks: published sizes, and where the rows would come from", *headings, numbers=False)
    for line in lines:
        sizes = "/".join(f"{line.sizes[split]}" for split in ("train", "validation", "test"))
        place = f"{line.source.kind} {line.source.place}"
        here = "yes" if line.source.available else "no"
        shown.add_row(line.task.name, sizes, line.task.metric, f"{line.majority:.3f}", escape(place), here)
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
    from ..tasks.overview import detail

    found = detail(task(name, data_dir))
    return description(found), described(found)


def description(found: Detail) -> dict[str, Any]:
    """A task in plain values."""
    from ..tasks.overview import QUANTILES

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
    from ..tasks.overview import QUANTILES

    task = found.task
    columns = f"text = {task.explained} (explained)" + (f", context = {task.context}" if task.context else "")
    lines = [
        f"[bold]{escape(task.name)}[/] from {escape(f'{found.source.kind}: {found.source.place}')}",
        escape(f"{columns}, label = {task.label}; {task.metric} chooses the checkpoint"),
        "these are the published splits" if found.as_published else "",
        escape(found.source.note),
    ]
    counts = table("rows by label", "label", *found.class_counts)
    for number, label in enumerate(task.labels):
        counts.add_row(escape(label), *(f"{c[number]:,}" for c in found.class_counts.values()))
    counts.add_section()
    counts.add_row("all", *(f"{sum(c):,}" for c in found.class_counts.values()))
    lengths = table("words: quantiles in %", "column", *map(str, QUANTILES))
    for column, quantiles in found.lengths.items():
        lengths.add_row(column, *map(str, quantiles))
    examples = table("the first rows", "label", "row", numbers=False)
    for example in found.examples:
        texts = [f"{name}: {value:.300}" for name, value in example.items() if name != "label"]
        examples.add_row(escape(example["label"]), escape("\n".join(texts)))
    baseline = ", ".join(f"{name} {value:.3f}" for name, value in found.majority.items())
    return [line for line in lines if line] + [
        counts,
        f"class majority on test: {baseline}",
        lengths,
        examples,
    ]


def methods() -> Shown:
    from ..methods import METHODS, load_plugins

    load_plugins()
    headings = ("method", "options and defaults", "what it is")
    shown = table("methods; options go in brackets: beam(width=20)", *headings, numbers=False)
    values = []
    for name, method in METHODS.items():
        parameters = inspect.signature(method.function).parameters.values()
        options = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        summary = (inspect.getdoc(method.function) or "").split("\n")[0]
        values.append({"method": name, "options": options, "summary": summary})
        shown.add_row(name, escape(", ".join(f"{k}={v}" for k, v in options.items())), escape(summary))
    return values, [shown]


def runs(root: Path, where: list[str]) -> Shown:
    from ..frames import trained_config
    from ..store import RunStore

    headings = ("run", "task", "model", "fine-tuning", "seed", "what", "finished")
    shown = table(f"runs in {root}", *headings, numbers=False)
    values = []
    for folder, record in RunStore(root).records():
        config, trained = record["config"], trained_config(record)
        known = {**trained, **config, "task": trained["task"], "kind": record["kind"]}
        if not all(_holds(known, condition) for condition in where):
            continue
        values.append({"folder": str(folder), **record})
        what = {"measure": config.get("methods") or "all methods", "roar": f"{config.get('percent')} %"}
        facts = (
            folder.name,
            trained["task"],
            Path(trained["model"]).name,
            f"{trained['strategy']}/{trained['validation']}",
            f"{trained['seed']}",
            " ".join(filter(None, [config.get("method"), what.get(record["kind"])])),
        )
        shown.add_row(*map(escape, facts), record["finished"])
    return values, [shown]


def _holds(known: dict[str, Any], condition: str) -> bool:
    """Whether a run is as `name=value` says; a model is known by its name as well as by its path."""
    name, equals, value = condition.partition("=")
    if not equals:
        raise InputError(f"--where {condition!r}; expected such as strategy=half")
    if name not in FILTERS:
        raise unknown("filter", name, FILTERS)
    found = str(known.get(name, ""))
    return value in ((found, Path(found).name) if name == "model" else (found,))
