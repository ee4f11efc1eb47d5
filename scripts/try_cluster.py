"""Try the Ray engine on two raylets of one CPU each: lost nodes and workers, killed commands, and overhead.

python scripts/try_cluster.py overhead nodes shards commands --grid grids/smoke.toml

nodes: a raylet is killed in the middle of a grid; the store must equal that of the local engine.
shards: a worker is killed in the middle of a measurement; all results must equal those of one process.
commands: a grid is killed with SIGKILL and continued with the other engine; the store must be the same, and
nothing that had finished may be run again.
overhead: seconds of a grid by two workers of each engine, in turns; given first, the others need no store
of their own to compare with.
Exit code 1 if something differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from faithmeter.config import TrainConfig
from faithmeter.store.run_store import RunStore
from kill_runs import differences

GRID = """
tasks = ["bAbI-1"]
models = ["embedded"]
seeds = [0, 1]
strategies = ["half/both", "none/unmasked"]
[train]
epochs = 2
learning_rate = 1e-3
limit = 320
[measure]
strategies = ["half/both"]
methods = ["grad-l2", "loo-sign"]
limit = 70
step = 50
[roar]
seeds = [1]
methods = ["grad-l2"]
step = 50
"""
MEASURED = TrainConfig(epochs=1, learning_rate=1e-3, limit=320)
"""Training of the model whose measurement is shared."""
METHODS = ("-m", "grad-l2", "-m", "loo-sign", "--limit", "512", "--step", "50")
STORE_BYTES = 200 * 2**20
ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", "OMP_NUM_THREADS": "1"}


@contextmanager
def two_nodes() -> Iterator[tuple[Any, Any]]:
    """Start two raylets of one CPU each; yield the cluster and its second node."""
    os.environ.update(ENVIRONMENT)
    from ray.cluster_utils import Cluster

    options = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=options)
    second = cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    try:
        yield cluster, second
    finally:
        cluster.shutdown()


def start(*arguments: object) -> subprocess.Popen[bytes]:
    """Start a command of faithmeter in a process group of its own."""
    command = [sys.executable, "-m", "faithmeter", *map(str, arguments), "--quiet"]
    environment = os.environ | ENVIRONMENT
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, env=environment)


def call(*arguments: object) -> None:
    """Run a command of faithmeter; stop this script if it fails."""
    if start(*arguments).wait():
        raise SystemExit(f"failed: faithmeter {' '.join(map(str, arguments))}")


def finished(store: Path) -> dict[str, str]:
    """Return the time at which each run of a store has finished."""
    return {folder.name: record.finished for folder, record in RunStore(store).records()}


def wait_for(condition: Any, process: subprocess.Popen[bytes]) -> None:
    while not condition():
        if process.poll() is not None:
            raise SystemExit("it ended before anything could be killed; take a larger grid")
        time.sleep(0.2)


def _reached(store: Path, count: int) -> bool:
    return len(finished(store)) >= count


def uninterrupted(place: Path, grid: Path) -> tuple[Path, float]:
    """Return a store of the grid by the local engine and its seconds; all trials share one."""
    file = place.parent / "uninterrupted.json"
    if not file.exists():
        begin = time.monotonic()
        call("grid", grid, "-o", place.parent / "uninterrupted", "--workers", 2)
        remember_uninterrupted(place, place.parent / "uninterrupted", time.monotonic() - begin)
    store, seconds = json.loads(file.read_text())
    return Path(store), seconds


def remember_uninterrupted(place: Path, store: Path, seconds: float) -> None:
    """Let the following trials compare with this store."""
    (place.parent / "uninterrupted.json").write_text(json.dumps([str(store), seconds]))


def try_nodes(place: Path, grid: Path) -> list[str]:
    """Return the differences after the second of two raylets was killed in the middle of a grid."""
    whole, _ = uninterrupted(place, grid)
    total = len(finished(whole))
    with two_nodes() as (cluster, second):
        begin = time.monotonic()
        process = start("grid", grid, "-o", place / "ray", "--engine", "ray", "--address", cluster.address)
        wait_for(lambda: len(finished(place / "ray")) >= total // 3, process)
        done = len(finished(place / "ray"))
        cluster.remove_node(second, allow_graceful=False)
        print(f"nodes: killed one after {done} of {total} runs", flush=True)
        if process.wait():
            return ["exit code"]
    print(f"nodes: {total} runs in {time.monotonic() - begin:.0f} s", flush=True)
    return differences(whole, place / "ray")


def erasers() -> list[int]:
    """Return the ids of the processes that erase slices."""
    pids = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and (folder / "cmdline").read_bytes().startswith(b"ray::erase_slice"):
                pids.append(int(folder.name))
        except OSError:
            continue
    return pids


def try_shards(place: Path, grid: Path) -> list[str]:
    """Return the differences of a measurement in which one of two workers was killed."""
    from faithmeter import train

    store = RunStore(place / "one")
    train(MEASURED, store)
    checkpoint = store.folder(MEASURED)
    call("measure", checkpoint, *METHODS, "-o", place / "one")
    with two_nodes() as (cluster, _):
        options = ("--engine", "ray", "--address", cluster.address)
        process = start("measure", checkpoint, *METHODS, "-o", place / "many", *options)
        wait_for(lambda: len([*place.glob("many/traces/*/loo-sign-*/[0-9]*.parquet")]) >= 2, process)
        victim = random.choice(erasers())
        os.kill(victim, signal.SIGKILL)
        print(f"shards: killed worker {victim}", flush=True)
        if process.wait():
            return ["exit code"]
    results = [RunStore(place / name).results()[0].result for name in ("one", "many")]
    frames = [result.frame for result in results]
    print(f"shards: {frames[0]['row'].nunique()} texts, {len(frames[0])} rows", flush=True)
    same = frames[0].astype(str).equals(frames[1].astype(str))
    return [] if same else ["results of texts"]


def try_commands(place: Path, grid: Path, kills: int = 5) -> list[str]:
    """Return the differences after commands were killed and continued with the other engine."""
    whole, seconds = uninterrupted(place, grid)
    chance, before, wrong = random.Random(0), dict[str, str](), list[str]()
    for number in range(kills + 1):
        options = ("--workers", 2) if number % 2 else ("--engine", "ray")
        process = start("grid", grid, "-o", place / "killed", *options)
        if number == kills:
            code = process.wait()
            break
        wait_for(partial(_reached, place / "killed", len(before) + chance.choice((1, 1, 2))), process)
        time.sleep(chance.uniform(0.0, 0.05) * seconds)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        now = finished(place / "killed")
        wrong += [f"run again: {name}" for name in before if now.get(name) != before[name]]
        print(f"commands: killed {options} after {len(now)} runs", flush=True)
        before = now
    now = finished(place / "killed")
    wrong += [f"run again: {name}" for name in before if now.get(name) != before[name]]
    wrong += ["exit code"] if code else []
    return wrong + differences(whole, place / "killed")


def try_overhead(place: Path, grid: Path) -> list[str]:
    """Print the seconds of a grid by each engine; return the differences of their stores.

    The engines take turns seed by seed, and the one that begins alternates, so that a change in the speed of
    the machine hits both.
    """
    text = grid.read_text()
    engines = {"local": ("--workers", 2), "ray": ("--engine", "ray")}
    seconds = dict.fromkeys(engines, 0.0)
    for number, seed in enumerate(tomllib.loads(text)["seeds"]):
        part = place / f"seed-{seed}.toml"
        part.write_text(re.sub(r"^seeds = .*", f"seeds = [{seed}]", text, count=1, flags=re.MULTILINE))
        for name in sorted(engines, reverse=bool(number % 2)):
            begin = time.monotonic()
            call("grid", part, "-o", place / name, *engines[name])
            seconds[name] += time.monotonic() - begin
            print(f"overhead: {name} {seconds[name]:.1f} s after seed {seed}", flush=True)
    print(f"overhead: ray / local {seconds['ray'] / seconds['local']:.3f}", flush=True)
    remember_uninterrupted(place, place / "local", seconds["local"])
    return differences(place / "local", place / "ray")


TRIALS = {"nodes": try_nodes, "shards": try_shards, "commands": try_commands, "overhead": try_overhead}


@contextmanager
def folder_of_stores(keep: Path | None) -> Iterator[Path]:
    """Create the folder of all stores; without a name for it, it is temporary."""
    if keep:
        keep.mkdir(parents=True)
        yield keep.resolve()
    else:
        with tempfile.TemporaryDirectory(prefix="try_cluster-") as folder:
            yield Path(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trials", nargs="+", choices=list(TRIALS))
    parser.add_argument("--grid", type=Path, help="a grid file; default: a small grid of ten runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a new folder for the stores, which stay there")
    options = parser.parse_args()
    random.seed(options.seed)
    wrong: dict[str, list[str]] = {}
    with folder_of_stores(options.keep) as place:
        (place / "grid.toml").write_text(GRID)
        for name in options.trials:
            (place / name).mkdir()
            wrong[name] = TRIALS[name](place / name, options.grid or place / "grid.toml")
            print(f"{name}: {len(wrong[name])} differences {wrong[name]}", flush=True)
    raise SystemExit(any(wrong.values()))


if __name__ == "__main__":
    main()
