"""A small share of the fuzz campaign, whose broken inputs are refused in one line; the phases to kill in."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
COUNT = 120


def load_script(name: str) -> ModuleType:
    path = SCRIPTS / f"{name}.py"
    if not path.exists():
        pytest.skip("needs the repository")
    specification = importlib.util.spec_from_file_location(name, path)
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    return script


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script("fuzz_inputs")


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


def test_the_functions_of_all_phases_exist() -> None:
    """Their places are strings, which a rename does not find."""
    script = load_script("kill_runs")
    for phase in script.PHASES.values():
        owner, name = script.find(phase.function)
        assert callable(getattr(owner, name))
