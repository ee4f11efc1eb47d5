"""Labels of your own rows: several at once, in one column or in a column each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import faithmeter as fm
from faithmeter.data import Task

ROWS = [
    ("joy, fear", 1, 1, 0),
    ("joy", 1, 0, 0),
    ("anger;joy", 1, 0, 1),
    ("", 0, 0, 0),
    ("fear", 0, 1, 0),
] * 4
LABELS = ("anger", "fear", "joy")
EXPECTED = {(0, 1, 1), (0, 0, 1), (1, 0, 1), (0, 0, 0), (0, 1, 0)}


def labels_of(task: Task) -> set[tuple[int, ...]]:
    return {tuple(row["label"]) for split in task.load().values() for row in split}


def test_names_in_one_column(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t,l\n" + "".join(f'a text {n},"{row[0]}"\n' for n, row in enumerate(ROWS)))
    task = fm.own_task(path, text="t", label="l", label_kind="multi-label")
    assert (task.labels, task.metric, task.kind) == (LABELS, "micro_f1", "multi-label")
    assert labels_of(task) == EXPECTED


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_lists_of_names(tmp_path: Path, name: str) -> None:
    lists = [[part.strip() for part in row[0].replace(";", ",").split(",") if part] for row in ROWS]
    if name == "a.jsonl":
        lines = [json.dumps({"t": f"a text {n}", "l": names}) for n, names in enumerate(lists)]
    else:
        quoted = [json.dumps(names).replace('"', '""') for names in lists]
        lines = ["t,l", *(f'a text {n},"{names}"' for n, names in enumerate(quoted))]
    (tmp_path / name).write_text("\n".join(lines) + "\n")
    task = fm.own_task(tmp_path / name, text="t", label="l", label_kind="multi-label")
    assert task.labels == LABELS
    assert labels_of(task) == EXPECTED


def test_a_column_for_each_label_keeps_their_order(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = [f"a text {n},{row[1]},{'true' if row[2] else 'False'},{row[3]}.0" for n, row in enumerate(ROWS)]
    path.write_text("\n".join(["t,joy,fear,anger", *lines]) + "\n")
    task = fm.own_task(path, text="t", label=["joy", "fear", "anger"], label_kind="multi-label")
    assert task.labels == ("joy", "fear", "anger")
    assert labels_of(task) == {label[::-1] for label in EXPECTED}
    (tmp_path / "task.toml").write_text(
        'data = "a.csv"\ntext = "t"\nlabel = "joy, fear, anger"\nlabel_kind = "multi-label"\n'
    )
    assert labels_of(fm.task(str(tmp_path / "task.toml"))) == labels_of(task)


@pytest.mark.parametrize(
    ("line", "label", "message"),
    [
        ("a text,maybe,0", ["x", "y"], "line 6: 'x' is 'maybe'; expected 0 or 1"),
        ("a text,,0", ["x", "y"], "line 6: 'x' is ''; expected 0 or 1"),
        ("a text,2,0", ["x", "y"], "line 6: 'x' is '2'; expected 0 or 1"),
        ("a text,['a'; 'b'],0", "x", "in 'x'; expected a list of labels, or names with commas"),
        ("a text,0,0", ["x", "z"], "no column 'z'"),
    ],
)
def test_wrong_labels_are_refused_in_one_line(
    tmp_path: Path, line: str, label: str | list[str], message: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t,x,y\n" + "a text,1,0\na text,0,1\n" * 2 + f"{line}\n")
    with pytest.raises(fm.InputError, match=message) as caught:
        fm.own_task(path, text="t", label=label, label_kind="multi-label").load()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([(1, 0), (0, 0)], "no row has the label 'y'; expected rows with it and rows without it"),
        ([(1, 1), (1, 0)], "all 20 rows have the label 'x'; expected rows with it and rows without it"),
    ],
)
def test_a_label_that_never_changes_is_refused(
    tmp_path: Path, flags: list[tuple[int, int]], message: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t,x,y\n" + "".join(f"a text,{x},{y}\n" for x, y in flags * 10))
    with pytest.raises(fm.InputError, match=message):
        fm.own_task(path, text="t", label=["x", "y"], label_kind="multi-label")


def test_one_label_alone_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t,l\n" + "a text,x\nb text,\n" * 10)
    with pytest.raises(fm.InputError, match="1 label in 'l'; expected at least 2 labels"):
        fm.own_task(path, text="t", label="l", label_kind="multi-label")


def test_a_label_that_training_rows_lack_is_refused(tmp_path: Path) -> None:
    train, test = tmp_path / "a.csv", tmp_path / "b.csv"
    train.write_text("t,l\n" + 'a text,"x,y"\nb text,\nc text,x\n' * 10)
    test.write_text("t,l\na text,z\n")
    task = fm.own_task(train, text="t", label="l", label_kind="multi-label", test=test)
    with pytest.raises(fm.InputError, match=r"b\.csv, line 2: label 'z' in 'l'; expected one of x, y"):
        task.load()


@pytest.mark.parametrize("metric", ["accuracy", "matthews", "pearson"])
def test_metrics_of_one_class_do_not_fit_several_labels(tmp_path: Path, metric: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t,l\n" + 'a text,"x,y"\nb text,\nc text,x\n' * 10)
    with pytest.raises(fm.InputError, match=f"metric '{metric}' is not for multi-label tasks"):
        fm.own_task(path, text="t", label="l", label_kind="multi-label", metric=metric)
