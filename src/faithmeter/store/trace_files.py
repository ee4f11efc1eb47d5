"""Files of a trace: slices of rows, and side files with p-values or complements of the same rows.

The columns of a slice are row, target, and lists: logits (S steps × C classes), scores and step (one for each
unit). The attributes of a file hold what is the same for all of its rows, and what it cost.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..files import read_parquet
from ..measuring.trace import Trace

if TYPE_CHECKING:
    from pandas import DataFrame, Series

QUARANTINE = "quarantine"
"""Folder of a store to which damaged files are moved."""
KEPT = "kept-"
"""Prefix of the side files with complements."""


def list_slices(folder: Path, prefix: str = "") -> list[Path]:
    """Return the files of a folder with this prefix by their rows; of those that overlap, the longest."""
    pattern = re.compile(re.escape(prefix) + r"\d+-\d+\.parquet")
    files = [file for file in folder.glob("*.parquet") if pattern.fullmatch(file.name)]
    slices: list[Path] = []
    end = 0
    for file in sorted(files, key=lambda file: (read_span(file).start, -read_span(file).stop)):
        # a kill during a merge leaves a long file beside its parts, which have the same rows
        if read_span(file).start >= end:
            end = read_span(file).stop
            slices.append(file)
    return slices


def list_prefixes(folder: Path) -> list[str]:
    """Return the prefixes of a folder's files: an empty one of slices, such as `kept-` of side files."""
    # side files have as many prefixes as there are tests
    prefixes = (re.sub(r"\d+-\d+\.parquet$", "", file.name) for file in folder.glob("*.parquet"))
    return sorted(set(prefixes))


def pvalues_prefix(test: str) -> str:
    """Return the prefix of the side files of a test by its name in files (see `identity.name_test`)."""
    return f"p-{test}-"


def read_span(file: Path) -> range:
    """Return the rows of a file by its name."""
    # prefixes such as p-crossfit-1a2b- hold dashes, too
    *_, start, stop = file.stem.split("-")
    return range(int(start), int(stop))


def name_file(rows: range, prefix: str = "") -> str:
    """Return the name of the file of these rows."""
    return f"{prefix}{rows.start}-{rows.stop}.parquet"


def read_file(file: Path) -> DataFrame | None:
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
    # named by where it was, as files of all traces are called alike
    target = subject.parents[1] / QUARANTINE / f"{subject.name}-{file.parent.name}-{file.name}"
    # a store that cannot be written is still read; the rows count as missing
    with suppress(OSError):
        target.parent.mkdir(exist_ok=True)
        os.replace(file, target)


def as_frame(trace: Trace) -> DataFrame:
    """Return the frame of a slice, without p-values and complement."""
    import pandas as pd

    frame = pd.DataFrame({"row": trace.rows, "target": trace.targets})
    # object columns of arrays become lists in parquet, which may differ in length from row to row
    frame["logits"] = pd.Series(list(trace.logits.reshape(len(trace), -1)), dtype=object)
    frame["scores"] = pd.Series(list(trace.scores), dtype=object)
    frame["step"] = pd.Series(list(trace.steps), dtype=object)
    # attributes hold what is equal for all rows, once for a file
    shared = {"method": trace.method, "percents": list(trace.percents), "code": trace.code}
    frame.attrs = dict[Any, Any]({**shared, "numbers": trace.numbers, **costs_of(trace)})
    return frame


def as_trace(frame: DataFrame) -> Trace:
    """Return the trace in the frame of a slice."""
    shared = frame.attrs
    return Trace(
        method=shared["method"],
        percents=tuple(shared["percents"]),
        rows=frame["row"].to_numpy(np.int64),
        targets=frame["target"].to_numpy(),
        # parquet has no float32 matrix per row: steps and classes are flattened, [N, S·C]
        logits=np.stack(_lists(frame["logits"])).reshape(len(frame), len(shared["percents"]), -1),
        scores=tuple(_lists(frame["scores"])),
        steps=tuple(_lists(frame["step"])),
        evaluations=shared["evaluations"],
        evaluations_alone=shared["evaluations_alone"],
        seconds=shared["seconds"],
        code=shared["code"],
        numbers=shared["numbers"],
        devices=tuple(shared["devices"]),
    )


def _lists(column: Series[Any]) -> list[NDArray[Any]]:
    """Return the lists of a column as arrays, which are parts of one."""
    import pyarrow as pa

    lists = pa.table({"lists": pa.array(column)})["lists"].combine_chunks()
    offsets = lists.offsets.to_numpy()
    # parquet has a null for each NaN
    return np.split(lists.flatten().to_numpy(zero_copy_only=False), offsets[1:-1] - offsets[0])


def as_side_frame(
    rows: NDArray[np.int64], values: NDArray[np.float64], costs: Mapping[str, Any]
) -> DataFrame:
    """Return the frame of a side file with values [N, S], and what it cost besides the slice."""
    import pandas as pd

    frame = pd.DataFrame({"row": rows})
    frame["values"] = pd.Series(list(values), dtype=object)
    frame.attrs = dict[Any, Any](costs)
    return frame


def read_side_values(frame: DataFrame) -> NDArray[np.float64]:
    """Return the values [N, S] in the frame of a side file."""
    return np.stack(_lists(frame["values"]))


def costs_of(trace: Trace, known: Trace | None = None) -> dict[str, Any]:
    """Return what a trace cost, besides what a known part of it cost, and where it was computed."""
    # what was read cost nothing now, and has its costs in its own files
    before = dict(known.seconds) if known is not None else {}
    seconds = {}
    for phase, total in trace.seconds.items():
        spent = total - before.get(phase, 0.0)
        if spent > 0:
            seconds[phase] = spent
    return {
        "evaluations": trace.evaluations - (known.evaluations if known is not None else 0),
        "evaluations_alone": trace.evaluations_alone - (known.evaluations_alone if known is not None else 0),
        "seconds": seconds,
        "devices": list(trace.devices),
    }
