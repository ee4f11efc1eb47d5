"""Small files in the official formats, with their awkward rows, and what should be read from them."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from faithmeter.data import stories

SHARED = Path(os.environ.get("FAITHMETER_SHARED", Path(__file__).parents[2] / "shared"))
needs_shared = pytest.mark.skipif(
    not (SHARED / "data").is_dir(), reason=f"needs the real files in {SHARED}/data"
)

Expected = dict[
    str, set[tuple[str, str | None, int]]
]  # text, context, label of train + validation, and of test


def found(splits: Mapping[str, Any]) -> Expected:
    """What was read, in the form of `Expected`."""
    rows = {
        name: {(row["text"], row.get("context"), row["label"]) for row in split}
        for name, split in splits.items()
    }
    return {"train": rows["train"] | rows["validation"], "test": rows["test"]}


def write_tsv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join("\t".join(map(str, row)) + "\n" for row in rows).encode())


def write_jsonl(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_gzip_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """As MIMIC's distributors write it: texts quoted, numbers and missing values not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8", newline="", compresslevel=1) as file:
        for row in rows:
            fields = (
                str(value)
                if isinstance(value, int) or value == ""
                else '"' + str(value).replace('"', '""') + '"'
                for value in row
            )
            file.write(",".join(fields) + "\n")


def write_archive(path: Path, members: Mapping[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def make_pairs(
    folder: Path, name: str, header: Sequence[str], labels: Sequence[str], *, test: str
) -> Expected:
    """A GLUE folder of pairs with quotes that are no quotes, a literal \\N, U+2028, CRLF and a BOM."""
    awkward = [
        'He said "no',
        "it's 5\\N",
        "全角\u3000と",
        "a\u2028b",
        'all "quoted"',
        " edge ",
        "NA",
        "null",
        "-",
        "é",
    ]
    expected: Expected = {"train": set(), "test": set()}
    for role, file in (("train", "train.tsv"), ("test", test)):
        lines = ["\t".join(header)]
        for number, text in enumerate(awkward):
            values = dict.fromkeys(header, "x") | {header[0]: str(number)}
            columns, label = COLUMNS[name], labels[number % len(labels)]
            values |= {columns[0]: f"{role} {text}", columns[1]: f"{text}?", columns[2]: label}
            lines.append("\t".join(values[column] for column in header))
            expected[role].add((f"{role} {text}", f"{text}?", labels.index(label)))
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / file).write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    return expected


COLUMNS = {  # explained, context, label
    "QNLI": ("sentence", "question", "label"),
    "MNLI": ("sentence1", "sentence2", "gold_label"),
    "MRPC": ("#1 String", "#2 String", "Quality"),
}
MNLI_HEADER = [
    "index",
    "promptID",
    "pairID",
    "genre",
    "sentence1_binary_parse",
    "sentence2_binary_parse",
    "sentence1_parse",
    "sentence2_parse",
    "sentence1",
    "sentence2",
    "label1",
    "gold_label",
]
MSR_HEADER = ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"]


def make_qnli(folder: Path) -> Expected:
    labels = ["entailment", "not_entailment"]
    return make_pairs(folder, "QNLI", ["index", "question", "sentence", "label"], labels, test="dev.tsv")


def make_mnli(folder: Path) -> Expected:
    labels = ["entailment", "neutral", "contradiction"]
    expected = make_pairs(folder, "MNLI", MNLI_HEADER, labels, test="dev_matched.tsv")
    wide = [
        *MNLI_HEADER[:-1],
        "label2",
        "label3",
        "label4",
        "label5",
        "gold_label",
    ]  # as the real dev file has it
    again = make_pairs(folder / "wide", "MNLI", wide, labels, test="dev_matched.tsv")
    (folder / "wide/MNLI/dev_matched.tsv").replace(folder / "MNLI/dev_matched.tsv")
    assert again == expected
    return expected


def make_mrpc_tsv(folder: Path) -> Expected:
    return make_pairs(folder, "MRPC", MSR_HEADER, ["0", "1"], test="dev.tsv")


def make_mrpc(folder: Path) -> Expected:
    """Microsoft's file, with a BOM; every fourth row is GLUE's dev set."""
    rows = [[n % 2, 100 + n, 200 + n, f'"sentence {n}', f"other {n}"] for n in range(20)]
    write_tsv(folder / "MRPC/msr_paraphrase_train.txt", [["\ufeffQuality", *MSR_HEADER[1:]], *rows])
    write_tsv(folder / "MRPC/dev_ids.tsv", [row[1:3] for row in rows[::4]])
    expected: Expected = {"train": set(), "test": set()}
    for n, (quality, _, _, first, second) in enumerate(rows):
        expected["train" if n % 4 else "test"].add((str(first), str(second), int(str(quality))))
    return expected


def make_qqp(folder: Path) -> Expected:
    """A question with a line break makes two short rows, which are left out; an empty context stays."""
    header = ["id", "qid1", "qid2", "question1", "question2", "is_duplicate"]
    rows = [[n, n, n, f"question {n}", f"again {n}", n % 2] for n in range(10)]
    rows[3][4] = ""
    broken: list[list[object]] = [[10, 1, 2, 'Was "he'], ['"', "Was he real?", 0]]
    for file in ("train.tsv", "dev.tsv"):
        write_tsv(folder / "QQP" / file, [header, *rows[:5], *broken, *rows[5:]])
    read = {(str(row[3]), str(row[4]), int(str(row[5]))) for row in rows}
    return {"train": read, "test": read}


def make_snli(folder: Path) -> Expected:
    """Rows without a gold label are left out."""
    labels = ["entailment", "neutral", "contradiction", "-"]
    expected: Expected = {"train": set(), "test": set()}
    for part, role in (("train", "train"), ("dev", "train"), ("test", "test")):
        rows = [
            {"gold_label": labels[n % 4], "sentence1": f"{part} {n}", "sentence2": "so?", "pairID": "1.jpg#0"}
            for n in range(8)
        ]
        write_jsonl(folder / f"snli_1.0/snli_1.0_{part}.jsonl", rows)
        expected[role] |= {(f"{part} {n}", "so?", n % 4) for n in range(8) if n % 4 < 3}
    return expected


def make_imdb(folder: Path) -> dict[str, bytes]:
    """The members of an archive with the labeled reviews and what else is in the official one."""
    members = {
        "aclImdb/README": b"",
        "aclImdb/train/unsup/0_0.txt": b"no label",
        "aclImdb/train/urls_pos.txt": b"u",
    }
    for role in ("train", "test"):
        for number in range(10):
            label = ("neg", "pos")[number % 2]
            members[f"aclImdb/{role}/{label}/{number}_7.txt"] = f"{role} {number}<br />é".encode()
    write_archive(folder / "IMDB/aclImdb_v1.tar.gz", members)
    return members


OFFICIAL: dict[str, Callable[[Path], Expected]] = {
    "QNLI": make_qnli,
    "MNLI": make_mnli,
    "MRPC": make_mrpc,
    "QQP": make_qqp,
    "SNLI": make_snli,
}

NOTE_HEADER = [
    "ROW_ID",
    "SUBJECT_ID",
    "HADM_ID",
    "CHARTDATE",
    "CHARTTIME",
    "STORETIME",
    "CATEGORY",
    "DESCRIPTION",
    "CGID",
    "ISERROR",
    "TEXT",
]


def note(stay: int, text: str, **changes: object) -> list[object]:
    """A row of NOTEEVENTS: a discharge summary of the patient with the stay's number."""
    values: dict[str, object] = dict.fromkeys(NOTE_HEADER, "") | {
        "ROW_ID": 1,
        "SUBJECT_ID": stay,
        "HADM_ID": stay,
        "CHARTDATE": "2151-08-04",
        "CATEGORY": "Discharge summary",
        "DESCRIPTION": "Report",
        "TEXT": text,
    }
    return list((values | changes).values())


def make_mimic(folder: Path) -> None:
    """Six admissions of the Diabetes task, two for each split, with all that the rules are about."""
    codes = [
        (1, "25000"),
        (1, "4019"),
        (2, "25000"),
        (2, "25000"),
        (3, "25001"),
        (4, "2500"),
        (5, "25000"),
        (6, ""),
    ]
    codes += [(6, "4019"), (99, "25000")]
    write_gzip_csv(
        folder / "DIAGNOSES_ICD.csv.gz",
        [
            ["ROW_ID", "SUBJECT_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE"],
            *([row, stay, stay, 1, code] for row, (stay, code) in enumerate(codes)),
        ],
    )
    write_gzip_csv(
        folder / "NOTEEVENTS.csv.gz",
        [
            NOTE_HEADER,
            note(1, "Late addendum", DESCRIPTION="Addendum", CHARTDATE="2151-08-01"),
            note(1, "Second report", CHARTDATE="2151-08-05"),
            note(1, 'First "report",\nover lines', CHARTDATE="2151-08-04"),
            note(2, "Nursing", CATEGORY="Nursing"),
            *(note(stay, f"Seen by [**Dr. X {stay}**] ----  on day 12. ok") for stay in range(2, 7)),
            note(2, "no date", CHARTDATE=""),
            note(99, "not listed"),
            note(7, "no stay", HADM_ID=""),
        ],
    )
    splits = ("train", "train", "validation", "validation", "test", "test", "test")
    listed = "".join(f"{stay},{split}\n" for stay, split in enumerate(splits, 1))
    (folder / "diabetes.csv").write_text(listed)


def write_stories(stories: Iterable[stories.Story], path: Path) -> None:
    """Write stories to a file in the official format, from which `stories.read` restores them exactly."""
    text = []
    for story in stories:
        numbers: list[int] = []  # line numbers of the statements so far
        number = 0
        for question in story:
            for statement in question.story[len(numbers) :]:
                number += 1
                numbers.append(number)
                text.append(f"{number} {statement}\n")
            number += 1
            supporting = " ".join(str(numbers[index]) for index in question.supporting)
            text.append(f"{number} {question.question} \t{question.answer}\t{supporting}\n")
    path.write_text("".join(text), encoding="utf-8", newline="\n")
