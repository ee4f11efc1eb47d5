"""Traces on disk: what a model did as methods erased the texts of one subject, in slices of rows.

    traces/<subject>/subject.json           what all traces share, see `identity.describe_subject`
                     texts/0-64.parquet     the texts with the places of their units, once
                     <method>-<digest>/     trace.json, and for each slice of rows:
                         0-64.parquet             targets, logits, scores, steps
                         p-<test>-0-64.parquet    p-values of an in-distribution test
                         kept-0-64.parquet        probabilities of the complement

A slice is written when it is finished and never changed. P-values and complements are side files, so that
another test explains nothing again. Damaged files are put aside, and count as missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..files import read_parquet, read_sealed_json, write_parquet, write_sealed_json
from ..measuring import texts as reading
from ..measuring.trace import Trace
from .identity import describe_subject, digest_values

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..measuring.plan import Plan

TRACES = "traces"
"""Folder of the traces in a store."""
QUARANTINE = "quarantine"
"""Folder of a store to which damaged files are moved."""
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
        if not (shelf.folder / "subject.json").exists():
            write_sealed_json(shelf.folder / "subject.json", subject)
        return shelf

    def read_texts(self, count: int) -> list[DataFrame]:
        """Return the slices of texts that are there, up to the slice with row `count - 1`."""
        frames = []
        for file in _slices(self.folder / TEXTS, count):
            frame = _read(file)
            if frame is not None:
                # parquet gives arrays where the frame had lists
                for column in {"starts", "ends", "words", "rationale"} & {*frame.columns}:
                    frame[column] = [[*values] for values in frame[column]]
                frames.append(frame)
        return frames

    def write_texts(self, frame: DataFrame) -> None:
        """Write a slice of texts."""
        write_parquet(self.folder / TEXTS / _name(frame["row"]), frame)

    def read_trace(self, name: str, count: int, tests: Mapping[str, str], *, complement: bool) -> list[Trace]:
        """Return the slices of a trace that are there, up to the slice with row `count - 1`.

        Args:
            name: Name of the trace's folder.
            count: Number of rows that are needed.
            tests: By the name of each test that is asked for, its name in files.
            complement: Whether the complement is asked for.
        """
        slices = []
        for file in _slices(self.folder / name, count):
            frame = _read(file)
            if frame is not None:
                trace = _as_trace(frame)
                trace = _with_pvalues(trace, file, tests)
                slices.append(_with_complement(trace, file) if complement else trace)
        return slices

    def write_trace(
        self,
        name: str,
        description: Mapping[str, Any],
        trace: Trace,
        tests: Mapping[str, str],
        known: Trace | None = None,
    ) -> None:
        """Write a slice of a trace, or what it has besides the `known` part that is there already."""
        folder, file = self.folder / name, _name(trace.rows)
        if not (folder / "trace.json").exists():
            write_sealed_json(folder / "trace.json", description)
        # the costs of what is added later are those of the first file that is added
        facts = {} if known is None else _added(trace, known)
        for test, values in trace.pvalues.items():
            if known is None or test not in known.pvalues:
                facts = _write_side(folder / f"p-{tests[test]}-{file}", trace.rows, "p", values, facts)
        if trace.kept is not None and (known is None or known.kept is None):
            facts = _write_side(folder / f"kept-{file}", trace.rows, "kept", trace.kept, facts)
        if known is None:  # last, as a slice without its side files would be completed at a cost
            write_parquet(folder / file, _as_frame(trace))


def find_subjects(root: Path, fingerprint: str) -> list[str]:
    """Return the folders of a store with traces of the model with this fingerprint, relative to the store."""
    found = []
    for file in sorted((root / TRACES).glob("*/subject.json")):
        with suppress(InputError):  # a damaged description is written again with the next trace
            if read_sealed_json(file).get("fingerprint") == fingerprint:
                found.append(file.parent.relative_to(root).as_posix())
    return found


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
    first, last = int(rows.min()), int(rows.max())
    return range(first, last + 1)


def _slices(folder: Path, count: int) -> Iterator[Path]:
    """Yield the files of a folder with rows below `count`; of files that overlap, the longest."""
    spans = []
    for file in folder.glob("*.parquet"):
        match = re.fullmatch(r"(\d+)-(\d+)\.parquet", file.name)
        if match is not None:
            spans.append((int(match[1]), -int(match[2]), file))
    end = 0
    for start, stop, file in sorted(spans):
        if end <= start < count:
            end = -stop
            yield file


def _name(rows: Any) -> str:
    """Return the name of a slice's file: its first row, and the row after its last."""
    return f"{int(rows.min())}-{int(rows.max()) + 1}.parquet"


def _read(file: Path) -> DataFrame | None:
    """Return the frame in a file; None if it is missing or damaged, which puts it aside."""
    if not file.exists():
        return None
    frame = read_parquet(file)
    if frame is None:
        _put_aside(file)
    return frame


def _put_aside(file: Path) -> None:
    """Move a damaged file to the quarantine of its store, if that can be written to."""
    subject = file.parents[1]
    target = subject.parents[1] / QUARANTINE / f"{subject.name}-{file.parent.name}-{file.name}"
    with suppress(OSError):
        target.parent.mkdir(exist_ok=True)
        os.replace(file, target)


def _as_frame(trace: Trace) -> DataFrame:
    """Return the frame that is written for a slice; its `attrs` hold what is the same for all rows."""
    import pandas as pd

    frame = pd.DataFrame({"row": trace.rows, "target": trace.targets})
    # an object column of arrays: a list in parquet, whose length may differ from row to row
    frame["logits"] = pd.Series(list(trace.logits.reshape(len(trace), -1)), dtype=object)
    frame["scores"] = pd.Series(list(trace.scores), dtype=object)
    frame["step"] = pd.Series(list(trace.steps), dtype=object)
    facts: dict[Hashable, Any] = {
        "method": trace.method,
        "percents": list(trace.percents),
        "code": trace.code,
        "numbers": trace.numbers,
    }
    frame.attrs = facts | _facts(trace)
    return frame


def _as_trace(frame: DataFrame) -> Trace:
    """Return the trace in a frame, without p-values and complement."""
    facts = frame.attrs
    logits = np.stack(frame["logits"].tolist()).astype(np.float32)
    steps = len(facts["percents"])
    return Trace(
        method=facts["method"],
        percents=tuple(facts["percents"]),
        rows=frame["row"].to_numpy(np.int64),
        targets=frame["target"].to_numpy(),
        logits=logits.reshape(len(frame), steps, -1),
        scores=tuple(np.asarray(values, np.float64) for values in frame["scores"]),
        steps=tuple(np.asarray(values, np.uint8) for values in frame["step"]),
        evaluations=facts["evaluations"],
        evaluations_alone=facts["evaluations_alone"],
        seconds=facts["seconds"],
        code=facts["code"],
        numbers=facts["numbers"],
        devices=tuple(facts["devices"]),
    )


def _with_pvalues(trace: Trace, file: Path, tests: Mapping[str, str]) -> Trace:
    """Return a trace with the p-values that are there of the tests that are asked for."""
    for test, name in tests.items():
        frame = _read(file.with_name(f"p-{name}-{file.name}"))
        if frame is not None:
            pvalues = {**trace.pvalues, test: _stacked(frame["p"])}
            trace = _with_facts(replace(trace, pvalues=pvalues), frame)
    return trace


def _with_complement(trace: Trace, file: Path) -> Trace:
    frame = _read(file.with_name(f"kept-{file.name}"))
    if frame is None:
        return trace
    return _with_facts(replace(trace, kept=_stacked(frame["kept"])), frame)


def _facts(trace: Trace) -> dict[str, Any]:
    """Return what a slice cost, and where it was computed."""
    return {
        "evaluations": trace.evaluations,
        "evaluations_alone": trace.evaluations_alone,
        "seconds": dict(trace.seconds),
        "devices": list(trace.devices),
    }


def _added(trace: Trace, known: Trace) -> dict[str, Any]:
    """Return the facts of what a trace has besides a known part of it."""
    spent = {phase: seconds - known.seconds.get(phase, 0.0) for phase, seconds in trace.seconds.items()}
    return {
        "evaluations": trace.evaluations - known.evaluations,
        "evaluations_alone": trace.evaluations_alone - known.evaluations_alone,
        "seconds": {phase: seconds for phase, seconds in spent.items() if seconds > 0},
        "devices": list(trace.devices),
    }


def _with_facts(trace: Trace, frame: DataFrame) -> Trace:
    """Return a trace with the costs of a side file added to its own."""
    facts = frame.attrs
    if not facts:
        return trace
    phases = {*trace.seconds, *facts["seconds"]}
    return replace(
        trace,
        evaluations=trace.evaluations + facts["evaluations"],
        evaluations_alone=trace.evaluations_alone + facts["evaluations_alone"],
        seconds={
            phase: trace.seconds.get(phase, 0.0) + facts["seconds"].get(phase, 0.0)
            for phase in sorted(phases)
        },
        devices=tuple(dict.fromkeys((*trace.devices, *facts["devices"]))),
    )


def _stacked(values: Any) -> NDArray[np.float64]:
    stacked: NDArray[np.float64] = np.stack(values.tolist()).astype(np.float64)
    return stacked


def _write_side(
    path: Path, rows: NDArray[np.int64], column: str, values: NDArray[np.float64], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Write a side file with the facts of its making, and return those of the next: nothing more."""
    import pandas as pd

    frame = pd.DataFrame({"row": rows})
    frame[column] = pd.Series(list(values), dtype=object)
    frame.attrs = {str(name): value for name, value in facts.items()}
    write_parquet(path, frame)
    return {}
