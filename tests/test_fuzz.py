"""A small share of the fuzz campaign: each broken input is refused in one line."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "fuzz_inputs.py"
COUNT = 120


@pytest.fixture(scope="module")
def script() -> ModuleType:
    if not SCRIPT.exists():
        pytest.skip("needs the repository")
    specification = importlib.util.spec_from_file_location("fuzz_inputs", SCRIPT)
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    return script


def test_broken_inputs_are_refused_and_the_others_accepted(script: ModuleType) -> None:
    kinds = set()
    for number, kind, outcome in script.fuzz(range(COUNT), seed=1):
        assert outcome in script.OUTCOMES, f"{kind}, number {number}: {outcome}"
        kinds.add(kind)
    assert kinds == set(script.MAKERS)


def test_the_script_says_what_is_wrong(script: ModuleType) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    assert script.try_case(script.Case(lambda: None, True), 1) == "accepted, but had to be refused"
    assert "ZeroDivisionError" in script.try_case(script.Case(fail, False), 1)
    assert "Hang" in script.try_case(script.Case(lambda: time.sleep(5), False), 1)
