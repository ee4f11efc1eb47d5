"""Official files as users have them on disk: awkward rows are read, broken files get one clear line."""

from __future__ import annotations

import gzip
import shutil
import tarfile
from contextlib import suppress
from hashlib import md5

import pytest

from faithmeter.data import task
from faithmeter.data.splits import digest
from faithmeter.errors import InputError
from fixtures_tasks import (
    MSR_HEADER,
    OFFICIAL,
    found,
    make_imdb,
    make_mrpc_tsv,
    write_archive,
    write_jsonl,
    write_tsv,
)

RTE_HEADER = ["index", "sentence1", "sentence2", "label"]


def rte_rows(count=10):
    return [[n, f"text {n}", f"other {n}", ("entailment", "not_entailment")[n % 2]] for n in range(count)]


def write_rte(folder, rows=None):
    write_tsv(folder / "RTE/train.tsv", [RTE_HEADER, *(rows or rte_rows())])
    write_tsv(folder / "RTE/dev.tsv", [RTE_HEADER, *rte_rows()])
    return task("RTE", folder)


@pytest.mark.parametrize("name", OFFICIAL)
def test_official_files_are_read_with_their_awkward_rows(tmp_path, name):
    expected = OFFICIAL[name](tmp_path)
    one = task(name, tmp_path)
    assert found(one.load()) == expected
    assert one.source.available
    assert one.source.published


def test_rows_that_are_left_out_still_count_in_the_key(tmp_path):
    OFFICIAL["QQP"](tmp_path)
    texts = [row["text"] for split in ("train", "validation") for row in task("QQP", tmp_path).load()[split]]
    keys = {f"question {n}": n if n < 5 else n + 2 for n in range(10)}  # two short rows after the fifth
    assert texts == sorted(keys, key=lambda text: md5(f"train{keys[text]}".encode()).hexdigest())


def test_mrpc_from_tsv_is_read_but_not_the_published_split(tmp_path):
    expected = make_mrpc_tsv(tmp_path)
    one = task("MRPC", tmp_path)
    assert found(one.load()) == expected
    assert not one.source.published
    assert "msr_paraphrase_train.txt" in one.source.note


def test_mrpc_dev_ids_may_have_a_header(tmp_path):
    expected = OFFICIAL["MRPC"](tmp_path)
    path = tmp_path / "MRPC/dev_ids.tsv"
    path.write_text("#1 ID\t#2 ID\n" + path.read_text())
    assert found(task("MRPC", tmp_path).load()) == expected


def test_mrpc_without_dev_ids_says_so(tmp_path):
    OFFICIAL["MRPC"](tmp_path)
    (tmp_path / "MRPC/dev_ids.tsv").unlink()
    with pytest.raises(InputError, match=r"dev_ids\.tsv does not exist"):
        task("MRPC", tmp_path).load()


def test_imdb_archive_and_folder_give_the_same_splits(tmp_path):
    members = make_imdb(tmp_path)
    packed = task("IMDB", tmp_path).load()
    with tarfile.open(tmp_path / "IMDB/aclImdb_v1.tar.gz") as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    for folder in ("unpacked", "unpacked/aclImdb"):
        again = task("IMDB", tmp_path / folder).load()
        assert {role: digest(split) for role, split in again.items()} == {
            r: digest(s) for r, s in packed.items()
        }
    reviews = {data.decode() for name, data in members.items() if "/test/" in name}
    assert {row["text"] for row in packed["test"]} == reviews


@pytest.mark.parametrize(("members", "message"), [
    ({"../evil.txt": b"x"}, r"member '../evil.txt' points outside the archive"),
    ({"/etc/passwd": b"x"}, r"member '/etc/passwd' points outside the archive"),
    ({"aclImdb/train/pos/9_9.txt": b"\xff"}, r"9_9.txt: not UTF-8"),
    ({"aclImdb/train/pos/9_9.txt": b" \n"}, r"9_9.txt: 'text' is empty"),
    ({"./aclImdb/train/pos/1_7.txt": b"again"}, r"1_7.txt occurs twice"),
])  # fmt: skip
def test_a_bad_member_of_the_archive_is_named(tmp_path, members, message):
    good = make_imdb(tmp_path)
    write_archive(tmp_path / "IMDB/aclImdb_v1.tar.gz", good | members)
    with pytest.raises(InputError, match=message):
        task("IMDB", tmp_path).load()


def test_an_archive_without_test_reviews_is_an_error(tmp_path):
    good = make_imdb(tmp_path)
    write_archive(tmp_path / "IMDB/aclImdb_v1.tar.gz", {n: d for n, d in good.items() if "/test/" not in n})
    with pytest.raises(InputError, match="no reviews in aclImdb/test"):
        task("IMDB", tmp_path).load()


def test_a_damaged_archive_is_an_error_wherever_it_is_cut_or_changed(tmp_path):
    make_imdb(tmp_path)
    path = tmp_path / "IMDB/aclImdb_v1.tar.gz"
    whole = path.read_bytes()
    before = digest(task("IMDB", tmp_path).load()["train"])
    for cut in range(0, len(whole), 13):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError, match="cannot read"):
            task("IMDB", tmp_path).load()
    for place in range(10, len(whole), 7):  # the first ten bytes hold a date and such
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with suppress(InputError):
            assert digest(task("IMDB", tmp_path).load()["train"]) == before


def test_a_missing_folder_or_file_is_named(tmp_path):
    write_rte(tmp_path)
    (tmp_path / "RTE/dev.tsv").unlink()
    for folder in (tmp_path, tmp_path / "RTE"):
        with pytest.raises(InputError, match=r"RTE/dev.tsv does not exist; give the folder of RTE's"):
            task("RTE", folder).load()
    with pytest.raises(InputError, match="does not exist"):
        task("RTE", tmp_path / "nowhere").load()


@pytest.mark.parametrize(("row", "message"), [
    ([3, "text", "other", "maybe"], r"line 12: label 'maybe' in 'label'; expected one of entailment"),
    ([3, "text", "other", ""], r"line 12: no label in 'label'"),
    ([3, " ", "other", "entailment"], r"line 12: 'sentence1' is empty"),
    ([3, "text", "entailment"], r"line 12: 3 columns; expected 4"),
    ([3, "text", "other", "entailment", "more"], r"line 12: 5 columns; expected 4"),
])  # fmt: skip
def test_a_bad_row_is_named_with_file_and_line(tmp_path, row, message):
    one = write_rte(tmp_path, [*rte_rows(), row])
    with pytest.raises(InputError, match=r"train\.tsv, " + message):
        one.load()


@pytest.mark.parametrize(("data", "message"), [
    (b"", r"train\.tsv is empty"),
    (b"\n\n", r"no column 'sentence1'"),
    (b"index\tsentence1\tsentence2\tlabel\n", r"train\.tsv has no rows"),
    (b"index\tsentence1\tlabel\n0\ta\tentailment\n", r"train\.tsv: no column 'sentence2'; there are 'index'"),
    (b"sentence1\tsentence1\tsentence2\tlabel\n", r"more than one column 'sentence1'"),
    (b"index\tsentence1\tsentence2\tlabel\n0\t\xff\tb\tentailment\n", r"train\.tsv, line 2: not UTF-8"),
    ("index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n".encode("utf-16"), r"line 1: not UTF-8"),
])  # fmt: skip
def test_a_bad_file_is_named(tmp_path, data, message):
    one = write_rte(tmp_path)
    (tmp_path / "RTE/train.tsv").write_bytes(data)
    with pytest.raises(InputError, match=message):
        one.load()


def test_bom_crlf_and_blank_lines_change_nothing(tmp_path):
    plain = write_rte(tmp_path / "plain").load()
    one = write_rte(tmp_path / "changed")
    path = tmp_path / "changed/RTE/train.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n\r\n")
    assert digest(one.load()["train"]) == digest(plain["train"])


@pytest.mark.parametrize(("change", "message"), [
    ({"idx": 3}, r"train\.jsonl, line 11: idx 3 occurs twice, first at .*line 4"),
    ({"idx": "x"}, r"line 11: 'idx' is 'x'; expected a whole number"),
    ({"label": None}, r"line 11: no label"),
    ({"label": ["neutral"]}, r"line 11: no label"),
    ({"premise": None}, r"line 11: 'premise' is NoneType; expected a text"),
    ({"premise": "\ud800"}, r"line 11: 'premise' is not valid Unicode"),
])  # fmt: skip
def test_a_bad_json_row_is_named(tmp_path, change, message):
    rows = [{"premise": f"p {n}", "hypothesis": "h", "label": "neutral", "idx": n} for n in range(10)]
    write_jsonl(tmp_path / "CB/val.jsonl", rows)
    write_jsonl(tmp_path / "CB/train.jsonl", [*rows, rows[0] | {"idx": 10} | change])
    with pytest.raises(InputError, match=message):
        task("CB", tmp_path).load()


@pytest.mark.parametrize(("line", "message"), [
    ("{", "line 11: not JSON"),
    ("[1]", "line 11: list; expected one object"),
    ('{"premise": "p"}', "line 11: no column 'label'; there are 'premise'"),
    ("[" * 100_000, "line 11: not JSON"),
])  # fmt: skip
def test_a_line_that_is_no_object_is_named(tmp_path, line, message):
    rows = [{"premise": f"p {n}", "hypothesis": "h", "label": "neutral", "idx": n} for n in range(10)]
    write_jsonl(tmp_path / "CB/val.jsonl", rows)
    write_jsonl(tmp_path / "CB/train.jsonl", rows)
    with (tmp_path / "CB/train.jsonl").open("a") as file:
        file.write(line)
    with pytest.raises(InputError, match=message):
        task("CB", tmp_path).load()


def test_a_babi_answer_outside_the_labels_is_named(tmp_path):
    for part in ("train", "test"):
        (tmp_path / f"qa1_single-supporting-fact_{part}.txt").write_text(
            "1 Mary went to the cellar.\n2 Where is Mary? \tcellar\t1\n"
        )
    message = r"train.txt, question 1: label 'cellar' in 'answer'; expected one of garden"
    with pytest.raises(InputError, match=message):
        task("bAbI-1", tmp_path).load()


def test_a_gzip_inside_out_is_an_error(tmp_path):
    from faithmeter.data.table_files import lines

    path = tmp_path / "notes.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" * 1000)[:-4])
    with pytest.raises(InputError, match=r"cannot read .*notes\.csv\.gz"):
        list(lines(path))
    shutil.rmtree(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        list(lines(path))


def test_the_official_header_of_mrpc_is_the_one_in_the_table():
    files = task("MRPC").files
    assert files is not None
    assert set(filter(None, files.columns or ())) <= set(MSR_HEADER)


def test_a_babi_question_about_nothing_is_named(tmp_path):
    for part in ("train", "test"):
        (tmp_path / f"qa1_single-supporting-fact_{part}.txt").write_text("1 Where is Mary? \tgarden\t\n")
    with pytest.raises(InputError, match=r"train.txt, question 1: 'paragraph' is empty"):
        task("bAbI-1", tmp_path).load()
