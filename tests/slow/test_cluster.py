"""Real Ray clusters on this machine: lost nodes, workers and commands leave the store of one process."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import faithmeter as fm
from faithmeter.store.run_store import RunStore

pytestmark = pytest.mark.slow
pytest.importorskip("ray")
SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script that kills nodes, workers and commands."""
    monkeypatch.syspath_prepend(SCRIPTS)
    import try_cluster

    return try_cluster


@pytest.mark.parametrize("name", ["nodes", "shards", "commands"])
def test_what_is_lost_changes_nothing(trials: ModuleType, tmp_path: Path, name: str) -> None:
    (tmp_path / "grid.toml").write_text(trials.GRID)
    (tmp_path / name).mkdir()
    assert trials.TRIALS[name](tmp_path / name, tmp_path / "grid.toml") == []


def test_the_recipe_of_two_nodes_on_one_machine(tmp_path: Path, trials: ModuleType) -> None:
    """Its commands, on a smaller grid; the store is hidden from the second node if it can be."""
    ray, port = str(Path(sys.executable).with_name("ray")), "6397"
    store = tmp_path / "runs"
    store.mkdir()
    (tmp_path / "grid.toml").write_text(trials.GRID.replace("seeds = [0, 1]", "seeds = [1]"))
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    environment = os.environ | trials.ENVIRONMENT | token
    options = ["--num-cpus", "1", "--object-store-memory", "200000000", "--disable-usage-stats", "--block"]
    head = [ray, "start", "--head", "--port", port, "--include-dashboard", "false", *options]
    second = [ray, "start", "--address", f"127.0.0.1:{port}", *options]
    can_hide = shutil.which("unshare") and not subprocess.run(["unshare", "-m", "true"]).returncode
    if can_hide:
        second = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs none {store} && exec "$@"', "sh", *second]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    nodes = [subprocess.Popen(head, start_new_session=True, **quiet)]
    try:
        command = [sys.executable, "-m", "faithmeter", "grid", tmp_path / "grid.toml", "-o", store]
        wait = "import ray, time, sys\nfor _ in range(60):\n try: ray.init(address=sys.argv[1]); break\n"
        wait += (
            " except ConnectionError: time.sleep(1)\nwhile len(ray.nodes()) < int(sys.argv[2]): time.sleep(1)"
        )
        for count in (1, 2):
            if count == 2:
                nodes.append(subprocess.Popen(second, start_new_session=True, **quiet))
            subprocess.run(
                [sys.executable, "-c", wait, f"127.0.0.1:{port}", str(count)], timeout=120, **quiet
            )
        cluster = ["--engine", "ray", "--address", f"127.0.0.1:{port}"]
        done = subprocess.run([*command, *cluster], capture_output=True, text=True, env=environment)
    finally:
        for node in nodes:
            os.killpg(node.pid, 15)
        for node in nodes:
            node.wait()
    assert done.returncode == 0, done.stderr
    trials.call("grid", tmp_path / "grid.toml", "-o", tmp_path / "local")
    assert trials.differences(tmp_path / "local", store) == []
    hosts = (store / "grid.log").read_text()
    assert hosts.count("started: ") == hosts.count("finished: ") == len([*RunStore(store).records()])


def test_two_processes_train_as_one(tmp_path: Path) -> None:
    """Metrics and losses agree within rounding: a mini-batch is divided, and each row keeps its mask."""
    config = fm.TrainConfig(limit=160, epochs=2, learning_rate=1e-4, precision="fp32")
    one = fm.train(config, RunStore(tmp_path / "one"))
    two = fm.train(config, RunStore(tmp_path / "two"), processes=2)
    assert [epoch.train_loss for epoch in two.epochs] == pytest.approx(
        [epoch.train_loss for epoch in one.epochs], rel=1e-5
    )
    for mine, other in zip(one.test, two.test, strict=True):
        assert other.score(one.metric) == pytest.approx(mine.score(one.metric), abs=1e-9)
    assert two.best_epoch == one.best_epoch
    assert not list((tmp_path / "two").glob("*/.processes*"))
