"""Files and clocks: atomic writes, JSON, parquet, checksums, and the seconds that a phase takes."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import DamageWarning

if TYPE_CHECKING:
    from pandas import DataFrame


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
    """Write a frame, its `attrs` included, with checksums that `read_parquet` verifies."""
    with atomic(path) as temporary:
        frame.to_parquet(temporary, index=False, write_page_checksum=True)


def read_parquet(path: Path) -> DataFrame | None:
    """A frame as it was written; None if there is none, or none that verifies: that one is deleted."""
    import pandas as pd

    if not path.exists():
        return None
    try:
        return pd.read_parquet(path, page_checksum_verification=True)
    except (OSError, ValueError) as error:
        warnings.warn(
            f"{path} is not as it was written ({error}); it is made anew", DamageWarning, stacklevel=2
        )
        path.unlink(missing_ok=True)
        return None


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


def file_checksum(path: Path) -> str:
    """sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Add the time that the block takes to `seconds[phase]`."""
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - start
