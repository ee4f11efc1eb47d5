"""Copies of runs on machines that do not see the store: files are fetched before the work and sent during it.

A worker has a store of its own in a temporary folder. `Desk` is the other side, a process beside the store.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..files import SUMS
from .record import RECORD
from .store import Busy, RunStore

PIECE_BYTES = 2**26
"""Size of the pieces in which a file is sent."""
PUSH_SECONDS = 5.0
"""Minimum seconds between two looks for new files during the work."""
LOCKS = "locks"
"""Folder of a store that is never copied."""
Call = Callable[..., Any]
"""Function that calls a method of the desk by its name and returns the result."""
Files = dict[str, tuple[int, int]]
"""Size and time of change of each file, by its path in the store."""


class Desk:
    """Access of remote workers to a store: its files, its locks, and a place for progress reports.

    Args:
        root: Folder of the store.
    """

    def __init__(self, root: Path) -> None:
        self.store, self.steps = RunStore(root), dict[int, Any]()
        self._held: dict[str, ExitStack] = {}

    def report(self, number: int, step: Any) -> None:
        self.steps[number] = step

    def read_steps(self) -> dict[int, Any]:
        """Return the last step that was reported of each run, by its number."""
        return self.steps

    def hold(self, name: str, host: str) -> bool:
        """Hold the lock of a run's folder until `release`; return False if another process has it.

        A run that is held already is started again after its worker was lost, so the lock is passed on.
        """
        self.release(name)
        stack = ExitStack()
        try:
            stack.enter_context(self.store.hold(name, host))
        except Busy:
            return False
        self._held[name] = stack
        return True

    def release(self, name: str) -> None:
        if name in self._held:
            self._held.pop(name).close()

    def files(self, folder: str) -> list[str]:
        """Return the paths of all files below a folder of the store, records last."""
        return sorted(list_files(self.store.root, folder), key=_writing_order)

    def read(self, path: str, offset: int) -> bytes:
        """Return the piece of a file that begins at `offset`; it is empty at the end."""
        with (self.store.root / path).open("rb") as file:
            file.seek(offset)
            return file.read(PIECE_BYTES)

    def write(self, path: str, piece: bytes, first: bool, last: bool) -> None:
        """Add a piece to a file, which replaces the old one when the last piece has arrived."""
        target = self.store.root / path
        part = target.with_name(f".{target.name}.part")
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb" if first else "ab") as file:
            file.write(piece)
            if last:
                file.flush()
                os.fsync(file.fileno())
        if last:
            os.replace(part, target)

    def delete(self, path: str) -> None:
        """Delete a file, and the folders that are empty without it."""
        target = self.store.root / path
        target.unlink(missing_ok=True)
        for folder in target.relative_to(self.store.root).parents:
            if folder == Path() or any((self.store.root / folder).iterdir()):
                break
            (self.store.root / folder).rmdir()


class Mirror:
    """Temporary store of a worker, whose files are fetched from the desk and sent back to it.

    Args:
        root: Folder of the temporary store.
        call: Calls a method of the desk, such as `call("read", path, 0)`.
    """

    def __init__(self, root: Path, call: Call) -> None:
        self.root, self.call = root, call
        self._sent: Files = {}
        self._looked = 0.0

    def fetch(self, folder: str) -> None:
        """Copy a folder of the store to the temporary one."""
        for path in self.call("files", folder):
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                while piece := self.call("read", path, file.tell()):
                    file.write(piece)
        self._sent |= list_files(self.root, folder)

    def push(self) -> None:
        """Send all files that are new or have changed since the last call, and delete those that are gone.

        A record, which says that a run is finished, comes after its other files.
        """
        files = list_files(self.root)
        changed = [path for path, state in files.items() if self._sent.get(path) != state]
        for path in sorted(changed, key=_writing_order):
            self._send(path)
        for path in self._sent.keys() - files.keys():
            self.call("delete", path)
        self._sent, self._looked = files, time.monotonic()

    def push_sometimes(self) -> None:
        """Call `push` unless that was done a moment ago."""
        if time.monotonic() - self._looked >= PUSH_SECONDS:
            self.push()

    def _send(self, path: str) -> None:
        with (self.root / path).open("rb") as file:
            size, first = os.fstat(file.fileno()).st_size, True
            while first or file.tell() < size:
                piece = file.read(PIECE_BYTES)
                self.call("write", path, piece, first, file.tell() >= size)
                first = False


def list_files(root: Path, folder: str = "") -> Files:
    """Return the size and time of change of all files below a folder of a store, except its locks."""
    states = {}
    for place, folders, names in os.walk(root / folder):
        if Path(place) == root:
            folders[:] = [name for name in folders if name != LOCKS]
        for name in names:
            path = Path(place, name)
            stat = path.stat()
            states[path.relative_to(root).as_posix()] = stat.st_size, stat.st_mtime_ns
    return states


def _writing_order(path: str) -> tuple[int, str]:
    """Sort key by which checksums come after the files that they verify, and records come last."""
    name = path.rpartition("/")[2]
    last = 2 if name == RECORD else name == SUMS or name.endswith(".sha256")
    return int(last), path
