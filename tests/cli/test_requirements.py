"""The gate of a CI pipeline never passes a measurement that the verdict rejects."""

from __future__ import annotations

import math

import pytest
import typer

from faithmeter.cli.requirements import hold, parse_requirements
from faithmeter.stats.intervals import Interval
from faithmeter.verdict.evidence import MethodEvidence, TaskEvidence
from faithmeter.verdict.sentences import verdict

NAMES = ["check", "random", "loo-sign"]
QUANTITIES = {
    "random": {"acu": 0.0, "racu": 0.0, "p": 0.4},
    "loo-sign": {
        "acu": 30.0,
        "racu": 80.0,
        "p": 0.4,
        "acu.lower": 25.0,
        "acu.upper": 35.0,
        "racu.lower": math.nan,
    },
}


def evidence(*, whole: float = 0.9) -> TaskEvidence:
    p = {"published": 0.4, "crossfit": 0.4}
    methods = {
        "random": MethodEvidence(Interval(0.0, 0.0, 0.0), p, 200),
        "loo-sign": MethodEvidence(Interval(0.30, 0.25, 0.35), p, 200),
    }
    floors = {"published": 0.01, "crossfit": 0.01}
    return TaskEvidence(methods=methods, floors=floors, trained_with="half", whole=whole, majority=0.5)


def is_met(line: str, *, whole: float = 0.9, even_if_untrusted: bool = False) -> bool:
    options = {"even_if_untrusted": even_if_untrusted}
    try:
        hold(parse_requirements([line], NAMES), QUANTITIES, verdict(evidence(whole=whole)), **options)
    except typer.Exit as end:
        return end.exit_code == 0
    return True


@pytest.mark.parametrize(
    ("line", "met"),
    [
        ("loo-sign:acu>=30", True),
        ("loo-sign:acu>30", False),
        ("loo-sign:acu.lower>=20", True),
        ("loo-sign:acu.lower>=26", False),
        ("loo-sign:acu.upper<=35", True),
        ("loo-sign:racu.lower>=0", False),  # undefined
        ("check:p>=0.05", True),
        ("check:p<0.05", False),
    ],
)
def test_numbers_are_compared_as_required(line: str, met: bool) -> None:
    assert is_met(line) is met


@pytest.mark.parametrize("line", ["loo-sign:acu>=30", "loo-sign:acu.lower>=20", "check:p>=0.05"])
def test_a_model_that_only_guesses_meets_no_requirement(line: str) -> None:
    assert not is_met(line, whole=0.5)
    assert is_met(line, whole=0.5, even_if_untrusted=True)


def test_a_rejection_may_be_required_of_any_model() -> None:
    assert is_met("check:p<0.5", whole=0.5)
