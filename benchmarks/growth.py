"""Growth of cost: seconds and memory by tokens, by texts, by the width of a beam and by rows of MaSF."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from faithmeter.methods import explain
from faithmeter.models.evaluator import Evaluator
from faithmeter.runs.measurements import measure

from .pairwise import masf_run
from .race import Clock, memory_in_use, with_peak_memory
from .setting import Setting

PERCENTS = (0, 50, 100)
"""Steps of the measurements, which are few because texts are many."""


@dataclass(frozen=True)
class Growth:
    """Seconds and memory by size, with the fitted exponents: seconds ∝ size^exponent.

    Attributes:
        work: What grows.
        sizes: Sizes, rising.
        seconds: Median seconds at each size.
        exponent: Slope of a straight line through the logarithms of the seconds.
        peak_mb: Memory needed at each size beyond that before the first, MB; None if unknown.
        memory_exponent: Slope of the line through the logarithms of the memory; None if unknown.
    """

    work: str
    sizes: list[int]
    seconds: list[float]
    exponent: float
    peak_mb: list[float | None]
    memory_exponent: float | None


def measure_growth(setting: Setting, rounds: int, clock: Clock) -> list[Growth]:
    """Return the growth of leave-one-out, of a measurement, of beam search and of MaSF."""
    sizes = setting.sizes
    tasks: list[tuple[str, Sequence[int], Callable[[int], Callable[[], object]]]] = [
        ("leave-one-out, by tokens of a text", sizes.lengths, lambda n: _explain(setting, 1, n, "loo-sign")),
        ("measurement of grad-l2, by texts", sizes.counts, lambda n: _measure(setting, n)),
        ("beam, by width", sizes.widths, lambda n: _explain(setting, 1, 10, f"beam(width={n})")),
        ("MaSF, by rows", sizes.masf, lambda n: masf_run(n, *sizes.masf_shape)),
    ]
    return [_growth(name, values, make, rounds, clock) for name, values, make in tasks]


def _explain(setting: Setting, count: int, tokens: int, method: str) -> Callable[[], object]:
    # special tokens count as part of the length, which the model limits
    texts = setting.texts(count, min(tokens, setting.clf.max_length - 2))
    batch, labels = setting.batch(texts)
    return lambda: explain(Evaluator(setting.clf), batch, labels, method)


def _measure(setting: Setting, count: int) -> Callable[[], object]:
    """Return the measurement of texts of eight tokens, up to its verdict."""
    texts = setting.texts(count, 8)
    return lambda: measure(setting.clf, texts, ["grad-l2"], percents=PERCENTS, tests=None).verdict


def _growth(
    name: str,
    sizes: Sequence[int],
    make: Callable[[int], Callable[[], object]],
    rounds: int,
    clock: Clock,
) -> Growth:
    runs = {size: make(size) for size in sizes}
    runs[sizes[0]]()  # warm-up
    before = memory_in_use()  # what a size keeps for the next one counts for both
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    peaks: dict[int, float | None] = {}
    for _ in range(rounds):
        for size, run in runs.items():
            start = clock()
            _, peaks[size] = with_peak_memory(run, before)
            seconds[size].append(clock() - start)
    medians = [statistics.median(times) for times in seconds.values()]
    known = [(size, peak) for size, peak in peaks.items() if peak]  # small sizes may need no new memory
    memory = fit_exponent(*zip(*known, strict=True)) if len(known) > 1 else None
    return Growth(name, list(sizes), medians, fit_exponent(sizes, medians), [*peaks.values()], memory)


def fit_exponent(sizes: Sequence[int], amounts: Sequence[float]) -> float:
    """Return the slope of the least-squares line through the logarithms of sizes and amounts."""
    x, y = ([math.log(value) for value in values] for values in (sizes, amounts))
    return statistics.linear_regression(x, y).slope
