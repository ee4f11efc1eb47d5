"""The documentation site builds without a warning, links only to what exists, and describes all names."""

from __future__ import annotations

import filecmp
import io
import os
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import faithmeter
from faithmeter.cli import VERBS
from faithmeter.methods import adapters

build_main = pytest.importorskip("sphinx.cmd.build").build_main
ROOT = Path(__file__).parents[1]


class Page(HTMLParser):
    """Ids and links of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name"):
                self.ids.add(value or "")
            elif name in ("href", "src"):
                self.links.add(value or "")


def arguments(folder: Path) -> list[str]:
    options = ("-q", "-W", "--keep-going", "-b", "html", "-d", folder / "doctrees")
    return [*map(str, options), str(ROOT / "docs"), str(folder / "html")]


def build(folder: Path) -> Path:
    """Build the site as `make docs` does, but in this process, where torch has been imported."""
    modules, paths, problems = set(sys.modules), list(sys.path), io.StringIO()
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(problems), warnings.catch_warnings():
            for kind in (DeprecationWarning, PendingDeprecationWarning):  # among the libraries of Sphinx
                warnings.simplefilter("ignore", kind)
            assert build_main(arguments(folder)) == 0, problems.getvalue()
    finally:
        sys.path[:] = paths
        for name in {*sys.modules} - modules:  # those of scripts/, which tests import, too
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(ROOT / "scripts")):
                del sys.modules[name]
    return folder / "html"


def build_alone(folder: Path) -> Path:
    """Build the site in a process of its own, with another order of sets."""
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-m", "sphinx", *arguments(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.glob("**/*.html") if "_static" not in path.parts}


def test_no_link_inside_the_site_is_broken(site: Path, pages: dict[Path, Page]) -> None:
    broken, checked = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            checked += 1
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].ids):
                broken.append(f"{path.name}: {link}")
    assert broken == []
    assert checked > 1000


def test_the_link_checker_finds_a_broken_link(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<a href="missing.html">x</a><h1 id="here">y</h1>')
    with pytest.raises(AssertionError, match="missing"):
        test_no_link_inside_the_site_is_broken(tmp_path, {page: Page(page)})


def test_the_reference_has_all_public_names_and_commands(site: Path, pages: dict[Path, Page]) -> None:
    names = [*faithmeter.__all__]
    names += [f"methods.adapters.{name}" for name in adapters.__all__]
    assert [name for name in names if f"faithmeter.{name}" not in pages[site / "api.html"].ids] == []
    assert [verb for verb in VERBS if verb not in pages[site / "cli.html"].ids] == []


def test_every_field_of_a_file_is_described(site: Path) -> None:
    text = (site / "files.html").read_text(encoding="utf-8")
    assert text.count("<dt>") > 100
    assert "(no description)" not in text


def test_every_document_is_in_the_site(pages: dict[Path, Page]) -> None:
    documents = {
        path.stem for pattern in ("*.md", "notebooks/*.ipynb") for path in (ROOT / "docs").glob(pattern)
    }
    assert documents <= {path.stem for path in pages}


@pytest.mark.slow
def test_the_site_has_the_same_bytes_when_built_again(site: Path, tmp_path: Path) -> None:
    again = build_alone(tmp_path / "another-place")
    files = sorted(path.relative_to(site) for path in site.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert filecmp.cmpfiles(site, again, map(str, files), shallow=False)[1:] == ([], [])
