"""Traces on disk: what a model did as methods erased the texts of one subject, in slices of rows.

    traces/<subject>/subject.json           what all traces share, see `identity.describe_subject`
                     texts/0-64.parquet     the texts with the places of their units, once
                     <method>-<digest>/     trace.json, and for each slice of rows:
                         0-64.parquet             targets, logits, scores, steps
                         p-<test>-0-64.parquet    p-values of an in-distribution test
                         kept-0-64.parquet        probabilities of the complement

A slice is written when it is finished. P-values and complements are side files, so that another test explains
nothing again. Damaged files are put aside, and count as missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..files import checksum_file, read_sealed_json, write_parquet, write_sealed_json
from ..measuring import texts as reading
from ..measuring.trace import Trace, add_costs
from .identity import describe_subject, digest_values
from .trace_files import (
    KEPT,
    as_frame,
    as_side_frame,
    as_trace,
    costs_of,
    list_prefixes,
    list_slices,
    name_file,
    pvalues_prefix,
    read_file,
    read_side_values,
    read_span,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..measuring.plan import Plan

TRACES = "traces"
"""Folder of the traces in a store."""
TEXTS = "texts"
"""Folder of the texts of a subject."""


@dataclass(frozen=True)
class Shelf:
    """Folder with the texts and traces of one subject."""

    folder: Path

    @classmethod
    def of_plan(cls, root: Path, plan: Plan) -> Shelf:
        """Return the shelf of a measurement's subject in a store; it is created if there is none."""
        subject = describe_subject(plan)
        shelf = cls(root / TRACES / digest_values(subject))
        # written once: it is for readers and for Ray, the folder's name is what identifies
        if not (shelf.folder / "subject.json").exists():
            write_sealed_json(shelf.folder / "subject.json", subject)
        return shelf

    def read_texts(self, count: int) -> list[DataFrame]:
        """Return the slices of texts that are there, up to the slice with row `count - 1`."""
        # texts are kept once for all methods; a trace refers to them by row
        return _read_slices(self.folder / TEXTS, "", count)

    def write_texts(self, frame: DataFrame) -> None:
        """Write a slice of texts."""
        write_parquet(self.folder / TEXTS / name_file(rows_of(frame)), frame)

    def read_trace(self, name: str, count: int, tests: Mapping[str, str], *, complement: bool) -> list[Trace]:
        """Return the slices of a trace that are there, up to the slice with row `count - 1`.

        A slice is divided where its side files begin and end, so that each part has them or has them not.

        Args:
            name: Name of the trace's folder.
            count: Number of rows that are needed.
            tests: By the name of each test that is asked for, its name in files.
            complement: Whether the complement is asked for.
        """
        folder = self.folder / name
        traces = [*map(as_trace, _read_slices(folder, "", count))]
        prefixes = dict(zip(tests, map(pvalues_prefix, tests.values()), strict=True))
        if complement:
            prefixes[KEPT] = KEPT
        for kind, prefix in prefixes.items():
            sides, parts = _read_slices(folder, prefix, count), []
            for trace in traces:
                parts += _add_sides(trace, kind, sides)
            traces = parts
        # of rows that are not needed, a test that was asked for on fewer texts has no p-values
        return [trace for trace in traces if rows_of(trace).start < count]

    def write_trace(
        self,
        name: str,
        description: Mapping[str, Any],
        trace: Trace,
        tests: Mapping[str, str],
        known: Trace | None = None,
    ) -> None:
        """Write a slice of a trace, or what it has besides the `known` part that is there already."""
        folder, rows = self.folder / name, rows_of(trace)
        if not (folder / "trace.json").exists():
            write_sealed_json(folder / "trace.json", description)
        sides = {
            pvalues_prefix(tests[test]): values
            for test, values in trace.pvalues.items()
            if known is None or test not in known.pvalues
        }
        if trace.kept is not None and (known is None or known.kept is None):
            sides[KEPT] = trace.kept
        # what is added later has costs of its own, which the first file holds
        costs = {} if known is None else costs_of(trace, known)
        for prefix, values in sides.items():
            write_parquet(folder / name_file(rows, prefix), as_side_frame(trace.rows, values, costs))
            costs = {}
        if known is None:  # last, as a slice without its side files would be completed at a cost
            write_parquet(folder / name_file(rows), as_frame(trace))


def find_subjects(root: Path, fingerprint: str) -> list[str]:
    """Return the folders of a store with traces of the model with this fingerprint, relative to the store."""
    subjects = []
    for file in sorted((root / TRACES).glob("*/subject.json")):
        with suppress(InputError):  # damaged
            if read_sealed_json(file).get("fingerprint") == fingerprint:
                subjects.append(file.parent.relative_to(root).as_posix())
    return subjects


def find_gaps(known: Iterable[range], count: int) -> list[range]:
    """Return the rows below `count` that no range covers, cut at multiples of `SLICE`."""
    gaps, end = [], 0
    for start, stop in [*sorted(map(attrgetter("start", "stop"), known)), (count, count)]:
        while end < min(start, count):
            # slices end at the same multiples in every measurement, so that methods measured apart share them
            following = min(start, count, (end // reading.SLICE + 1) * reading.SLICE)
            gaps.append(range(end, following))
            end = following
        end = max(end, stop)
    return gaps


def rows_of(values: Trace | DataFrame) -> range:
    """Return the rows of a slice, which follow each other."""
    rows = values.rows if isinstance(values, Trace) else values["row"]
    return range(int(rows.min()), int(rows.max()) + 1)


def _read_slices(folder: Path, prefix: str, count: int) -> list[DataFrame]:
    """Return the files of a folder with rows below `count` that can be read."""
    return _read_intact(file for file in list_slices(folder, prefix) if read_span(file).start < count)


def _read_intact(files: Iterable[Path]) -> list[DataFrame]:
    """Return the frames of the files that are not damaged."""
    return [frame for frame in map(read_file, files) if frame is not None]


def _add_sides(trace: Trace, kind: str, sides: Iterable[DataFrame]) -> list[Trace]:
    """Return the parts of a slice with the values of the side files that cover them.

    The kind is the name of a test, or `KEPT`.
    """
    own = rows_of(trace)
    sides = [side for side in sides if rows_of(side).start < own.stop and rows_of(side).stop > own.start]
    spans = [*map(rows_of, sides)]
    parts = []
    # a test may have been asked for on fewer texts than the slice has
    for part in trace.cut(chain.from_iterable(map(attrgetter("start", "stop"), spans))):
        rows = rows_of(part)
        for span, side in zip(spans, sides, strict=True):
            if span.start <= rows.start and rows.stop <= span.stop:
                values = read_side_values(side)[rows.start - span.start : rows.stop - span.start]
                if kind == KEPT:
                    part = replace(part, kept=values)
                else:
                    part = replace(part, pvalues={**part.pvalues, kind: values})
                costs: dict[Any, Any] = side.attrs  # none if they are among those of the slice
                if costs and rows.start == max(span.start, own.start):  # of several parts, one has them
                    part = replace(part, **add_costs([vars(part), costs]))
        parts.append(part)
    return parts


def merge_slices(shelf: Shelf, traces: Iterable[str]) -> None:
    """Merge neighboring slices of texts and traces, and neighboring side files.

    A merged file is written before its parts are deleted. A kill in between leaves files that overlap: the
    longest is read, and the next merge deletes the others.
    """
    for folder in map(shelf.folder.joinpath, [TEXTS, *traces]):
        for prefix in list_prefixes(folder):
            for neighbors in _group_neighbors(list_slices(folder, prefix)):
                if len(neighbors) > 1:
                    _merge(neighbors, prefix)
            _delete_covered(folder, prefix)


def _group_neighbors(files: Iterable[Path]) -> list[list[Path]]:
    """Return files in groups without a gap between their rows."""
    groups: list[list[Path]] = []
    for file in files:
        if not groups or read_span(groups[-1][-1]).stop < read_span(file).start:
            groups.append([])
        groups[-1].append(file)
    return groups


def _merge(files: list[Path], prefix: str) -> None:
    """Write the rows of all files to one file, unless one of them is damaged."""
    frames = _read_intact(files)
    # a damaged part is computed again by the next measurement, which then merges it
    if len(frames) == len(files):
        rows = range(read_span(files[0]).start, read_span(files[-1]).stop)
        write_parquet(files[0].with_name(name_file(rows, prefix)), _join(frames))


def _join(frames: list[DataFrame]) -> DataFrame:
    """Return the rows of all frames, with the costs of all."""
    import pandas as pd

    attributes: list[dict[Any, Any]] = []
    for frame in frames:
        attributes.append(frame.attrs)
        frame.attrs = {}  # pandas compares them
    joined = pd.concat(frames, ignore_index=True)
    # side files that were written with their slice have no costs: those are among the slice's
    costs = [own for own in attributes if "seconds" in own]
    total: dict[Any, Any] = add_costs(costs) if costs else {}
    joined.attrs = attributes[0] | total
    return joined


def _delete_covered(folder: Path, prefix: str) -> None:
    """Delete the files with a prefix whose rows a longer one has."""
    kept = list_slices(folder, prefix)
    spans = [*map(read_span, kept)]
    for file in [*folder.glob(f"{prefix}[0-9]*-*.parquet")]:
        rows = read_span(file)
        covered = any(span.start <= rows.start and rows.stop <= span.stop for span in spans)
        # what no longer file has is the only copy
        if file not in kept and covered:
            file.unlink(missing_ok=True)
            checksum_file(file).unlink(missing_ok=True)
