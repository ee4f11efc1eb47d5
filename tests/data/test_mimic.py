"""MIMIC-III in made-up files of the official layout."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys

import pytest

from faithmeter.data import task
from faithmeter.data.official import clean
from faithmeter.errors import InputError
from fixtures_tasks import NOTE_HEADER, found, make_mimic, note, write_gzip_csv

SEEN = "seen by <DE> - on day [DIGITS] . ok"


def test_admissions_are_labeled_by_any_matching_code_and_their_notes_joined_in_order(tmp_path):
    make_mimic(tmp_path)
    one = task("Diabetes", tmp_path)
    splits = one.load()
    joined = 'first "report", over lines second report late addendum'
    assert found(splits)["train"] == {(joined, None, 1), (SEEN, None, 1), (SEEN, None, 0)}
    labels = {role: sorted(split[:]["label"]) for role, split in splits.items()}
    assert labels == {"train": [1, 1], "validation": [0, 0], "test": [0, 1]}  # 7 has no code and no note
    assert splits["train"].column_names == ["text", "label"]
    assert not one.source.published


def test_as_released_two_matching_codes_cancel_each_other(tmp_path):
    make_mimic(tmp_path)
    one = task("Diabetes(labels=xor)", tmp_path)
    assert one.name == "Diabetes(labels=xor)"
    assert sorted(one.load()["train"][:]["label"]) == [0, 1]
    assert one.source.published
    with pytest.raises(InputError, match="unknown task"):
        task("Diabetes(labels=and)")


def test_uncompressed_tables_and_a_list_with_column_names_are_read_too(tmp_path):
    make_mimic(tmp_path)
    before = found(task("Diabetes", tmp_path).load())
    for name in ("NOTEEVENTS.csv", "DIAGNOSES_ICD.csv"):
        (tmp_path / name).write_bytes(gzip.decompress((tmp_path / f"{name}.gz").read_bytes()))
        (tmp_path / f"{name}.gz").unlink()
    listed = tmp_path / "diabetes.csv"
    listed.write_text("HADM_ID,SPLIT\r\n" + listed.read_text())
    assert found(task("Diabetes", tmp_path).load()) == before


@pytest.mark.parametrize(("text", "cleaned"), [
    ("Admitted [**2151-7-16**] by [**Last Name (un) 123**].", "admitted <DE> by <DE> ."),
    ("***** NOTE -- end !!! a - - b", "* note - end ! a - b"),
    ("BP 120/80, temp 98.6? b12-def", "bp [DIGITS] , temp [DIGITS] . [DIGITS] ? [DIGITS]"),
    ("a\n\n\tb   c", "a b c"),
    ("well...ok aabb", "well. ok aabb"),
])  # fmt: skip
def test_cleaning_by_hand(text, cleaned):
    assert clean(text) == cleaned


def test_anemia_counts_codes_285_1(tmp_path):
    make_mimic(tmp_path)
    (tmp_path / "diabetes.csv").rename(tmp_path / "anemia.csv")
    rows = [["ROW_ID", "SUBJECT_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE"]]
    codes = ["2851", "28510", "2852", "285", "V2851", "2851"]
    write_gzip_csv(
        tmp_path / "DIAGNOSES_ICD.csv.gz", [*rows, *([n, n, n, 1, code] for n, code in enumerate(codes, 1))]
    )
    labels = {role: sorted(split[:]["label"]) for role, split in task("Anemia", tmp_path).load().items()}
    assert labels == {"train": [1, 1], "validation": [0, 0], "test": [0, 1]}


@pytest.mark.parametrize(("listed", "message"), [
    ("1,train\n1,test\n", r"diabetes\.csv, line 2: admission 1 occurs twice"),
    ("1,train\n2,dev\n", r"diabetes\.csv, line 2: .*'dev'.*expected a number and one of train, val"),
    ("1x,train\n", r"diabetes\.csv, line 1: .*expected a number"),
    ("1,train,x\n", r"diabetes\.csv, line 1: 3 columns; expected 2"),
    ("", r"diabetes\.csv is empty"),
    ("1,train\n2,validation\n", r"no discharge summary of the test admissions"),
])  # fmt: skip
def test_a_bad_list_of_admissions_is_named(tmp_path, listed, message):
    make_mimic(tmp_path)
    (tmp_path / "diabetes.csv").write_text(listed)
    with pytest.raises(InputError, match=message):
        task("Diabetes", tmp_path).load()


def test_bad_tables_are_named(tmp_path):
    make_mimic(tmp_path)
    one = task("Diabetes", tmp_path)
    path = tmp_path / "NOTEEVENTS.csv.gz"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(InputError, match=r"cannot read .*NOTEEVENTS\.csv\.gz"):
        one.load()
    path.write_bytes(b"not a gzip")
    with pytest.raises(InputError, match=r"cannot read .*NOTEEVENTS\.csv\.gz: Not a gzipped file"):
        one.load()
    path.write_bytes(gzip.compress(gzip.decompress(whole) + b'1,"open quote\n'))
    with pytest.raises(InputError, match=r"NOTEEVENTS\.csv\.gz, line \d+: unexpected end of data"):
        one.load()
    path.write_bytes(gzip.compress(gzip.decompress(whole).replace(b'"TEXT"', b'"WORDS"')))
    with pytest.raises(InputError, match="no column 'TEXT'"):
        one.load()
    path.unlink()
    with pytest.raises(InputError, match=r"NOTEEVENTS\.csv\.gz does not exist"):
        one.load()


@pytest.mark.slow
def test_500_mb_of_notes_stay_below_1_gb_of_memory(tmp_path):
    """As in MIMIC, a quarter of the text is discharge summaries, of which a fifth is of listed admissions."""
    rng = random.Random(0)
    words = [f"word{n}" if n % 9 else "[**Name 5**]" for n in range(5000)]
    body = "\n".join(" ".join(rng.choices(words, k=10)) for _ in range(130))  # 10 kB
    count = 52_000
    assert len(body) * count > 500_000_000
    listed = [("train", "validation", "test")[stay % 3] for stay in range(count // 20)]

    def notes():
        yield NOTE_HEADER
        for number in range(count):
            category = "Discharge summary" if number % 4 == 0 else "Nursing"
            yield note(number // 4, f"{number} {body}", CATEGORY=category)

    write_gzip_csv(tmp_path / "NOTEEVENTS.csv.gz", notes())
    codes = ([n, n, n, 1, "25000" if n % 3 else "4019"] for n in range(count))
    header = ["ROW_ID", "SUBJECT_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE"]
    write_gzip_csv(tmp_path / "DIAGNOSES_ICD.csv.gz", [header, *codes])
    (tmp_path / "diabetes.csv").write_text("".join(f"{stay},{split}\n" for stay, split in enumerate(listed)))
    code = (
        "import resource, sys; from faithmeter.data import task\n"
        "rows = sum(map(len, task('Diabetes', sys.argv[1]).load().values()))\n"
        "print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    rows, kilobytes = map(int, done.stdout.split())
    assert rows == len(listed)
    assert kilobytes * (1 if sys.platform == "linux" else 1 / 1024) < 1_000_000
