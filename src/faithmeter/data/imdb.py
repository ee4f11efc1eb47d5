"""Rows of IMDB from the official archive `aclImdb_v1.tar.gz` or from its unpacked folder."""

from __future__ import annotations

import gzip
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ..errors import InputError
from .readers import unreadable
from .splits import Parts, Row
from .task import Files, Task

ARCHIVE, FOLDER = "aclImdb_v1.tar.gz", "aclImdb"
_REVIEW = re.compile(rf"{FOLDER}/(train|test)/(neg|pos)/[^/]+\.txt")


def list_files(files: Files, folder: Path) -> list[Path]:
    """Return the path of the archive or, if there is only an unpacked folder, of that folder.

    The unpacked folder is `aclImdb` inside `folder`, or `folder` itself.
    """
    unpacked = [path for path in (folder / FOLDER, folder) if (path / "train").is_dir()]
    return [folder / ARCHIVE] if (folder / ARCHIVE).exists() or not unpacked else unpacked[:1]


def read(task: Task, files: Files, folder: Path) -> Parts:
    """Return the labeled reviews; the key of a row is its path, such as `aclImdb/train/pos/0_9.txt`."""
    (path,) = list_files(files, folder)
    parts: Parts = {"train": [], "test": []}
    seen: set[str] = set()
    for name, data in _read_members(path):
        place = f"{path}, {name}"
        if name in seen:
            raise InputError(f"{place} occurs twice; expected it once: get the archive again")
        seen.add(name)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{place}: not UTF-8 ({error.reason}); get the archive again") from error
        if not text.strip():
            raise InputError(f"{place} is empty; expected a review: get the archive again")
        _, role, label, _ = name.split("/")
        parts[role].append(Row(name, text, task.labels.index(label)))
    for role, rows in parts.items():
        if not rows:
            raise InputError(f"{path} has no reviews in {FOLDER}/{role}; get the archive again")
    return parts


def _read_members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the contents of each labeled review in an archive or folder."""
    try:
        if path.is_dir():
            for file in sorted(path.glob("*/*/*.txt")):
                name = f"{FOLDER}/{file.relative_to(path).as_posix()}"
                if _REVIEW.fullmatch(name):
                    yield name, file.read_bytes()
        else:
            with gzip.open(path) as data:
                with tarfile.open(fileobj=data, mode="r|") as archive:
                    yield from _read_archive(path, archive)
                while data.read(2**20):  # gzip verifies its checksum at the end of the file
                    pass
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise InputError(unreadable(path, error)) from error


def _read_archive(path: Path, archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts:
            raise InputError(f"{path}: member {member.name!r} points outside the archive; get it again")
        if member.isreg() and _REVIEW.fullmatch(str(name)) and (file := archive.extractfile(member)):
            yield str(name), file.read()
