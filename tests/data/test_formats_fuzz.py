"""Random damage to every kind of file: one clean line that names the file, or what another reader says."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faithmeter.data import own_task, task
from faithmeter.data.splits import digest
from faithmeter.errors import InputError
from fixtures_tasks import make_imdb, make_mimic, make_qnli, make_qqp, make_snli

Rows = set[tuple[str, str | None, str]]  # text, context, label

PIECES = [
    b"",
    b"\t",
    b"\n",
    b"\r\n",
    b'"',
    b",",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"{",
    b"}",
    b"-",
    b"\xf0\x9f\x98\x80",
]
PIECES += [b"null", b"NaN", b"1e999", b"\\ud800", b"entailment", b"\xe2\x80\xa8", b"..", b"9" * 5000]
EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(PIECES) | st.binary(max_size=4)),
    min_size=1,
    max_size=3,
)


def damage(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    """At each place some bytes are replaced by others; many removed ones cut the file."""
    for place, removed, piece in edits:
        start = round(place * len(data))
        data = data[:start] + piece + (b"" if removed == 12 else data[start + removed :])
    return data


def tab_separated(text: str) -> Rows:
    """QNLI as the format is defined: rows end at line feeds, columns at tabs, nothing is quoted."""
    lines = [line.rstrip("\r") for line in text.removeprefix("\ufeff").split("\n")]
    rows = [line.split("\t") for line in lines if line]
    where = [rows[0].index(name) for name in ("sentence", "question", "label")]
    return {(row[where[0]], row[where[1]], row[where[2]].strip()) for row in rows[1:]}


def json_lines(text: str) -> Rows:
    """SNLI by Python's json, without the rows that have no gold label."""
    rows = [json.loads(line) for line in text.removeprefix("\ufeff").split("\n") if line.strip()]
    read = {(row["sentence1"], row["sentence2"], row["gold_label"].strip()) for row in rows}
    return {row for row in read if row[2] != "-"}


def comma_separated(text: str) -> Rows:
    """A csv file by pandas."""
    frame = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False, na_filter=False, index_col=False)
    return {(str(t), None, str(v).strip()) for t, v in zip(frame["t"], frame["v"], strict=True)}


def make_own_csv(folder: Path) -> Path:
    rows = "".join(f'"text ""{n}"", with\nlines",{"yes" if n % 2 else "no"}\n' for n in range(20))
    (folder / "own.csv").write_bytes(("t,v\n" + rows).encode())
    return folder / "own.csv"


def make_own_parquet(folder: Path) -> Path:
    pd.DataFrame({"t": [f"text {n}" for n in range(20)], "v": [n % 2 for n in range(20)]}).to_parquet(
        folder / "own.parquet"
    )
    return folder / "own.parquet"


def make_babi(folder: Path) -> Path:
    told = "1 Mary went to the garden.\n2 John went to the office.\n"
    story = told + "3 Where is Mary? \tgarden\t1\n4 Where is John? \toffice\t2\n"
    for part in ("test", "train"):
        (folder / f"qa1_single-supporting-fact_{part}.txt").write_text(story * 5)
    return folder / "qa1_single-supporting-fact_train.txt"


CASES: dict[str, tuple[Callable[[Path], Any], str, Callable[[str], Rows] | None]] = {
    # the task, the file to damage, and who else can read it
    "QNLI": (make_qnli, "QNLI/train.tsv", tab_separated),
    "QQP": (make_qqp, "QQP/train.tsv", None),
    "SNLI": (make_snli, "snli_1.0/snli_1.0_train.jsonl", json_lines),
    "IMDB": (make_imdb, "IMDB/aclImdb_v1.tar.gz", None),
    "Diabetes": (make_mimic, "NOTEEVENTS.csv.gz", None),
    "bAbI-1": (make_babi, "qa1_single-supporting-fact_train.txt", None),
    "own csv": (make_own_csv, "own.csv", comma_separated),
    "own parquet": (make_own_parquet, "own.parquet", None),
}
CHECKED = ("IMDB", "Diabetes")  # compressed with a checksum: damage is found, or harmless


def load(name: str, folder: Path, file: Path) -> Any:
    if name.startswith("own"):
        one = own_task(file, text="t", label="v")
        return one, one.load()
    one = task(name, folder)
    return one, one.load()


def fuzz(name: str, examples: int) -> None:
    make, path, oracle = CASES[name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make(folder)
        file = folder / path
        whole = file.read_bytes()
        before = digest(load(name, folder, file)[1]["train"])

        @settings(max_examples=examples, database=None)
        @given(EDITS)
        def damaged(edits: list[tuple[float, int, bytes]]) -> None:
            data = damage(whole, edits)
            file.write_bytes(data)
            try:
                one, splits = load(name, folder, file)
            except InputError as error:
                message = str(error)
                assert "\n" not in message
                assert file.name in message or str(folder) in message
                return
            if name in CHECKED:
                assert digest(splits["train"]) == before
            if oracle is not None:
                parts = ("train", "validation", "test") if name.startswith("own") else ("train", "validation")
                parts = ("train",) if name == "SNLI" else parts
                rows = [row for part in parts for row in splits[part]]
                read = {(row["text"], row.get("context"), one.labels[row["label"]]) for row in rows}
                assert read == oracle(data.decode())

        damaged()


@pytest.mark.parametrize("name", CASES)
def test_damaged_files_give_a_clean_error_or_the_right_rows(name):
    fuzz(name, 150)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_files_damaged_in_many_ways_give_a_clean_error_or_the_right_rows(name):
    fuzz(name, 2000)
