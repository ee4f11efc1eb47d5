"""The table of tasks, the published splits on the real files, and what is said about a task."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithmeter.cli.listing import QUANTILES, describe_task, tasks
from faithmeter.data import TASKS, task
from faithmeter.data.rows import Row
from faithmeter.data.splits import arrange, digest
from faithmeter.errors import InputError
from faithmeter.paper.published import read_counts
from faithmeter.stats.metrics import METRICS, majority
from fixtures_tasks import OFFICIAL, SHARED, make_imdb, needs_shared

REAL = ("RTE", "CoLA", "SST2", "CB", "BoolQ", "bAbI-1", "IMDB")
ROLES = {"train": "train", "test": "validation"}


def counts(split, task):
    labels = split[:]["label"]
    return [labels.count(number) for number in range(len(task.labels))]


def test_the_table_has_the_sixteen_tasks_with_the_published_settings():
    epochs = [30, 10, 10, 20, 50, 20, 10, 10, 10, 20, 20, 15, 15, 20, 20, 20]
    assert list(TASKS) == list(read_counts())
    assert [one.epochs for one in TASKS.values()] == epochs
    for name, numbers in read_counts().items():
        assert all(len(TASKS[name].labels) == len(of) for of in numbers["class_counts"].values())
        assert set(TASKS[name].metrics) == set(numbers["majority"]["test"]) <= set(METRICS)
        assert TASKS[name].metric in TASKS[name].metrics
        assert (TASKS[name].threshold == 0.5) == name.startswith("bAbI")


@pytest.mark.skipif(not (SHARED / "paper").is_dir(), reason=f"needs the paper's tables in {SHARED}/paper")
def test_the_shipped_numbers_are_the_published_ones():
    theirs = json.loads((SHARED / "paper/datasets.json").read_text())
    names = {"Anemia": "MIMIC-a", "Diabetes": "MIMIC-d"}
    for name, numbers in read_counts().items():
        of = theirs[names.get(name, name)]
        assert numbers["class_counts"] == {
            "train": of["class_count"]["train"],
            "validation": of["class_count"]["valid"],
            "test": of["class_count"]["test"],
        }
        metric = {"matthews": "matthew"}.get(TASKS[name].metric, TASKS[name].metric)
        assert of["early_stopping_metric"] == metric
        assert numbers["majority"]["test"][TASKS[name].metric] == of["summary"]["baseline"]
        assert (TASKS[name].explained, TASKS[name].context) == (
            of["summary"]["masked"],
            of["summary"]["auxilary"],
        )


def test_importing_the_tasks_is_light():
    code = "import sys, faithmeter.data; print({'torch', 'datasets', 'pandas', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@needs_shared
@pytest.mark.parametrize("name", REAL)
def test_splits_and_baselines_of_the_real_files_are_the_published_ones(name):
    one = task(name, SHARED / "data")
    splits = one.load()
    assert {role: counts(split, one) for role, split in splits.items()} == read_counts()[name]["class_counts"]
    for role in ("validation", "test"):
        guess = majority(one.metrics, splits["train"][:]["label"], splits[role][:]["label"], len(one.labels))
        assert guess == pytest.approx(read_counts()[name]["majority"][role], abs=1e-12)
    assert (
        splits["train"].column_names[: 3 if one.context else 2]
        == ["text", "label", "context"][: 3 if one.context else 2]
    )
    assert one.source.available
    assert one.source.published


@needs_shared
@pytest.mark.parametrize(("name", "folder", "train", "test"), [
    ("QNLI", "QNLI", "train.tsv", "dev.tsv"),
    ("bAbI-3", "bAbI/en-10k", "qa3_three-supporting-facts_train.txt", "qa3_three-supporting-facts_test.txt"),
])  # fmt: skip
def test_real_test_files_without_a_train_file_beside_them(tmp_path, name, folder, train, test):
    for file in (train, test):
        shutil.copyfile(SHARED / "data" / folder / test, tmp_path / file)
    one = task(name, tmp_path)
    assert counts(one.load()["test"], one) == read_counts()[name]["class_counts"]["test"]


def test_rows_are_sorted_by_the_md5_of_split_and_key_and_cut_at_80_percent():
    rows = [Row(str(key), f"text {key}", 0) for key in range(7)]
    splits = arrange({"train": rows, "test": rows}, ROLES, "here")
    by_number = sorted(range(7), key=lambda key: int(hashlib.md5(f"train{key}".encode()).hexdigest(), 16))
    assert [int(row.key) for row in splits["train"] + splits["validation"]] == by_number
    assert len(splits["train"]) == 6  # 0.8 × 7 = 5.6
    assert sorted(splits["test"], key=lambda row: row.key) == rows


@given(st.integers(3, 3000))
def test_the_cut_is_at_the_nearest_whole_number(count):
    rows = [Row(str(key), "text", 0) for key in range(count)]
    splits = arrange({"train": rows, "test": rows}, ROLES, "here")
    assert len(splits["train"]) == round(0.8 * count)
    assert {*splits["train"]} | {*splits["validation"]} == set(rows)


def test_too_few_rows_to_cut_are_an_error():
    with pytest.raises(InputError, match="here: 2 rows are too few to cut validation from"):
        arrange({"train": [Row("0", "a", 0), Row("1", "b", 0)], "test": [Row("0", "a", 0)]}, ROLES, "here")


@pytest.mark.parametrize("name", ["bAbI-1", "bAbI-2", "bAbI-3"])
def test_generated_stories_have_the_sizes_of_the_official_ones_and_point_to_their_facts(name):
    one = task(name)
    splits = one.load()
    assert {role: len(split) for role, split in splits.items()} == {
        "train": 8000,
        "validation": 2000,
        "test": 1000,
    }
    assert not one.source.published
    for row in splits["test"]:
        facts = [row["text"][start:end] for start, end in row["supporting"]]
        assert len(facts) == int(name[-1])
        assert any(one.labels[row["label"]] in fact for fact in facts)
        assert all(fact.endswith(".") and fact.count(".") == 1 for fact in facts)


def test_digests_tell_splits_apart_and_loading_twice_gives_the_same(tmp_path):
    OFFICIAL["QNLI"](tmp_path)
    first, again = task("QNLI", tmp_path).load(), task("QNLI", tmp_path).load()
    assert {role: digest(split) for role, split in first.items()} == {r: digest(s) for r, s in again.items()}
    test = first["test"]
    others = (test.select(range(9)), test.select([1, 0, *range(2, 10)]), test.rename_column("context", "c"))
    assert len({digest(test), *map(digest, others)}) == 4


def test_an_unknown_task_gets_the_nearest_name():
    with pytest.raises(InputError, match="unknown task 'SST-2'; did you mean 'SST2'"):
        task("SST-2")


def test_a_folder_and_the_one_above_are_the_same(tmp_path):
    OFFICIAL["QNLI"](tmp_path)
    above, own = task("QNLI", tmp_path).load(), task("QNLI", str(tmp_path / "QNLI")).load()
    assert digest(above["train"]) == digest(own["train"])


def test_detail_counts_what_is_there(tmp_path):
    make_imdb(tmp_path)
    values = describe_task(task("IMDB", tmp_path))
    counts = values["class_counts"]
    assert {role: sum(of.values()) for role, of in counts.items()} == {
        "train": 8,
        "validation": 2,
        "test": 10,
    }
    assert counts["test"] == {"neg": 5, "pos": 5}
    assert values["majority"]["macro_f1"] == pytest.approx(1 / 3)
    assert values["words"] == {"text": dict.fromkeys(QUANTILES, 3)}  # "train 0<br />é"
    assert [set(example) for example in values["examples"]] == [{"text", "label"}] * 3
    assert {example["label"] for example in values["examples"]} <= {"neg", "pos"}
    assert not values["as_published"]


def test_overview_has_published_sizes_and_says_what_is_available(tmp_path):
    make_imdb(tmp_path)
    lines = {line["task"]: line for line in tasks(tmp_path)[0]}
    assert len(lines) == 16
    assert lines["IMDB"]["source"]["available"]
    assert not lines["RTE"]["source"]["available"]
    assert "train.tsv does not exist" in lines["RTE"]["source"]["note"]
    assert lines["RTE"]["sizes"] == {"train": 1992, "validation": 498, "test": 277}
    assert lines["RTE"]["majority"] == pytest.approx(0.473, abs=5e-4)
    anywhere = {line["task"]: line["source"] for line in tasks()[0]}
    assert anywhere["bAbI-2"]["available"]
    assert anywhere["bAbI-2"]["kind"] == "generated"
    assert (anywhere["RTE"]["kind"], anywhere["RTE"]["place"]) == ("hub", "nyu-mll/glue/rte")
    assert "physionet.org" in anywhere["Anemia"]["note"]
    assert not anywhere["IMDB"]["published"]


def test_mimic_without_files_says_where_to_get_it():
    with pytest.raises(InputError, match=r"physionet.org.*--data-dir"):
        task("Anemia").load()


@needs_shared
@pytest.mark.slow
def test_the_imdb_archive_is_read_within_a_minute_and_a_gigabyte():
    code = (
        "import resource, sys, time; start = time.perf_counter()\n"
        "from faithmeter.data import task; rows = sum(map(len, task('IMDB', sys.argv[1]).load().values()))\n"
        "print(rows, time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    command = [sys.executable, "-c", code, SHARED / "data"]
    rows, seconds, kilobytes = subprocess.run(command, capture_output=True, check=True).stdout.split()
    assert int(rows) == 50_000
    assert float(seconds) < 60
    assert int(kilobytes) < 1_000_000
