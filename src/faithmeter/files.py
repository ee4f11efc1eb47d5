"""Files and clocks: atomic writes, JSON, parquet, checksums, and the seconds that a phase takes.

Whatever is read back is verified first. JSON that we write carries its own checksum (`write_sealed_json`);
any other file or folder has its SHA-256 sums beside it (`seal`, `intact`), or in the record of its run.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import DamageWarning, InputError

if TYPE_CHECKING:
    from pandas import DataFrame

SUMS = "SHA256SUMS"
"""Checksums of the files of a sealed folder; `sha256sum -c` reads it, too."""
CLOCK_TICK_NS = 50_000_000
"""Files younger than this may change again without a visible sign: their state counts as new every time."""
State = tuple[int, ...]


def plain(value: Any) -> Any:
    """Convert to JSON-ready values; NaN and infinity become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, atomically."""
    with atomic(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        json.dump(plain(value), file, indent=1, ensure_ascii=False, allow_nan=False)


def write_sealed_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write an object as JSON with the checksum that `read_sealed_json` verifies."""
    write_json(path, {**value, "checksum": json_checksum(value)})


def read_sealed_json(path: Path) -> dict[str, Any]:
    """Read an object that `write_sealed_json` wrote; raise InputError if it has changed since."""
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not readable: {error}") from error
    if not isinstance(value, dict) or value.get("checksum") != json_checksum(value):
        raise InputError(f"{path} is not as it was written: its checksum is wrong")
    return value


def json_checksum(value: Mapping[str, Any]) -> str:
    """Return the SHA-256 of an object's JSON without its own `checksum`."""
    content = {name: item for name, item in plain(value).items() if name != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; raise InputError if it is not readable or not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the path of a TOML file") from error
    except RecursionError as error:
        raise InputError(f"{path} is not usable: its values are nested too deeply") from error
    except ValueError as error:  # UnicodeDecodeError, TOMLDecodeError, a NUL in the path
        raise InputError(f"{path} is not TOML: {error}") from error


def write_parquet(path: Path, frame: DataFrame) -> None:
    """Write a frame, its `attrs` included, with page checksums."""
    with atomic(path) as temporary:
        frame.to_parquet(temporary, index=False, write_page_checksum=True)


def read_parquet(path: Path) -> DataFrame | None:
    """Read a frame; None if there is none, or if its page checksums are wrong: that file is deleted."""
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
    """Yield a temporary path that replaces `path` at the end: a full disk or a kill leaves the old file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def file_state(paths: Iterable[Path]) -> State:
    """Return a value that changes when the files, or those inside the folders, change."""
    state: list[int] = []
    for path in paths:
        for file in sorted(path.rglob("*")) if os.path.isdir(path) else [path]:
            if os.path.exists(file):
                stat = file.stat()
                age = time.time_ns() - stat.st_ctime_ns
                # a second write within one tick of the clock would leave all of these as they are
                recent = time.perf_counter_ns() if age < CLOCK_TICK_NS else 0
                state += (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, recent)
    return tuple(state)


def file_checksum(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, hashed once per process unless the file changes."""
    state = file_state([path])
    if state not in _checksums:
        with path.open("rb") as file:
            _checksums[state] = hashlib.file_digest(file, "sha256").hexdigest()
    return _checksums[state]


_checksums: dict[State, str] = {}


def seal(path: Path) -> None:
    """Write the checksums of a file, or of the files directly in a folder, beside it: it is finished now."""
    sums, files = _sealed(path)
    text = "".join(f"{file_checksum(file)}  {file.name}\n" for file in files)
    with atomic(sums) as temporary:
        temporary.write_text(text, encoding="utf-8")


def intact(path: Path, remedy: str = "it is made anew") -> bool:
    """Return whether a sealed file or folder is as it was when `seal` was called.

    What was never finished, or is half deleted, is False without a word. Other bytes than those written are
    damage: a DamageWarning tells of it and of the remedy, which is up to the caller.
    """
    sums, _ = _sealed(path)
    folder = sums.parent
    try:
        lines = sums.read_text(encoding="utf-8").splitlines()
        expected = {name: checksum for checksum, _, name in (line.partition("  ") for line in lines)}
        if not expected or not all((folder / name).is_file() for name in expected):
            return False
        changed = [name for name, checksum in expected.items() if file_checksum(folder / name) != checksum]
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        changed = [str(error)]
    if changed:
        what = f"{path} is" if path.is_file() else f"{path} ({', '.join(changed)}) is"
        warnings.warn(f"{what} not as it was written; {remedy}", DamageWarning, stacklevel=2)
    return not changed


def _sealed(path: Path) -> tuple[Path, list[Path]]:
    """Return the file with the checksums of a path, and the files that they are of."""
    if not path.is_dir():
        return path.with_name(f".{path.name}.sha256"), [path]
    files = (file for file in path.iterdir() if file.is_file() and file.name != SUMS)
    return path / SUMS, sorted(file for file in files if not file.name.startswith("."))


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Add the seconds that the block takes to `seconds[phase]`."""
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - start
