"""Results as the terminal shows them, and remarks before a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from ..config import ADAPTATION
from ..verdict.formats import format_percent
from .screen import console, note, output, volume

if TYPE_CHECKING:
    from ..report.blocks import Block
    from ..runs.bounded import Bounds
    from ..store.records import TrainRecord
    from ..verdict import Verdict


def show(blocks: Sequence[Block], screen: Console = output) -> None:
    """Print blocks, wrapped at the width of a terminal; in a pipe, each sentence is one line."""
    from ..report.terminal import render

    screen.print(render(blocks), soft_wrap=not screen.is_terminal)


def remark_verdict(verdict: Verdict, *, methods: bool = True) -> None:
    """Print the verdict beside results in JSON, on standard error; --quiet omits it."""
    from ..report.view import verdict_sentences

    if not volume.quiet:
        show(verdict_sentences(verdict, methods=methods), console)


def print_bounds(bounds: Bounds) -> None:
    """Print how many evaluations each method needs at most, cheapest first."""
    ranked = sorted(bounds.evaluations.items(), key=lambda item: item[1])
    each = ", ".join(f"{name} {count:,}" for name, count in ranked)
    note(f"{bounds.texts} texts, at most so many evaluations: {each}")


def print_costs(seconds: Mapping[str, float]) -> None:
    """Print how long each part of an audit takes at most, and all together."""
    parts = ", ".join(f"{part} {format_duration(cost)}" for part, cost in seconds.items())
    total = format_duration(sum(seconds.values()))
    note(f"at most {total} on this machine: {parts} (the {ADAPTATION} only if the check does not accept)")
    note("what is finished is kept: the same command continues after a stop")


def format_duration(seconds: float) -> str:
    """Return a duration in the largest unit of which it has two: 90 s, 15 min, 3 h."""
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(1.0, seconds):.0f} s"


def print_truncated(record: TrainRecord) -> None:
    """Print which share of a split's texts was truncated in training, if any was."""
    role, share = max(record.truncated.items(), key=lambda item: item[1])
    if share:
        note(
            f"{format_percent(share)}% of the {role} texts are too long for the model: training reads only "
            "their beginnings; check, measure and explain read them in windows with --overlap"
        )
