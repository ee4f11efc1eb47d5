"""Start of the command line, compared with Python itself and with importing torch."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from .race import OURS, Contender, Work

COMMANDS = {
    f"{OURS} --help": ("-m", "faithmeter", "--help"),
    f"{OURS} list methods": ("-m", "faithmeter", "list", "methods"),
    "python -c pass": ("-c", "pass"),
    "python -c 'import torch'": ("-c", "import torch"),
}


def work() -> Work:
    """Return the work of starting each command in a new process."""
    contenders = [Contender(name, partial(_start, arguments)) for name, arguments in COMMANDS.items()]
    return Work("start of a command", contenders)


def _start(arguments: tuple[str, ...]) -> None:
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
