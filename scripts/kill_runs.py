"""Kill every command at random moments of each of its phases; the store must end as if nothing had happened.

python scripts/kill_runs.py --kills 17 --fresh
python scripts/kill_runs.py --kills 10 --phase ray

Each round fills a store by all commands. They are killed with SIGKILL a few times in each of their phases: at
a random call of a function, and at a random moment of that call. The store is moved before the next attempt.
After these kills a command runs to its end. What it prints, records without times, weights, traces and
figures are then compared with those of a store that was never interrupted. Exit code 1 if they differ.
Commands are forked from this process, which has imported everything: an attempt takes a second. With --fresh
one more round starts each of them as a user does, and kills it once: forked processes then equal new ones.
The Ray engine works on two nodes of one processor each; the process that is killed is the command.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import reduce, wraps
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd
import psutil  # type: ignore[import-untyped]
import sklearn.metrics  # noqa: F401
import transformers.masking_utils
import transformers.models.modernbert.modeling_modernbert
import transformers.trainer  # noqa: F401

import faithmeter.grid.ray_engine
import faithmeter.measuring.fitting
import faithmeter.report.gallery
import faithmeter.runs.auditing
import faithmeter.runs.measurements
import faithmeter.training.finetuning  # noqa: F401
from faithmeter import cli, train
from faithmeter.config import TrainConfig
from faithmeter.data import stories
from faithmeter.files import TEMPORARY
from faithmeter.report.figures import FIGURES
from faithmeter.store.run_store import RunStore

GRID = """
tasks = ["stories.toml"]
models = ["embedded"]
seeds = [0]
strategies = ["half/both"]
[train]
epochs = 2
learning_rate = 1e-3
limit = 40
[measure]
methods = ["grad-l2"]
step = 50
[roar]
seeds = [0]
methods = ["grad-l2"]
step = 100
"""
DATA: dict[str, Any] = {"data": "stories.csv", "text": "story", "pair": "question", "label": "place"}
TRAINING = TrainConfig(**DATA, seed=5, epochs=3, learning_rate=1e-3, limit=40)
PLAIN = TRAINING.replace(strategy="none", validation="unmasked")
"""Training of the classifier that is audited; masked texts are unusual to it."""
QUESTIONS, FEW = 700, 240
"""Rows of the data, of which a tenth, more than one slice, is measured; and of the others' data."""


class Phase(NamedTuple):
    """A command, a function that it calls, and which of its calls are meant."""

    command: str
    function: str
    which: Literal["all", "early", "first", "last"] = "all"


FORWARD = "transformers.models.modernbert.modeling_modernbert:ModernBertForSequenceClassification.forward"
SWEEP = "faithmeter.training.finetuning:_sweep"
REPORT = "faithmeter.report.page:write"
PUT = "faithmeter.store.run_store:RunStore.put"
STEP = "transformers.trainer:Trainer.training_step"
PHASES = {
    "train": Phase("train", STEP, "early"),
    "sweep": Phase("train", SWEEP, "first"),
    "fit": Phase("train", "faithmeter.stats.masf:MaSF.fit"),
    "adapt": Phase("adapt", FORWARD, "early"),
    "test": Phase("adapt", SWEEP, "last"),
    "compare": Phase("adapt", "faithmeter.runs.adaptation:compare_models"),
    "measure": Phase("measure", FORWARD),
    "report": Phase("report", REPORT),
    "gallery": Phase("gallery", REPORT),
    "audit": Phase("audit", FORWARD),
    "grid": Phase("grid", FORWARD, "early"),
    "store": Phase("grid", PUT, "early"),
    "ray": Phase("ray", "faithmeter.grid.ray_engine:_finish"),
}
"""Phases in the order of the commands and of their work; two processes share the calls of a grid."""
NEEDS = {"measure": "train", "report": "measure", "gallery": "measure"}
"""Command that must have filled the store before another one."""
SLACK = 0.05
"""Seconds of processor time by which a kill may come after the end of the call that it is aimed at."""
KILLS_OF_PHASE = 3
"""Kills of a command in a round, for each of its phases."""
FRESH = ("train", "measure", "adapt", "audit", "grid")
"""Commands that a round of fresh processes starts anew; the others only read what these wrote."""
START = time.process_time()
"""Seconds of processor time that a new process needs to import what it works with."""
TIMES = ("seconds", "finished", "environment", "checksum", "files")
"""Fields of a record that tell when, where and in what time; files are compared by their content."""
DRAWN = ("faithfulness",)
"""Figures of a report; the others take most of its time, and are written by the same code."""


def write_data(folder: Path) -> None:
    """Write stories, which the trainings name by a relative path, and the task file of the grid."""
    rows = [(q.paragraph, q.question, q.answer) for s in stories.generate(1, QUESTIONS, seed=0) for q in s]
    frame = pd.DataFrame(rows, columns=["story", "question", "place"])
    frame.to_csv(folder / "stories.csv", index=False)
    frame[:FEW].to_csv(folder / "few.csv", index=False)
    values = {**DATA, "data": "few.csv"}
    (folder / "stories.toml").write_text("".join(f'{name} = "{value}"\n' for name, value in values.items()))


class Kill(NamedTuple):
    """When a command is killed: after so much processor time since the given call of a phase's function."""

    phase: str
    call: int
    seconds: float


Calls = dict[str, list[float]]
"""Seconds of processor time of each call of a function, by its place, and of the whole command."""
WHOLE = "whole"


def commands(store: Path, place: Path, address: str) -> dict[str, list[str]]:
    """Return the arguments of the commands that fill a store, and read it; the last one needs a cluster."""
    checkpoint = str(RunStore(store).folder(TRAINING))
    models = RunStore(place / "models")  # a path is part of the identity of an adaptation
    options = ["--seed", "5", "--epochs", "3", "--learning-rate", "1e-3", "--limit", "40"]
    methods = ["-m", "grad-l2", "-m", "loo-sign"]
    data = [part for name, value in DATA.items() for part in (f"--{name}", value)]
    few = ["--data", "few.csv", *data[2:-2], "--learning-rate", "1e-3"]
    early = ["--agreement", "0.3", "--epochs", "2", "--limit", "40", "--resume"]  # it stops after one epoch
    original, plain = str(models.folder(TRAINING)), str(models.folder(PLAIN))
    grid = ["grid", str(place / "grid.toml")]
    filling = {
        "train": ["train", *data, *options, "--resume", "-o", str(store)],
        "measure": ["measure", checkpoint, *methods, "--limit", "70", "--step", "50", "-o", str(store)],
        "report": ["report", str(store), "-o", str(store / "page" / "report.html")],
        "gallery": ["report", str(store), "--page-only", "--gallery", str(store / "site")],
        "adapt": ["adapt", original, *few, *early, "-o", str(store)],
        "audit": ["audit", plain, *few, *methods[:2], "--epochs", "1", "-o", str(store / "audit")],
        "grid": [*grid, "-o", str(store / "grid")],
        "ray": [*grid, "--engine", "ray", "--address", address, "-o", str(store / "ray")],
    }
    return {name: [*arguments, "--json"] for name, arguments in filling.items()}


def start(arguments: list[str], notes: Path, kill: Kill | None = None, *, fresh: bool = False) -> int:
    """Run a command in a process group of its own, a local grid twice at once; return its id.

    Processes are forked from this one, which has imported everything, so that kills hit work, not imports.
    Each writes the calls of the functions of the phases, and what it prints, to files in the folder `notes`.
    A `fresh` one imports everything itself, and writes only what it prints.
    """
    if child := os.fork():
        return child
    os.setsid()
    for name in [*FIGURES.keys() - DRAWN]:
        del FIGURES[name]
    other = os.fork() if arguments[0] == "grid" and "--engine" not in arguments else 0
    output = os.open(notes / f"{os.getpid()}.out", os.O_WRONLY | os.O_CREAT)
    errors = os.open(notes / f"{os.getpid()}.err", os.O_WRONLY | os.O_CREAT)
    for stream, file in enumerate((os.open(os.devnull, os.O_RDONLY), output, errors)):
        os.dup2(file, stream)
    if fresh:
        os.execv(sys.executable, [sys.executable, "-m", "faithmeter", *arguments])
    calls: Calls = {}
    watch(calls, kill)
    sys.argv, begin = ["faithmeter", *arguments], time.process_time()
    try:
        cli.main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        code = 1
        traceback.print_exc()
    sys.stdout.flush()
    calls[WHOLE] = [time.process_time() - begin]
    (notes / f"{os.getpid()}.calls").write_text(json.dumps(calls))
    if other:
        code |= os.waitpid(other, 0)[1]
    os._exit(bool(code))


def watch(calls: Calls, kill: Kill | None) -> None:
    """Time the calls of each phase's function in this process, and arm the kill at its call."""
    for place in {phase.function for phase in PHASES.values()}:
        owner, name = find(place)
        setattr(owner, name, timed(getattr(owner, name), place, calls, kill))


def find(place: str) -> tuple[Any, str]:
    """Return the module or class that has the function at a place, and its name."""
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    return reduce(getattr, owners, import_module(module)), name


def timed(function: Any, place: str, calls: Calls, kill: Kill | None) -> Any:
    @wraps(function)  # the Trainer reads a model's signature
    def call(*values: Any, **options: Any) -> Any:
        seconds, begin = calls.setdefault(place, []), time.process_time()
        number = len(seconds)
        seconds.append(0.0)
        if kill is not None and PHASES[kill.phase].function == place and number == kill.call:
            threading.Thread(target=kill_at, args=(begin + kill.seconds,), daemon=True).start()
        try:
            return function(*values, **options)
        finally:
            seconds[number] = time.process_time() - begin

    return call


def kill_at(moment: float) -> None:
    """Kill this process and those that share its work, when they have worked until a moment."""
    while time.process_time() < moment:
        time.sleep(0.001)
    os.killpg(os.getpgid(0), signal.SIGKILL)


def kill_fresh(group: int, moment: float) -> None:
    """Kill the processes of a group when its first has worked until a moment, or do nothing if it ends."""
    process = psutil.Process(group)
    while process.status() != psutil.STATUS_ZOMBIE:
        if sum(process.cpu_times()[:2]) > moment:
            os.killpg(group, signal.SIGKILL)
            return
        time.sleep(0.01)


def wait(process: int) -> int:
    """Return the status of a process when it has ended; that of a killed one is SIGKILL."""
    return os.waitpid(process, 0)[1]


class Round:
    """A store that all commands fill, each killed a few times; it is moved after every kill."""

    def __init__(self, place: Path, name: str, address: str = "") -> None:
        self.place, self.address = place, address
        self.names = (place / f"{name}-{move}" for move in count())
        self.store = next(self.names)
        self.store.mkdir()
        self.answers: dict[str, Any] = {}
        self.calls: dict[str, Calls] = {}
        self.seconds: dict[str, float] = {}

    def attempt(self, command: str, kill: Kill | None = None, *, fresh: bool = False) -> bool:
        """Run a command; return whether it ended by itself.

        Raises:
            SystemExit: It failed.
        """
        notes = Path(tempfile.mkdtemp(dir=self.place, prefix="notes-"))
        arguments = commands(self.store, self.place, self.address)[command]
        process = start(arguments, notes, kill, fresh=fresh)
        if fresh and kill is not None:
            kill_fresh(process, kill.seconds)
        status = wait(process)
        if os.WIFSIGNALED(status):
            self.store = self.store.rename(next(self.names))
            return False
        if status:
            errors = "\n".join(path.read_text() for path in notes.glob("*.err"))
            raise SystemExit(f"{command} failed: {self.store}\n{errors}")
        each: list[Calls] = [json.loads(path.read_text()) for path in notes.glob("*.calls")]
        self.seconds[command] = max((one.pop(WHOLE)[0] for one in each), default=0.0)
        places = {place for one in each for place in one}
        self.calls[command] = {key: max((one.get(key, []) for one in each), key=len) for key in places}
        printed = [path.read_text().replace(self.store.name, "STORE") for path in notes.glob("*.out")]
        self.answers[command] = [timeless(json.loads(text)) for text in printed] if command in ANSWERS else []
        return True


ANSWERS = ("train", "measure", "adapt", "audit", "report", "gallery")
"""Commands whose JSON is compared; that of a grid tells which process did what."""


def choose_kill(phase: str, calls: Calls, chance: random.Random) -> Kill:
    """Return a random moment of a phase, given how long its calls took without a kill."""
    seconds = calls[PHASES[phase].function]
    first, last = {
        "all": (0, len(seconds) - 1),
        "early": (0, (len(seconds) - 1) // 2),
        "first": (0, 0),
        "last": (len(seconds) - 1, len(seconds) - 1),
    }[PHASES[phase].which]
    call = chance.randint(first, last)
    return Kill(phase, call, chance.uniform(0, seconds[call] + SLACK))


def timeless(value: Any) -> Any:
    """Return JSON-ready values without times, wherever they are."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in TIMES}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def differences(whole: Path, killed: Path) -> list[str]:
    """Return what differs between two folders with a store: runs, records, weights, traces, or figures."""
    one, other = ({folder.name: run for folder, run in RunStore(root).records()} for root in (whole, killed))
    found = [f"only in one store: {name}" for name in one.keys() ^ other.keys()]
    for name in one.keys() & other.keys():
        if timeless(one[name].to_dict()) != timeless(other[name].to_dict()):
            found.append(f"record of {name}")
        weights = [root / name / "model.safetensors" for root in (whole, killed)]
        if weights[0].exists() and weights[0].read_bytes() != weights[1].read_bytes():
            found.append(f"weights of {name}")
    for path in whole.glob("traces/**/*.parquet"):
        other_path = killed / path.relative_to(whole)
        frames = [pd.read_parquet(one) for one in (path, other_path) if one.exists()]
        if len(frames) < 2 or not frames[0].astype(str).equals(frames[1].astype(str)):
            found.append(f"{path.relative_to(whole)}")
    for path in whole.glob("page/**/*.svg"):
        other_path = killed / path.relative_to(whole)
        if not other_path.exists() or path.read_bytes() != other_path.read_bytes():
            found.append(f"{path.relative_to(whole)}")
    found += [f"left behind: {path.name}" for path in killed.rglob(f".*{TEMPORARY}") if path.is_file()]
    return found + [f"put aside: {path.name}" for path in killed.glob("quarantine/*")]


def compare(whole: Round, killed: Round) -> list[str]:
    """Return what differs between two rounds: in their stores, or in what the commands printed.

    The store that a cluster filled must equal that of the local engine.
    """
    found = [f"printed by {name}" for name in killed.answers if whole.answers[name] != killed.answers[name]]
    stores = {"": "", "audit": "audit", "grid": "grid", "ray": "grid"}
    for name, other in stores.items():
        if not name or name in killed.answers:
            found += differences(whole.store / other, killed.store / name)
    return found


class State(NamedTuple):
    """Kills so far by phase, their number at the end, random numbers, and the phases to kill in."""

    kills: dict[str, int]
    most: int
    chance: random.Random
    phases: list[str]

    @property
    def done(self) -> bool:
        return all(self.kills.get(phase, 0) >= self.most for phase in self.phases)


def fill(killed: Round, whole: Round, state: State) -> None:
    """Fill a store by all commands, each killed a few times in its phases, the first phase first."""
    for name in needed(state.phases):
        for phase in (one for one in state.phases if PHASES[one].command == name):
            for _ in range(min(KILLS_OF_PHASE, state.most - state.kills.get(phase, 0))):
                if name in killed.answers or killed.attempt(
                    name, choose_kill(phase, whole.calls[name], state.chance)
                ):
                    break
                state.kills[phase] = state.kills.get(phase, 0) + 1
        if name not in killed.answers:
            killed.attempt(name)


def fill_fresh(killed: Round, whole: Round, state: State) -> None:
    """Fill a store by all commands, of which new processes run some, each killed once after its imports."""
    for name in whole.seconds:
        if name in FRESH:
            kill = Kill("fresh", 0, START + state.chance.uniform(0, whole.seconds[name]))
            state.kills["fresh"] = state.kills.get("fresh", 0) + (not killed.attempt(name, kill, fresh=True))
        if name not in killed.answers:
            killed.attempt(name, fresh=name in FRESH)


def needed(phases: list[str]) -> list[str]:
    """Return the commands of phases and those that they need, in their order."""
    names = {PHASES[phase].command for phase in phases}
    while more := {NEEDS[name] for name in names if name in NEEDS} - names:
        names |= more
    return [name for name in commands(Path(), Path(), "") if name in names]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=16, help="in each phase")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="end after the round that passes this")
    parser.add_argument("--fresh", action="store_true", help="add a round of new processes")
    parser.add_argument(
        "--phase",
        action="append",
        default=[],
        choices=[*PHASES],
        help="kill only in this; may be repeated; default: all but ray",
    )
    options = parser.parse_args()
    place, begin, bad = Path(tempfile.mkdtemp(prefix="kill_runs-")), time.monotonic(), 0
    (place / "grid.toml").write_text(GRID)
    write_data(place)
    os.chdir(place)
    os.environ |= {"XDG_CACHE_HOME": str(place / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    phases = [name for name in PHASES if name in options.phase or (not options.phase and name != "ray")]
    state = State({}, options.kills, random.Random(options.seed), phases)
    with ExitStack() as stack:
        address = stack.enter_context(cluster()) if "ray" in phases else ""
        prepare(place, phases)
        gc.collect()
        gc.freeze()  # a child neither copies nor searches what was imported: a third of its time
        whole = Round(place, "whole", address)
        for name in needed([*phases, "grid"] if "ray" in phases else phases):
            before = time.monotonic()
            whole.attempt(name)
            print(f"uninterrupted {name}: {time.monotonic() - before:.1f} s", flush=True)
        for number in count(0 if options.fresh else 1):
            killed = Round(place, f"round-{number}", address)
            (fill if number else fill_fresh)(killed, whole, state)
            wrong = compare(whole, killed)
            bad += len(wrong)
            minutes = (time.monotonic() - begin) / 60
            print(f"round {number}: kills {state.kills}, differences {wrong}, {minutes:.1f} min", flush=True)
            if wrong:
                print(f"kept: {killed.store}", flush=True)
            else:
                shutil.rmtree(killed.store)
            if state.done or minutes > options.minutes:
                break
    print(f"{sum(state.kills.values())} kills ({state.kills}), {bad} differences")
    if not bad:
        shutil.rmtree(place)
    raise SystemExit(bool(bad))


def prepare(place: Path, phases: list[str]) -> None:
    """Train the models that are adapted and audited, in a process of its own, as this one is forked."""
    trained = {"adapt": TRAINING, "audit": PLAIN}
    for config in (trained[name] for name in needed(phases) if name in trained):
        if not (child := os.fork()):
            train(config, RunStore(place / "models"))
            os._exit(0)
        if wait(child):
            raise SystemExit("the training fails even without a kill")


@contextmanager
def cluster() -> Iterator[str]:
    """Yield the address of a cluster of two nodes, which a process that is never forked has started."""
    with_nodes = "import try_cluster\nwith try_cluster.two_nodes() as (nodes, _):\n"
    code = f"{with_nodes}    print(nodes.address, flush=True)\n    input()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nodes:
        assert nodes.stdin is not None
        assert nodes.stdout is not None
        yield next(line.strip() for line in nodes.stdout if ":" in line)
        nodes.stdin.write("\n")


if __name__ == "__main__":
    main()
