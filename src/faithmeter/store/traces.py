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

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..files import read_sealed_json, write_parquet, write_sealed_json
from ..measuring import texts as reading
from ..measuring.trace import Trace
from .identity import describe_subject, digest_values
from .trace_files import (
    KEPT,
    add_costs,
    as_frame,
    as_side_frame,
    as_trace,
    costs_of,
    get_attributes,
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
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Shelf:
    """Folder with the texts and traces of one subject."""

    folder: Path

    @classmethod
    def of_plan(cls, root: Path, plan: Plan) -> Shelf:
        """Return the shelf of a measurement's subject in a store; it is created if there is none."""
        subject = describe_subject(plan)
        shelf = cls(root / TRACES / digest_values(subject))
        if not (shelf.folder / "subject.json").exists():
            write_sealed_json(shelf.folder / "subject.json", subject)
        return shelf

    def read_texts(self, count: int) -> list[DataFrame]:
        """Return the slices of texts that are there, up to the slice with row `count - 1`."""
        frames = _read_slices(self.folder / TEXTS, "", count)
        for frame in frames:
            # parquet gives arrays where the frame had lists
            for column in {"starts", "ends", "words", "rationale"} & {*frame.columns}:
                frame[column] = [[*values] for values in frame[column]]
        return frames

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
        traces = [as_trace(frame) for frame in _read_slices(folder, "", count)]
        for test, place in tests.items():
            sides = _read_slices(folder, pvalues_prefix(place), count)

            def with_pvalues(trace: Trace, values: Values, test: str = test) -> Trace:
                return replace(trace, pvalues={**trace.pvalues, test: values})

            traces = [part for trace in traces for part in _add_sides(trace, sides, with_pvalues)]
        if complement:
            sides = _read_slices(folder, KEPT, count)
            traces = [part for trace in traces for part in _add_sides(trace, sides, _with_complement)]
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
    for start, stop in [*sorted((rows.start, rows.stop) for rows in known), (count, count)]:
        while end < min(start, count):
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
    files = [file for file in list_slices(folder, prefix) if read_span(file).start < count]
    frames = [read_file(file) for file in files]
    return [frame for frame in frames if frame is not None]


def _add_sides(
    trace: Trace, sides: Iterable[DataFrame], add: Callable[[Trace, Values], Trace]
) -> list[Trace]:
    """Return the parts of a slice with the values of the side files that cover them."""
    own = rows_of(trace)
    sides = [side for side in sides if rows_of(side).start < own.stop and rows_of(side).stop > own.start]
    spans = [rows_of(side) for side in sides]
    parts = []
    for part in trace.cut(row for span in spans for row in (span.start, span.stop)):
        rows = rows_of(part)
        for span, side in zip(spans, sides, strict=True):
            if span.start <= rows.start and rows.stop <= span.stop:
                values = read_side_values(side)[rows.start - span.start : rows.stop - span.start]
                begins = rows.start == max(span.start, own.start)  # its costs count once
                part = _with_costs(add(part, values), get_attributes(side) if begins else {})
        parts.append(part)
    return parts


def _with_complement(trace: Trace, values: Values) -> Trace:
    return replace(trace, kept=values)


def _with_costs(trace: Trace, costs: Mapping[str, Any]) -> Trace:
    """Return a trace with the costs of a side file added to its own."""
    if not costs:
        return trace
    total = add_costs([costs_of(trace), costs])
    return replace(trace, **{**total, "devices": tuple(total["devices"])})
