"""Runs on disk: the digest of a config → a folder with one record, written whole or not at all."""

from __future__ import annotations

import glob
import hashlib
import os
import platform
import re
import shutil
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from filelock import FileLock, Timeout

from ..config import Config, MeasureConfig, RoarConfig, TrainConfig
from ..errors import DamageWarning, InputError
from ..files import file_checksum, write_sealed_json, writing
from . import frames
from .record import (
    RECORD,
    RECORD_FORMAT,
    RECORDS,
    TESTS,
    ForeignRecord,
    MeasureRecord,
    Record,
    RoarRecord,
    TrainRecord,
    build_record,
    checkpoint_of,
    read_record,
)

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_LABEL_BYTES = 120
"""Length of the human-readable part of a folder name; a file system allows 255 bytes in all."""
QUARANTINE = "quarantine"
"""Folder of a store that damaged runs are moved to."""
RUN_NAME = re.compile(rf"({'|'.join(RECORDS)})-.*-[0-9a-f]{{16}}")
"""Names of the folders of runs."""
PACKAGES = (
    "faithmeter",
    "torch",
    "transformers",
    "datasets",
    "accelerate",
    "tokenizers",
    "numpy",
    "scikit-learn",
)


class Busy(InputError):
    """Another process is working on the run."""


class Unready(InputError):
    """The run that this one builds on is not in the store, or was put aside: it must be done first."""


class RunStore:
    """Store of runs: a folder with one folder for each; a run is finished when that holds a record.

    Several processes may work in it at the same time. A run whose files are not as they were written is put
    aside into `quarantine`, with a `DamageWarning`.

    Args:
        root: Folder of the store; it is created when the first run is written.

    Raises:
        InputError: From its methods, if a record is of another format or a damaged one cannot be put aside.

    Example:
        >>> fm.RunStore("runs").folder(fm.TrainConfig(seed=1)).name[:20]
        'train-bAbI-1-half-1-'
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def folder(self, config: Config) -> Path:
        """Return the folder of a run. Its digest identifies the run; the rest of the name is for readers."""
        label = "".join(c if c.isalnum() or c in "-_." else "-" for c in Path(config.title).name)
        label = label.encode()[:MAX_LABEL_BYTES].decode(errors="ignore")
        return self.root / f"{config.kind}-{label}-{config.digest}"

    @overload
    def get(self, config: RoarConfig) -> RoarRecord | None: ...
    @overload
    def get(self, config: TrainConfig) -> TrainRecord | None: ...
    @overload
    def get(self, config: MeasureConfig) -> MeasureRecord | None: ...

    def get(self, config: Config) -> Record | None:
        """Return the record of a finished run; None if there is none, or none that verifies with its files.

        A record of another format is an error: the run's folder is taken.
        """
        return self.open(self.folder(config))

    def open(self, folder: Path) -> Record | None:
        """Return the record in a run's folder as `get` does."""
        record = _verified(folder / RECORD)
        return record if record is not None and sound(folder, record) else None

    @overload
    def find(self, config: RoarConfig) -> RoarRecord | None: ...
    @overload
    def find(self, config: TrainConfig) -> TrainRecord | None: ...
    @overload
    def find(self, config: MeasureConfig) -> MeasureRecord | None: ...

    def find(self, config: Config) -> Record | None:
        """Return the record as `get` does, without a lock and without putting a damaged run aside.

        This reads finished runs from a read-only store, too.
        """
        folder = self.folder(config)
        if not (folder / RECORD).exists():
            return None
        try:
            record = read_record(folder / RECORD)
            require_files(folder, record)
        except ForeignRecord:
            raise
        except InputError:
            return None
        return record

    @overload
    def peek(self, config: TrainConfig) -> TrainRecord | None: ...
    @overload
    def peek(self, config: Config) -> Record | None: ...

    def peek(self, config: Config) -> Record | None:
        """Return the record as `get` does, but without reading the run's other files."""
        return _verified(self.folder(config) / RECORD)

    @overload
    def put(self, config: RoarConfig, result: Mapping[str, Any]) -> RoarRecord: ...
    @overload
    def put(self, config: TrainConfig, result: Mapping[str, Any]) -> TrainRecord: ...
    @overload
    def put(self, config: MeasureConfig, result: Mapping[str, Any]) -> MeasureRecord: ...

    def put(self, config: Config, result: Mapping[str, Any]) -> Record:
        """Write the record of a finished run: config, results, and where and with what it was made."""
        folder = self.folder(config)
        record = build_record(
            {
                "format": RECORD_FORMAT,
                "kind": config.kind,
                "digest": config.digest,
                "config": config.to_dict(),
                **result,
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                "environment": environment(),
                "files": {path.name: file_checksum(path) for path in _files(folder)},
            }
        )
        write_sealed_json(folder / RECORD, record.to_dict())
        return read_record(folder / RECORD)

    def records(self) -> Iterator[tuple[Path, Record]]:
        """Yield the folders and records of all finished runs, each run once.

        Copies of a run's folder and folders that cannot be read are left out, with a warning.
        """
        runs: dict[tuple[str, str], tuple[Path, Record]] = {}
        for path in sorted(self.root.glob(f"*/{RECORD}")):
            try:
                record = _verified(path)
            except (ForeignRecord, OSError) as error:
                warnings.warn(f"{error}; it is left out", DamageWarning, stacklevel=2)
                continue
            if record is None:
                continue
            folder, key = path.parent, (record.digest, checkpoint_of(record))
            if key in runs:
                copy = runs[key][0] if folder.name == self.folder(record.config).name else folder
                folder = folder if copy != folder else runs[key][0]
                warnings.warn(f"{copy} is a copy of {folder}; it is left out", DamageWarning, stacklevel=2)
            runs[key] = folder, record
        yield from sorted(runs.values(), key=lambda run: run[0])

    def variants(self, config: MeasureConfig) -> Iterator[tuple[Path, MeasureRecord]]:
        """Yield intact measurements with the title of this one: the same task, other settings."""
        pattern = f"{glob.escape(self.folder(config).name.removesuffix(config.digest))}*"
        for folder in sorted(self.root.glob(pattern)):
            with suppress(InputError):
                record = read_record(folder / RECORD)
                require_files(folder, record)
                if isinstance(record, MeasureRecord):
                    yield folder, record

    def frame(self, kind: str, **where: Any) -> DataFrame:
        """Return tidy rows of all runs: `train`, `measure`, `areas`, `seconds` or `roar` (frames.COLUMNS)."""
        return frames.frame(kind, self.records(), **where)

    def frames(self) -> dict[str, DataFrame]:
        """Return all frames, from one reading of the records."""
        records = list(self.records())
        return {kind: frames.frame(kind, records) for kind in frames.COLUMNS}

    @contextmanager
    def claim(self, config: Config) -> Iterator[None]:
        """Hold the lock of a run, at most until this process ends; raise Busy if another one holds it."""
        with self.lock(self.folder(config).name):
            yield

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold a lock of this name among all processes that share the store; raise Busy if it is taken."""
        lock = self.root / "locks" / f"{name}.lock"  # not in the run's folder, which may be deleted
        try:
            with writing(self.root):
                lock.parent.mkdir(parents=True, exist_ok=True)
                held = FileLock(lock, timeout=0).acquire()
        except Timeout as error:
            raise Busy(f"another process is working on {self.root / name}; wait for it to end") from error
        with held:
            yield


def _verified(path: Path) -> Record | None:
    """Return the record in a store's folder; one that is not as it was written is put aside."""
    if not path.exists():
        return None
    try:
        return read_record(path)
    except ForeignRecord:
        raise
    except InputError as error:
        _put_aside(path.parent, str(error))
        return None


def sound(folder: Path, record: Record) -> bool:
    """Return whether the files beside a record are as written; if not, put the run aside."""
    try:
        require_files(folder, record)
    except InputError as error:
        _put_aside(folder, str(error))
        return False
    return True


def _put_aside(folder: Path, why: str) -> None:
    """Move a damaged run to the quarantine, under a name derived from its content; warn in any case.

    Folders that are not named as runs are, and those that cannot be moved, stay: they are only left out.
    """
    try:
        outcome = _quarantine(folder) if RUN_NAME.fullmatch(folder.name) else "it is left out"
    except OSError as error:
        outcome = f"it is left out, as it could not be put aside: {error.strerror}"
    warnings.warn(f"{why}; {outcome}", DamageWarning, stacklevel=4)


def _quarantine(folder: Path) -> str:
    content = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        content.update(f"{path.name} {file_checksum(path)}\n".encode())
    target = folder.parent / QUARANTINE / f"{folder.name}-{content.hexdigest()[:8]}"
    target.parent.mkdir(exist_ok=True)
    try:
        os.rename(folder, target)
    except FileNotFoundError:  # another process was faster
        pass
    except OSError:
        if not target.exists():
            raise
        shutil.rmtree(folder)  # the same damage is there already
    return f"put aside as {target}, the run counts as not done"


def _files(folder: Path) -> list[Path]:
    """Return the files whose checksums a record stores.

    Not among them are the model card, which may change, and the in-distribution tests, which verify
    themselves and are fitted again when they are damaged.
    """
    paths = sorted(path for path in folder.glob("*") if path.is_file() and not path.name.startswith("."))
    own = (RECORD, "README.md")
    return [path for path in paths if path.name not in own and not path.name.startswith(TESTS)]


def require_files(folder: Path, record: Record) -> None:
    """Refuse files that are not as they were when the record was written."""
    for name, checksum in record.files.items():
        path = folder / name
        if not path.exists() or file_checksum(path) != checksum:
            raise InputError(f"{path} is {'not as it was written' if path.exists() else 'missing'}")


def environment() -> dict[str, Any]:
    """Return the machine and the versions that a run is made with."""
    return {
        "versions": {name: version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "host": platform.node(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "commit": _commit(),
    }


def _commit() -> str | None:
    """Return the commit of the checkout that this package is run from; None for an installed package."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
