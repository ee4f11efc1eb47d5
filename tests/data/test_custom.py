"""One's own data: any table, string or number labels, deterministic splits, TOML."""

from __future__ import annotations

import gzip
import inspect
import json
import re

import datasets
import pandas as pd
import pytest

from faithmeter.cli.listing import QUANTILES, describe_task
from faithmeter.data import own_task, task
from faithmeter.data.custom import TaskFile
from faithmeter.data.rows import read_classes
from faithmeter.data.splits import digest
from faithmeter.errors import InputError

FRAME = pd.DataFrame(
    {
        "review": [f'say "{n}", or\nnot {n}' for n in range(20)],
        "product": [f"thing {n}" for n in range(20)],
        "stars": [n % 3 + 1 for n in range(20)],
    }
)


def write(path, frame=FRAME):
    kind = path.name.partition(".")[2]
    if kind in ("csv", "csv.gz"):
        frame.to_csv(path, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        datasets.Dataset.from_pandas(frame).save_to_disk(path)
    return path


def digests(one):
    return {role: digest(split) for role, split in one.load().items()}


def test_twenty_lines_of_csv(tmp_path):
    one = own_task(write(tmp_path / "reviews.csv"), text="review", label="stars")
    splits = one.load()
    assert {role: len(split) for role, split in splits.items()} == {"train": 16, "validation": 2, "test": 2}
    assert (one.name, one.labels, one.metrics) == ("reviews", ("1", "2", "3"), ("accuracy", "macro_f1"))
    assert splits["train"].column_names == ["text", "label"]
    assert {row["text"] for split in splits.values() for row in split} == set(FRAME["review"])
    assert all(
        one.labels[row["label"]] == str(int(row["text"].split()[-1]) % 3 + 1) for row in splits["train"]
    )


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl", "a.parquet", "folder"])
def test_every_kind_of_file_gives_the_same_splits(tmp_path, name):
    expected = own_task(write(tmp_path / "x.csv"), text="review", label="stars", pair="product")
    one = own_task(str(write(tmp_path / name)), text="review", label="stars", pair="product")
    assert one.labels == expected.labels
    assert digests(one) == digests(expected)
    assert one.load()["test"].column_names == ["text", "label", "context"]


@pytest.mark.parametrize(
    ("encoding", "line", "name"),
    [("latin-1", 2, "Windows-1252"), ("cp1252", 2, "Windows-1252"), ("utf-16", 1, "UTF-16")],
)
def test_another_encoding_is_named_with_what_converts_it(tmp_path, encoding, line, name):
    (tmp_path / "a.csv").write_bytes("t,l\ncafé,1\n".encode(encoding))
    expected = rf"a\.csv, line {line}: not UTF-8; .*looks like {name}: .*iconv -f {name} -t UTF-8 a\.csv$"
    with pytest.raises(InputError, match=expected):
        own_task(tmp_path / "a.csv", text="t", label="l")


def test_commas_in_a_tsv_are_named(tmp_path):
    (tmp_path / "a.tsv").write_text("t,l\na,1\n")
    with pytest.raises(InputError, match=r"separated by commas .*expected tabs.*or name it \.csv"):
        own_task(tmp_path / "a.tsv", text="t", label="l")


def test_classes_get_the_names_of_a_model(tmp_path):
    one = own_task(write(tmp_path / "x.csv"), text="review", label="stars")
    named = one.with_classes({one.labels[0]: "positive"})
    assert named.labels == ("positive", *one.labels[1:])
    for role, rows in named.load().items():
        assert rows["label"][:] == one.load()[role]["label"][:]
        assert rows.features["label"].names == [*named.labels]
    assert named.with_classes({"positive": "good"}).load()["test"].features["label"].names[0] == "good"
    for names, message in (
        ({"nine": "a"}, "unknown class of the task 'nine'"),
        ({one.labels[0]: one.labels[1]}, "two have the same name"),
    ):
        with pytest.raises(InputError, match=message):
            one.with_classes(names)


@pytest.mark.parametrize("text", ["fresh", "fresh=", "=a", "a=b,a=c", "a=b,c"])
def test_classes_are_pairs_of_names(text):
    with pytest.raises(InputError, match="expected each class of the data once"):
        read_classes(text)
    assert read_classes(" a = b , c=d,") == {"a": "b", "c": "d"}


def test_tsv_has_no_quoting(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("t\tl\n" + "".join(f'"half {n}\t{"yes" if n % 2 else "no"}\n' for n in range(20)))
    one = own_task(path, text="t", label="l")
    assert one.labels == ("no", "yes")
    assert {row["text"] for split in one.load().values() for row in split} == {
        f'"half {n}' for n in range(20)
    }


@pytest.mark.parametrize(("values", "labels"), [
    ([10, 9, 2], ("2", "9", "10")),
    (["10", "9", "x"], ("10", "9", "x")),
    ([-1, 0, 1], ("-1", "0", "1")),
    ([True, False, True], ("False", "True")),
    ([1.0, 2.0, 3.0], ("1", "2", "3")),
    (["b ", "a", "c"], ("a", "b", "c")),
])  # fmt: skip
def test_labels_may_be_numbers_or_words(tmp_path, values, labels):
    frame = FRAME.assign(stars=[values[n % 3] for n in range(20)])
    assert own_task(write(tmp_path / "a.parquet", frame), text="review", label="stars").labels == labels


def test_given_files_are_the_splits_and_a_missing_one_is_cut(tmp_path):
    train = write(tmp_path / "train.csv")
    valid, test = write(tmp_path / "v.jsonl", FRAME[:3]), write(tmp_path / "t.parquet", FRAME[:4])
    sizes = {}
    for name, files in {
        "both": {"valid": valid, "test": test},
        "valid": {"valid": valid},
        "test": {"test": test},
    }.items():
        splits = own_task(train, text="review", label="stars", **files).load()
        sizes[name] = [len(split) for split in splits.values()]
    assert sizes == {"both": [20, 3, 4], "valid": [16, 3, 4], "test": [16, 4, 4]}


def test_a_saved_dict_of_datasets_brings_its_splits_and_label_names(tmp_path):
    features = datasets.Features(
        {"review": datasets.Value("string"), "stars": datasets.ClassLabel(names=["bad", "good"])}
    )
    data = datasets.Dataset.from_dict({"review": list("abcdefgh"), "stars": [0, 1] * 4}, features=features)
    datasets.DatasetDict(train=data, dev=data.select([1, 2]), test=data.select([3])).save_to_disk(
        tmp_path / "d"
    )
    one = own_task(tmp_path / "d", text="review", label="stars")
    assert one.labels == ("bad", "good")
    splits = one.load()
    assert [len(split) for split in splits.values()] == [8, 2, 1]
    assert splits["test"][0] == {"text": "d", "label": 1}
    datasets.DatasetDict(extra=data).save_to_disk(tmp_path / "e")
    with pytest.raises(InputError, match="no train split; there are extra"):
        own_task(tmp_path / "e", text="review", label="stars")


def test_a_task_file_says_the_same(tmp_path):
    write(tmp_path / "reviews.csv")
    (tmp_path / "mine.toml").write_text(
        'data = "reviews.csv"\ntext = "review"\nlabel = "stars"\n'
        'pair = "product"\nmetric = "micro_f1"\nepochs = 3\n'
    )
    one = task(str(tmp_path / "mine.toml"))
    assert (one.name, one.epochs, one.metric) == ("mine", 3, "micro_f1")
    assert one.metrics == ("accuracy", "macro_f1", "micro_f1")
    same = own_task(tmp_path / "reviews.csv", text="review", label="stars", pair="product")
    assert digests(one) == digests(same)


@pytest.mark.parametrize(("text", "message"), [
    ('data = "reviews.csv"\ntext = "review"\n', "no task option 'label'; add it"),
    ('data = "reviews.csv"\ntxt = "review"\n', "mine.toml: unknown task option 'txt'; did you mean 'text'"),
    ('data = "reviews.csv"\ntext = "review"\nlabel = 3\n', "label is 3; expected text"),
    ('data = "reviews.csv"\ntext = "review"\nlabel = "stars"\nepochs = "3"\n', "epochs is '3'; exp.* whole"),
    ("data = ", "mine.toml is not TOML"),
    ('data = "gone.csv"\ntext = "review"\nlabel = "stars"\n', "gone.csv does not exist"),
    ('data = "reviews.csv"\ntext = "review"\nlabel = "stars"\nmetric = "f1"\n', "unknown metric 'f1'"),
])  # fmt: skip
def test_a_bad_task_file_is_one_line(tmp_path, text, message):
    write(tmp_path / "reviews.csv")
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        task(str(tmp_path / "mine.toml"))


def test_a_task_file_that_is_missing_or_given_a_data_dir(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*none\.toml: No such file"):
        task(str(tmp_path / "none.toml"))
    with pytest.raises(InputError, match="data_dir is for the paper's tasks"):
        task("mine.toml", tmp_path)


@pytest.mark.parametrize(("data", "message"), [
    ("t,l\na,1\nb\n", r"a\.csv, line 3: 1 columns; expected 2"),
    ('t,l\na,1\n"b,2\n', r"a\.csv, line 3: unexpected end of data"),
    ("t,l\na,1\n,2\n", r"a\.csv, line 3: 't' is empty"),
    ('t,l\n"a\n\nb",1\nc,\n', r"a\.csv, line 5: no label in 'l'"),
    ("t,k\na,1\n", r"a\.csv: no column 'l'; there are 't', 'k'"),
    ("t;l\na;1\n", r"a\.csv: its columns seem to be separated by semicolons \('t;l'\); expected commas"),
    ("t\tl\na\t1\n", r"separated by tabs .*expected commas: save it with these; or name it \.tsv"),
    ("t,l\n", r"0 label in 'l'; expected at least 2"),
    ("t,l\na,1\nb,1\n", r"1 label in 'l'; expected at least 2"),
    ("t,l\n" + "".join(f"a,{n}\n" for n in range(30)), r"30 rows have 30 labels in 'l'; expected classes"),
    ("t,l\na,1\nb,2\nc,1\n", r"3 rows are too few to cut validation and test from"),
    ("", r"a\.csv is empty"),
])  # fmt: skip
def test_bad_own_files_are_one_line(tmp_path, data, message):
    (tmp_path / "a.csv").write_text(data)
    with pytest.raises(InputError, match=message):
        own_task(tmp_path / "a.csv", text="t", label="l").load()


def test_a_test_label_that_training_never_saw_is_named(tmp_path):
    train, test = write(tmp_path / "a.csv"), write(tmp_path / "b.jsonl", FRAME.assign(stars=7))
    with pytest.raises(InputError, match=r"b\.jsonl, line 1: label '7' in 'stars'; expected one of 1, 2, 3"):
        own_task(train, text="review", label="stars", test=test).load()


def test_other_kinds_of_files_are_refused(tmp_path):
    (tmp_path / "a.xlsx").write_bytes(b"x")
    with pytest.raises(
        InputError, match=r"a\.xlsx: unknown kind of file; expected \.csv, \.tsv, \.jsonl, \.parquet"
    ):
        own_task(tmp_path / "a.xlsx", text="t", label="l")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="expected a folder saved by `datasets`"):
        own_task(tmp_path / "empty", text="t", label="l")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 not")
    with pytest.raises(InputError, match=r"cannot read .*a\.parquet"):
        own_task(tmp_path / "a.parquet", text="t", label="l")


def test_long_fields_and_numbers_as_texts(tmp_path):
    frame = FRAME.assign(review=["long " * 50_000] * 20)
    splits = own_task(write(tmp_path / "a.csv", frame), text="review", label="stars").load()
    assert len(splits["train"][0]["text"]) == 250_000
    with pytest.raises(InputError, match=r"row 1: 'stars' is int; expected a text"):
        own_task(write(tmp_path / "a.parquet"), text="stars", label="stars").load()


def test_the_preview_says_what_was_understood(tmp_path):
    one = own_task(write(tmp_path / "a.csv"), text="review", label="stars", pair="product")
    understood = describe_task(one)
    assert (one.explained, one.label, one.context) == ("review", "stars", "product")
    assert understood["source"]["kind"] == "own"
    assert sum(sum(counts.values()) for counts in understood["class_counts"].values()) == 20
    assert understood["words"] == {
        "text": dict.fromkeys(QUANTILES, 5),
        "context": dict.fromkeys(QUANTILES, 2),
    }
    assert all(set(example) == {"text", "context", "label"} for example in understood["examples"])


def test_gzip_and_json_agree_on_half_a_surrogate(tmp_path):
    rows = [{"t": "\ud800" if n == 4 else "a", "l": n % 2} for n in range(10)]
    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    with pytest.raises(InputError, match=r"a\.jsonl\.gz, line 5: 't' is not valid Unicode"):
        own_task(tmp_path / "a.jsonl.gz", text="t", label="l").load()


def test_the_schema_of_a_task_file_describes_every_entry():
    schema = TaskFile.model_json_schema()
    assert schema["required"] == ["data", "text", "label"]
    assert set(schema["properties"]) == set(inspect.signature(own_task).parameters)
    assert all("description" in entry for entry in schema["properties"].values())


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl"])
def test_fractions_are_no_classes(tmp_path, name):
    frame = FRAME.assign(stars=[0.5 + n % 2 for n in range(20)])
    with pytest.raises(InputError, match=r"label 0\.5 in 'stars' is not whole; expected classes"):
        own_task(write(tmp_path / name, frame), text="review", label="stars")


def test_half_a_surrogate_is_no_label(tmp_path):
    rows = [{"t": "a", "l": "\ud800" if n % 2 else "b"} for n in range(10)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"a\.jsonl, line 2: 'l' is not valid Unicode"):
        own_task(tmp_path / "a.jsonl", text="t", label="l")


@pytest.mark.parametrize("entry", ["epochs = -1", "epochs = 0", "epochs = 99999999999", "epochs = true"])
def test_epochs_of_a_task_file_are_at_least_one(tmp_path, entry):
    write(tmp_path / "a.csv")
    (tmp_path / "mine.toml").write_text(f'data = "a.csv"\ntext = "review"\nlabel = "stars"\n{entry}\n')
    with pytest.raises(InputError, match=r"mine\.toml: epochs is .*; expected"):
        task(str(tmp_path / "mine.toml"))


@pytest.mark.parametrize("path", ["a" * 300 + ".csv", "a" * 5000, "a\0b.csv", ""])
def test_a_path_that_cannot_be_is_one_line(path):
    with pytest.raises(InputError):
        own_task(path, text="t", label="l")
    with pytest.raises(InputError):
        task("RTE", path or "/").load()


def test_a_rationale_column_has_spans_or_marks_of_words(tmp_path) -> None:
    """In every kind of file; only the test rows need it."""
    texts = ["a dull film", "very good fun", "not seen", "fine music"]
    rationales = [[[2, 6]], [0, 1, 1], [], None]
    expected = {"a dull film": ["dull"], "very good fun": ["good", "fun"], "not seen": [], "fine music": []}
    frame = pd.DataFrame({"text": texts, "stars": [0, 1, 0, 1]})
    frame.assign(why=[json.dumps(value) if value else "" for value in rationales]).to_csv(tmp_path / "t.csv")
    lines = [{**row, "why": why} for row, why in zip(frame.to_dict("records"), rationales, strict=True)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    frame.assign(why=[[[2, 6]], [[5, 9], [10, 13]], [], None]).to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "plain.csv")
    for name in ("t.csv", "t.jsonl", "t.parquet"):
        columns = {"text": "text", "label": "stars", "rationale": "why"}
        for own in (
            own_task(tmp_path / name, all_test=True, **columns),
            own_task(tmp_path / "plain.csv", valid=tmp_path / "plain.csv", test=tmp_path / name, **columns),
        ):
            splits = own.load()
            highlighted = {
                row["text"]: [row["text"][start:end] for start, end in row["supporting"]]
                for row in splits["test"]
            }
            assert highlighted == expected
            assert all("supporting" not in splits[role].column_names for role in {*splits} - {"test"})
    (tmp_path / "t.toml").write_text(
        'data = "t.csv"\ntext = "text"\nlabel = "stars"\nrationale = "why"\nall_test = true\n'
    )
    assert "supporting" in task(tmp_path / "t.toml").load()["test"].column_names


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("dull", "'dull' is not JSON; expected [[start, end], …] in characters, or a 0 or 1 for each word"),
        ("7", "line 2, 'why': 7; expected [[start, end]"),
        ("[0, 1]", "2 marks for 3 words"),
        ("[0, 1, 2]", "0 in a rationale; expected [[start, end]"),
        ("[[2, 60]]", "span 2 to 60; expected a part of its 11 characters"),
        ("[[6, 2]]", "span 6 to 2; expected a part"),
        ("[[2, 6, 1]]", "[2, 6, 1] in a rationale"),
        ("[[2, 6.5]]", "[2, 6.5] in a rationale"),
    ],
)
def test_a_rationale_that_does_not_fit_is_named(tmp_path, value: str, message: str) -> None:
    rows = [{"text": "a dull film", "stars": 0, "why": value}, {"text": "fun", "stars": 1, "why": ""}]
    pd.DataFrame(rows).to_csv(tmp_path / "t.csv", index=False)
    own = own_task(tmp_path / "t.csv", text="text", label="stars", rationale="why", all_test=True)
    with pytest.raises(InputError, match=re.escape(message)):
        own.load()
