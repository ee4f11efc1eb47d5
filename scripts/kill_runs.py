"""Kill every command at random moments of each of its phases; the store must end as if nothing had happened.

python scripts/kill_runs.py --kills 200

Each round fills a store by training, adapting, measuring, a grid of two processes, a report and a gallery.
An attempt is killed with SIGKILL in the phase that was killed least so far, at a random call of a function in
it and up to `MAX_DELAY` seconds later. The store is moved before the next attempt. After a few kills a
command runs to its end. Records without times, weights, traces and figures are then compared with those of a
store that was never interrupted. Exit code 1 if they differ. `--ray` adds the grid on the Ray engine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from functools import wraps
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import sklearn.metrics  # noqa: F401
import transformers.masking_utils
import transformers.models.modernbert.modeling_modernbert
import transformers.trainer  # noqa: F401

import faithmeter.measuring.fitting
import faithmeter.report.gallery
import faithmeter.report.page
import faithmeter.runs.adaptation
import faithmeter.runs.measurements
import faithmeter.runs.run
import faithmeter.training.finetuning  # noqa: F401
from faithmeter import cli
from faithmeter.config import TrainConfig
from faithmeter.data import stories
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
FORWARD = "transformers.models.modernbert.modeling_modernbert:ModernBertForSequenceClassification.forward"
SWEEP = "faithmeter.training.finetuning:_sweep"
PHASES = {
    "train": ("train", "transformers.trainer:Trainer.training_step"),
    "sweep": ("train", SWEEP),
    "test": ("adapt", SWEEP),
    "compare": ("adapt", "faithmeter.runs.adaptation:compare_models"),
    "adapt": ("adapt", FORWARD),
    "fit": ("train", "faithmeter.stats.masf:MaSF.fit"),
    "measure": ("measure", FORWARD),
    "grid": ("grid", FORWARD),
    "store": ("grid", "faithmeter.store.run_store:RunStore.put"),
    "report": ("report", "faithmeter.report.figures:save_formats"),
    "gallery": ("gallery", "faithmeter.report.figures:save_formats"),
    "ray": ("ray", "faithmeter.store.run_store:RunStore.put"),
}
"""Command of each phase, and a function that is called in it."""
MAX_DELAY = 0.1
"""Seconds between the call of that function and the kill, at most."""
MAX_KILLS_OF_COMMAND = 3
TIMES = ("seconds", "finished", "environment", "checksum", "files")
"""Fields of a record that tell when, where and in what time; files are compared by their content."""


def write_data(folder: Path) -> None:
    """Write stories, which the trainings name by a relative path, and the task file of the grid."""
    rows = [(q.paragraph, q.question, q.answer) for s in stories.generate(1, QUESTIONS, seed=0) for q in s]
    pd.DataFrame(rows, columns=["story", "question", "place"]).to_csv(folder / "stories.csv", index=False)
    (folder / "stories.toml").write_text("".join(f'{name} = "{value}"\n' for name, value in DATA.items()))


class Kill(NamedTuple):
    """When a command is killed: so long after the given call of a phase's function."""

    phase: str
    call: int
    delay: float


def commands(store: Path, place: Path, *, ray: bool = False) -> dict[str, list[str]]:
    """Return the arguments of the commands that fill a store, and read it."""
    checkpoint = str(RunStore(store).folder(TRAINING))
    adapted = str(RunStore(place / "whole").folder(TRAINING))  # its path is part of an adaptation's identity
    options = ["--seed", "5", "--epochs", "3", "--learning-rate", "1e-3", "--limit", "40"]
    methods = ["-m", "grad-l2", "-m", "loo-sign"]
    data = [part for name, value in DATA.items() for part in (f"--{name}", value)]
    unlabeled = ["--agreement", "0.3", "--epochs", "2", *data[:-2]]  # it stops early
    grid = ["grid", str(place / "grid.toml")]
    filling = {
        "train": ["train", *data, *options, "--resume", "-o", str(store)],
        "adapt": ["adapt", adapted, *unlabeled, *options[4:], "--resume", "-o", str(store)],
        "measure": ["measure", checkpoint, *methods, "--limit", "70", "--step", "50", "-o", str(store)],
        "grid": [*grid, "-o", str(store)],
        "report": ["report", str(store), "-o", str(store / "page" / "report.html")],
        "gallery": ["report", str(store), "--gallery", str(store / "site")],
    }
    return filling | ({"ray": [*grid, "--engine", "ray", "-o", str(store / "ray")]} if ray else {})


def start(arguments: list[str], counts: Path, kill: Kill | None = None) -> int:
    """Run a command in a process group of its own, a grid twice at once; return its id.

    Processes are forked from this one, which has imported everything, so that kills hit work, not imports.
    Each writes how often it called the functions of the phases to a file in the folder `counts`.
    """
    if child := os.fork():
        return child
    os.setsid()
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    other = os.fork() if arguments[0] == "grid" and "--engine" not in arguments else 0
    calls: dict[str, int] = {}
    watch(calls, kill)
    sys.argv = ["faithmeter", *arguments]
    try:
        cli.main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        code = 1
    (counts / str(os.getpid())).write_text(json.dumps(calls))
    if other:
        code |= os.waitpid(other, 0)[1]
    os._exit(bool(code))


def watch(calls: dict[str, int], kill: Kill | None) -> None:
    """Count the calls of each phase's function in this process, and arm the kill at its call."""
    for place in {function for _, function in PHASES.values()}:
        module, _, path = place.partition(":")
        *owners, name = path.split(".")
        owner: Any = import_module(module)
        for part in owners:
            owner = getattr(owner, part)
        setattr(owner, name, counted(getattr(owner, name), place, calls, kill))


def counted(function: Any, place: str, calls: dict[str, int], kill: Kill | None) -> Any:
    @wraps(function)  # the Trainer reads a model's signature
    def call(*values: Any, **options: Any) -> Any:
        calls[place] = calls.get(place, 0) + 1
        if kill is not None and PHASES[kill.phase][1] == place and calls[place] == kill.call:
            threading.Timer(kill.delay, os.killpg, (os.getpgid(0), signal.SIGKILL)).start()
        return function(*values, **options)

    return call


def wait(process: int) -> int:
    """Return the status of a process when it has ended; that of a killed one is SIGKILL."""
    return os.waitpid(process, 0)[1]


def run_whole(place: Path, *, ray: bool) -> dict[str, dict[str, int]]:
    """Fill a store without a kill; return how often each command calls the functions of the phases."""
    calls = {}
    for name, arguments in commands(place / "whole", place, ray=ray).items():
        begin, counts = time.monotonic(), place / f"counts-{name}"
        counts.mkdir()
        if wait(start(arguments, counts)):
            raise SystemExit(f"{name} fails even without a kill: faithmeter {' '.join(arguments)}")
        each = [json.loads(file.read_text()) for file in counts.iterdir()]
        places = {key for one in each for key in one}
        calls[name] = {key: max(one.get(key, 0) for one in each) for key in places}
        print(f"uninterrupted {name}: {time.monotonic() - begin:.1f} s", flush=True)
    return calls


def choose_kill(command: str, calls: dict[str, int], state: State) -> Kill | None:
    """Return a moment in the phase of a command that was killed least; None if it has no phase."""
    own = [name for name in state.phases if PHASES[name][0] == command and calls.get(PHASES[name][1])]
    if not own:
        return None
    chance = state.chance
    phase = min(own, key=lambda name: (state.kills.get(name, 0), chance.random()))
    # in the first half, as two processes share a grid, and an earlier kill may have left less to do
    return Kill(phase, chance.randint(1, (1 + calls[PHASES[phase][1]]) // 2), chance.uniform(0, MAX_DELAY))


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
    for path in whole.rglob("traces/**/*.parquet"):
        other_path = killed / path.relative_to(whole)
        frames = [pd.read_parquet(one) for one in (path, other_path) if one.exists()]
        if len(frames) < 2 or not frames[0].astype(str).equals(frames[1].astype(str)):
            found.append(f"{path.relative_to(whole)}")
    for path in whole.rglob("*.svg"):
        parts = (killed.name if part == whole.name else part for part in path.relative_to(whole).parts)
        other_path = killed.joinpath(*parts)  # a report of the gallery is named after its store
        if not other_path.exists() or path.read_bytes() != other_path.read_bytes():
            found.append(f"{path.relative_to(whole)}")
    return found + [f"put aside: {path.name}" for path in killed.glob("quarantine/*")]


def fill(place: Path, number: int, calls: dict[str, dict[str, int]], state: State) -> Path:
    """Fill a store by all commands, each killed a few times; return its folder."""
    names = (place / f"round-{number}-{move}" for move in count())
    counts = place / f"counts-{number}"
    counts.mkdir()
    store = next(names)
    store.mkdir()
    for name in calls:
        for attempt in count():
            kill = None
            if attempt < MAX_KILLS_OF_COMMAND and sum(state.kills.values()) < state.most:
                kill = choose_kill(name, calls[name], state)
            arguments = commands(store, place, ray="ray" in calls)[name]
            status = wait(start(arguments, counts, kill))
            if kill is None or not os.WIFSIGNALED(status):
                break
            state.kills[kill.phase] = state.kills.get(kill.phase, 0) + 1
            store = store.rename(next(names))
        if status:
            raise SystemExit(f"{name} failed after a kill: {store}")
    return store


class State(NamedTuple):
    """Kills so far by phase, their number at the end, random numbers, and the phases to kill in."""

    kills: dict[str, int]
    most: int
    chance: random.Random
    phases: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="end after the round that passes this")
    parser.add_argument(
        "--phase", action="append", choices=[*PHASES], help="kill only in this; may be repeated"
    )
    parser.add_argument("--ray", action="store_true", help="also a grid on the Ray engine")
    options = parser.parse_args()
    place, begin, bad = Path(tempfile.mkdtemp(prefix="kill_runs-")), time.monotonic(), 0
    (place / "grid.toml").write_text(GRID)
    write_data(place)
    os.chdir(place)
    os.environ["XDG_CACHE_HOME"] = str(place / "cache")
    calls = run_whole(place, ray=options.ray)
    phases = options.phase or [*PHASES]
    state = State({}, options.kills, random.Random(options.seed), phases)
    for number in count(1):
        store = fill(place, number, calls, state)
        wrong = differences(place / "whole", store)
        bad += len(wrong)
        minutes = (time.monotonic() - begin) / 60
        print(f"round {number}: kills {state.kills}, differences {wrong}, {minutes:.1f} min", flush=True)
        shutil.rmtree(store)
        if sum(state.kills.values()) >= options.kills or minutes > options.minutes:
            break
    print(f"{sum(state.kills.values())} kills ({state.kills}), {bad} differences")
    shutil.rmtree(place)
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
