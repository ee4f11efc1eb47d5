"""Unknown names are answered with the nearest known one only if it is really near."""

from __future__ import annotations

import pytest

from faithmeter.data import TASKS
from faithmeter.errors import unknown


@pytest.mark.parametrize("name", ["Foo", "test", "mine", "AG News", "x", ""])
def test_a_far_name_is_answered_with_all_known_ones(name: str) -> None:
    assert str(unknown("task", name, TASKS)).startswith(f"unknown task {name!r}; expected one of Anemia, ")


@pytest.mark.parametrize(
    ("name", "near"), [("boolq", "BoolQ"), ("SST-2", "SST2"), ("bAbI", "bAbI-"), ("mnl", "MNLI")]
)
def test_a_near_name_is_suggested(name: str, near: str) -> None:
    assert f"did you mean '{near}" in str(unknown("task", name, TASKS))
