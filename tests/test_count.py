"""What the script of sizes counts, on source that can be counted by hand."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = '''"""A docstring
of two lines."""

import math  # a comment beside code

# a comment of its own


class Box:
    """One line."""

    size: int = 1
    """A string below an attribute."""

    def fit(self, a, b, c, d, e, *, f, g=None, **rest):
        text = """a string
        in code"""
        if (n := len(text)) > 1:
            return [math.sqrt(x) for x in range(n)], {y: 1 for y in text}
        return any(z for z in text)
'''


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "scripts")
    return importlib.import_module("count_code")


def test_counts_of_a_module(script: ModuleType) -> None:
    count = script.count_source(SOURCE)
    # import, class, size, def, text (two lines), if, return, return
    assert (count.code, count.comments) == (9, 2)
    assert (count.walruses, count.comprehensions) == (1, 3)
    assert count.parameters == {"Box.fit": 7}, "self and **rest are not counted"


def test_words_leave_out_blocks_of_code(script: ModuleType) -> None:
    assert script.count_words("# One two\n\n```python\nx = 1\n```\nthree `four`\n") == 5  # the # is one


def test_a_project(script: ModuleType, tmp_path: Path) -> None:
    package = tmp_path / "src" / "faithmeter"
    for where in ("stats/rules.py", "cli/rules.py", "cli/stats.py", "data/text.py", "models/text.py"):
        path = package / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\ny = [i for i in ()]\n")
    (package / "__init__.py").write_text("from .a import a as a, b as b, c\n")
    (tmp_path / "README.md").write_text("Two words\n")
    notebooks = tmp_path / "docs" / "notebooks"
    notebooks.mkdir(parents=True)
    (notebooks / "long.md").write_text("not counted\n")
    (tmp_path / "docs" / "page.md").write_text("three more words\n")
    figures = script.count_project(tmp_path)
    assert figures["code lines"] == 11
    assert figures["modules"] == 6
    assert figures["module names twice"] == ["text"], "names in cli may repeat"
    assert figures["comprehensions per 1,000 of code"] == pytest.approx(5 / 11 * 1000, abs=0.1)
    assert (figures["public names"], figures["words in README and docs"]) == (2, 5)
    assert "| module names twice | 1 |" in script.write_table(figures)
