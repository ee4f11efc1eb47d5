"""What a CI pipeline asks of a measurement, such as 'loo-sign:racu>=40': read first, held at the end."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, NamedTuple

import typer

from ..config import SIGNIFICANCE_LEVEL
from ..errors import InputError, unknown
from .screen import console, marked

CHECK = "check"
"""In a requirement: the p-value of the baseline, which masks at random."""
QUANTITIES = ("acu", "racu", "p")
COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}

Require = Annotated[
    list[str], typer.Option(help="such as 'loo-sign:racu>=40' or 'check:p>=0.05'; exit code 1 when not met")
]


class Requirement(NamedTuple):
    name: str
    quantity: str
    comparison: str
    bound: float

    def __str__(self) -> str:
        return f"{self.name}:{self.quantity} {self.comparison} {self.bound:g}"


def parse_requirements(lines: Iterable[str], names: Sequence[str]) -> list[Requirement]:
    """Requirements on methods of these names."""
    return [_parsed(line, names) for line in lines]


def _parsed(line: str, names: Sequence[str]) -> Requirement:
    found = re.fullmatch(r"(.+):(\w+)\s*(>=|<=|>|<)\s*(\S+)", line.strip())
    bound = _number(found[4]) if found else math.nan
    if not found or not math.isfinite(bound):
        raise InputError(f"requirement {line!r} cannot be read; expected such as 'loo-sign:racu>=40'")
    name, quantity, comparison, _ = found.groups()
    if quantity not in QUANTITIES:
        raise unknown("quantity", quantity, QUANTITIES)
    if name not in names:
        raise unknown("method in a requirement", name, names)
    return Requirement(name, quantity, comparison, bound)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def quantities(
    acu: float, racu: float, p: Mapping[str, float], floors: Mapping[str, float]
) -> dict[str, float]:
    """What can be required of a method: areas in percent, as in the table, and the cross-fitted p-value.

    That of a test that could not have rejected is undefined.
    """
    able = floors.get("crossfit", 1.0) < SIGNIFICANCE_LEVEL
    return {"acu": 100 * acu, "racu": 100 * racu, "p": p["crossfit"] if able else math.nan}


def hold(requirements: Sequence[Requirement], found: Mapping[str, Mapping[str, float]]) -> None:
    """Exit with 1 unless all requirements are met; an undefined number meets none."""
    failed = False
    for required in requirements:
        value = found[required.name][required.quantity]
        met = COMPARISONS[required.comparison](value, required.bound)
        failed |= not met
        mark, style = ("met", "green") if met else ("not met", "bold red")
        shown = "undefined" if math.isnan(value) else f"{value:.4g}"
        console.print(marked(mark, style, f": {required}, is {shown}"))
    if failed:
        raise typer.Exit(1)
