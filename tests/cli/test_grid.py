"""`faithmeter grid` as it is called: what it would do, what it says, and who says it when several work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

import faithmeter as fm
from faithmeter.cli import grid as grid_verb
from faithmeter.cli.grid import Processes
from faithmeter.cli.grid import grid as verb
from faithmeter.grid import Run, failure_file, read
from faithmeter.runs.processes import free_memory, usable_cores
from records import train_result

GRID = """
workers = 2
tasks = ["bAbI-1"]
models = ["no/such/model"]
seeds = [0]
strategies = ["half/both", "none/unmasked"]
[measure]
strategies = ["half/both"]
methods = ["grad-l2"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


def test_a_dry_run_lists_and_does_nothing(file: Path, tmp_path: Path, capsys) -> None:
    verb(file, Processes(), dry_run=True, store=tmp_path / "runs")
    *lines, _, _, train, measure, total = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["to", "do"]] * 3
    assert lines[2].endswith("measure bAbI-1 model half/both seed 0")
    assert train.split() == ["train", "2", "0", "2"]
    assert measure.split() == ["measure", "1", "0", "1"]
    assert total.split() == ["all", "3", "0", "3"]
    assert not (tmp_path / "runs").exists()
    verb(file, Processes(), dry_run=True, store=tmp_path / "runs", as_json=True)
    runs = json.loads(capsys.readouterr().out)
    assert [(run["run"], run["done"]) for run in runs][-1] == ("measure bAbI-1 model half/both seed 0", False)
    assert len(runs) == 3


def test_workers_share_a_call_and_only_the_first_process_sums_up(
    file: Path, tmp_path: Path, capsys, monkeypatch
) -> None:
    """The workers here are calls one after the other; tests/slow has processes."""

    class Worker:
        def __init__(self, command: list[str], **_: object) -> None:
            assert command[-4:-1] == ["--workers", "1", "--call"]
            verb(file, Processes(processes="1", call=command[-1]), store=tmp_path / "runs")
            assert capsys.readouterr().out == ""

        def wait(self) -> None:
            pass

        terminate = wait

    tried: list[str] = []

    def work(run: Run, **_: object) -> None:
        tried.append(run.name)
        raise OSError("no such model")

    monkeypatch.setattr(grid_verb, "work", work)
    monkeypatch.setattr(grid_verb, "subprocess", SimpleNamespace(Popen=Worker, PIPE=subprocess.PIPE))
    monkeypatch.setattr(grid_verb, "end_with_parent", lambda: None)
    with pytest.raises(typer.Exit) as stop:
        verb(file, Processes(), store=tmp_path / "runs")
    assert stop.value.exit_code == 1
    assert tried == [f"train bAbI-1 model {pair} seed 0" for pair in ("half/both", "none/unmasked")]
    summary, *failed = capsys.readouterr().out.splitlines()
    assert summary.startswith("3 runs: 1 blocked, 2 failed; ")
    assert len(failed) == 2
    for name, line in zip(tried, failed, strict=True):
        assert line.startswith(f"failed: {name}: OSError: no such model; traceback in ")
        assert Path(line.rpartition("traceback in ")[2]).exists()


def test_a_failure_is_told_as_json_and_gone_when_the_run_is_done(file: Path, tmp_path: Path, capsys) -> None:
    store = fm.RunStore(tmp_path / "runs")
    first, second, _ = read(file).runs
    for run in (first, second):
        store.put(run.config, train_result())
        failure_file(run, store).parent.mkdir(exist_ok=True)
        failure_file(run, store).write_text("{}")
    file.write_text(GRID.partition("[measure]")[0])
    verb(file, Processes(processes="1"), store=store.root, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"outcomes": {"done": 2}, "failures": []}
    assert not list((store.root / "failures").iterdir())


WORKER = """
import time
from faithmeter.cli.grid import end_with_parent
end_with_parent()
print("up", flush=True)
time.sleep(60)
"""
PARENT = """
import subprocess, sys, time
worker = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_ends_with_its_parent_however_that_ends(number: int) -> None:
    command = [sys.executable, "-c", PARENT, WORKER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "up\n"
        parent.send_signal(number)
        start = time.monotonic()
        assert parent.stdout.read() == "", "ends when the last process that could write has ended"
        assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    ("workers", "cores", "memory", "expected"),
    [
        ("3", 1, 0, 3),
        ("0", 8, 2**40, 0),
        ("auto", 8, 2**40, 5),
        ("auto", 4, 2**40, 4),
        ("auto", 8, 7 * 2**30, 2),
        ("auto", 8, 2**30, 1),
    ],
)
def test_workers_are_as_many_as_runs_cores_and_memory_allow(
    workers: str, cores: int, memory: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid_verb, "usable_cores", lambda: cores)
    monkeypatch.setattr(grid_verb, "free_memory", lambda: memory)
    assert grid_verb.count_processes(workers, 5) == expected


@pytest.mark.parametrize("workers", ["many", "-2", "1.5"])
def test_another_number_of_workers_is_refused(workers: str, faithmeter, file: Path) -> None:
    result = faithmeter("grid", file, f"--workers={workers}")
    assert result.code == 2
    assert f"--workers {workers}; expected auto or a whole number, such as 2" in result.err


def test_this_machine_has_cores_and_memory() -> None:
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
    assert free_memory() > 2**20


def test_threads_of_commands_sleep_while_they_wait_unless_the_user_decides(faithmeter, monkeypatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert faithmeter("list", "tasks").code == 0
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert faithmeter("list", "tasks").code == 0
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
