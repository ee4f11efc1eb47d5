"""`faithmeter list runs`: filters that are checked, and folders that can be copied."""

from __future__ import annotations

from pathlib import Path

import pytest

import faithmeter as fm
import fixtures_report as made_up
from faithmeter.cli.listing import listing, runs, task_parts
from faithmeter.cli.screen import output
from faithmeter.config import MeasureConfig, TrainConfig


@pytest.fixture
def store(tmp_path: Path) -> fm.RunStore:
    return fm.RunStore(tmp_path / "a folder [of] runs with a name that is longer than a line")


@pytest.fixture
def trained(store: fm.RunStore) -> TrainConfig:
    return made_up.train(store)


@pytest.fixture
def measured(store: fm.RunStore, trained: TrainConfig) -> MeasureConfig:
    return made_up.measure(
        store, trained, [{"text": "a b", "label": 0}], {"beam(width=20)": 0.4, "random": 0.0}
    )


def folders(store: fm.RunStore, *where: str) -> list[str]:
    return [value["folder"] for value in runs(store.root, list(where))[0]]


def test_runs_are_chosen_by_what_they_go_by(store, trained, measured) -> None:
    other = made_up.train(store, seed=1, model="models/large")
    train, large, measure = (str(store.folder(config)) for config in (trained, other, measured))
    assert sorted(folders(store)) == sorted([train, large, measure])
    assert folders(store, "kind=measure") == [measure]
    assert folders(store, "model=large") == folders(store, "model=models/large") == [large]
    for condition in ("methods=beam", "methods=beam(width=20)", "methods=random"):
        assert folders(store, condition) == [measure]
    assert folders(store, "kind=measure", "seed=1") == [], "each of the two is true of some run"


@pytest.mark.parametrize(
    ("condition", "told"),
    {
        "kind=trian": "unknown kind of the runs in .* 'trian'; did you mean 'train'",
        "seed=7": "unknown seed of the runs in .*expected one of 0$",
        "methods=loo": "unknown methods of the runs",
        "text=x": r"unknown text of .*expected one of \(none\)",
        "knd=train": "unknown filter 'knd'; did you mean 'kind'",
        "kind": "--where 'kind'; expected a name and a value, e.g. strategy=half",
    }.items(),
)
def test_a_condition_that_no_run_can_meet_is_told(store, measured, condition: str, told: str) -> None:
    with pytest.raises(fm.InputError, match=told):
        runs(store.root, [condition])


def test_a_folder_without_runs_is_refused_and_a_filter_checked_before(store) -> None:
    with pytest.raises(fm.InputError, match=r"\[of\] runs .* holds no finished run"):
        runs(store.root, [])
    with pytest.raises(fm.InputError, match="unknown filter 'knd'"):
        runs(store.root, ["knd=train"])


def test_folders_are_never_cut(store, trained, measured, capsys) -> None:
    listing("runs", store=store.root)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"runs in {store.root}"
    assert sorted(line[line.index(str(store.root)) :] for line in lines[2:]) == sorted(
        str(store.folder(config)) for config in (trained, measured)
    )


def test_brackets_of_a_task_are_shown_as_they_are(tmp_path: Path, capsys) -> None:
    from faithmeter.cli.listing import describe_task
    from faithmeter.data import own_task

    data = tmp_path / "[x].csv"
    data.write_text("text,label\n" + "\n".join(f"[bold]t{n}[/],[{'ab'[n % 2]}]" for n in range(40)))
    task = own_task(str(data), text="text", label="label")
    parts = task_parts(task, describe_task(task))
    for part in parts:
        output.print(part, soft_wrap=True)
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("[x].csv", "[bold]t", "\n[a] "))


def test_runs_at_work_are_listed_with_their_host_even_before_any_has_finished(store, capsys) -> None:
    with store.hold("train-a-0", "node-7"):
        listing("runs", store=store.root)
        assert "node-7" in capsys.readouterr().out
        values, _ = runs(store.root, [])
        assert [(value["kind"], value["run"], value["host"]) for value in values] == [
            ("running", "train-a-0", "node-7")
        ]
    with pytest.raises(fm.InputError, match="holds no finished run"):
        runs(store.root, [])
