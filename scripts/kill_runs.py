"""Kill trainings, measurements and grids at random moments; the store must end as if nothing had happened.

python scripts/kill_runs.py --kills 100

Each round fills a store by three commands (train, measure, and a grid by two workers). Every attempt is
killed with SIGKILL at a random moment and the store is moved before the next attempt, until the command ends
by itself. Records, without times, and the results of every text are then compared with those of a store that
was never interrupted. Exit code 1 if they differ.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import sklearn.metrics  # noqa: F401
import transformers.masking_utils
import transformers.models.roberta.modeling_roberta
import transformers.trainer  # noqa: F401

import faithmeter.measuring.fitting
import faithmeter.runs.measurements
import faithmeter.runs.run
import faithmeter.training.finetuning  # noqa: F401
from faithmeter import cli
from faithmeter.config import TrainConfig
from faithmeter.data import stories
from faithmeter.store.records import TEXTS
from faithmeter.store.run_store import RunStore

GRID = """
tasks = ["stories.toml"]
models = ["embedded"]
seeds = [0, 1]
strategies = ["half/both"]
[train]
epochs = 2
learning_rate = 1e-3
limit = 40
[measure]
methods = ["grad-l2"]
limit = 70
step = 50
[roar]
seeds = [0]
methods = ["grad-l2"]
step = 100
"""
DATA: dict[str, Any] = {"data": "stories.csv", "text": "story", "pair": "question", "label": "place"}
TRAINING = TrainConfig(**DATA, seed=5, epochs=3, learning_rate=1e-3, limit=40)
QUESTIONS = 700
"""Rows of the data; a tenth of them, more than one chunk, are measured."""
TIMES = ("seconds", "finished", "environment", "checksum", "files")
"""Fields of a record that tell when, where and in what time; files are compared by their content."""


def write_data(folder: Path) -> None:
    """Write stories, which the trainings name by a relative path, and the task file of the grid."""
    rows = [(q.paragraph, q.question, q.answer) for s in stories.generate(1, QUESTIONS, seed=0) for q in s]
    pd.DataFrame(rows, columns=["story", "question", "place"]).to_csv(folder / "stories.csv", index=False)
    (folder / "stories.toml").write_text("".join(f'{name} = "{value}"\n' for name, value in DATA.items()))


def commands(store: Path, grid: Path) -> dict[str, list[str]]:
    """Return the arguments of the three commands that fill a store."""
    checkpoint = str(RunStore(store).folder(TRAINING))
    options = ["--seed", "5", "--epochs", "3", "--learning-rate", "1e-3", "--limit", "40"]
    methods = ["-m", "grad-l2", "-m", "loo-sign"]
    data = [part for name, value in DATA.items() for part in (f"--{name}", value)]
    return {
        "train": ["train", *data, *options, "--resume", "-o", str(store)],
        "measure": ["measure", checkpoint, *methods, "--limit", "70", "--step", "50", "-o", str(store)],
        "grid": ["grid", str(grid), "-o", str(store)],
    }


def start(arguments: list[str]) -> int:
    """Run a command in a process group of its own, a grid twice at once; return its id.

    Processes are forked from this one, which has imported everything, so that kills hit work, not imports.
    """
    if child := os.fork():
        return child
    os.setsid()
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    other = os.fork() if arguments[0] == "grid" else 0
    sys.argv = ["faithmeter", *arguments]
    try:
        cli.main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        code = 1
    if other:
        code |= os.waitpid(other, 0)[1]
    os._exit(bool(code))


def wait(process: int, seconds: float = float("inf")) -> int | None:
    """Return the exit code of a process; None if it still runs after so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.01)
    return None


def run_whole(store: Path, grid: Path) -> dict[str, float]:
    """Fill a store without a kill; return the seconds of each command."""
    seconds = {}
    for name, arguments in commands(store, grid).items():
        begin = time.monotonic()
        if wait(start(arguments)):
            raise SystemExit(f"{name} fails even without a kill: faithmeter {' '.join(arguments)}")
        seconds[name] = time.monotonic() - begin
    return seconds


def timeless(value: Any) -> Any:
    """Return JSON-ready values without times, wherever they are."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in TIMES}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def differences(whole: Path, killed: Path) -> list[str]:
    """Return what differs between two stores: runs, records, weights, or results of texts."""
    one, other = ({folder.name: run for folder, run in RunStore(root).records()} for root in (whole, killed))
    found = [f"only in one store: {name}" for name in one.keys() ^ other.keys()]
    for name in one.keys() & other.keys():
        if timeless(one[name].to_dict()) != timeless(other[name].to_dict()):
            found.append(f"record of {name}")
        weights = [root / name / "model.safetensors" for root in (whole, killed)]
        if weights[0].exists() and weights[0].read_bytes() != weights[1].read_bytes():
            found.append(f"weights of {name}")
        if (whole / name / TEXTS).exists():
            frames = [pd.read_parquet(root / name / TEXTS) for root in (whole, killed)]
            if not frames[0].astype(str).equals(frames[1].astype(str)):
                found.append(f"texts of {name}")
    return found + [f"put aside: {path.name}" for path in killed.glob("quarantine/*")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="end after the round that passes this")
    options = parser.parse_args()
    place, chance = Path(tempfile.mkdtemp(prefix="kill_runs-")), random.Random(options.seed)
    grid, begin = place / "grid.toml", time.monotonic()
    grid.write_text(GRID)
    write_data(place)
    os.chdir(place)
    seconds = run_whole(place / "whole", grid)
    print("uninterrupted:", {name: round(value, 1) for name, value in seconds.items()}, flush=True)
    kills, bad = dict.fromkeys(seconds, 0), 0
    for number in count(1):
        names = (place / f"round-{number}-{move}" for move in count())
        store = next(names)
        store.mkdir()
        for name in seconds:
            while True:
                process, moment = (
                    start(commands(store, grid)[name]),
                    chance.uniform(0.05, 1.1) * seconds[name],  # some end by themselves
                )
                if sum(kills.values()) >= options.kills:
                    moment = float("inf")
                if (code := wait(process, moment)) is not None:
                    break
                os.killpg(process, signal.SIGKILL)
                wait(process)
                kills[name] += 1
                store = store.rename(next(names))
            if code:
                raise SystemExit(f"{name} failed after a kill: {store}")
        wrong = differences(place / "whole", store)
        bad += len(wrong)
        minutes = (time.monotonic() - begin) / 60
        print(f"round {number}: kills {kills}, differences {wrong}, {minutes:.1f} min", flush=True)
        shutil.rmtree(store)
        if sum(kills.values()) >= options.kills or minutes > options.minutes:
            break
    print(f"{sum(kills.values())} kills ({kills}), {bad} differences")
    shutil.rmtree(place)
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
