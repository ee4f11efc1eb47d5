"""The hub's code path, on local folders in its layout: parquet files and a README that names the configs."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import datasets
import pytest

from faithmeter.data import TASKS, task
from faithmeter.data.splits import digest
from faithmeter.errors import InputError
from fixtures_tasks import found


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def publish(folder, one, splits, names=None):
    """A repository of the task in the hub's layout; the task that reads it."""
    columns = [name for name in (*one.columns, one.hub.key) if name is not None]
    types = dict.fromkeys(columns, datasets.Value("string")) | {
        one.label: datasets.ClassLabel(names=names or one.labels)
    }
    if one.hub.key:
        types[one.hub.key] = datasets.Value("int32")
    config = one.hub.config or "plain_text"
    files = []
    for split, rows in splits.items():
        path = folder / config / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        datasets.Dataset.from_list(rows, features=datasets.Features(types)).to_parquet(path)
        files.append(f"  - split: {split}\n    path: {config}/{split}-*\n")
    (folder / "README.md").write_text(
        f"---\nconfigs:\n- config_name: {config}\n  data_files:\n{''.join(files)}---\n"
    )
    return replace(one, hub=replace(one.hub, repo=str(folder)))


def pairs(one, count, offset=0):
    rows = [
        {one.explained: f"text {n}", one.label: n % len(one.labels)} for n in range(offset, offset + count)
    ]
    if one.context:
        rows = [row | {one.context: f"other {n}"} for n, row in enumerate(rows)]
    return [row | {one.hub.key: 3 * n} for n, row in enumerate(rows)] if one.hub.key else rows


@pytest.mark.parametrize("name", [name for name, one in TASKS.items() if one.hub])
def test_every_hub_task_is_read_from_parquet(tmp_path, name):
    one = task(name)
    splits = {split: pairs(one, 10, offset=100 * n) for n, split in enumerate(one.official)}
    read = publish(tmp_path / "repo", one, splits).load()
    texts = {split: {row[one.explained] for row in rows} for split, rows in splits.items()}
    if len(splits) == 2:
        assert [len(split) for split in read.values()] == [8, 2, 10]
        both = {row["text"] for role in ("train", "validation") for row in read[role]}
        assert [both, {row["text"] for row in read["test"]}] == list(texts.values())
    else:
        assert [{row["text"] for row in split} for split in read.values()] == list(texts.values())
    row = read["test"][0]
    assert row["label"] == int(row["text"].split()[1]) % len(one.labels)


def test_hub_and_official_files_give_the_same_splits(tmp_path):
    from fixtures_tasks import make_mrpc

    expected = make_mrpc(tmp_path / "files")
    official = task("MRPC", tmp_path / "files").load()
    one = task("MRPC")
    rows = [
        {"sentence1": f'"sentence {n}', "sentence2": f"other {n}", "label": n % 2, "idx": n}
        for n in range(20)
    ]
    splits = {"train": [row for row in rows if row["idx"] % 4], "validation": rows[::4]}
    read = publish(tmp_path / "repo", one, splits).load()
    assert found(read) == expected
    assert {role: digest(split) for role, split in read.items()} == {
        r: digest(s) for r, s in official.items()
    }


def test_unlabeled_rows_of_snli_are_left_out_but_counted(tmp_path):
    one = task("SNLI")
    rows = pairs(one, 10)
    rows[4]["label"] = -1
    read = publish(tmp_path / "repo", one, dict.fromkeys(one.official, rows)).load()
    assert {row["text"] for row in read["train"]} == {f"text {n}" for n in range(10) if n != 4}


@pytest.mark.parametrize(("change", "message"), [
    (lambda rows: [row | {"sentence1": ""} for row in rows], r"train, row 1: 'sentence1' is empty"),
    (lambda rows: [row | {"idx": 1} for row in rows], r"train, row 2: idx 1 occurs twice"),
    (lambda rows: [row | {"label": -1} for row in rows], r"train has no rows"),
])  # fmt: skip
def test_bad_rows_from_the_hub_are_named(tmp_path, change, message):
    one = task("RTE")
    rows = pairs(one, 10)
    with pytest.raises(InputError, match=message):
        publish(tmp_path / "repo", one, {"train": change(rows), "validation": rows}).load()


def test_other_label_names_or_columns_than_the_tasks_are_refused(tmp_path):
    one = task("RTE")
    splits = dict.fromkeys(one.official, pairs(one, 10))
    with pytest.raises(InputError, match=r"the labels are \['no', 'yes'\]; expected \['entailment'"):
        publish(tmp_path / "a", one, splits, names=["no", "yes"]).load()
    with pytest.raises(InputError, match="no column 'passage'"):
        replace(publish(tmp_path / "b", one, splits), explained="passage").load()


def test_without_network_one_line_says_what_to_do(tmp_path):
    code = (
        "from faithmeter.data import task\n"
        "from faithmeter.errors import InputError\n"
        "try:\n    task('RTE').load()\n"
        "except InputError as error:\n    print(error)\n"
    )
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.startswith("RTE could not be loaded from the hub (nyu-mll/glue/rte): ")
    assert done.stdout.endswith("give the folder of its official files as data_dir (--data-dir)\n")
    assert done.stdout.count("\n") == 1


def test_what_was_downloaded_before_counts_as_available(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    assert not task("RTE").source.available
    (tmp_path / "nyu-mll___glue/rte").mkdir(parents=True)
    assert task("RTE").source.available
    assert not task("CoLA").source.available
