"""The file list is the data's way: a module imports only modules above it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import faithmeter

ROOT = Path(faithmeter.__file__).parent
ORDER = list(faithmeter.LAYERS)


def module_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


ENTRY_POINTS = ("__init__", "__main__")
FILES = [path for path in sorted(ROOT.rglob("*.py")) if module_of(path) not in ENTRY_POINTS]


def imported(path: Path) -> set[str]:
    """The top-level modules of this package that a file imports, by relative imports."""
    depth = len(path.relative_to(ROOT).parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            found |= {node.module.split(".")[0]} if node.module else {alias.name for alias in node.names}
    return found - {"__version__"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_those_above_it(path: Path) -> None:
    assert module_of(path) in ORDER, "a new module needs its place in the order"
    here = ORDER.index(module_of(path))
    for name in imported(path):
        assert ORDER.index(name) < here, f"{module_of(path)} must not import {name}"


@pytest.mark.parametrize("code", ["import faithmeter", "import faithmeter.cli", "import faithmeter.data"])
def test_importing_brings_nothing_heavy(code: str) -> None:
    heavy = "torch transformers datasets pandas pyarrow scipy sklearn"
    check = f"{code}; import sys; print([m for m in {heavy.split()} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_help_answers_faster_than_torch_can_be_imported() -> None:
    """A ratio of two things in one run: `--help` is about 0.5 s where importing torch takes 2 s."""

    def seconds(*arguments: str) -> float:
        start = os.times()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        end = os.times()  # of the processor, so that other programs do not matter
        return end.children_user + end.children_system - start.children_user - start.children_system

    assert seconds("-m", "faithmeter", "--help") < seconds("-c", "import torch")


def test_every_public_name_is_there() -> None:
    for name in faithmeter.__all__:
        assert getattr(faithmeter, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = faithmeter.nothing
