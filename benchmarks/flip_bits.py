"""Flip single bits in every kind of file of a store; no number may change unnoticed.

python benchmarks/flip_bits.py --flips 2000

Files are drawn evenly by kind. After each flip the code that uses the file runs on a fresh copy of its
folder: it must name the damage (a DamageWarning or an InputError), discard the file and make it again, or
give the same values as before. Exit code 1 if a flip is neither noticed nor without effect.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

WORK = Path(tempfile.mkdtemp(prefix="flip_bits-"))
os.environ["HF_DATASETS_CACHE"] = str(WORK / "datasets")
os.environ["XDG_CACHE_HOME"] = str(WORK / "cache")

import datasets  # noqa: E402
import transformers  # noqa: E402
from joblib import hash as hash_value  # type: ignore[import-untyped]  # noqa: E402

import faithmeter as fm  # noqa: E402
from faithmeter.cli.listing import runs as list_runs  # noqa: E402
from faithmeter.config import MeasureConfig, RoarConfig  # noqa: E402
from faithmeter.data.task import LABELED, read_labeled  # noqa: E402
from faithmeter.errors import DamageWarning, InputError  # noqa: E402
from faithmeter.paper.roar import roar  # noqa: E402
from faithmeter.runs import choices, measurements  # noqa: E402
from faithmeter.runs.fitted_tests import load_tests  # noqa: E402
from faithmeter.runs.measured import task_of  # noqa: E402
from faithmeter.store.records import MANIFEST, RECORD  # noqa: E402
from faithmeter.store.traces import TRACES  # noqa: E402
from faithmeter.training.checkpoints import resume_point  # noqa: E402
from faithmeter.training.inputs import read_inputs  # noqa: E402

PLAIN: dict[str, Any] = {"strategy": "none", "validation": "unmasked", "limit": 64, "epochs": 2}
PLAIN |= {"learning_rate": 1e-3}  # it then predicts several classes, as an adaptation needs
TRAINING = fm.TrainConfig(**PLAIN)
STEP = RoarConfig(**PLAIN, percent=100, step=100)
ADAPTATION = fm.AdaptConfig(task="bAbI-1", limit=64, epochs=1)
TEXT = ("Mary went to the garden.", "Where is Mary?")


INPUTS: dict[str, Any] = {}
"""Inputs of the unfinished training, read once."""


class Unit(NamedTuple):
    """Folder whose files are flipped, and the numbers that come out of it."""

    folder: Path
    read: Callable[[Path], Any]


class Killed(transformers.TrainerCallback):  # type: ignore[misc]
    """Stops a training in its second epoch, when the first is saved."""

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == state.max_steps - 1:
            raise KeyboardInterrupt


def read_checkpoint(root: Path) -> Any:
    """Return the record, and what the model and its tests say of a text."""
    store = fm.RunStore(root)
    record = store.peek(TRAINING)
    return record and record.to_dict(), answers(store.folder(TRAINING))


def answers(folder: Path) -> Any:
    """Return what a model and its tests say of a text."""
    clf = fm.load(folder)
    tests = load_tests(clf, folder, MeasureConfig())
    batch = clf.encode([TEXT[0]], [TEXT[1]])
    features = clf.features(batch).detach().numpy()
    pvalues = {name: float(test.pvalues(features)[0]) for name, test in (tests or {}).items()}
    return clf.logits(batch).tolist(), pvalues


def read_measurements(root: Path) -> Any:
    """Return the manifests of a store, and digests of all that its traces and texts hold."""
    values = {}
    for pooled in fm.RunStore(root).results():
        for run in pooled.runs:
            manifests = {name: manifest.to_dict() for name, manifest in run.sources.items()}
            values[run.newest.digest] = manifests, hash_value((run.traces, run.texts))
    return values


def read_step(root: Path) -> Any:
    """Return the record of a step of Recursive ROAR and the positions that it erased."""
    from faithmeter.paper.roar import read_positions

    store = fm.RunStore(root)
    record = store.get(STEP)
    return record and (record.to_dict(), read_positions(store.folder(STEP)))


def read_unfinished(root: Path) -> Any:
    """Return the bytes that a resumed training would begin with."""
    checkpoint = resume_point(root, INPUTS or _read_inputs(), resume=True)
    paths = [path for path in checkpoint.iterdir() if path.is_file()] if checkpoint else []
    return {path.name: path.read_bytes() for path in paths if not path.name.startswith(("SHA256", "."))}


def _read_inputs() -> dict[str, Any]:
    INPUTS.update(read_inputs(TRAINING, task_of(TRAINING)))  # the seed is none of them
    return INPUTS


def read_adapted(root: Path) -> Any:
    """Return the record of an adaptation, what its model says of a text, and the texts that it learned."""
    [folder] = root.glob("adapt-*")
    record = fm.RunStore(root).open(folder)
    said = answers(folder)
    if record is None:
        return None, said
    task = read_labeled(folder / LABELED, name="texts", classes=fm.load(folder).labels)
    return record.to_dict(), said, {role: rows.to_dict() for role, rows in task.load().items()}


def read_choice(root: Path) -> Any:
    """Return the choices of `auto` that can be used; others are made again."""
    chosen = {path.name: choices._read(path) for path in root.rglob("auto-*.json")}
    return {name: asdict(choice) for name, choice in chosen.items() if choice is not None}


def read_list(root: Path) -> Any:
    """Return what the second list of runs shows: it must name the damage again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(InputError):
            list_runs(root, [])
    return list_runs(root, [])[0]


def build() -> list[Unit]:
    """Make one of every kind of folder that faithmeter writes."""
    store = fm.RunStore(WORK / "store")
    fm.train(TRAINING, store)
    measurements.measure_checkpoint(
        store.folder(TRAINING), MeasureConfig(methods=("grad-l2",), limit=70), store
    )
    roar(STEP, store)
    unfinished = TRAINING.replace(seed=1)
    with suppress(KeyboardInterrupt):
        fm.train(unfinished, store, callbacks=[Killed()])
    folders = {name: WORK / "units" / name for name in ("train", "measure", "roar")}
    for name, folder in folders.items():
        for path in finished(store.root, name):
            shutil.copytree(path, folder / path.name)
    shutil.copytree(store.root / TRACES, folders["measure"] / TRACES)
    fm.adapt(ADAPTATION.replace(model=str(store.folder(TRAINING))), store)
    [adapted] = store.root.glob("adapt-*")
    shutil.copytree(adapted, WORK / "units" / "adapt" / adapted.name)
    chosen = WORK / "units" / "choice"
    choices.choose_method(fm.load(store.folder(TRAINING)), store.folder(TRAINING), budget=3)
    shutil.copytree(store.folder(TRAINING), chosen, ignore=lambda _, names: {*names} - choices_in(names))
    listed = WORK / "units" / "list"
    for path in [*finished(store.root, "train"), *finished(store.root, "measure")]:
        (listed / path.name).mkdir(parents=True)
        for name in {RECORD, MANIFEST} & {file.name for file in path.iterdir()}:
            shutil.copy(path / name, listed / path.name)
    return [
        Unit(folders["train"], read_checkpoint),
        Unit(folders["measure"], read_measurements),
        Unit(folders["roar"], read_step),
        Unit(store.folder(unfinished) / "trainer", read_unfinished),
        Unit(WORK / "units" / "adapt", read_adapted),
        Unit(chosen, read_choice),
        Unit(listed, read_list),
    ]


def finished(root: Path, kind: str) -> list[Path]:
    """Return the folders of the finished runs of a kind."""
    return sorted({path.parent for name in (RECORD, MANIFEST) for path in root.glob(f"{kind}-*/{name}")})


def choices_in(names: Sequence[str]) -> set[str]:
    return {name for name in names if name.startswith("auto-")}


def kind_of(unit: Unit, path: Path) -> str:
    """Return the kind of a file: its folder's and its name's, without digests and numbers."""
    return f"{unit.folder.name}/{re.sub(r'[0-9a-f]{16,}|[0-9]+', '#', path.name)}"


def outcome(read: Callable[[Path], Any], folder: Path, expected: Any) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = read(folder)
        except InputError:
            return "noticed"
    if any(issubclass(warning.category, DamageWarning) for warning in caught):
        return "noticed"
    if value == expected:
        return "without effect"
    if isinstance(value, dict) and value.items() < expected.items():
        return "made again"  # what a kill may have left unfinished is discarded without a word
    return "WRONG"


def flip(path: Path, chance: random.Random) -> int:
    content = bytearray(path.read_bytes())
    place = chance.randrange(8 * len(content))
    content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)
    return place


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    chance, units = random.Random(options.seed), build()
    kinds: dict[str, list[tuple[Unit, Path]]] = {}
    for unit in units:
        for path in sorted(unit.folder.rglob("*")):
            if path.is_file() and path.stat().st_size and path.suffix != ".lock":
                kinds.setdefault(kind_of(unit, path), []).append((unit, path.relative_to(unit.folder)))
    copies = WORK / "copies"
    expected = {unit.folder: unit.read(_copy(unit.folder, copies)) for unit in units}
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    for number in range(options.flips):
        kind = list(kinds)[number % len(kinds)]
        unit, name = chance.choice(kinds[kind])
        folder = _copy(unit.folder, copies)
        place = flip(folder / name, chance)
        result = outcome(unit.read, folder, expected[unit.folder])
        counts[kind][result] += 1
        if number % 100 == 99:
            totals: Counter[str] = sum(counts.values(), Counter())
            print(f"{number + 1} flips: {dict(totals)}", flush=True)
        if result == "WRONG":
            print(f"WRONG: bit {place} of {kind} {name}", flush=True)
    for kind, count in counts.items():
        print(f"{kind:60} {dict(count)}")
    total: Counter[str] = sum(counts.values(), Counter())
    print(f"{options.flips} flips in {len(kinds)} kinds of files: {dict(total)}")
    shutil.rmtree(WORK)
    raise SystemExit(bool(total["WRONG"]))


def _copy(folder: Path, copies: Path) -> Path:
    """Return a fresh copy of a folder, always in the same place."""
    shutil.rmtree(copies, ignore_errors=True)
    return Path(shutil.copytree(folder, copies / folder.name))


if __name__ == "__main__":
    main()
