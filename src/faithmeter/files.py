"""Helpers for files and timing: atomic writes, JSON, TOML, parquet, CSV and checksums.

Files that the package has written are verified before they are used again. Sealed JSON contains its own
checksum; for other files and folders, SHA-256 checksums are stored beside them or in the record of their run.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import secrets
import tempfile
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
"""Name of the checksum file in a sealed folder, in the format of `sha256sum`."""
TEMPORARY = ".part"
"""End of the names of temporary files, which also begin with a dot."""
SEAL_END, SHA256_DIGITS = b'"\n}', 64
"""End of a sealed JSON file, behind its checksum, and the length of that checksum."""
CLOCK_TICK_NS = 50_000_000
"""Age in nanoseconds below which a file may change without a new timestamp."""
State = tuple[int, ...]
FULL = re.compile(
    re.escape(os.strerror(errno.ENOSPC)) + r"|inline_container\.cc.* unexpected pos|clear: iostream error"
)
"""Pattern of the messages by which safetensors and torch report a full disk without an error number."""
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
"""Advice for file-system errors while writing, by error number."""


def plain(value: Any) -> Any:
    """Convert nested mappings and sequences to JSON-ready values; NaN and infinity become None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def write_json(path: Path, value: Any) -> None:
    """Write a value to a JSON file atomically; NaN and infinity become null."""
    with atomic(path) as temporary:
        temporary.write_bytes(_encode_json(value))


def write_sealed_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a mapping to a JSON file, with the checksum that `read_sealed_json` verifies."""
    content = {name: item for name, item in value.items() if name != "checksum"}
    with atomic(path) as temporary:
        temporary.write_bytes(_fill_seal(_encode_json({**content, "checksum": ""})))


def read_sealed_json(path: Path) -> dict[str, Any]:
    """Return the mapping in a file that `write_sealed_json` wrote.

    Raises:
        InputError: The file is not readable, or its checksum is wrong.
    """
    try:
        data = path.read_bytes()
        value: dict[str, Any] = json.loads(data)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not readable: {error}") from error
    # the checksum was taken with an empty string in its place
    blank = data[: -len(SEAL_END) - SHA256_DIGITS] + SEAL_END
    if data != _fill_seal(blank) and not _is_sealed_by_value(value):
        raise InputError(f"{path} is not as it was written: its checksum is wrong")
    return value


def _encode_json(value: Any) -> bytes:
    return json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False).encode()


def _fill_seal(blank: bytes) -> bytes:
    """Put the SHA-256 of a JSON file, whose last entry is an empty string, into that entry.

    Hashing the bytes costs a fraction of parsing them, unlike a checksum of the parsed values.
    """
    return blank.removesuffix(SEAL_END) + hashlib.sha256(blank).hexdigest().encode() + SEAL_END


def _is_sealed_by_value(value: Any) -> bool:
    """Return whether the checksum is that of the parsed values, as earlier versions wrote it."""
    if not isinstance(value, dict):
        return False
    content = json.dumps({name: item for name, item in value.items() if name != "checksum"}, sort_keys=True)
    return value.get("checksum") == hashlib.sha256(content.encode()).hexdigest()


def read_toml(path: Path) -> dict[str, Any]:
    """Return the contents of a TOML file; raise an InputError if it is not readable or not valid."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the path of a TOML file") from error
    except RecursionError as error:
        raise InputError(f"{path} is not usable: its values are nested too deeply") from error
    except ValueError as error:  # UnicodeDecodeError, TOMLDecodeError, a NUL in the path
        raise InputError(f"{path} is not TOML: {error}") from error


def write_parquet(path: Path, frame: DataFrame) -> None:
    """Write a data frame with its `attrs` to a parquet file, and a checksum for `read_parquet` beside it."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_pandas(frame, preserve_index=False)
    about = dict(table.schema.metadata)
    # lists in Arrow's memory have a type that `pandas.read_parquet` does not know by its name
    about[b"pandas"] = re.sub(rb'"list<[^"]*"', b'"object"', about[b"pandas"])
    about[b"PANDAS_ATTRS"] = json.dumps(frame.attrs).encode()
    with atomic(path) as temporary:
        parquet.write_table(table.replace_schema_metadata(about), temporary)
        _write_checksums(path, [temporary], [path.name])


def read_parquet(path: Path) -> DataFrame | None:
    """Return the data frame that `write_parquet` wrote, or None if it is missing or damaged.

    Damage causes a DamageWarning. Lists stay in Arrow's memory, where 100,000 of them take a tenth of what
    Python's objects do.
    """
    if not intact(path):
        return None
    import pandas as pd
    from pyarrow import parquet, types

    table = parquet.read_table(path)
    frame: DataFrame = table.to_pandas(
        types_mapper=lambda kind: pd.ArrowDtype(kind) if types.is_list(kind) else None
    )
    # as `pandas.read_parquet` does, which has no option for single columns
    frame.attrs = json.loads((table.schema.metadata or {}).get(b"PANDAS_ATTRS", b"{}"))
    return frame


def as_arrow(frame: DataFrame) -> DataFrame:
    """Return a frame with its lists in Arrow's memory, as `read_parquet` returns them."""
    import pandas as pd
    import pyarrow as pa

    for name, values in frame.items():
        if len(values) and isinstance(values.iloc[0], list):
            frame[name] = pd.arrays.ArrowExtensionArray(pa.array(values))
    return frame


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` when the block succeeds; otherwise the old file remains."""
    # random, as processes in two containers may have the same number
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            with temporary.open("rb") as file:
                # before the rename: after a loss of power, a new name must not show an empty file
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Convert file-system errors listed in `REMEDIES` to an InputError with the folder and the advice."""
    try:
        yield
    except Exception as error:
        # torch and safetensors hide the number in a message
        number = getattr(error, "errno", None) or (errno.ENOSPC if FULL.search(str(error)) else None)
        if number not in REMEDIES:
            raise
        raise InputError(f"cannot write to {folder}: {os.strerror(number)}; {REMEDIES[number]}") from error


def require_writable(folder: Path, option: str) -> None:
    """Raise an InputError unless files can be written to a folder, which need not exist yet.

    Only trying tells: permissions do not say that a disk is full, or that no folder can be made in /proc.
    Nothing is left behind, and the folder itself is not made, as another process may be making it.
    """
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryDirectory(dir=place, prefix=".") as made:
            (Path(made) / "trial").write_bytes(b"0")
    except OSError as error:
        remedy = REMEDIES.get(error.errno or 0, "choose another place")
        raise InputError(f"{option} {folder} cannot be written: {error.strerror}; {remedy}") from error


def file_state(paths: Iterable[Path]) -> State:
    """Return a value that changes when one of the files, or a file in one of the folders, changes.

    Missing files are skipped. A file that was written a moment ago counts as changed at every call.
    """
    state: list[int] = []
    for path in paths:
        for file in sorted(path.rglob("*")) if os.path.isdir(path) else [path]:
            if os.path.exists(file):
                stat = file.stat()
                age = time.time_ns() - stat.st_ctime_ns
                # a second write within one tick of the clock would change none of these values
                recent = time.perf_counter_ns() if age < CLOCK_TICK_NS else 0
                state += (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, recent)
    return tuple(state)


def file_checksum(path: Path) -> str:
    """Return the SHA-256 of a file's contents, cached until the file changes."""
    state = file_state([path])
    # gigabytes of weights are hashed once for a process, unless their file changes
    if state not in _checksums:
        with path.open("rb") as file:
            _checksums[state] = hashlib.file_digest(file, "sha256").hexdigest()
    return _checksums[state]


_checksums: dict[State, str] = {}


def seal(path: Path) -> None:
    """Mark a file or folder as finished by storing its checksums, which `intact` verifies.

    For a file, they are stored in a hidden file beside it. For a folder, they are stored inside it, in
    `SHA256SUMS`, and cover its visible files but not its subfolders.
    """
    files = [path]
    if path.is_dir():
        # hidden files are temporary, or checksums of others
        visible = (file for file in path.iterdir() if not file.name.startswith("."))
        files = sorted(file for file in visible if file.is_file() and file.name != SUMS)
    _write_checksums(path, files, [file.name for file in files])


def changes(folder: Path, checksums: Mapping[str, str]) -> dict[str, str]:
    """Return which files of a folder are `missing` or `not as it was written`, by name."""
    states = {}
    for name, checksum in checksums.items():
        path = folder / name
        if not path.is_file():
            states[name] = "missing"
        elif file_checksum(path) != checksum:
            states[name] = "not as it was written"
    return states


def _write_checksums(path: Path, files: Iterable[Path], names: Iterable[str]) -> None:
    lines = (f"{file_checksum(file)}  {name}\n" for file, name in zip(files, names, strict=True))
    with atomic(checksum_file(path)) as temporary:
        temporary.write_text("".join(lines), encoding="utf-8")


def checksum_file(path: Path) -> Path:
    """Return the place of the checksums of a file or folder."""
    return path / SUMS if path.is_dir() else path.with_name(f".{path.name}.sha256")


def intact(path: Path, remedy: str = "it is created again") -> bool:
    """Return whether a file or folder is unchanged since `seal` was called.

    If it was never sealed or files are missing, the result is False without a warning. Changed contents cause
    a DamageWarning that states what has changed and the caller's `remedy`.
    """
    sums = checksum_file(path)
    expected = {}
    try:
        for line in sums.read_text(encoding="utf-8").splitlines():
            checksum, _, name = line.partition("  ")
            expected[name] = checksum
        changed = changes(sums.parent, expected)
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:  # the checksums themselves are damaged
        changed = {str(error): ""}
    # an unfinished file is no damage
    if not expected or "missing" in changed.values():
        return False
    if changed:
        names = "" if path.is_file() else f" ({', '.join(changed)})"
        warnings.warn(f"{path}{names} is not as it was written; {remedy}", DamageWarning, stacklevel=2)
    return not changed


FORMULA = re.compile(r"[=+\-@\t\r]")
MARKUP = re.compile(r"[\\`*_\[\]<>&|~$#!]|:(?=//)|(?<=www)\.", re.IGNORECASE)


def escape_formula(value: object) -> object:
    """Return the value of a CSV cell, with an apostrophe before text that looks like a formula."""
    if not (isinstance(value, str) and FORMULA.match(value)):
        return value
    try:
        # a negative number looks like a formula and is none
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def write_csv(frame: DataFrame, path: str | Path) -> None:
    """Write a data frame as CSV; text that a spreadsheet would take for a formula is escaped."""
    with writing(Path(path).parent), atomic(Path(path)) as temporary:
        frame.map(escape_formula).to_csv(temporary, index=False)


def escape_markdown(text: str) -> str:
    """Return a text as one line for a Markdown table, with HTML, links and markup escaped."""
    return MARKUP.sub(lambda match: f"\\{match[0]}", " ".join(text.split()))


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Add the duration of the block in seconds to `seconds[phase]`."""
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - start
