"""Merging of slices: what a finished measurement wrote slice by slice becomes few files, which read fast."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..files import checksum_file, write_parquet
from .trace_files import (
    add_costs,
    get_attributes,
    list_prefixes,
    list_slices,
    name_file,
    read_file,
    read_span,
    set_attributes,
)
from .traces import TEXTS, Shelf

if TYPE_CHECKING:
    from pandas import DataFrame


def merge_slices(shelf: Shelf, traces: Iterable[str]) -> None:
    """Merge neighboring slices of texts and traces, and neighboring side files.

    A merged file is written before its parts are deleted. A kill in between leaves files that overlap: the
    longest is read, and the next merge deletes the others.
    """
    for folder in [shelf.folder / TEXTS, *(shelf.folder / name for name in traces)]:
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
    frames = [frame for frame in map(read_file, files) if frame is not None]
    if len(frames) == len(files):
        rows = range(read_span(files[0]).start, read_span(files[-1]).stop)
        write_parquet(files[0].with_name(name_file(rows, prefix)), _join(frames))


def _join(frames: list[DataFrame]) -> DataFrame:
    """Return the rows of all frames, with the costs of all."""
    import pandas as pd

    attributes = [get_attributes(frame) for frame in frames]
    for frame in frames:
        frame.attrs = {}  # pandas compares them
    joined = pd.concat(frames, ignore_index=True)
    set_attributes(joined, {**attributes[0], **add_costs([*attributes])})
    return joined


def _delete_covered(folder: Path, prefix: str) -> None:
    """Delete the files with a prefix whose rows a longer one has."""
    kept = list_slices(folder, prefix)
    spans = [read_span(file) for file in kept]
    for file in [*folder.glob(f"{prefix}[0-9]*-*.parquet")]:
        rows = read_span(file)
        covered = any(span.start <= rows.start and rows.stop <= span.stop for span in spans)
        if file not in kept and covered:
            file.unlink(missing_ok=True)
            checksum_file(file).unlink(missing_ok=True)
