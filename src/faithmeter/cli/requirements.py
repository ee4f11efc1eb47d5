"""Requirements on a measurement, such as 'loo-sign:racu>=40', for use in CI."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import typer

from ..config import BASELINE
from ..errors import InputError, unknown
from .options import option
from .screen import Json, console, marked

if TYPE_CHECKING:
    from ..measuring.explanation import Explanation
    from ..measuring.result import Result
    from ..verdict.sentences import Verdict

CHECK = "check"
"""Name of the in-distribution check; a requirement on it applies to the random baseline."""
AREAS = ("acu", "racu")
QUANTITIES = (*AREAS, "acu.lower", "acu.upper", "racu.lower", "racu.upper", "p")
COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


@dataclass(frozen=True)
class Gate:
    """Options on what a result must meet, which decides the exit code, and on how it is printed."""

    require: list[str] = option(
        [],
        "such as 'loo-sign:racu>=40', 'loo-sign:acu.lower>=20', 'check:p>=0.05'; if not met, exit code 1",
    )
    even_if_untrusted: bool = option(
        False, "let requirements hold for measurements that must not be trusted", "--even-if-untrusted"
    )
    as_json: Json = False


class Requirement(NamedTuple):
    """Bound on one quantity of one method."""

    name: str
    quantity: str
    comparison: str
    bound: float

    def __str__(self) -> str:
        return f"{self.name}:{self.quantity} {self.comparison} {self.bound:g}"

    @property
    def method(self) -> str:
        return BASELINE if self.name == CHECK else self.name

    @property
    def asks_for_rejection(self) -> bool:
        """Whether a small p-value is required; an untrusted measurement may meet such a requirement."""
        return self.quantity == "p" and self.comparison in ("<", "<=")


def parse_requirements(lines: Iterable[str], names: Sequence[str]) -> list[Requirement]:
    """Return the requirements parsed from command-line values; `names` are the measured methods.

    Raises:
        InputError: A requirement cannot be parsed, or names an unknown method or quantity.
    """
    return [_parse(line, names) for line in lines]


def _parse(line: str, names: Sequence[str]) -> Requirement:
    # a name may hold brackets: beam(width=20):acu>40
    match = re.fullmatch(r"(.+):([\w.]+)\s*(>=|<=|>|<)\s*(\S+)", line.strip())
    bound = math.nan
    with suppress(ValueError):
        bound = float(match[4]) if match else math.nan
    if not match or not math.isfinite(bound):
        raise InputError(f"requirement {line!r} cannot be read; expected one such as 'loo-sign:racu>=40'")
    name, quantity, comparison, _ = match.groups()
    if quantity not in QUANTITIES:
        raise unknown("quantity", quantity, QUANTITIES)
    if name not in names:
        raise unknown("method in a requirement", name, names)
    return Requirement(name, quantity, comparison, bound)


def hold(
    requirements: Sequence[Requirement],
    quantities: Mapping[str, Mapping[str, float]],
    verdict: Verdict,
    *,
    even_if_untrusted: bool = False,
) -> None:
    """Print whether each requirement is met, and exit with code 1 unless all are.

    An undefined quantity meets no requirement. To keep the exit code consistent with the verdict, a method
    that must not be trusted meets none either, except if a small p-value is required.

    Args:
        requirements: Requirements to check.
        quantities: Values by method and quantity; areas in percent.
        verdict: Verdict of the measurement, which says which methods may be trusted.
        even_if_untrusted: Also accept methods that must not be trusted.

    Raises:
        typer.Exit: With code 1, if a requirement is not met.
    """
    failed = False
    for required in requirements:
        value = quantities[required.method].get(required.quantity, math.nan)
        reason = "" if even_if_untrusted or required.asks_for_rejection else verdict.reason(required.method)
        met = COMPARISONS[required.comparison](value, required.bound) and not reason  # NaN meets nothing
        failed |= not met
        mark, style = ("met", "green") if met else ("not met", "bold red")
        number = "undefined" if math.isnan(value) else f"{value:.4g}"
        because = f", but {reason}" if reason else ""
        console.print(marked(mark, style, f": {required}, is {number}{because}"), soft_wrap=True)
    if failed:
        raise typer.Exit(1)


def quantities(result: Result) -> dict[str, dict[str, float]]:
    """Return the quantities that `--require` can test, by method: areas and bounds in percent, and p."""
    # in percent, as in every table, so that a bound can be copied from one
    values = {}
    for name, (acu, racu) in result.areas.items():
        values[name] = {"acu": 100 * acu, "racu": 100 * racu, "p": result.evidence.p(name)}
        for area, interval in result.bounds(name).items():
            values[name] |= {f"{area}.lower": 100 * interval.lower, f"{area}.upper": 100 * interval.upper}
    return values


def text_quantities(explanation: Explanation) -> dict[str, dict[str, float]]:
    """Return the same quantities of a single text; the ACU of a number is in the unit of the number."""
    values, scale = {}, 100 if explanation.value is None else 1
    for name, erasure in explanation.erasures.items():
        p = explanation.evidence.p(name)
        values[name] = {"acu": scale * erasure.acu, "racu": 100 * erasure.racu, "p": p}
    return values
