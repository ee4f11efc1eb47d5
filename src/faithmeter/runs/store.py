"""Runs on disk: the digest of a config → a folder with one record, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from . import frames
from ..config import Config
from ..errors import DamageWarning, InputError
from ..files import file_checksum, plain, write_json

if TYPE_CHECKING:
    from pandas import DataFrame

RECORD = "record.json"
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
    """What a run builds on is not there, or was put aside just now: that must be done first."""


class RunStore:
    """A folder of runs, each in a folder of its own; a run is finished when that holds a record.

    Several processes may work in it. What does not verify is put aside into `quarantine`, with a warning.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def folder(self, config: Config) -> Path:
        """Where a run's files go. The digest is the identity, the rest of the name is for people."""
        label = "".join(c if c.isalnum() or c in "-_." else "-" for c in Path(config.title).name)
        return self.root / f"{config.kind}-{label}-{config.digest}"

    def get(self, config: Config) -> dict[str, Any] | None:
        """The record of a finished run; None if there is none, or none that verifies, files included."""
        return self.open(self.folder(config))

    def open(self, folder: Path) -> dict[str, Any] | None:
        """As `get`, of a run that is known by its folder."""
        record = _verified(folder / RECORD)
        return record if record is not None and sound(folder, record) else None

    def peek(self, config: Config) -> dict[str, Any] | None:
        """As `get`, but without reading the run's other files."""
        return _verified(self.folder(config) / RECORD)

    def put(self, config: Config, result: Mapping[str, Any]) -> dict[str, Any]:
        """Write the record of a finished run: config, results, and where and with what it was made."""
        folder = self.folder(config)
        record = {
            "kind": config.kind,
            "digest": config.digest,
            "config": config.to_dict(),
            **result,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "environment": environment(),
            "files": {path.name: file_checksum(path) for path in _files(folder)},
        }
        write_json(folder / RECORD, {**record, "checksum": _checksum(record)})
        return read_record(folder / RECORD)

    def records(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """The folders and records of all finished runs."""
        for path in sorted(self.root.glob(f"*/{RECORD}")):
            if record := _verified(path):
                yield path.parent, record

    def frame(self, kind: str, **where: Any) -> DataFrame:
        """Tidy rows of all runs: `train`, `measure`, `areas`, `seconds` or `roar` (frames.COLUMNS)."""
        return frames.frame(kind, self.records(), **where)

    def frames(self) -> dict[str, DataFrame]:
        """All frames, from one reading of the records."""
        records = list(self.records())
        return {kind: frames.frame(kind, records) for kind in frames.COLUMNS}

    @contextmanager
    def claim(self, config: Config) -> Iterator[None]:
        """Work on a run while no other process does; a lock that ends with its process, however it ends."""
        with self.lock(self.folder(config).name):
            yield

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """What only one process may do at a time, in a store that several share."""
        lock = self.root / "locks" / f"{name}.lock"  # not in the run's folder, which may be deleted
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(lock, timeout=0):
                yield
        except Timeout as error:
            raise Busy(f"another process is working on {self.root / name}; wait for it to end") from error


def _verified(path: Path) -> dict[str, Any] | None:
    """The record in a store's folder; one that is not as it was written is put aside."""
    if not path.exists():
        return None
    try:
        return read_record(path)
    except InputError as error:
        _put_aside(path.parent, str(error))
        return None


def sound(folder: Path, record: Mapping[str, Any]) -> bool:
    """Whether the files beside a record are as written; if not, it is put aside."""
    try:
        require_files(folder, record)
    except InputError as error:
        _put_aside(folder, str(error))
        return False
    return True


def _put_aside(folder: Path, why: str) -> None:
    aside = folder.parent / "quarantine"
    try:
        aside.mkdir(exist_ok=True)
        number = sum(1 for _ in aside.glob(f"{folder.name}*"))
        target = aside / (f"{folder.name}-{number}" if number else folder.name)
        with suppress(FileNotFoundError):  # another process was faster
            os.rename(folder, target)
    except OSError as error:
        raise InputError(f"{why}, and {folder} could not be put aside: {error}") from error
    warnings.warn(f"{why}; put aside as {target}, the run counts as not done", DamageWarning, stacklevel=4)


def read_record(path: Path) -> dict[str, Any]:
    """A record that is as it was written."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a readable record: {error}") from error
    if not isinstance(record, dict) or record.get("checksum") != _checksum(record):
        raise InputError(f"{path} is not the record that was written: its checksum is wrong")
    return record


def _checksum(record: Mapping[str, Any]) -> str:
    said = {name: value for name, value in plain(record).items() if name != "checksum"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _files(folder: Path) -> list[Path]:
    """What a run left beside its record: not folders, nor what people write about it (README.md)."""
    found = sorted(path for path in folder.glob("*") if path.is_file() and not path.name.startswith("."))
    return [path for path in found if path.name not in (RECORD, "README.md")]


def require_files(folder: Path, record: Mapping[str, Any]) -> None:
    """Refuse files that are not as they were when the record was written."""
    for name, checksum in record["files"].items():
        path = folder / name
        if not path.exists() or file_checksum(path) != checksum:
            raise InputError(f"{path} is {'not as it was written' if path.exists() else 'missing'}")


def environment() -> dict[str, Any]:
    """Where a run was made and with what."""
    return {
        "versions": {name: version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "host": platform.node(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "commit": _commit(),
    }


def _commit() -> str | None:
    """Of the checkout that this package is run from; None for an installed one."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        found = subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return found
