"""Files and clocks: atomic writes, JSON, parquet, checksums, and the seconds that a phase takes.

Every file is verified before it is used. JSON that we write carries its own checksum (`write_sealed_json`);
other files and folders have SHA-256 sums beside them (`seal`, `intact`), or in the record of their run.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
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
"""Files younger than this may change again undetected: their state counts as new every time."""
State = tuple[int, ...]
FULL = re.compile(re.escape(os.strerror(errno.ENOSPC)) + r"|inline_container\.cc.* unexpected pos")
"""Messages of libraries that hide the error number of a full disk: those of safetensors and of torch."""
REMEDIES = {
    errno.EACCES: "choose a place where you may write",
    errno.EPERM: "choose a place where you may write",
    errno.EROFS: "choose a place that is not read-only",
    errno.ENOSPC: "free some space and run the command again; finished work is kept",
    errno.EDQUOT: "free some space and run the command again; finished work is kept",
    errno.EFBIG: "free some space and run the command again; finished work is kept",
    errno.ENOTDIR: "a part of the path is a file; choose another path",
    errno.EISDIR: "it is a folder; name a file",
    errno.EEXIST: "a file of this name exists; choose another name",
    errno.ENAMETOOLONG: "choose a shorter name",
}
"""Remedies for errors of the file system while writing, by number."""


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
    """Write a frame, its `attrs` included, with the checksum that `read_parquet` verifies."""
    with atomic(path) as temporary:
        frame.to_parquet(temporary, index=False)
        _write_checksums(path, [temporary], [path.name])


def read_parquet(path: Path) -> DataFrame | None:
    """Read a frame that `write_parquet` wrote; None if there is none, or if it has changed since."""
    import pandas as pd

    return pd.read_parquet(path) if intact(path) else None


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` at the end; if that fails, the old file remains."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an error of the file system in the block into an InputError with the folder and a remedy."""
    try:
        yield
    except Exception as error:
        number = getattr(error, "errno", None) or (errno.ENOSPC if FULL.search(str(error)) else None)
        if number not in REMEDIES:
            raise
        raise InputError(f"cannot write to {folder}: {os.strerror(number)}; {REMEDIES[number]}") from error


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
    """Mark a file or folder as finished by writing the checksums of its own files beside it."""
    files = [path]
    if path.is_dir():
        visible = (file for file in path.iterdir() if not file.name.startswith("."))
        files = sorted(file for file in visible if file.is_file() and file.name != SUMS)
    _write_checksums(path, files, [file.name for file in files])


def _write_checksums(path: Path, files: Iterable[Path], names: Iterable[str]) -> None:
    lines = (f"{file_checksum(file)}  {name}\n" for file, name in zip(files, names, strict=True))
    with atomic(_checksum_file(path)) as temporary:
        temporary.write_text("".join(lines), encoding="utf-8")


def _checksum_file(path: Path) -> Path:
    return path / SUMS if path.is_dir() else path.with_name(f".{path.name}.sha256")


def intact(path: Path, remedy: str = "it is created again") -> bool:
    """Return whether a sealed file or folder is unchanged since `seal` was called.

    A file or folder that was never finished, or is half deleted, gives False without a warning. Changed bytes
    count as damage: a DamageWarning names the changed files and the caller's `remedy`.
    """
    sums = _checksum_file(path)
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
        names = "" if path.is_file() else f" ({', '.join(changed)})"
        warnings.warn(f"{path}{names} is not as it was written; {remedy}", DamageWarning, stacklevel=2)
    return not changed


FORMULA = re.compile(r"[=+\-@\t\r]")
MARKUP = re.compile(r"[\\`*_\[\]<>&|~$#!]|:(?=//)|(?<=www)\.", re.IGNORECASE)


def escape_formula(value: object) -> object:
    """Return the value of a CSV cell; a text that looks like a formula gets an apostrophe."""
    if not (isinstance(value, str) and FORMULA.match(value)):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def write_csv(frame: DataFrame, path: str | Path) -> None:
    """Write a table as CSV, with texts escaped that a spreadsheet would take for formulas."""
    with writing(Path(path).parent), atomic(Path(path)) as temporary:
        frame.map(escape_formula).to_csv(temporary, index=False)


def escape_markdown(text: str) -> str:
    """Return a text for a cell of a Markdown table: in one line, with HTML, links and markup escaped."""
    return MARKUP.sub(lambda match: f"\\{match[0]}", " ".join(text.split()))


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Add the seconds that the block takes to `seconds[phase]`."""
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - start
