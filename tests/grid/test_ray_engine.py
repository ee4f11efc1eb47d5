"""Runs as tasks of a cluster: each once, in order, failures told; tests/slow has real clusters."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import faithmeter as fm
import fake_ray
from faithmeter import grid
from faithmeter.config import MeasureConfig
from faithmeter.grid import execution, ray_engine
from faithmeter.grid.execution import perform
from faithmeter.grid.ray_engine import Job, execute_on_ray
from faithmeter.runs.cluster import Resources
from faithmeter.store.run_store import RunStore
from records import train_result
from traces import manifest_values

GRID = """
tasks = ["bAbI-1"]
models = ["embedded"]
seeds = [0, 1]
strategies = ["half/both"]
[measure]
methods = ["grad-l2"]
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[grid.Run]:
    """Two trainings, each with its measurement, whose inputs count as unchanged."""
    monkeypatch.setattr(execution, "changed_inputs", lambda *_: "")
    (tmp_path / "grid.toml").write_text(GRID)
    return grid.read(tmp_path / "grid.toml").runs


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "runs", "call", versions={})


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the runs that were performed, by work that only writes weights or a trace, and a record."""
    names: list[str] = []

    def perform(run: grid.Run, store: RunStore, show: ray_engine.Show, *_: object) -> None:
        names.append(run.name)
        show("part", 1, 2, "a note")
        config = run.located(store)
        assert config is not None
        result = train_result()
        if isinstance(config, MeasureConfig):
            assert (store.folder(run.trained) / "weights").read_text() == "the weights"
            result = manifest_values(run.trained, {})
            trace = store.root / "traces" / store.folder(config).name / "random-1" / "0-8.parquet"
            trace.parent.mkdir(parents=True)
            trace.write_text("a trace")
        else:
            store.folder(config).mkdir(parents=True, exist_ok=True)
            (store.folder(config) / "weights").write_text("the weights")
        with store.claim(config):
            store.put(config, result)

    monkeypatch.setattr(ray_engine, "perform", perform)
    return names


def execute(runs: list[grid.Run], job: Job) -> tuple[dict[grid.Run, str], dict[grid.Run, str]]:
    told: dict[grid.Run, str] = {}
    failed = execute_on_ray(runs, job, told.__setitem__, lambda *_: None, resources=Resources())
    return told, failed


def test_every_run_is_performed_once_after_the_run_that_it_needs(runs, job, worked, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    told, failed = execute(runs, job)
    assert failed == {}
    assert {*told.values()} == {"finished"}
    assert sorted(worked) == sorted(run.name for run in runs)
    assert all(worked.index(run.name) > worked.index(run.after.name) for run in runs if run.after)
    told, failed = execute(runs, job)
    assert {*told.values()} == {"done"}
    assert len(worked) == len(runs), "what is in the store is not run again"


def test_the_store_ends_as_if_the_work_had_been_done_in_it(runs, job, worked, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    execute(runs[:2], job)
    store = RunStore(job.root)
    assert [record.kind for _, record in store.records()] == ["measure", "train"]
    assert [path.read_text() for path in job.root.glob("traces/*/*/*")] == ["a trace"]
    assert store.running() == []
    assert not [*job.root.rglob("*.part")]


def test_digits_are_those_of_the_local_engine(tmp_path, monkeypatch) -> None:
    """A real training and measurement, in another folder and process than the store."""
    (tmp_path / "grid.toml").write_text(
        GRID.replace("seeds = [0, 1]", "seeds = [0]").replace(
            "[measure]", "[train]\nlimit = 32\nepochs = 1\n[measure]\nlimit = 8\nstep = 50"
        )
    )
    runs = grid.read(tmp_path / "grid.toml").runs
    local, cluster = RunStore(tmp_path / "local"), RunStore(tmp_path / "ray")
    grid.execute(runs, local, lambda run: perform(run, local, lambda *_: None), lambda *_: None)
    fake_ray.install(monkeypatch)
    told, failed = execute(runs, Job(cluster.root, "call"))
    assert (failed, {*told.values()}) == ({}, {"finished"})
    for (one, record), (other, again) in zip(local.records(), cluster.records(), strict=True):
        assert one.name == other.name
        assert sorted(path.name for path in one.iterdir()) == sorted(path.name for path in other.iterdir())
        if record.kind == "train":
            assert record.epochs == again.epochs
            assert record.fingerprint == again.fingerprint
    frames = [store.results()[0].result.frame for store in (local, cluster)]
    pd.testing.assert_frame_equal(*frames, check_exact=True)


def test_a_run_whose_workers_are_lost_fails_and_blocks_what_needs_it(runs, job, worked, monkeypatch) -> None:
    def lost(function: object, arguments: tuple[object, ...]) -> bool:
        return function is ray_engine.perform_apart and arguments[3] == runs[0]

    fake_ray.install(monkeypatch, lost=lost)
    told, failed = execute(runs, job)
    assert [told[run] for run in runs] == ["failed", "blocked", "finished", "finished"]
    assert failed == {runs[0]: "RayError: the worker died", runs[1]: f"needs {runs[0].name}"}
    failure = json.loads(grid.failure_file(runs[0], RunStore(job.root)).read_text())
    assert failure["error"] == "RayError: the worker died"
    assert RunStore(job.root).running() == []


def test_ray_repeats_a_lost_run(runs, job, worked, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    execute(runs, job)
    retries = [settings.get("max_retries") for settings in fake_ray.Remote.settings]
    assert retries.count(ray_engine.LOSSES) == 1, "the options of the task of all runs"


def test_a_failing_run_is_recorded_and_blocks_what_needs_it(runs, job, monkeypatch) -> None:
    def perform(run: grid.Run, *_: object) -> None:
        raise KeyError("a key")

    fake_ray.install(monkeypatch)
    monkeypatch.setattr(ray_engine, "perform", perform)
    told, failed = execute(runs, job)
    assert [told[run] for run in runs] == ["failed", "blocked", "failed", "blocked"]
    assert failed[runs[0]] == "KeyError: 'a key'"
    failure = json.loads(grid.failure_file(runs[0], RunStore(job.root)).read_text())
    assert "RayTaskError" in failure["traceback"], "the traceback of the worker"


def test_another_version_on_a_node_is_one_line(runs, job, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    other = Job(job.root, "call", versions={"faithmeter": "1.0"})
    with pytest.raises(
        fm.InputError, match=r"node .* has faithmeter .* instead of 1.0; install the same versions"
    ):
        execute(runs, other)


def test_a_node_that_joined_later_with_other_versions_ends_the_command(
    runs, job, worked, monkeypatch
) -> None:
    fake_ray.install(monkeypatch)
    monkeypatch.setattr(ray_engine, "on_every_node", lambda *_: None)
    monkeypatch.setattr(ray_engine, "require_versions", refuse)
    with pytest.raises(fm.InputError, match=r"^node far has torch 1.0$"):
        execute(runs, job)
    assert RunStore(job.root).running() == []


def refuse(*_: object) -> None:
    raise fm.InputError("node far has torch 1.0")


def test_a_missing_import_on_a_node_is_found_at_the_start(runs, job, worked, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    other = Job(job.root, "call", versions={}, prepare=refuse)
    with pytest.raises(fm.InputError, match=r"^node .*: node far has torch 1.0$"):
        execute(runs, other)
    assert worked == []


def test_a_run_waits_for_another_process_and_takes_its_result(runs, job, worked, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    store = RunStore(job.root)
    other = store.claim(runs[0].config)
    other.__enter__()

    def finish(_: float) -> None:
        store.put(runs[0].config, train_result())
        other.__exit__(None, None, None)

    monkeypatch.setattr(ray_engine, "time", SimpleNamespace(sleep=finish, monotonic=lambda: 0.0))
    told, _ = execute(runs[:1], job)
    assert (told, worked) == ({runs[0]: "done"}, [])


def test_a_model_that_is_damaged_is_trained_again(runs, job, worked, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    execute(runs[:1], job)
    weights = RunStore(job.root).folder(runs[0].config) / "weights"
    weights.write_text("other weights")
    with pytest.warns(fm.errors.DamageWarning, match="weights is not as it was written; put aside"):
        told, failed = execute(runs[:2], job)
    assert failed == {}
    assert told[runs[1]] == "finished"
    assert worked == [runs[0].name, runs[0].name, runs[1].name]


def test_a_full_disk_here_fails_the_run_in_one_line(runs, job, worked, monkeypatch) -> None:
    def atomic(path: Path) -> Any:
        raise fm.InputError(f"cannot write to {path.parent}: No space left on device; free some space")

    fake_ray.install(monkeypatch)
    monkeypatch.setattr(ray_engine, "atomic", atomic)
    _, failed = execute(runs[:1], job)
    assert "No space left on device; free some space" in failed[runs[0]]


def test_progress_is_shown_with_the_node_that_works(runs, job, worked, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    steps: list[tuple[grid.Run, ray_engine.Step]] = []
    show = lambda *step: steps.append(step)  # noqa: E731
    execute_on_ray(runs[:1], job, lambda *_: None, show, resources=Resources())
    run, step = steps[-1]
    assert (run, step[1:]) == (runs[0], ("part", 1, 2, "a note"))
    assert step.host


def test_progress_of_one_part_is_reported_at_most_twice_a_second(monkeypatch) -> None:
    clock, steps = [0.0], []
    monkeypatch.setattr(ray_engine.time, "monotonic", lambda: clock[0])
    show = ray_engine._throttled(lambda *step: steps.append(step))
    for part, at in [("a", 0.0), ("a", 0.1), ("b", 0.2), ("b", 0.6), ("b", 0.8)]:
        clock[0] = at
        show(part, at, math.inf, "")
    assert [(part, at) for part, at, _, _ in steps] == [("a", 0.0), ("b", 0.2), ("b", 0.8)]


def test_records_are_sent_last_and_locks_and_unfinished_files_never(tmp_path) -> None:
    names = (
        "a/record.json",
        "a/weights",
        "b/manifest.json",
        "b/x",
        "locks/a.lock",
        ".y.part",
        "a/.z.1f.part",
    )
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert [*ray_engine.list_files(tmp_path)] == ["a/weights", "b/x", "a/record.json", "b/manifest.json"]


def test_the_poll_loop_looks_for_room(runs, job, worked, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    looks: list[str] = []
    monkeypatch.setattr(ray_engine, "watch_room", lambda *_: lambda: looks.append("look"))
    execute(runs, job)
    assert looks


def test_a_run_that_succeeds_removes_its_earlier_failure(runs, job, worked, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    file = grid.failure_file(runs[0], RunStore(job.root))
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    told, _ = execute(runs, job)
    assert told[runs[0]] == "finished"
    assert not file.exists()
