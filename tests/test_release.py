"""A release's links: an index shows the README without the files beside it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLACE = ("https://example.org/us/faithmeter", "v1.0")


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import link_release

    return link_release


def test_relative_links_lead_to_the_tag_and_others_stay(release) -> None:
    text = "[a](docs/a.md#b) ![c](docs/c.png) [d](https://d.org/e.md) [f](#g) [![h](docs/h.svg)](docs/i.md)"
    at = "https://example.org/us/faithmeter"
    assert release.link_readme(text, *PLACE) == (
        f"[a]({at}/blob/v1.0/docs/a.md#b) ![c]({at}/raw/v1.0/docs/c.png) [d](https://d.org/e.md) [f](#g) "
        f"[![h]({at}/raw/v1.0/docs/h.svg)]({at}/blob/v1.0/docs/i.md)"
    )


def test_the_readme_has_no_relative_link_left_and_those_it_had_exist(release) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = release.link_readme(text, *PLACE)
    assert not re.findall(r"\]\((?!https?:|#)", linked)
    targets = re.findall(r"example\.org/us/faithmeter/\w+/v1\.0/([^)#]+)", linked)
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_project_gets_its_addresses(release) -> None:
    text = release.add_urls((ROOT / "pyproject.toml").read_text(encoding="utf-8"), *PLACE)
    project = tomllib.loads(text)["project"]
    assert project["urls"]["Changelog"] == "https://example.org/us/faithmeter/blob/v1.0/CHANGELOG.md"
    assert "scripts" in project
    with pytest.raises(SystemExit, match="already"):
        release.add_urls(text, *PLACE)
