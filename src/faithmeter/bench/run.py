"""One run of the bench: all works on one model, with growth and agreement → a result."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from ..files import plain as plain_values
from . import explaining, pairwise, startup, trainings
from .agreement import Agreement, measure_agreement
from .growth import Growth, measure_growth
from .libraries import NOT_COMPARED, missing
from .light import gemm_speed
from .race import Entry, Work, race, require_rounds
from .setting import Setting

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
    report: Callable[[str], object] = lambda name: None,
) -> BenchResult:
    """Run the parts of a bench; `report` is called with the name of each work before it begins."""
    require_rounds(rounds)
    entries: list[Entry] = []
    skipped = {name: why for package, name in NOT_COMPARED.items() if (why := missing(package))}
    gemm = gemm_speed(setting.clf)
    for part, make in WORKS.items():
        if part not in parts:
            continue
        for work in make(setting):
            report(work.name)
            entries += race(work, rounds, gemm if work.flops else None)
            skipped |= {f"{name}, {part}": why for name, why in work.skipped.items()}
    growth: list[Growth] = []
    if GROWTH in parts:
        report(GROWTH)
        growth = measure_growth(setting, GROWTH_ROUNDS)
    agreement = None
    if AGREEMENT in parts:
        report(AGREEMENT)
        agreement = measure_agreement(setting)
    return BenchResult(_describe_machine(setting), rounds, entries, skipped, growth, agreement)


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
