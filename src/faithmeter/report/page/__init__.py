"""Report on the runs of a store: one self-contained HTML page, with tables and figures as files beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...config import BASELINE
from ...errors import InputError
from ...files import atomic
from ...store import frames
from ...store.result_frames import POOLED_SEEDS
from ...store.results import Pooled, describe_others, preferred
from ...store.run_store import RunStore
from .. import fragments
from ..labels import rename_tasks, task_names
from . import provenance
from .examples import choose_sources, example_groups
from .html import render
from .sections import fill_sections
from .top import view_top
from .verdict import Verdict, performance_sentences, together, verdicts

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..blocks import Table

    Frames = Mapping[str, DataFrame]

MAX_PAGE_BYTES = 9_900_000
"""Maximum size of the page; example texts that do not fit are left out."""

PAPER_TABLES = ("models",)
"""Tables that the page shows only beside published values, because charts show the same runs."""

Progress = Callable[[str, int, int], object]
"""Callback that receives the kind of output (figures, tables, page), the number done, and the total."""


@dataclass(frozen=True)
class Replication:
    """Tables and published areas of a paper, which a report shows beside the runs of a store.

    Attributes:
        tables: By name, functions that return a table from the frames of a store.
        areas: Published ACU in percent, by task, model and method.
    """

    tables: Mapping[str, Callable[[Frames], Table]] = field(default_factory=dict)
    areas: Mapping[tuple[str, str, str], float] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """Paths of the written page and files, the verdict that the page states, and those on each model."""

    page: Path
    verdict: Verdict
    files: list[Path] = field(default_factory=list)
    verdicts: tuple[Verdict, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values."""
        paths = {"page": str(self.page), "files": [str(file) for file in self.files]}
        return {**paths, "verdict": self.verdict.to_dict()}


def write(
    store: RunStore,
    path: Path,
    *,
    examples: int = 500,
    files: Path | None = None,
    progress: Progress | None = None,
    replication: Replication | None = None,
) -> Report:
    """Write the report on the runs of a store.

    Args:
        store: Store with the runs.
        path: Path of the page.
        examples: Maximum number of example texts.
        files: Folder for tables and figures; if None, they are only on the page.
        progress: Callback that is called after each figure, each table and the page.
        replication: What is shown beside the runs, from the paper that they replicate; None for nothing.

    Returns:
        The paths of the page and the files, and the verdict.

    Raises:
        InputError: The store holds no finished run.
    """
    advance, replication = progress or (lambda kind, done, total: None), replication or Replication()
    records = list(store.records())
    _require_runs(store, records)
    # a task of your own is its file in the frames, so that two files of one name are not averaged
    names = task_names(record for _, record in records)
    measured = [replace(pooled, name=names.get(pooled.task, "")) for pooled in store.results(records)]
    tidy, left_out = frames.comparable(
        {kind: frames.frame(kind, records, measured) for kind in frames.COLUMNS}
    )
    # runs that were left out of the frames must not come back by the results or the commands
    digests = {digest for frame in tidy.values() for digest in frame["digest"]}
    records = [(folder, record) for folder, record in records if record.digest in digests]
    measured = [pooled for pooled in measured if pooled.runs[0].newest.digest in digests]
    left_out += describe_others(measured)
    tidy = {kind: rename_tasks(frame, names) for kind, frame in tidy.items()}
    specs, figure_files = _figures(tidy, files and files / "figures", advance)
    tables, table_files = _tables(tidy, replication, files and files / "tables", advance)
    by_model = verdicts(measured, tidy["train"], replication.areas)
    chosen = [pooled.result for pooled in preferred(measured).values()]
    performance = list(performance_sentences(tidy["train"]))
    methods = list(dict.fromkeys(name for pooled in measured for name in pooled.result.methods))
    render_page = partial(
        render,
        specs,
        version=__version__,
        heading=_heading(by_model),
        facts=_facts(records, measured, methods),
        finished=_finished(records),
        verdict=together(by_model),
        verdicts=by_model,
        top=fragments.render(view_top(chosen, by_model, together(by_model))),
        left_out=left_out,
        sections=fill_sections(specs, tables, performance, pooled=POOLED_SEEDS in tidy["measure"]),
        performance=performance,
        methods=provenance.describe_methods(methods),
        settings=provenance.settings(records),
        commands=provenance.commands(records, store.root, path),
        runs=provenance.runs(records),
    )
    # rendered once without texts, to know what they may take
    free_bytes = MAX_PAGE_BYTES - len(render_page(texts=[]).encode())
    texts = example_groups(choose_sources(measured), examples, free_bytes)
    with atomic(path) as temporary:
        temporary.write_text(render_page(texts=texts), encoding="utf-8", newline="\n")
    advance("page", 1, 1)
    return Report(path, together(by_model), [*figure_files, *table_files], tuple(by_model))


def _figures(
    tidy: Frames, folder: Path | None, advance: Progress
) -> tuple[dict[str, dict[str, Any]], list[Path]]:
    """Return the specs of the figures that have data, and the files written to the folder, if any."""
    from ..figures import FIGURES, save, spec

    specs, paths = {}, []
    for number, (name, figure) in enumerate(FIGURES.items(), start=1):
        chart = figure(tidy)
        if chart is not None:
            specs[name] = spec(chart)
            paths += save(chart, folder, name) if folder else []
        advance("figures", number, len(FIGURES))
    return specs, paths


def _tables(
    tidy: Frames, replication: Replication, folder: Path | None, advance: Progress
) -> tuple[dict[str, Table], list[Path]]:
    """Return the tables of the page, and the files written to the folder, if any.

    The files always include the published values; the page includes them only for models of the paper.
    """
    from ..exports import save
    from ..tables.by_method import other_metrics_table, plausibility_table

    functions = {
        **replication.tables,
        "plausibility": plausibility_table,
        "other_metrics": other_metrics_table,
    }
    tables, paths = {}, []
    for number, (name, table_of) in enumerate(functions.items(), start=1):
        table = table_of(tidy)
        if table.rows:
            if table.compares_models:
                tables[name] = _with_method_names(table)
            elif name not in PAPER_TABLES:
                tables[name] = _with_method_names(table.without_comparison())
            paths += save(table, folder, name) if folder else []
        advance("tables", number, len(functions))
    return tables, paths


def _require_runs(store: RunStore, records: provenance.Records) -> None:
    if not any(record.kind in ("train", "adapt", "measure") for _, record in records):
        raise InputError(
            f"{store.root} holds no finished run; expected a store of runs: begin with `faithmeter demo`, "
            "or `faithmeter train` and then `faithmeter measure` on its checkpoint"
        )


def _heading(by_model: list[Verdict]) -> str:
    parts = []
    for kind in ("task", "model"):
        names = {getattr(verdict, kind) for verdict in by_model}
        parts.append(names.pop() if len(names) == 1 else f"{len(names)} {kind}s")
    return ", ".join(parts)


def _facts(records: provenance.Records, measured: Sequence[Pooled], methods: list[str]) -> list[str]:
    seeds = {record.trained.seed for _, record in records}
    counts = {"seed": len(seeds), "method": len(set(methods) - {BASELINE}), "run": len(records)}
    facts = [f"{count:,} {noun}{'s' * (count != 1)}" for noun, count in counts.items() if count]
    return [*facts, *_texts_per_method(measured), f"finished {_finished(records)}"]


def _texts_per_method(measured: Sequence[Pooled]) -> list[str]:
    """Return a phrase on how many texts the methods were measured on; empty if none was measured."""
    counts: dict[str, int] = {}
    for pooled in measured:
        for run in pooled.runs:
            for name in run.result.methods:
                counts[name] = max(run.result.texts_of(name), counts.get(name, 0))
    # random erasure is on the texts of every method; it counts only if nothing else was measured
    texts = {count for name, count in counts.items() if name != BASELINE} or set(counts.values())
    if not texts:
        return []
    fewest, most = min(texts), max(texts)
    return [f"{most:,} texts" if fewest == most else f"{fewest:,} to {most:,} texts, by method"]


def _finished(records: provenance.Records) -> str:
    """Return the date of the newest run; the current date would change the page every day."""
    return str(max(record.finished for _, record in records)[:10])


def _with_method_names(table: Table) -> Table:
    """Return the table with the method names of faithmeter instead of those of the paper."""
    columns = []
    for column in table.columns:
        columns.append(replace(column, form="code") if column.form == "method" else column)
    return replace(table, columns=tuple(columns))
