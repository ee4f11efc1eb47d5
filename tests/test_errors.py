"""Unknown names are answered with the nearest known one only if it is really near."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from faithmeter.data import TASKS
from faithmeter.errors import EXTRAS, InputError, optional, unknown

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = {"sklearn": "scikit-learn", "vl_convert": "vl-convert-python"}
"""Names of libraries on the package index, where they differ from that of the import."""


@pytest.mark.parametrize("name", ["Foo", "test", "mine", "AG News", "x", ""])
def test_a_far_name_is_answered_with_all_known_ones(name: str) -> None:
    assert str(unknown("task", name, TASKS)).startswith(f"unknown task {name!r}; expected one of Anemia, ")


@pytest.mark.parametrize(
    ("name", "near"), [("boolq", "BoolQ"), ("SST-2", "SST2"), ("bAbI", "bAbI-"), ("mnl", "MNLI")]
)
def test_a_near_name_is_suggested(name: str, near: str) -> None:
    assert f"did you mean '{near}" in str(unknown("task", name, TASKS))


@pytest.mark.parametrize(("library", "extra"), EXTRAS.items())
def test_a_missing_library_names_the_extra_that_installs_it(library: str, extra: str) -> None:
    with pytest.raises(InputError) as caught, optional():
        raise ModuleNotFoundError("No module named ...", name=f"{library}.part")
    assert f"needs {library}, which is not installed: pip install 'faithmeter[{extra}]'" in str(caught.value)
    assert "\n" not in str(caught.value)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert any(own.startswith(DISTRIBUTIONS.get(library, library)) for own in extras[extra])


def test_another_missing_module_is_a_bug_and_stays_one() -> None:
    with pytest.raises(ModuleNotFoundError), optional():
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
