"""Names, docstrings and layout follow the house rules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import faithmeter

ROOT = Path(faithmeter.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
PARTICIPLES = {"found", "said", "told", "shown"}
"""Names that say what happened to a value instead of what it is."""
RIDDLE = re.compile(r"(What|As it|The same)\b")
"""Openings of docstrings that hide the subject."""
MAX_MODULES = 7
"""Modules beside the packages: two entry points, errors, progress, configs, files, a user's source."""


def names_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name) | ast.keyword(arg=name):
                yield name or ""
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def docstrings_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_names_are_nouns_and_docstrings_say_their_subject_first(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not PARTICIPLES & set(names_in(tree))
    assert not [text for text in docstrings_in(tree) if RIDDLE.match(text)]


def test_few_modules_lie_beside_the_packages() -> None:
    assert len(list(ROOT.glob("*.py"))) <= MAX_MODULES
