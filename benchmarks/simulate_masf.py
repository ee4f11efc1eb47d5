"""Simulate validity and power of MaSF on Gaussian features: a Markdown table, published and cross-fitted.

Five factors shared by all layers correlate the features. Each figure is the share of rows with p < 0.05 over
many fits; in brackets, the share at the threshold that rejects 5 % of fresh rows: power at equal size.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from faithmeter.stats.masf import CALIBRATIONS, MaSF

Array = NDArray[np.float32]
FACTORS = 5


def few_dimensions(x: Array) -> Array:
    x[:, :, : max(1, x.shape[2] // 50)] += 2.5
    return x


def half_of_dimensions(x: Array) -> Array:
    x[:, :, ::2] -= 0.5
    return x


def last_layer(x: Array) -> Array:
    x[:, -1] += 0.7
    return x


SHIFTS: dict[str, Callable[[Array], Array]] = {
    "fresh": lambda x: x,
    "all + 20": lambda x: x + 20,
    "2 % of dims + 2.5": few_dimensions,
    "half of dims - 0.5": half_of_dimensions,
    "all + 0.3": lambda x: x + 0.3,
    "last layer + 0.7": last_layer,
    "spread × 1.2": lambda x: x * 1.2,
    "spread × 0.85": lambda x: x * 0.85,
    "spread × 0.5": lambda x: x * 0.5,
}


def draw(rng: np.random.Generator, rows: int, loadings: Array, correlated: float) -> Array:
    """Return rows [rows, L, H]; values have variance about 1, `correlated` of it from the shared factors."""
    factors = rng.standard_normal((rows, FACTORS), dtype=np.float32)
    common = np.tensordot(factors, loadings, axes=1)
    own = rng.standard_normal(common.shape, dtype=np.float32)
    mixed: Array = np.float32(correlated**0.5) * common + np.float32((1 - correlated) ** 0.5) * own
    return mixed


def power_at_equal_size(
    fresh: NDArray[np.float64], shifted: NDArray[np.float64], size: float = 0.05
) -> float:
    """Return the share of shifted rows rejected at the threshold that rejects `size` of the fresh ones.

    Between two p-values it is interpolated, as if the decision were random there.
    """
    thresholds = np.unique(fresh)
    rejected = np.append(0, np.searchsorted(np.sort(fresh), thresholds, "right") / len(fresh))
    power = np.append(0, np.searchsorted(np.sort(shifted), thresholds, "right") / len(shifted))
    return float(np.interp(size, rejected, power))


def simulate(
    shape: tuple[int, int], n: int, fits: int, rows: int, correlated: float, shifts: list[str]
) -> Iterator[str]:
    """Yield the lines of one block of the table: one for each calibration."""
    loadings = np.random.default_rng(99).standard_normal((FACTORS, *shape), dtype=np.float32) / FACTORS**0.5
    p: dict[tuple[str, str], list[NDArray[np.float64]]] = {(c, s): [] for c in CALIBRATIONS for s in shifts}
    for seed in range(fits):
        rng = np.random.default_rng(seed)
        fit = draw(rng, n, loadings, correlated)
        drawn = {name: rows * (4 if name == "fresh" else 1) for name in shifts}
        tests = {name: SHIFTS[name](draw(rng, count, loadings, correlated)) for name, count in drawn.items()}
        for calibration in CALIBRATIONS:
            masf = MaSF(calibration=calibration).fit(fit)
            for name, test in tests.items():
                p[calibration, name].append(masf.pvalues(test))
    for calibration in CALIBRATIONS:
        fresh = np.stack(p[calibration, "fresh"])
        shares = (fresh < 0.05).mean(axis=1)
        binomial = (
            shares.mean() * (1 - shares.mean()) / fresh.shape[1]
        ) ** 0.5  # smallest possible deviation
        error = max(shares.std(ddof=1), binomial) / fits**0.5
        cells = [
            f"{100 * shares.mean():.2f} ± {100 * error:.2f} %",
            f"{np.max(p[calibration, 'all + 20']) * (n + 1):.1f}/(N+1)",
        ]
        for name in shifts[2:]:
            shifted = np.stack(p[calibration, name])
            cells.append(
                f"{(shifted < 0.05).mean():.2f} ({power_at_equal_size(fresh.ravel(), shifted.ravel()):.2f})"
            )
        yield f"| {shape[0]} × {shape[1]} | {correlated:g} | {n} | {calibration} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--dims", type=int, default=64)
    parser.add_argument("--fitted", type=int, nargs="+", default=[50, 500, 2000], help="rows to fit on")
    parser.add_argument(
        "--correlated", type=float, nargs="+", default=[0, 0.5], help="shared part of the variance"
    )
    parser.add_argument(
        "--total", type=int, default=60000, help="fits are repeated until this many rows were fitted"
    )
    parser.add_argument("--rows", type=int, default=200, help="rows scored per fit and shift; fresh: 4 times")
    parser.add_argument("--size", action="store_true", help="only fresh rows and hopeless outliers")
    arguments = parser.parse_args()
    shifts = list(SHIFTS)[: 2 if arguments.size else None]
    head = ["L × H", "correlated", "N", "calibration", "fresh p < 0.05", "largest p of all + 20", *shifts[2:]]
    print("| " + " | ".join(head) + " |", "|---" * len(head) + "|", sep="\n")
    for correlated in arguments.correlated:
        for n in arguments.fitted:
            fits = max(2, arguments.total // n)
            shape = (arguments.layers, arguments.dims)
            for line in simulate(shape, n, fits, arguments.rows, correlated, shifts):
                print(line, flush=True)


if __name__ == "__main__":
    main()
