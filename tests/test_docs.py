"""The documents name things that exist, and nothing outside the repository."""

from __future__ import annotations

import csv
import re
from importlib import import_module
from pathlib import Path

import pytest

import faithmeter

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
