"""Files: damage is noticed, a failed write is one line, exported texts do no harm."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import os
import random
import warnings
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithmeter.errors import DamageWarning, InputError
from faithmeter.files import (
    REMEDIES,
    as_arrow,
    atomic,
    escape_formula,
    escape_markdown,
    file_checksum,
    intact,
    read_parquet,
    read_sealed_json,
    read_toml,
    seal,
    write_json,
    write_parquet,
    write_sealed_json,
    writing,
)

FLIPS = 300


def frame_with_attrs() -> pd.DataFrame:
    frame = pd.DataFrame({"row": range(64), "scores": [[0.5, n / 7] for n in range(64)], "text": "ab"})
    frame.attrs = {"costs": {"loo-sign": {"evaluations": 123, "seconds": {"explain": 0.25}}}}
    return frame


def flip_bit(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position // 8] ^= 1 << position % 8
    path.write_bytes(data)


@pytest.mark.filterwarnings("ignore::faithmeter.errors.DamageWarning")
def test_plain_pandas_reads_a_frame_that_was_read_and_written_again(tmp_path: Path) -> None:
    """As the files of merged slices are, whose lists are in Arrow's memory."""
    written = pd.DataFrame({"row": [1, 2], "text": ["a", None], "scores": [[0.5], [1.0, 2.0]]})
    written.attrs = {"method": "loo"}
    for frame in (written, as_arrow(written.copy())):
        write_parquet(tmp_path / "a.parquet", frame)
        found = pd.read_parquet(tmp_path / "a.parquet")
        assert [list(row) for row in found["scores"]] == [[0.5], [1.0, 2.0]]
        assert found.attrs == written.attrs
        pd.testing.assert_frame_equal(found[["row", "text"]], written[["row", "text"]])
        pd.testing.assert_frame_equal(
            read_parquet(tmp_path / "a.parquet"), as_arrow(written.copy()), check_dtype=False
        )


def test_every_flipped_bit_of_a_parquet_file_is_noticed(tmp_path: Path) -> None:
    """Footer and metadata included, which checksums of pages do not cover."""
    path = tmp_path / "0-63.parquet"
    write_parquet(path, frame_with_attrs())
    expected = read_parquet(path)
    assert expected is not None
    assert expected.attrs == frame_with_attrs().attrs
    rng = random.Random(0)
    bits = 8 * path.stat().st_size
    for position in [*rng.sample(range(bits), FLIPS), bits - 1]:
        flip_bit(path, position)
        assert read_parquet(path) is None
        flip_bit(path, position)
    pd.testing.assert_frame_equal(read_parquet(path), expected)


@pytest.mark.filterwarnings("ignore::faithmeter.errors.DamageWarning")
def test_every_flipped_bit_of_the_checksums_is_noticed_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_parquet(path, frame_with_attrs())
    sums = tmp_path / ".a.parquet.sha256"
    for position in range(0, 8 * sums.stat().st_size, 5):
        flip_bit(sums, position)
        frame = read_parquet(path)
        assert frame is None or frame.attrs == frame_with_attrs().attrs
        flip_bit(sums, position)


def test_damage_is_named_and_a_rewritten_file_is_whole_again(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    assert read_parquet(path) is None, "there is none"
    write_parquet(path, frame_with_attrs())
    flip_bit(path, 80)
    with pytest.warns(DamageWarning, match=r"a\.parquet is not as it was written; it is created again"):
        assert read_parquet(path) is None
    write_parquet(path, frame_with_attrs())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_parquet(path) is not None
    (tmp_path / ".a.parquet.sha256").unlink()
    assert read_parquet(path) is None, "it was never finished"


def test_a_sealed_folder_is_intact_until_a_file_changes(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").write_text("2")
    assert not intact(tmp_path)
    seal(tmp_path)
    assert intact(tmp_path)
    (tmp_path / "two").write_text("3")
    with pytest.warns(DamageWarning, match=r"\(two\) is not as it was written; train again"):
        assert not intact(tmp_path, "train again")


def test_a_checksum_follows_a_file_that_changes_within_a_tick_of_the_clock(tmp_path: Path) -> None:
    path = tmp_path / "a"
    sums = set()
    for number in range(20):
        path.write_text(f"{number:2}")
        os.utime(path, (1, 1))
        sums.add(file_checksum(path))
    assert len(sums) == 20


def test_sealed_json_notices_a_changed_value(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_sealed_json(path, {"a": [1, float("nan")]})
    assert read_sealed_json(path)["a"] == [1, None]
    path.write_text(path.read_text().replace("1", "2", 1))
    with pytest.raises(InputError, match="its checksum is wrong"):
        read_sealed_json(path)
    path.write_text("[" * 100_000)
    with pytest.raises(InputError, match="is not readable"):
        read_sealed_json(path)


def test_every_flipped_bit_of_sealed_json_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    value = {"z": {"b": 0.1, "a": "é"}, "n": None}
    write_sealed_json(path, {**value, "checksum": "of an earlier version of the file"})
    first = path.read_bytes()
    assert list(read_sealed_json(path)) == ["z", "n", "checksum"], "names keep their order"
    for position in range(8 * len(first)):
        flip_bit(path, position)
        with pytest.raises(InputError, match=r"is not readable|its checksum is wrong"):
            read_sealed_json(path)
        path.write_bytes(first)


def test_json_of_earlier_versions_is_verified_by_its_values(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    checksum = hashlib.sha256(b'{"a": 1, "b": 2}').hexdigest()
    write_json(path, {"b": 2, "a": 1, "checksum": checksum})
    assert read_sealed_json(path)["a"] == 1
    write_json(path, {"b": 2, "a": 3, "checksum": checksum})
    with pytest.raises(InputError, match="its checksum is wrong"):
        read_sealed_json(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"a = '\xff'", "is not TOML: .*utf-8"),
        (b"a = ", "is not TOML"),
    ],
)
def test_toml_that_cannot_be_read_is_one_line(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_toml(path)
    with pytest.raises(InputError, match=r"cannot read .*File name too long"):
        read_toml(tmp_path / ("a" * 300))


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EROFS, "Read-only file system"),
        RuntimeError("PytorchStreamWriter failed writing file: No space left on device (os error 28)"),
    ],
)
def test_a_failed_write_is_one_line_and_the_old_file_stays(tmp_path: Path, error: Exception) -> None:
    path = tmp_path / "a.json"
    write_json(path, 1)

    def fail() -> None:
        with atomic(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(InputError, match=f"cannot write to {tmp_path}: .*; (free some space|choose a place)"):
        fail()
    assert path.read_text() == "1"
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_two_processes_of_the_same_number_write_to_different_temporary_files(tmp_path: Path) -> None:
    """Such as the first processes of two containers that share a file system."""
    with atomic(tmp_path / "a") as first, atomic(tmp_path / "a") as second:
        first.write_text("1")
        second.write_text("2")
        assert all(file.name.startswith(".a.") and file.name.endswith(".part") for file in (first, second))
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "1", "the last to end replaces the other"


def test_other_errors_pass_through() -> None:
    with pytest.raises(KeyError), writing(Path()):
        raise KeyError("a")
    with pytest.raises(FileNotFoundError), writing(Path()):
        Path("/not there").read_text()
    assert all("\n" not in remedy for remedy in REMEDIES.values())


def test_a_name_that_is_too_long_or_a_file_in_the_way_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="File name too long; choose a shorter name"):
        write_json(tmp_path / ("a" * 300), 1)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="choose another"):
        write_json(tmp_path / "file" / "a.json", 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device_is_one_line() -> None:
    with pytest.raises(InputError, match="No space left on device; free some space"), writing(Path("/dev")):
        Path("/dev/full").write_text("a" * 10_000)


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("-cmd", "'-cmd"),
        ("+a", "'+a"),
        ("-0.5", "-0.5"),
        ("+3e-4", "+3e-4"),
        (-0.5, -0.5),
        ("a=1", "a=1"),
        ("", ""),
        (None, None),
    ],
)
def test_text_cells_are_no_formulas_and_numbers_stay(value: object, cell: object) -> None:
    assert escape_formula(value) == cell


@given(st.text(max_size=20))
def test_no_text_in_a_csv_cell_begins_a_formula(text: str) -> None:
    file = io.StringIO(newline="")
    csv.writer(file).writerow([escape_formula(text), "end"])
    cell = next(csv.reader(io.StringIO(file.getvalue(), newline="")))[0]
    assert cell.removeprefix("'") == text or cell == text
    if cell.startswith(tuple("=+-@\t\r")):
        float(cell)


@given(st.text(alphabet="<>a/!&#|[]()*_`\\ \n:.hwtps", max_size=30))
def test_markdown_keeps_a_text_in_its_cell_without_html(text: str) -> None:
    line = escape_markdown(text)
    assert "\n" not in line
    for position, character in enumerate(line):
        if character in "<>|[]`*":
            before = line[:position]
            assert (len(before) - len(before.rstrip("\\"))) % 2, (
                "each is escaped by an odd number of backslashes"
            )


def test_markdown_has_no_links() -> None:
    assert escape_markdown("[a](javascript:x) https://b www.c") == r"\[a\](javascript:x) https\://b www\.c"
    assert escape_markdown("a\n|b") == r"a \|b"
