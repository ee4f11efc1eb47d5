"""Merging of slices: the same rows and costs in fewer files, whatever a kill leaves behind."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from faithmeter.errors import DamageWarning
from faithmeter.measuring.trace import Trace, join_traces
from faithmeter.store.traces import Shelf, merge_slices

TESTS = {"crossfit": "crossfit-12", "published": "published-34"}


def trace(start: int, stop: int, tests: tuple[str, ...] = tuple(TESTS)) -> Trace:
    """Rows with logits, scores and steps that tell their number; the first row has no unit."""
    rows = np.arange(start, stop)
    return Trace(
        method="a",
        percents=(0, 50, 100),
        rows=rows,
        targets=rows % 2,
        logits=np.stack([np.full((3, 2), row, np.float32) for row in rows]),
        scores=tuple(np.arange(row, dtype=np.float64) for row in rows),
        steps=tuple(np.full(row, 1, np.uint8) for row in rows),
        pvalues={test: np.full((len(rows), 3), 1 / (1 + start)) for test in tests},
        evaluations=stop - start,
        evaluations_alone=2 * (stop - start),
        seconds={"explain": 1.0},
        devices=("cpu",),
    )


def read(shelf: Shelf, count: int = 20) -> Trace:
    return join_traces(shelf.read_trace("a", count, TESTS, complement=False))


def same(one: Trace, other: Trace) -> None:
    for name, value in vars(one).items():
        if name == "pvalues":
            assert value.keys() == other.pvalues.keys()
            for test, values in value.items():
                np.testing.assert_array_equal(values, other.pvalues[test])
        elif isinstance(value, tuple):
            assert [np.asarray(each).tolist() for each in value] == [
                np.asarray(each).tolist() for each in getattr(other, name)
            ]
        else:
            np.testing.assert_equal(value, getattr(other, name))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    shelf = Shelf(tmp_path / "traces" / "subject")
    for start, stop in ((0, 8), (8, 16), (16, 20)):
        shelf.write_trace("a", {"method": "a"}, trace(start, stop), TESTS)
    return shelf


def names(shelf: Shelf) -> set[str]:
    return {file.name for file in shelf.folder.glob("a/*.parquet")}


def test_merged_slices_have_the_same_rows_and_costs(shelf: Shelf) -> None:
    before = read(shelf)
    assert (before.evaluations, before.seconds) == (20, {"explain": 3.0})
    merge_slices(shelf, ["a"])
    assert names(shelf) == {f"{name}0-20.parquet" for name in ("", "p-crossfit-12-", "p-published-34-")}
    assert len([*shelf.folder.glob("a/.*.sha256")]) == 3
    same(read(shelf), before)


def test_a_test_of_fewer_texts_keeps_its_pvalues(shelf: Shelf) -> None:
    shelf.write_trace("a", {}, trace(20, 24, ("crossfit",)), TESTS)
    shelf.write_trace("a", {}, trace(24, 28, ("crossfit",)), TESTS)
    merge_slices(shelf, ["a"])
    assert names(shelf) == {"0-28.parquet", "p-crossfit-12-0-28.parquet", "p-published-34-0-20.parquet"}
    parts = shelf.read_trace("a", 28, TESTS, complement=False)
    assert [sorted(part.pvalues) for part in parts] == [["crossfit", "published"], ["crossfit"]]
    assert [len(part) for part in parts] == [20, 8]
    assert sum(part.evaluations for part in parts) == 28
    [few] = shelf.read_trace("a", 20, TESTS, complement=False)
    assert len(few) == 20, "rows that are not needed are left out"


def test_what_a_kill_leaves_is_read_once_and_deleted_by_the_next_merge(shelf: Shelf, tmp_path: Path) -> None:
    before = read(shelf)
    shutil.copytree(shelf.folder, tmp_path / "parts")
    merge_slices(shelf, ["a"])
    shutil.copytree(tmp_path / "parts", shelf.folder, dirs_exist_ok=True)
    assert len(names(shelf)) == 12
    same(read(shelf), before)
    merge_slices(shelf, ["a"])
    assert len(names(shelf)) == 3


def test_a_damaged_part_is_not_merged(shelf: Shelf) -> None:
    file = shelf.folder / "a" / "8-16.parquet"
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.warns(DamageWarning):
        merge_slices(shelf, ["a"])
    assert "0-8.parquet" in names(shelf)
    assert [int(part.rows[0]) for part in shelf.read_trace("a", 20, TESTS, complement=False)] == [0, 16]


def test_what_a_side_file_cost_is_counted_once(shelf: Shelf) -> None:
    """It is added to a merged trace slice by slice, and merged after it."""
    merge_slices(shelf, ["a"])
    tests = {**TESTS, "third": "third-56"}
    whole = read(shelf)
    for part in whole.cut((8, 16)):
        more = {**part.pvalues, "third": np.full((len(part), 3), 0.5)}
        completed = replace(
            part, pvalues=more, evaluations=part.evaluations + 5, seconds={**part.seconds, "check": 2.0}
        )
        shelf.write_trace("a", {}, completed, tests, known=part)
    for _ in range(2):
        trace = join_traces(shelf.read_trace("a", 20, tests, complement=False))
        assert (trace.evaluations, trace.seconds) == (20 + 15, {"explain": 3.0, "check": 6.0})
        assert {test: values.shape for test, values in trace.pvalues.items()} == dict.fromkeys(tests, (20, 3))
        merge_slices(shelf, ["a"])
