"""Copies of runs on machines that do not see the store: files are fetched before the work and sent during it.

A worker has a store of its own in a temporary folder. `Desk` is the other side, a process beside the store.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from ..files import SUMS, TEMPORARY
from ..store.records import RECORD
from ..store.run_store import Busy, RunStore

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
        self._held: dict[int, ExitStack] = {}

    def report(self, number: int, step: Any) -> None:
        self.steps[number] = step

    def read_steps(self) -> dict[int, Any]:
        """Return the last step that was reported of each run, by its number."""
        return self.steps

    def hold(self, number: int, name: str, host: str) -> bool:
        """Hold the lock of a folder for a run until `release`; return False if another run or process has it.

        A run holds one folder at a time: its own or, to repair it, that of the run that it needs.
        """
        self.release(number)
        stack = ExitStack()
        try:
            stack.enter_context(self.store.hold(name, host))
        except Busy:
            return False
        self._held[number] = stack
        return True

    def release(self, number: int) -> None:
        """Release the lock that is held for a run, if any; its worker may have been lost."""
        if number in self._held:
            self._held.pop(number).close()

    def files(self, folder: str) -> list[str]:
        """Return the paths of all files below a folder of the store, records last."""
        return sorted(list_files(self.store.root, folder), key=_writing_order)

    def read(self, path: str, offset: int) -> bytes | None:
        """Return the piece of a file that begins at `offset`: empty at the end, None if there is no file."""
        with suppress(FileNotFoundError), (self.store.root / path).open("rb") as file:
            file.seek(offset)
            return file.read(PIECE_BYTES)
        return None

    def write(self, path: str, piece: bytes, first: bool, last: bool) -> None:
        """Add a piece to a file, which replaces the old one when the last piece has arrived."""
        target = self.store.root / path
        part = target.with_name(f".{target.name}{TEMPORARY}")
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
            if piece is None:  # deleted after it was listed
                target.unlink()
        self._sent |= list_files(self.root, folder)

    def push(self) -> None:
        """Send all files that are new or have changed since the last call, and delete those that are gone.

        A record, which says that a run is finished, comes after its other files.
        """
        files = list_files(self.root)
        changed = [path for path, state in files.items() if self._sent.get(path) != state]
        for path in sorted(changed, key=_writing_order):
            try:
                self._send(path)
            except FileNotFoundError:  # deleted after it was listed
                del files[path]
        for path in self._sent.keys() - files.keys():
            self.call("delete", path)
        self._sent, self._looked = files, time.monotonic()

    def push_sometimes(self) -> None:
        """Call `push` unless that was done a moment ago."""
        if time.monotonic() - self._looked >= PUSH_SECONDS:
            self.push()

    def _send(self, path: str) -> None:
        with (self.root / path).open("rb") as file:
            first, last = True, False
            while not last:
                piece = file.read(PIECE_BYTES)
                last = len(piece) < PIECE_BYTES
                self.call("write", path, piece, first, last)
                first = False


def list_files(root: Path, folder: str = "") -> Files:
    """Return the size and time of change of all files below a folder of a store.

    Locks and temporary files are left out, and files that are deleted meanwhile.
    """
    states = {}
    for place, folders, names in os.walk(root / folder):
        if Path(place) == root:
            folders[:] = [name for name in folders if name != LOCKS]
        for name in names:
            if name.startswith(".") and name.endswith(TEMPORARY):
                continue
            path = Path(place, name)
            with suppress(FileNotFoundError):
                stat = path.stat()
                states[path.relative_to(root).as_posix()] = stat.st_size, stat.st_mtime_ns
    return states


def _writing_order(path: str) -> tuple[int, str]:
    """Sort key by which checksums come after the files that they verify, and records come last."""
    name = path.rpartition("/")[2]
    last = 2 if name == RECORD else name == SUMS or name.endswith(".sha256")
    return int(last), path
