"""Files of a store on another machine: fetched, sent when new, and no record before its files."""

from __future__ import annotations

from pathlib import Path

import pytest

import faithmeter as fm
from faithmeter.files import atomic
from faithmeter.runs import mirror
from faithmeter.runs.mirror import Desk, Mirror, list_files
from faithmeter.store.run_store import Busy


@pytest.fixture
def calls() -> list[tuple[object, ...]]:
    return []


@pytest.fixture
def pair(tmp_path: Path, calls: list[tuple[object, ...]]) -> tuple[Desk, Mirror]:
    """A desk beside a store, and a mirror whose calls of the desk are recorded."""
    desk = Desk(tmp_path / "runs")
    (tmp_path / "copy").mkdir()

    def call(name: str, *arguments: object) -> object:
        calls.append((name, *arguments))
        return getattr(desk, name)(*arguments)

    return desk, Mirror(tmp_path / "copy", call)


def fill(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def contents(root: Path) -> dict[str, str]:
    return {path: (root / path).read_text() for path in list_files(root)}


def test_what_is_fetched_is_not_sent_back_and_what_is_new_is(pair, calls) -> None:
    desk, copy = pair
    fill(desk.store.root, {"train-a/weights": "1", "train-a/record.json": "{}", "train-b/weights": "2"})
    copy.fetch("train-a")
    assert contents(copy.root) == {"train-a/weights": "1", "train-a/record.json": "{}"}
    copy.push()
    assert not [call for call in calls if call[0] in ("write", "delete")]
    fill(copy.root, {"measure-a/record.json": "{}", "measure-a/texts.parquet": "3", "locks/a.lock": ""})
    copy.push()
    assert [call[1] for call in calls if call[0] == "write"] == [
        "measure-a/texts.parquet",
        "measure-a/record.json",
    ], "the record comes last, and locks stay here"
    assert contents(desk.store.root)["measure-a/texts.parquet"] == "3"


def test_deleted_files_and_empty_folders_are_deleted_there(pair) -> None:
    desk, copy = pair
    fill(copy.root, {"train-a/trainer/checkpoint-1/weights": "1", "train-a/model": "2"})
    copy.push()
    (copy.root / "train-a/trainer/checkpoint-1/weights").unlink()
    copy.push()
    assert contents(desk.store.root) == {"train-a/model": "2"}
    assert not (desk.store.root / "train-a/trainer").exists()


@pytest.mark.parametrize("text", ["", "1", "1234567890"])
def test_a_file_of_any_size_arrives_in_pieces(pair, monkeypatch, text: str) -> None:
    monkeypatch.setattr(mirror, "PIECE_BYTES", 4)
    desk, copy = pair
    fill(copy.root, {"train-a/weights": text})
    copy.push()
    assert contents(desk.store.root) == {"train-a/weights": text}
    (copy.root / "train-a/weights").unlink()
    copy.fetch("train-a")
    assert contents(copy.root) == {"train-a/weights": text}


def test_the_order_of_writing_puts_checksums_after_files_and_records_last() -> None:
    paths = ["a/record.json", "a/SHA256SUMS", "a/.t.parquet.sha256", "a/t.parquet", "a/weights"]
    assert sorted(paths, key=mirror._writing_order)[:2] == ["a/t.parquet", "a/weights"]
    assert sorted(paths, key=mirror._writing_order)[-1] == "a/record.json"


def test_a_run_is_held_for_a_worker_and_passed_on_when_it_was_lost(pair) -> None:
    desk, _ = pair
    assert desk.hold(7, "train-a", "far")
    [note] = desk.store.running()
    assert (note["run"], note["host"]) == ("train-a", "far")
    with pytest.raises(Busy), desk.store.hold("train-a"):
        pass
    assert desk.hold(7, "train-a", "farther"), "the worker was lost, and the run is started again"
    assert not desk.hold(8, "train-a", "far"), "another run keeps off, and takes nothing away"
    assert [note["host"] for note in desk.store.running()] == ["farther"]
    desk.release(8)
    assert len(desk.store.running()) == 1
    desk.release(7)
    with fm.RunStore(desk.store.root).hold("train-a"):
        assert not desk.hold(7, "train-a", "far")
    assert desk.store.running() == []


def test_a_file_that_vanishes_while_files_are_sent_is_left_out_and_deleted_there(pair, calls) -> None:
    desk, copy = pair
    fill(copy.root, {"train-a/one": "1", "train-a/two": "2"})
    copy.push()
    fill(copy.root, {"train-a/one": "11", "train-a/two": "22", "train-a/three": "3"})
    call = copy.call

    def call_and_delete(name: str, *arguments: object) -> object:
        if name == "write":
            for other in ("two", "three"):
                (copy.root / "train-a" / other).unlink(missing_ok=True)
        return call(name, *arguments)

    copy.call = call_and_delete
    copy.push()
    assert contents(desk.store.root) == {"train-a/one": "11"}
    fill(copy.root, {"train-a/two": "22"})
    copy.push()
    assert contents(desk.store.root)["train-a/two"] == "22"


def test_files_that_vanish_while_they_are_listed_are_left_out(tmp_path: Path, monkeypatch) -> None:
    fill(tmp_path, {"a": "1", "b": "2"})
    stat = Path.stat

    def find(path: Path, **options: bool) -> object:
        if path.name == "a":
            raise FileNotFoundError(path)
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", find)
    assert [*list_files(tmp_path)] == ["b"]


def test_temporary_files_and_files_that_vanish_are_not_fetched(pair) -> None:
    desk, copy = pair
    fill(desk.store.root, {"train-a/weights": "1", "train-a/.weights.part": "2", "train-a/.x.sha256": "3"})
    with atomic(desk.store.root / "train-a/record.json") as temporary:
        temporary.write_text("half")
        assert desk.files("train-a") == ["train-a/weights", "train-a/.x.sha256"]
        temporary.write_text("{}")
    call, gone = copy.call, desk.store.root / "train-a/weights"

    def delete_and_call(name: str, *arguments: object) -> object:
        if name == "read":
            gone.unlink(missing_ok=True)
        return call(name, *arguments)

    copy.call = delete_and_call
    copy.fetch("train-a")
    assert contents(copy.root) == {"train-a/.x.sha256": "3", "train-a/record.json": "{}"}
