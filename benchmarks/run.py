"""One run of the bench: all works on one model, with growth and agreement → a result."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from faithmeter.files import plain as plain_values

from . import explaining, pairwise, startup, trainings
from .agreement import Agreement, measure_agreement
from .growth import Growth, measure_growth
from .libraries import NOT_COMPARED, missing
from .light import gemm_speed
from .race import CLOCKS, Entry, Work, race, require_rounds
from .setting import Setting, embedded

Makers = dict[str, Callable[[Setting], list[Work]]]
WORKS: Makers = {
    "loo": lambda setting: [explaining.occlusion(setting)],
    "pairs": lambda setting: [explaining.pairs(setting)],
    "ig": lambda setting: [explaining.integrated(setting)],
    "gradients": lambda setting: [explaining.gradients(setting), explaining.gradient_norm(setting)],
    "beam": lambda setting: [explaining.beam(setting)],
    "methods": lambda setting: [
        explaining.quick_methods(setting, long=False),
        explaining.quick_methods(setting, long=True),
    ],
    "masf": pairwise.works,
    "training": lambda setting: [trainings.work(setting)],
    "start": lambda setting: [startup.work()],
}
"""Functions that prepare the works, by the name under which `--only` selects them."""
GROWTH, AGREEMENT = "growth", "agreement"
PARTS = (*WORKS, GROWTH, AGREEMENT)
"""All parts of a bench."""
GROWTH_ROUNDS = 1
"""Rounds of the growth; its largest sizes take as long as a race."""


@dataclass(frozen=True)
class BenchResult:
    """Result of a bench: entries of the races, growth, agreement, and where they were measured."""

    machine: dict[str, Any]
    rounds: int
    entries: list[Entry]
    skipped: dict[str, str]
    growth: list[Growth]
    agreement: Agreement | None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        values: dict[str, Any] = plain_values(asdict(self))
        return values


def run(
    setting: Setting,
    *,
    rounds: int = 5,
    parts: tuple[str, ...] = PARTS,
    clock: str = "wall",
    report: Callable[[str], object] = lambda name: None,
) -> Iterator[BenchResult]:
    """Yield the result after each part of a bench, complete after the last one.

    `clock` names one of `CLOCKS`, by which all seconds are counted; `report` is called with the name of each
    work before it begins.
    """
    require_rounds(rounds)
    skipped = {name: why for package, name in NOT_COMPARED.items() if (why := missing(package))}
    result = BenchResult(_describe_machine(setting) | {"clock": clock}, rounds, [], skipped, [], None)
    gemm = gemm_speed(setting.clf, CLOCKS[clock])
    for part, make in WORKS.items():
        if part not in parts:
            continue
        for work in make(setting):
            report(work.name)
            entries = [*result.entries, *race(work, rounds, gemm if work.flops else None, CLOCKS[clock])]
            left_out = {f"{name}, {part}": why for name, why in work.skipped.items()}
            result = replace(result, entries=entries, skipped=result.skipped | left_out)
        yield result
    if GROWTH in parts:
        report(GROWTH)
        result = replace(result, growth=measure_growth(embedded(setting.sizes), GROWTH_ROUNDS, CLOCKS[clock]))
        yield result
    if AGREEMENT in parts:
        report(AGREEMENT)
        yield replace(result, agreement=measure_agreement(setting))


def _describe_machine(setting: Setting) -> dict[str, Any]:
    """Return what the figures depend on: model, device, precision, threads and versions."""
    from importlib.metadata import version

    clf = setting.clf
    capability = torch.backends.cpu.get_cpu_capability()
    names = ("faithmeter", "torch", "transformers", "captum", "interpreto", "shap")
    return {
        "model": setting.name,
        "parameters": sum(weight.numel() for weight in clf.model.parameters()),
        "device": str(clf.device),
        "precision": clf.precision,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "cpu": f"{platform.machine()}, {capability}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names if not missing(name)},
    }
