"""Simulate intervals over texts: how often they contain the truth, and equal methods are told apart.

    python benchmarks/simulate_intervals.py [--store runs] [--repetitions 2000]

Texts are drawn from a population whose areas are known: a model of texts with a latent difficulty and, if
`--frame` names the texts of a measurement, these texts as if they were all there are.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from faithmeter.config import BASELINE
from faithmeter.stats.comparisons import rank_methods
from faithmeter.stats.intervals import Interval, TextIntervals, resample_texts
from faithmeter.stats.predictions import Predictions
from faithmeter.store.run_store import RunStore

PERCENTS = tuple(range(0, 101, 10))
SIZES = (64, 200, 1000)
RESAMPLES = 999
POPULATION = 200_000
Draw = Callable[[int, np.random.Generator], Predictions]


@dataclass(frozen=True)
class Population:
    """A source of texts, and the true values on all of its texts."""

    name: str
    draw: Draw
    truth: Predictions
    pairs: tuple[tuple[str, str], ...]


def latent_texts(
    texts: int, rng: np.random.Generator, *, metric: str = "accuracy", seeds: int | None = 1
) -> Predictions:
    """Return predictions on texts of two classes, erased by two good methods and at random.

    A text has a margin that falls as it is erased. Its difficulty is common to all methods and seeds, its
    noise correlated over steps. Seeds fall at different speeds; with None each text has a seed of its own.
    The classes are unbalanced: a wholly erased text is called the first.
    """
    labels = (rng.random(texts) < 0.35).astype(np.int64)
    difficulty, common = rng.normal(size=(2, texts, 1))
    root = np.sqrt(np.asarray(PERCENTS) / 100)
    arrays = {}
    for name, speed in ((BASELINE, 1.2), ("close", 3.0), ("best", 3.4)):
        walk = np.cumsum(rng.normal(size=(seeds or 1, texts, len(PERCENTS))), axis=-1) * 0.25
        effect = rng.normal(size=(seeds or 1, 1 if seeds else texts, 1)) * (seeds != 1)
        fall = speed * (1 + 0.2 * effect + common / 6) * root
        margin = 1.6 + 0.8 * difficulty - fall + walk * (root > 0)
        arrays[name] = np.where(margin > 0, labels[:, None], 1 - labels[:, None])
        arrays[name][..., -1] = 0
    return Predictions(labels, arrays, 2, metric, PERCENTS)


def drawn_from(predictions: Predictions) -> Draw:
    """Return a function that draws texts of a measurement with replacement."""

    def draw(texts: int, rng: np.random.Generator) -> Predictions:
        rows = rng.integers(predictions.texts, size=texts)
        arrays = {name: array[:, rows] for name, array in predictions.methods.items()}
        return replace(predictions, labels=predictions.labels[rows], methods=arrays)

    return draw


def made_equal(draw: Draw, methods: tuple[str, ...]) -> Draw:
    """Return a function that draws texts and deals out the methods' predictions at random.

    They are dealt for each text or, of several seeds, for each seed: so methods are equal on average only.
    """

    def deal(texts: int, rng: np.random.Generator) -> Predictions:
        predictions = draw(texts, rng)
        stacked = np.stack([predictions.methods[name] for name in methods])  # [M, G, N, S]
        dealt = (1, texts) if predictions.seeds == 1 else (predictions.seeds, 1)
        order = np.broadcast_to(np.arange(len(methods))[:, None, None, None], (len(methods), *dealt, 1))
        mixed = np.take_along_axis(stacked, rng.permuted(order, axis=0), axis=0)
        arrays = {BASELINE: predictions.methods[BASELINE], **dict(zip(methods, mixed, strict=True))}
        return replace(predictions, methods=arrays)

    return deal


def skewed_texts(texts: int, rng: np.random.Generator) -> Predictions:
    """Return two methods of equal ACU: one is far better on a tenth of the texts, else a little worse."""
    labels = rng.integers(2, size=texts)
    rare = rng.random(texts) < 0.1
    hits = np.ones((3, texts, len(PERCENTS)), bool)
    hits[:, :, -1] = False
    hits[1, :, 9] = False  # a little worse: one more step right than the other
    hits[2, rare, 1:] = False  # nine steps of ten less, of which the other has one
    hits[2, rare, 9] = False
    hits[1, rare, 9] = True
    arrays = np.where(hits, labels[None, :, None], 1 - labels[None, :, None])
    return Predictions(
        labels, dict(zip((BASELINE, "often", "rarely"), arrays, strict=True)), 2, "accuracy", PERCENTS
    )


def statistics(
    intervals: TextIntervals, pairs: tuple[tuple[str, str], ...]
) -> Iterator[tuple[str, Interval]]:
    methods = dict.fromkeys(name for pair in pairs for name in pair)
    for method in methods:
        yield f"ACU {method}", intervals.acu(method)
        yield f"RACU {method}", intervals.racu(method)
    yield f"30 % {pairs[-1][0]}", intervals.curve(pairs[-1][0])[3]
    for first, second in pairs:
        yield f"ACU {first} − {second}", intervals.difference(first, second)


def coverage(
    population: Population, texts: int, repetitions: int, seed: int
) -> dict[str, tuple[float, float, float]]:
    """Return for each statistic the shares of intervals below the truth, above it, and without bounds."""
    rng = np.random.default_rng([seed, texts])
    truth = dict(statistics(resample_texts(population.truth, resamples=1), population.pairs))
    misses = {name: np.zeros(3) for name in truth}
    for repetition in range(repetitions):
        sample = population.draw(texts, rng)
        intervals = resample_texts(sample, resamples=RESAMPLES, seed=repetition)
        for name, (_, lower, upper, _) in statistics(intervals, population.pairs):
            misses[name] += upper < truth[name].mean, lower > truth[name].mean, np.isnan(lower)
    shares = {name: counts / repetitions for name, counts in misses.items()}
    return {name: (low / (1 - none), high / (1 - none), none) for name, (low, high, none) in shares.items()}


def told_apart(draw: Draw, texts: int, repetitions: int, seed: int) -> float:
    """Return the share of measurements in which some method is told apart from the best."""
    rng = np.random.default_rng([seed, texts])
    rankings = (rank_methods(draw(texts, rng), swaps=RESAMPLES, seed=n) for n in range(repetitions))
    return float(np.mean([len(ranking.leaders) < len(ranking.areas) for ranking in rankings]))


def populations(store: Path | None) -> Iterator[Population]:
    rng, pair = np.random.default_rng(0), (("best", "close"),)
    for metric in ("accuracy", "macro_f1", "matthews"):
        draw = partial(latent_texts, metric=metric)
        yield Population(f"latent difficulty, {metric}", draw, draw(POPULATION, rng), pair)
    truth = latent_texts(POPULATION, rng, seeds=None)
    yield Population("latent difficulty, accuracy, 5 seeds", partial(latent_texts, seeds=5), truth, pair)
    if store is not None:
        pairs = (("loo-sign", "int-grad-sign"), ("int-grad-sign", "inp-grad-sign"), ("grad-l1", "grad-l2"))
        measured = RunStore(store).results()[0].result.intervals.predictions
        yield Population("measured texts, accuracy", drawn_from(measured), measured, pairs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path, help="store with a measurement of these methods")
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for population in populations(options.store):
        for texts in options.sizes:
            shares = coverage(population, texts, options.repetitions, options.seed)
            for name, (low, high, none) in shares.items():
                figures = " | ".join(f"{share:.1%}" for share in (1 - low - high, low, high, none))
                print(f"{population.name} | {texts} | {name} | {figures}", flush=True)
        methods = tuple(name for name in population.truth.methods if name != BASELINE)
        for count in sorted({2, len(methods)}):
            draw = made_equal(population.draw, methods[-count:])
            for texts in options.sizes:
                share = told_apart(draw, texts, options.repetitions, options.seed)
                print(
                    f"{population.name} | {texts} | {count} equal methods told apart | {share:.1%}",
                    flush=True,
                )
    for seeds in (2, 3):
        draw = made_equal(partial(latent_texts, seeds=seeds), ("close", "best"))
        for texts in options.sizes:
            share = told_apart(draw, texts, options.repetitions, options.seed)
            print(f"{seeds} seeds | {texts} | 2 equal methods told apart | {share:.1%}", flush=True)
    for texts in options.sizes:
        share = told_apart(skewed_texts, texts, options.repetitions, options.seed)
        print(f"skewed contributions | {texts} | 2 equal methods told apart | {share:.1%}", flush=True)


if __name__ == "__main__":
    main()
