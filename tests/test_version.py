"""There is one version number: that of pyproject.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml

import faithmeter

REPOSITORY = Path(__file__).parents[1]


def test_package_and_citation_have_the_version_of_the_project() -> None:
    project = REPOSITORY / "pyproject.toml"
    if not project.exists():
        pytest.skip("needs the repository")
    version = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]
    assert faithmeter.__version__ == version
    assert yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))["version"] == version


def test_no_other_file_repeats_the_version() -> None:
    sources = Path(faithmeter.__file__).parent.rglob("*.py")
    assert not [path for path in sources if f'"{faithmeter.__version__}"' in path.read_text(encoding="utf-8")]
