"""Store of runs on disk: each run has a folder, named by the digest of its config, with one record."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from filelock import FileLock, Timeout

from ..config import AdaptConfig, Config, MeasureConfig, RoarConfig, TrainConfig
from ..data.task import LABELED
from ..errors import DamageWarning, InputError
from ..files import changes, file_checksum, write_json, write_sealed_json, writing
from . import frames
from .records import (
    CHOICES,
    MANIFEST,
    RECORD,
    RECORD_FORMAT,
    RECORDS,
    TESTS,
    AdaptRecord,
    ForeignRecord,
    Manifest,
    Record,
    RoarRecord,
    TrainRecord,
    read_record,
)
from .results import Pooled, pool_runs, read_runs
from .trace_files import QUARANTINE

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_LABEL_BYTES = 120
"""Maximum length of the human-readable part of a folder name; file systems allow 255 bytes in all."""
WITHOUT_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
"""Error numbers of file systems that have no locks."""
OLD_FILES = (RECORD, "texts.parquet", "inputs.parquet")
"""Files of a measurement by 0.2, which a manifest takes the place of."""
RUN_NAME = re.compile(rf"({'|'.join(RECORDS)})-.*-[0-9a-f]{{16}}")
"""Pattern of the names of run folders."""
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
    """Error raised if another process is working on the run."""


class Unready(InputError):
    """Error raised if the run that this one builds on is not in the store, or is damaged."""


class RunStore:
    """Folder of runs, with a folder for each; a run is finished once its folder holds a record.

    Several processes may use a store at the same time. A damaged run, whose files have changed since they
    were written, is moved to `quarantine` with a `DamageWarning`.

    Args:
        root: Folder of the store; it is created when the first run is written.

    Raises:
        InputError: The store holds a record in a format that this version cannot read.

    Example:
        >>> fm.RunStore("runs").folder(fm.TrainConfig(seed=1)).name[:20]
        'train-bAbI-1-half-1-'
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def folder(self, config: Config) -> Path:
        """Return the folder of a run; the digest in its name identifies the run."""
        label = "".join(c if c.isalnum() or c in "-_." else "-" for c in Path(config.title).name)
        # cut in bytes, which file systems count; a character cut in half is dropped
        label = label.encode()[:MAX_LABEL_BYTES].decode(errors="ignore")
        return self.root / f"{config.kind}-{label}-{config.digest}"

    @overload
    def get(self, config: RoarConfig) -> RoarRecord | None: ...
    @overload
    def get(self, config: AdaptConfig) -> AdaptRecord | None: ...
    @overload
    def get(self, config: TrainConfig) -> TrainRecord | None: ...
    @overload
    def get(self, config: MeasureConfig) -> Manifest | None: ...

    def get(self, config: Config) -> Record | None:
        """Return the verified record of a finished run; None if there is none, or it is damaged.

        A damaged run is moved to the quarantine.

        Raises:
            InputError: The record is in a format that this version cannot read.
        """
        return self.open(self.folder(config))

    def open(self, folder: Path) -> Record | None:
        """Return the record in a run's folder, verified as by `get`."""
        # a damaged file puts the whole run aside, so that the next run begins anew
        return _verified(_file(folder), with_files=True)

    def find(self, config: Config) -> Record | None:
        """Return the record as `get` does, but leave a damaged run in place.

        This also works in a read-only store.
        """
        folder = self.folder(config)
        if not _file(folder).exists():
            return None
        try:
            record = read_record(_file(folder))
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
        """Return the record as `get` does, but without verifying the run's other files."""
        return _verified(_file(self.folder(config)))

    def put(self, config: Config, result: Mapping[str, Any]) -> Record:
        """Write and return the record of a finished run: config, results, environment and file checksums.

        That of a measurement is its manifest, whose traces verify themselves.
        """
        folder = self.folder(config)
        known = {
            "kind": config.kind,
            "digest": config.digest,
            "config": config.to_dict(),
            **result,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "environment": environment(),
        }
        # traces are shared by manifests and verify themselves; a checkpoint has no other witness
        if not isinstance(config, MeasureConfig):
            files = {path.relative_to(folder).as_posix(): file_checksum(path) for path in _files(folder)}
            known |= {"format": RECORD_FORMAT, "files": files}
        record = RECORDS[config.kind].model_validate(known)
        # the last file of a run: a folder with a record is finished, whatever killed the process
        write_sealed_json(_file(folder), record.to_dict())
        if isinstance(config, MeasureConfig):
            for name in OLD_FILES:
                (folder / name).unlink(missing_ok=True)
        # as any later reader gets it: floats and NaN have gone through JSON
        return read_record(_file(folder))

    def results(self, records: Iterable[tuple[Path, Record]] | None = None) -> list[Pooled]:
        """Return the results of measurements, by fine-tuning; what cannot be read is left out.

        Args:
            records: Folders and records of the runs that count; None for all of the store.
        """
        runs, counted = [], self.records() if records is None else records
        measurements = [(folder, one) for folder, one in counted if isinstance(one, Manifest)]
        for run in read_runs(self.root, measurements):
            try:
                # a damaged trace costs its method, not the report
                problems = run.read()
                runs.append(run)
            except InputError as error:
                problems = [str(error)]
            for problem in problems:
                warnings.warn(f"{problem}; it is left out", DamageWarning, stacklevel=2)
        return pool_runs(runs)

    def records(self) -> Iterator[tuple[Path, Record]]:
        """Yield the folder and record of each finished run once.

        Copies of a run's folder and folders that cannot be read are skipped with a warning.
        """
        runs: dict[tuple[str, str], tuple[Path, Record]] = {}
        for path in sorted([*self.root.glob(f"*/{RECORD}"), *self.root.glob(f"*/{MANIFEST}")]):
            try:
                record = _verified(path)
            except (ForeignRecord, OSError) as error:
                warnings.warn(f"{error}; it is left out", DamageWarning, stacklevel=2)
                continue
            if record is None:
                continue
            # two fine-tunings of equal config may have other weights, and are two runs
            weights = record.config.checkpoint if isinstance(record, Manifest) else record.fingerprint
            folder, key = path.parent, (record.digest, weights)
            if key in runs:
                copy = runs[key][0] if folder.name == self.folder(record.config).name else folder
                folder = folder if copy != folder else runs[key][0]
                warnings.warn(f"{copy} is a copy of {folder}; it is left out", DamageWarning, stacklevel=2)
            runs[key] = folder, record
        yield from sorted(runs.values(), key=lambda run: run[0])

    def frame(self, kind: str, **where: Any) -> DataFrame:
        """Return a tidy frame with one or more rows for each run.

        Args:
            kind: `train`, `measure`, `areas`, `seconds` or `roar`; `frames.COLUMNS` lists their columns.
            where: Column values by which the rows are filtered.
        """
        records = list(self.records())
        results = [] if kind in ("train", "roar") else self.results(records)
        return frames.frame(kind, records, results, **where)

    def frames(self) -> dict[str, DataFrame]:
        """Return the frames of all kinds, reading the records only once."""
        records = list(self.records())
        results = self.results(records)
        return {kind: frames.frame(kind, records, results) for kind in frames.COLUMNS}

    @contextmanager
    def claim(self, config: Config) -> Iterator[None]:
        """Hold the lock of a run within the block; raise `Busy` if another process holds it."""
        with self.hold(self.folder(config).name):
            yield

    @contextmanager
    def hold(self, name: str, host: str = "") -> Iterator[None]:
        """Hold the lock of a run's folder, with a note for `running` on which host the work is done."""
        note = self.root / "locks" / f"{name}.json"
        # the lock itself tells nothing about who holds it
        since = datetime.now(UTC).isoformat(timespec="seconds")
        with self.lock(name):
            with suppress(InputError):  # a full disk will be reported by the run itself
                values = {"host": host or platform.node(), "process": os.getpid(), "since": since}
                write_json(note, {"run": name, **values})
            try:
                yield
            finally:
                note.unlink(missing_ok=True)

    def running(self) -> list[dict[str, Any]]:
        """Return the runs at work now, each with `run` (its folder), `host`, `process` and `since`."""
        notes = []
        for file in sorted((self.root / "locks").glob("*.json")):
            try:
                with self.lock(file.stem):
                    file.unlink(missing_ok=True)  # its process was killed
            except Busy:
                with suppress(OSError, ValueError):  # it has just ended
                    notes.append(json.loads(file.read_text(encoding="utf-8")))
            except (InputError, OSError):  # a read-only store
                continue
        return notes

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold a lock shared by all processes that use the store; raise `Busy` if it is taken.

        Raises:
            InputError: The file system has no locks.
        """
        lock = self.root / "locks" / f"{name}.lock"  # not in the run's folder, which may be deleted
        try:
            with writing(self.root), warnings.catch_warnings():
                # filelock would fall back to a file that a killed process leaves behind for ever
                warnings.filterwarnings("error", message="flock not supported")
                lock.parent.mkdir(parents=True, exist_ok=True)
                held = FileLock(lock, timeout=0).acquire()
        except Timeout as error:
            raise Busy(f"another process is working on {self.root / name}; wait for it to end") from error
        except (OSError, NotImplementedError, UserWarning) as error:
            # such as a full disk, which `writing` words
            if isinstance(error, OSError) and error.errno not in WITHOUT_LOCKS:
                raise
            raise InputError(
                f"the file system of {self.root.resolve()} has no locks, by which processes share a store; "
                "choose a folder on another file system"
            ) from error
        with held:
            yield


def _file(folder: Path) -> Path:
    """Return the record of a training, or the manifest of a measurement, in a run's folder."""
    return folder / (MANIFEST if folder.name.startswith(f"{MeasureConfig.kind}-") else RECORD)


def _verified(path: Path, *, with_files: bool = False) -> Record | None:
    """Return the record in a run's folder, or None if it, or a file beside it, is missing or damaged.

    A damaged run is put aside. A record in another format raises `ForeignRecord`.
    """
    if not path.exists():
        return None
    try:
        record = read_record(path)
        if with_files:
            require_files(path.parent, record)
        return record
    except ForeignRecord:
        raise
    except InputError as error:
        _put_aside(path.parent, str(error))
        return None


def _put_aside(folder: Path, why: str) -> None:
    """Move a damaged run to the quarantine, under a name derived from its content, and warn.

    Folders that are not named like runs, or cannot be moved, stay where they are.
    """
    try:
        outcome = _quarantine(folder) if RUN_NAME.fullmatch(folder.name) else "it is left out"
    except OSError as error:
        outcome = f"it is left out, as it could not be put aside: {error.strerror}"
    warnings.warn(f"{why}; {outcome}", DamageWarning, stacklevel=4)


def _quarantine(folder: Path) -> str:
    # the same damage found by two processes, or twice, has one place
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

    The model card is excluded because it may change, and the in-distribution tests because they verify
    themselves and are fitted again if damaged.
    """
    parts = folder.glob("[0-9]_*/*")  # head and pooling of a sentence encoder
    paths = filter(Path.is_file, (*folder.glob("*"), *parts))
    # a record cannot hold its own checksum
    own = (RECORD, MANIFEST, "README.md")
    return sorted(
        path for path in paths if path.name not in own and not path.name.startswith((".", TESTS, CHOICES))
    )


def require_files(folder: Path, record: Record) -> None:
    """Raise an InputError if a file beside the record is missing or has changed."""
    for name, state in changes(folder, record.files).items():
        if (name, state) != (LABELED, "missing"):  # the texts of an adaptation may be private
            raise InputError(f"{folder / name} is {state}")


def environment() -> dict[str, Any]:
    """Return the machine and the versions of the packages that are installed."""
    versions = {}
    for name in PACKAGES:
        # extras that are not installed changed no number
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "versions": versions,
        "python": platform.python_version(),
        "host": platform.node(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "commit": _commit(),
    }


def _commit() -> str | None:
    """Return the git commit of the checkout that the package runs from; None for an installed package."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
