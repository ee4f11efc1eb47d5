"""The documents name things that exist, and nothing outside the repository."""

from __future__ import annotations

import csv
import inspect
import re
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import faithmeter
from toy import tiny

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(path for place in ("docs", "results", "benchmarks") for path in (ROOT / place).glob("*.md")),
]
TEXTS = {path: path.read_text(encoding="utf-8") for path in DOCUMENTS}
PUBLISHED = [
    *DOCUMENTS,
    *(
        path
        for folder in ("src", "benchmarks", "examples", "grids", "scripts")
        for path in (ROOT / folder).rglob("*.*")
    ),
    *(ROOT / "docs").glob("notebooks/*.ipynb"),
]
SOURCES = (".md", ".ipynb", ".py", ".toml", ".js", ".css", ".html", ".jinja", ".json")


def test_every_statement_of_the_paper_has_a_place_or_a_reason(claim_letters: set[str]) -> None:
    with (ROOT / "docs" / "paper_checklist.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["number"] for row in rows] == [str(number) for number in range(1, len(rows) + 1)]
    assert len(rows) >= 137, "as many as an audit has counted"
    assert len({row["statement"] for row in rows}) == len(rows)
    for row in rows:
        assert len(row["statement"].split()) <= 25, row["number"]
        assert row["status"] in ("equal", "differs", "missing")
        assert row["status"] == "equal" or len(row["why"].split()) >= 1, f"{row['number']} needs a reason"
        assert row["where"], row["number"]
        for name in row["where"].split():
            module, _, attribute = name.partition(":")
            if module == "claim":
                assert attribute in claim_letters, name
            else:
                value: object = import_module(module)
                for part in attribute.split("."):
                    value = getattr(value, part)


@pytest.fixture
def claim_letters() -> set[str]:
    """Letters of the claims that docs/results.md judges."""
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| \((\w)\) ", page, re.MULTILINE))


def test_the_list_of_packages_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", TEXTS[ROOT / "CONTRIBUTING.md"], re.MULTILINE)
    assert rows == list(faithmeter.LAYERS.items())


def test_a_text_passes_the_functions_that_contributors_are_told(tmp_path: Path) -> None:
    _, _, section = TEXTS[ROOT / "CONTRIBUTING.md"].partition("### The way of a text")
    names = re.findall(r"`((?:\w+\.)+\w+)`", section.partition("\n##")[0].partition("benchmarks/")[0])
    functions: list[Any] = [_resolve(*_parts(name)) for name in names]
    listed = {inspect.unwrap(value).__code__: name for value, name in zip(functions, names, strict=True)}
    entered = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            entered.add(frame.f_code)

    rows = [f"{text},{label}" for text, label in (("good film", "a"), ("bad dull film", "b")) * 10]
    (tmp_path / "own.csv").write_text("\n".join(["text,label", *rows]))
    sys.setprofile(note)
    try:
        task = faithmeter.own_task(tmp_path / "own.csv", text="text", label="label", all_test=True)
        result = faithmeter.measure(tiny(labels=2), task, ["grad-l2"], limit=4, cache_dir=tmp_path / "runs")
        result.acu("grad-l2")
    finally:
        sys.setprofile(None)
    assert len(names) <= 30
    packages = [name.partition(".")[0] for name in names]
    assert sum(one != following for one, following in pairwise(packages)) <= 10
    assert not [name for code, name in listed.items() if code not in entered]


def _parts(name: str) -> tuple[str, list[str]]:
    package, *rest = name.split(".")
    return package, rest


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_names_in_documents_exist(path: Path) -> None:
    for name in re.findall(r"`((?:\w+\.)+\w+)`", TEXTS[path]):
        package, *rest = name.removeprefix("faithmeter.").split(".")
        if package in faithmeter.LAYERS and rest[-1:] not in (["py"], ["html"]):
            assert _resolve(package, rest) is not None, name


def _resolve(package: str, rest: list[str]) -> object:
    """Return what a dotted name stands for; its modules are imported on the way."""
    value: object = import_module(f"faithmeter.{package}")
    path = f"faithmeter.{package}"
    for part in rest:
        path = f"{path}.{part}"
        value = getattr(value, part, None) or import_module(path)
    return value


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_files_in_documents_exist(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", TEXTS[path]):
        assert (path.parent / target).exists(), target
    folders = "src|benchmarks|tests|docs|examples|grids|scripts|results"
    for name in re.findall(rf"`((?:{folders})/[\w/.-]+)`", TEXTS[path]):
        assert (ROOT / name).exists(), name


def test_nothing_refers_to_folders_outside_the_repository() -> None:
    outside = re.compile(r"\.\./shared|/work/|/home/")
    files = [path for path in PUBLISHED if path.suffix in SOURCES]
    assert [path.name for path in files if outside.search(path.read_text(encoding="utf-8"))] == []
