"""A store → one page to send around, with the tables and figures beside it as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import __version__, published
from ...config import BASELINE
from ...errors import InputError
from ...files import atomic
from ...runs import frames
from ...runs.record import MeasureRecord, Record
from ...runs.store import RunStore, sound
from . import examples as packing
from . import provenance
from .html import render
from .sections import filled
from .shared_texts import shared
from .verdict import Verdict, together, verdicts

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..tables import Table

    Frames = Mapping[str, DataFrame]

LARGEST = 9_900_000
"""Bytes of a page; texts for which there is no room are left out."""

Progress = Callable[[str, int, int], object]


@dataclass(frozen=True)
class Report:
    """Where the page and its files are, and what it says."""

    page: Path
    verdict: Verdict
    files: list[Path] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        paths = {"page": str(self.page), "files": [str(file) for file in self.files]}
        return {**paths, "verdict": self.verdict.to_dict()}


def write(
    store: RunStore,
    path: Path,
    *,
    examples: int = 500,
    files: Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Write the page of a store, with at most `examples` texts; tables and figures go to `files`, if given.

    `progress` is called with what is being made, how many of them are done, and how many there are.
    """
    moved = progress or (lambda what, done, total: None)
    records = [(folder, record) for folder, record in store.records() if _readable(folder, record)]
    _require_runs(store, records)
    found, left_out = frames.comparable({kind: frames.frame(kind, records) for kind in frames.COLUMNS})
    digests = {digest for frame in found.values() for digest in frame["digest"]}
    records = [(folder, record) for folder, record in records if record.digest in digests]
    specs, drawn = _figures(found, files and files / "figures", moved)
    tables, noted = _tables(found, files and files / "tables", moved)
    judged = verdicts({**found, "shared": shared(records)}, _published())
    methods = _methods(records)
    show = partial(
        render,
        specs,
        version=__version__,
        heading=_heading(judged),
        facts=_facts(records, methods),
        made=_finished(records),
        verdict=together(judged),
        verdicts=judged,
        left_out=left_out,
        sections=filled(specs, tables),
        methods=provenance.methods(methods),
        settings=provenance.settings(records),
        commands=provenance.commands(records, store.root, path),
        runs=provenance.runs(records),
    )
    room = LARGEST - len(show(texts=[]).encode())
    texts = packing.pack(packing.sources(records), examples, room)
    with atomic(path) as temporary:
        temporary.write_text(show(texts=texts), encoding="utf-8", newline="\n")
    moved("page", 1, 1)
    return Report(path, together(judged), [*drawn, *noted])


def _figures(
    found: Frames, folder: Path | None, moved: Progress
) -> tuple[dict[str, dict[str, Any]], list[Path]]:
    """The specs of all figures that the frames give, and the files that were written to the folder."""
    from ..figures import FIGURES, save, spec

    specs, written = {}, []
    for number, (name, figure) in enumerate(FIGURES.items(), start=1):
        if (chart := figure(found)) is not None:
            specs[name] = spec(chart)
            written += save(chart, folder, name) if folder else []
        moved("figures", number, len(FIGURES))
    return specs, written


def _tables(found: Frames, folder: Path | None, moved: Progress) -> tuple[dict[str, Table], list[Path]]:
    """The same for tables; on the page without published columns where nothing was published."""
    from ..tables import TABLES, save

    shown, written = {}, []
    for number, (name, make) in enumerate(TABLES.items(), start=1):
        if not (table := make(found)).empty:
            shown[name] = _as_named(table if _has_published(table) else table.without_comparison())
            written += save(table, folder, name) if folder else []
        moved("tables", number, len(TABLES))
    return shown, written


def _readable(folder: Path, record: Record) -> bool:
    """Of measurements every text is looked into: one with a damaged file is put aside, not half used."""
    return not isinstance(record, MeasureRecord) or sound(folder, record)


def _require_runs(store: RunStore, records: provenance.Records) -> None:
    if not any(record.kind in ("train", "measure") for _, record in records):
        raise InputError(
            f"{store.root} holds no finished run; expected a store of runs: begin with `faithmeter demo`, "
            "or `faithmeter train` and then `faithmeter measure` on its checkpoint"
        )


def _heading(judged: list[Verdict]) -> str:
    names = {"tasks": {one.task for one in judged}, "models": {one.model for one in judged}}
    said = [next(iter(found)) if len(found) == 1 else f"{len(found)} {what}" for what, found in names.items()]
    return ", ".join(said)


def _facts(records: provenance.Records, methods: list[str]) -> list[str]:
    measured = [record for _, record in records if isinstance(record, MeasureRecord)]
    trained = {record.trained.seed for _, record in records}
    counts = {"seed": len(trained), "method": len(set(methods) - {BASELINE}), "run": len(records)}
    counts["text"] = max((record.texts for record in measured), default=0)
    said = [f"{count:,} {what}{'s' * (count != 1)}" for what, count in counts.items() if count]
    return [*said, f"finished {_finished(records)}"]


def _finished(records: provenance.Records) -> str:
    """The day of the newest run: the same store gives the same page on any day."""
    return str(max(record.finished for _, record in records)[:10])


def _methods(records: provenance.Records) -> list[str]:
    measured = (record for _, record in records if isinstance(record, MeasureRecord))
    return list(dict.fromkeys(name for record in measured for name in record.methods))


def _published() -> dict[tuple[str, str, str], float]:
    """ACU in percent by task, model and method."""
    rows = published.table("faithfulness").dropna(subset=["acu"])
    keys = zip(rows["dataset"], rows["model"], rows["importance_measure"], strict=True)
    return dict(zip(keys, rows["acu"], strict=True))


def _as_named(table: Table) -> Table:
    """With methods called as everywhere on the page, not as in the paper."""
    named = (replace(column, form="code") if column.form == "method" else column for column in table.columns)
    return replace(table, columns=tuple(named))


def _has_published(table: Table) -> bool:
    places = [place for place, column in enumerate(table.columns) if column.side == "published"]
    return any(not row[place].missing for row in table.rows for place in places)
