"""A small share of the fuzz campaign: each broken input is refused in one line."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "fuzz_inputs.py"
COUNT = 120


@pytest.mark.skipif(not SCRIPT.exists(), reason="needs the repository")
def test_broken_inputs_are_refused_and_the_others_accepted() -> None:
    specification = importlib.util.spec_from_file_location("fuzz_inputs", SCRIPT)
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    counts = script.fuzz(COUNT, seed=1)
    assert counts.total() == COUNT
    assert {kind for kind, _ in counts} == set(script.MAKERS)
    with pytest.raises(AssertionError, match="accepted, but had to be refused"):
        script.try_case(script.Case(lambda: None, True), "a case", 1)
    with pytest.raises(AssertionError, match="Hang"):
        script.try_case(script.Case(lambda: __import__("time").sleep(5), False), "a case", 1)
