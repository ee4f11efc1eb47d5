"""Request of a measurement, resolved once: methods, in-distribution tests, steps and settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..config import BASELINE, TrainedWith
from ..errors import InputError
from ..methods.own_scores import OwnScores, own_scores
from ..methods.registry import Method, parse, require_name
from ..models.evaluator import Model
from ..stats.masf import MaSF

Tests = Mapping[str, MaSF]
"""In-distribution tests by name; each adds a column `p_<name>`."""


def floors_of(tests: Tests | None) -> dict[str, float]:
    """Return the smallest possible p-value of each test."""
    return {name: test.smallest_p() for name, test in (tests or {}).items()}


def trained_with_of(tests: Tests | None) -> TrainedWith:
    """Return the masking strategy that the tests assume for the model's training; unknown without tests."""
    return next((test.trained_with for test in (tests or {}).values()), "unknown")


def agreement_of(clf: Model) -> float:
    """Return the agreement of an adapted model with the original; NaN for any other model."""
    return float(getattr(clf, "agreement", math.nan))


Names = str | Method | Sequence[str | Method] | Mapping[str, str | Method | OwnScores]
"""Methods by name or as values; in a mapping also scores that were computed elsewhere, by name."""


def parse_methods(methods: Names) -> list[Method]:
    """Return the methods of these names; a single name gives a list of one."""
    if isinstance(methods, str | Method):
        return [parse(methods)]
    if not isinstance(methods, Mapping):
        return [parse(name) for name in methods]
    for name in methods:
        require_name(name)
        if name == BASELINE:
            raise InputError(f"a method named {BASELINE!r}, which is the baseline; give yours another name")
    return [
        replace(parse(value), name=name) if isinstance(value, str | Method) else own_scores(name, value)
        for name, value in methods.items()
    ]
