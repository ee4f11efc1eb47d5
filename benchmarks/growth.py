"""Growth of cost: seconds by tokens of a text, by texts, by the width of a beam and by rows of MaSF."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from faithmeter.methods import explain
from faithmeter.models.evaluator import Evaluator

from .pairwise import masf_run
from .setting import Setting


@dataclass(frozen=True)
class Growth:
    """Seconds by size, with the fitted exponent: seconds ∝ size^exponent.

    Attributes:
        work: What grows.
        sizes: Sizes, rising.
        seconds: Median seconds at each size.
        exponent: Slope of a straight line through the logarithms.
    """

    work: str
    sizes: list[int]
    seconds: list[float]
    exponent: float


def measure_growth(setting: Setting, rounds: int) -> list[Growth]:
    """Return the growth of leave-one-out by tokens, gradients by texts, beam by width, MaSF by rows."""
    sizes = setting.sizes
    tasks: list[tuple[str, Sequence[int], Callable[[int], Callable[[], object]]]] = [
        ("leave-one-out, by tokens of a text", sizes.lengths, lambda n: _explain(setting, 1, n, "loo-sign")),
        ("inp-grad-sign, by texts", sizes.counts, lambda n: _explain(setting, n, 8, "inp-grad-sign")),
        ("beam, by width", sizes.widths, lambda n: _explain(setting, 1, 10, f"beam(width={n})")),
        ("MaSF, by rows", sizes.masf, lambda n: masf_run(n, *sizes.masf_shape)),
    ]
    return [_growth(name, values, make, rounds) for name, values, make in tasks]


def _explain(setting: Setting, count: int, tokens: int, method: str) -> Callable[[], object]:
    # special tokens count as part of the length, which the model limits
    texts = setting.texts(count, min(tokens, setting.clf.max_length - 2))
    batch, labels = setting.batch(texts)
    return lambda: explain(Evaluator(setting.clf), batch, labels, method)


def _growth(
    name: str, sizes: Sequence[int], make: Callable[[int], Callable[[], object]], rounds: int
) -> Growth:
    runs = {size: make(size) for size in sizes}
    runs[sizes[0]]()  # warm-up
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(rounds):
        for size, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[size].append(time.perf_counter() - start)
    medians = [statistics.median(times) for times in seconds.values()]
    return Growth(name, list(sizes), medians, fit_exponent(sizes, medians))


def fit_exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope of the least-squares line through the logarithms of sizes and seconds."""
    x, y = ([math.log(value) for value in values] for values in (sizes, seconds))
    return statistics.linear_regression(x, y).slope
