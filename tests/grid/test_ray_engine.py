"""Runs as tasks of a cluster: each once, in order, failures told; tests/slow has real clusters."""

from __future__ import annotations

import json
import pickle
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import faithmeter as fm
import fake_ray
from faithmeter import grid
from faithmeter.config import MeasureConfig
from faithmeter.grid import planned, ray_engine
from faithmeter.grid.ray_engine import APART, SHARED, WITHOUT_LOCKS, Job, execute_on_ray, find_store
from faithmeter.runs.cluster import Resources
from faithmeter.runs.mirror import Desk, Mirror
from faithmeter.store.run_store import Busy, RunStore
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
        outcome = ray_engine.perform_apart(run, 0, mirror, lambda *_: None, job)
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
    assert ray_engine.perform_apart(runs[0], 0, mirror, lambda *_: None, job).outcome == "finished"
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


def test_a_run_lost_without_the_store_is_not_held_when_it_is_started_again(
    runs, job, worked, monkeypatch
) -> None:
    """The retry runs on a node with the store, where nobody else would release the lock."""
    ray = fake_ray.install(monkeypatch)
    same_store(monkeypatch)
    clock = SimpleNamespace(sleep=lambda _: pytest.fail("it waits for a lost worker"))
    monkeypatch.setattr(grid.execution, "time", clock)
    desk = ray.remote(Desk).remote(job.root)
    folder = RunStore(job.root).folder(runs[0].config).name
    assert ray.get(desk.hold.remote(0, folder, "far"))
    assert ray_engine.run_task(job, desk, 0, runs[0], None).outcome == "finished"


def test_what_a_run_held_is_released_when_its_workers_were_lost_for_good(
    runs, job, worked, monkeypatch
) -> None:
    released: list[int] = []
    monkeypatch.setattr(Desk, "release", lambda _, number: released.append(number))
    fake_ray.install(monkeypatch, lost=lambda function, _: function is ray_engine.run_task)
    execute(runs, job)
    assert {0, 2} <= {*released}


def test_the_command_says_once_in_a_period_that_no_node_can_hold_a_run(monkeypatch) -> None:
    clock, places, lines = [0.0], [0], []
    fake_ray.install(monkeypatch)
    monkeypatch.setattr(ray_engine, "count_places", lambda _: places[0])
    monkeypatch.setattr(ray_engine.time, "monotonic", lambda: clock[0])
    look = ray_engine._watch_room(Resources(2, 1), set(), lines.append)

    def wait(seconds: float) -> int:
        clock[0] += seconds
        look()
        return len(lines)

    assert wait(59) == 0
    assert [wait(1), wait(1000)] == [1, 1]
    assert lines == ["waiting for a node that can hold a run, with 2 CPUs and 1 GPUs; add one to the cluster"]
    places[0] = 1
    assert wait(1000) == 1, "a node has come back"
    places[0] = 0
    assert [wait(59), wait(1)] == [1, 2]


def test_the_poll_loop_watches_for_nodes(runs, job, worked, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    same_store(monkeypatch)
    looks: list[str] = []
    monkeypatch.setattr(ray_engine, "_watch_room", lambda *_: lambda: looks.append("look"))
    execute(runs, job)
    assert looks


def test_the_death_of_the_desk_is_one_line(runs, job, worked, monkeypatch) -> None:
    def lost(function: object, _: object) -> bool:
        return getattr(function, "__name__", "") == "read_steps"

    fake_ray.install(monkeypatch, lost=lost)
    same_store(monkeypatch)
    with pytest.raises(fm.InputError, match=r"the helper process of this command.* has died; start the grid"):
        execute(runs, job)


def add_nodes(ray: object, count: int) -> None:
    nodes = [{"Alive": True, "NodeID": str(n + 1), "Resources": {"CPU": 1.0}} for n in range(count)]
    ray.nodes = lambda: nodes  # type: ignore[attr-defined]


def test_a_run_on_an_unfit_node_that_joined_later_goes_to_another(runs, job, worked, monkeypatch) -> None:
    """What needs it follows, and the node is named once."""
    ray, lines, calls = fake_ray.install(monkeypatch), [], []
    same_store(monkeypatch)
    monkeypatch.setattr(ray_engine, "on_every_node", lambda *_: [])

    def require(_: object) -> None:
        calls.append("call")
        if len(calls) <= 2:  # both trainings
            raise fm.InputError("node far has torch 1.0")

    monkeypatch.setattr(ray_engine, "require_versions", require)
    add_nodes(ray, 2)
    told: dict[grid.Run, str] = {}
    failed = execute_on_ray(
        runs, job, told.__setitem__, lambda *_: None, resources=Resources(), remark=lines.append
    )
    assert failed == {}
    assert [told[run] for run in runs] == ["finished"] * 4
    assert lines == ["node far has torch 1.0; its runs go to other nodes"]
    selectors = [settings.get("label_selector") for settings in fake_ray.Remote.settings]
    assert {"ray.io/node-id": "!in(1)"} in selectors


def test_a_run_fails_in_one_line_if_no_other_node_is_fit(runs, job, worked, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    same_store(monkeypatch)
    monkeypatch.setattr(ray_engine, "on_every_node", lambda *_: [])
    monkeypatch.setattr(ray_engine, "require_versions", refuse)
    told, failed = execute(runs, job)
    assert [told[run] for run in runs] == ["failed", "blocked", "failed", "blocked"]
    assert failed[runs[0]] == "UnfitNode: node far has torch 1.0"


def refuse(*_: object) -> None:
    raise fm.InputError("node far has torch 1.0")


def test_a_missing_import_on_a_node_is_found_at_the_start(runs, job, worked, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    other = Job(job.root, "call", versions={}, prepare=refuse)
    with pytest.raises(fm.InputError, match=r"^node .*: node far has torch 1.0$"):
        execute(runs, other)
    assert worked == []


def test_an_unfit_node_is_known_after_pickling() -> None:
    error = pickle.loads(pickle.dumps(ray_engine.UnfitNode("a reason", "1")))
    assert (str(error), error.node) == ("a reason", "1")


def test_an_error_of_a_task_is_the_cause_in_one_line_with_the_traceback_of_the_worker(
    runs, job, monkeypatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("a key")

    fake_ray.install(monkeypatch)
    monkeypatch.setattr(ray_engine, "on_every_node", lambda *_: [])
    monkeypatch.setattr(ray_engine, "find_store", fail)
    _, failed = execute(runs, job)
    assert failed[runs[0]] == "KeyError: 'a key'"
    failure = json.loads(grid.failure_file(runs[0], RunStore(job.root)).read_text())
    assert "RayTaskError" in failure["traceback"]


def test_a_lock_that_is_busy_for_a_moment_is_not_shared(job, monkeypatch) -> None:
    """Another worker of the node looked at the same time, on a file system with locks for each machine."""
    with RunStore(job.root).lock(job.lock):
        looks: list[str] = []

        @contextmanager
        def lock(*_: object):
            looks.append("look")
            if len(looks) < 3:
                raise Busy("another worker")
            yield

        monkeypatch.setattr(RunStore, "lock", lock)
        assert find_store(job) == WITHOUT_LOCKS
    start = time.monotonic()
    looks[:] = []
    monkeypatch.setattr(RunStore, "lock", lambda *_: (_ for _ in ()).throw(Busy("the command")))
    assert find_store(job) == SHARED
    assert time.monotonic() - start < 1


def test_a_run_that_succeeds_without_the_store_removes_its_earlier_failure(
    runs, job, worked, monkeypatch
) -> None:
    fake_ray.install(monkeypatch)
    monkeypatch.setattr(ray_engine, "find_store", lambda _: APART)
    file = grid.failure_file(runs[0], RunStore(job.root))
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    told, _ = execute(runs, job)
    assert told[runs[0]] == "finished"
    assert not file.exists()
