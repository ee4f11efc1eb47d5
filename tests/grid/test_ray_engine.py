"""Runs as tasks of a cluster: each once, in order, failures told; tests/slow has real clusters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import faithmeter as fm
import fake_ray
from faithmeter import grid
from faithmeter.config import MeasureConfig
from faithmeter.grid import planned, ray_engine
from faithmeter.grid.ray_engine import APART, SHARED, WITHOUT_LOCKS, Job, execute_on_ray, find_store
from faithmeter.runs.cluster import Resources
from faithmeter.runs.mirror import Desk, Mirror
from faithmeter.runs.store import RunStore
from records import measure_result, method_result, train_result

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
    monkeypatch.setattr(planned, "changed_inputs", lambda *_: "")
    (tmp_path / "grid.toml").write_text(GRID)
    return grid.read(tmp_path / "grid.toml").runs


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "runs", "call", versions={})


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the runs that were performed, by work that only writes a record and a chunk."""
    names: list[str] = []

    def perform(run: grid.Run, store: RunStore, show: ray_engine.Show, *_: object) -> None:
        names.append(run.name)
        show("part", 1, 2, "a note")
        config = run.located(store)
        assert config is not None
        result = train_result()
        if isinstance(config, MeasureConfig):
            result = measure_result(run.trained, {"random": method_result({0: 0.9, 100: 0.5})})
            chunk = store.root / "chunks" / config.chunks / "0-7.parquet"
            chunk.parent.mkdir(parents=True)
            chunk.write_text("a chunk")
        with store.claim(config):
            store.put(config, result)

    monkeypatch.setattr(ray_engine, "perform", perform)
    return names


def execute(runs: list[grid.Run], job: Job) -> tuple[dict[grid.Run, str], dict[grid.Run, str]]:
    told: dict[grid.Run, str] = {}
    failed = execute_on_ray(runs, job, told.__setitem__, lambda *_: None, resources=Resources())
    return told, failed


def same_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "find_store", lambda _: SHARED)


def test_every_run_is_performed_once_after_the_run_that_it_needs(runs, job, worked, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    same_store(monkeypatch)
    told, failed = execute(runs, job)
    assert failed == {}
    assert {*told.values()} == {"finished"}
    assert worked == [run.name for run in runs]
    told, failed = execute(runs, job)
    assert {*told.values()} == {"done"}
    assert len(worked) == len(runs), "what is in the store is not run again"


def test_a_run_whose_workers_are_lost_fails_and_blocks_what_needs_it(runs, job, worked, monkeypatch) -> None:
    def lost(function: object, arguments: tuple[object, ...]) -> bool:
        return function is ray_engine.run_task and arguments[3] == runs[0]

    fake_ray.install(monkeypatch, lost=lost)
    same_store(monkeypatch)
    told, failed = execute(runs, job)
    assert [told[run] for run in runs] == ["failed", "blocked", "finished", "finished"]
    assert failed == {runs[0]: "RayError: the worker died", runs[1]: f"needs {runs[0].name}"}
    failure = json.loads(grid.failure_file(runs[0], RunStore(job.root)).read_text())
    assert failure["error"] == "RayError: the worker died"


def test_a_failing_run_is_recorded_by_its_worker_and_blocks_what_needs_it(runs, job, monkeypatch) -> None:
    def perform(run: grid.Run, *_: object) -> None:
        raise ZeroDivisionError("a division")

    fake_ray.install(monkeypatch)
    same_store(monkeypatch)
    monkeypatch.setattr(ray_engine, "perform", perform)
    told, failed = execute(runs, job)
    assert [told[run] for run in runs] == ["failed", "blocked", "failed", "blocked"]
    assert failed[runs[0]] == "ZeroDivisionError: a division"
    assert "a division" in grid.failure_file(runs[0], RunStore(job.root)).read_text()


def test_another_version_on_a_node_is_one_line(runs, job, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    other = Job(job.root, "call", versions={"torch": "1.0"})
    with pytest.raises(
        fm.InputError, match=r"node .* has torch .* instead of 1.0; install the same versions"
    ):
        execute(runs, other)


def test_a_worker_without_the_store_sends_everything(runs, job, worked, tmp_path) -> None:
    """The store ends as if the work had been done in it, and what it holds is not done again."""
    desk = Desk(job.root)
    for run in [runs[0], runs[1], runs[1]]:
        folder = tmp_path / f"copy-{len(worked)}-{run.config.kind}-{len([*tmp_path.iterdir()])}"
        folder.mkdir()
        mirror = Mirror(folder, lambda name, *values: getattr(desk, name)(*values))
        outcome = ray_engine.perform_apart(run, mirror, lambda *_: None, job)
        assert outcome.reason == ""
    assert worked == [runs[0].name, runs[1].name]
    store = RunStore(job.root)
    assert [record.kind for _, record in store.records()] == ["measure", "train"]
    assert [path.read_text() for path in job.root.glob("chunks/*/*")] == ["a chunk"]
    assert store.running() == []


def test_a_worker_without_the_store_waits_for_another_process_and_takes_its_result(
    runs, job, worked, tmp_path, monkeypatch
) -> None:
    store, desk = RunStore(job.root), Desk(job.root)
    other = store.hold(store.folder(runs[0].config).name)
    other.__enter__()

    def finish(_: float) -> None:
        store.put(runs[0].config, train_result())
        other.__exit__(None, None, None)

    monkeypatch.setattr(grid.execution.time, "sleep", finish)
    (tmp_path / "copy").mkdir()
    mirror = Mirror(tmp_path / "copy", lambda name, *values: getattr(desk, name)(*values))
    assert ray_engine.perform_apart(runs[0], mirror, lambda *_: None, job).outcome == "finished"
    assert worked == []


def test_a_node_sees_the_store_by_a_lock_that_the_command_holds(job, monkeypatch) -> None:
    assert find_store(job) == APART
    store = RunStore(job.root)
    with store.lock(job.lock):
        assert find_store(job) == SHARED
        monkeypatch.setattr(RunStore, "lock", lambda *_: memoryview(b""))  # granted to everyone
        assert find_store(job) == WITHOUT_LOCKS


def test_nodes_that_cannot_work_in_the_store_are_named_once() -> None:
    nodes = [("a", SHARED), ("b", APART), ("c", WITHOUT_LOCKS), ("b", APART)]
    lines = ray_engine.describe_nodes(nodes, Path("/runs"))
    assert lines == [
        "b: /runs is not there; its workers send their files to this process",
        "c: the file system of /runs does not share locks; its workers send their files to this process",
    ]
