"""A race: contenders do the same work in interleaved rounds; medians, ratios and peak memory.

On a machine that others use, elapsed time says how busy they were. CPU time, of this process and of those
that it started, is then the fair measure, with one thread: threads that wait may count as busy.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from faithmeter.errors import InputError

OURS = "faithmeter"
"""Name of the contender that the others are compared with."""
Clock = Callable[[], float]
"""Function that returns seconds, of which differences are taken."""


def cpu_seconds() -> float:
    """Return the CPU time of this process and of finished ones that it started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": cpu_seconds}
"""Clocks by name: elapsed time, and CPU time."""
RESET_PEAK = "5"
"""Value that makes Linux forget the peak memory of a process (proc(5), clear_refs)."""


@dataclass(frozen=True)
class Contender:
    """One way to do the work.

    Attributes:
        name: Name of the library or technique, with its setting.
        run: Does the work once; the result may be scores, Tensor [B, T].
        scale: Factor from the timed part of the work to all of it.
        same_scores: Whether the result must equal that of the first contender.
    """

    name: str
    run: Callable[[], object]
    scale: float = 1.0
    same_scores: bool = False


@dataclass(frozen=True)
class Work:
    """Work with its contenders, ours first.

    Attributes:
        name: Short description.
        contenders: Contenders in the order of the table.
        flops: Floating-point operations of the evaluations that the work needs; None if it needs none.
        skipped: Contenders that do not take part, with the reasons.
    """

    name: str
    contenders: Sequence[Contender]
    flops: float | None = None
    skipped: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """Result of one contender.

    Attributes:
        work: Name of the work.
        contender: Name of the contender.
        seconds: Median over the rounds.
        rounds: Seconds of each round.
        ratio: Seconds divided by ours, medians of both.
        peak_mb: Memory in use at the peak of the first run beyond that before it, MB; None if unknown.
        difference: Largest difference of a score from ours, relative to our largest score; None if unknown.
        light: Share of the speed of light: least possible seconds / seconds; None if undefined.
    """

    work: str
    contender: str
    seconds: float
    rounds: list[float]
    ratio: float
    peak_mb: float | None
    difference: float | None
    light: float | None


def race(
    work: Work, rounds: int, gemm: Callable[[], float] | None = None, clock: Clock = time.perf_counter
) -> list[Entry]:
    """Run each contender once as a warm-up, then once in each round, and return the medians.

    Each round begins with another contender, so that none profits from its place. `gemm` returns the
    operations per second of a matrix product; it is called in every round, and its median is the peak.
    """
    peaks, results = [], []
    for contender in work.contenders:
        result, peak = with_peak_memory(contender.run)
        peaks.append(peak)
        results.append(result)
    seconds: list[list[float]] = [[] for _ in work.contenders]
    speeds = []
    for number in range(rounds):
        if gemm is not None:
            speeds.append(gemm())
        for place in range(len(work.contenders)):
            turn = (number + place) % len(work.contenders)
            start = clock()
            work.contenders[turn].run()
            elapsed = clock() - start
            seconds[turn].append(elapsed * work.contenders[turn].scale)
    medians = [statistics.median(times) for times in seconds]
    fastest = work.flops / statistics.median(speeds) if work.flops and speeds else None
    return [
        Entry(
            work=work.name,
            contender=contender.name,
            seconds=median,
            rounds=times,
            ratio=median / medians[0],
            peak_mb=peak,
            difference=_difference(result, results[0]) if contender.same_scores else None,
            light=None if fastest is None else fastest / median,
        )
        for contender, median, times, peak, result in zip(
            work.contenders, medians, seconds, peaks, results, strict=True
        )
    ]


def _difference(scores: object, ours: object) -> float:
    if not isinstance(scores, Tensor) or not isinstance(ours, Tensor):
        raise TypeError("contenders with the same scores return tensors")
    return float((scores - ours).abs().max() / ours.abs().max())


def with_peak_memory(run: Callable[[], object], start: float | None = None) -> tuple[object, float | None]:
    """Run a function; return its result and the memory that it needed at its peak, in MB.

    On an accelerator that is the memory of the device, otherwise that of the process (Linux only) beyond
    `start`, or beyond what it uses before the function.
    """
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if device is not None and hasattr(module := torch.get_device_module(device), "max_memory_allocated"):
        module.reset_peak_memory_stats()
        before = module.memory_allocated()
        result = run()
        return result, (module.max_memory_allocated() - before) / 1e6
    with suppress(OSError):  # not Linux, or not allowed
        Path("/proc/self/clear_refs").write_text(RESET_PEAK)
    start = memory_in_use() if start is None else start
    result = run()
    peak = _status("VmHWM")
    return result, None if start is None or peak is None else max(0.0, peak - start)


def memory_in_use() -> float | None:
    """Return the memory of this process, in MB; None if the system does not tell."""
    return _status("VmRSS")


def _status(name: str) -> float | None:
    """Return a size in the status of this process, in MB; None if the system does not tell."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1e3
    return None


def require_rounds(rounds: int) -> None:
    """Raise an InputError unless there is at least one round."""
    if rounds < 1:
        raise InputError(f"rounds is {rounds}; expected at least 1")


def describe(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return the entries as JSON-ready values."""
    return [vars(entry) for entry in entries]
