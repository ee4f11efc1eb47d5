"""Runs on disk: the digest of a config → a folder with one record, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .config import Config
from .errors import InputError

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


class RunStore:
    """A folder of runs, each in a folder of its own; a run is finished when that holds a record."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def folder(self, config: Config) -> Path:
        """Where a run's files go. The digest is the identity, the rest of the name is for people."""
        label = "".join(c if c.isalnum() or c in "-_." else "-" for c in Path(config.title).name)
        return self.root / f"{config.kind}-{label}-{config.digest}"

    def get(self, config: Config) -> dict[str, Any] | None:
        path = self.folder(config) / RECORD
        return read_record(path) if path.exists() else None

    def put(self, config: Config, result: Mapping[str, Any]) -> dict[str, Any]:
        """Write the record of a finished run: config, results, and where and with what it was made."""
        record = {
            "kind": config.kind,
            "digest": config.digest,
            "config": config.to_dict(),
            **result,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "environment": environment(),
        }
        write_json(self.folder(config) / RECORD, record)
        return read_record(self.folder(config) / RECORD)

    def records(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        for path in sorted(self.root.glob(f"*/{RECORD}")):
            yield path.parent, read_record(path)


def read_record(path: Path) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} is not a readable record: {error}; delete its folder and run again"
        ) from error
    return record


def plain(value: Any) -> Any:
    """As JSON has it: what is undefined (NaN) is null there."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def write_json(path: Path, value: Any) -> None:
    with atomic(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        json.dump(plain(value), file, indent=1, ensure_ascii=False, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())


def write_parquet(path: Path, frame: DataFrame) -> None:
    with atomic(path) as temporary:
        frame.to_parquet(temporary, index=False)


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A path to write to, which then becomes `path`: a full disk or a kill leaves the old file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


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
