"""Explanations as orders of words: the truth, what methods say, and worse ones by construction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from faithmeter.config import BASELINE
from faithmeter.measuring.erase import trace_erasure
from faithmeter.methods.registry import parse
from faithmeter.models.evaluator import Evaluator
from faithmeter.models.masks import PERCENTS
from faithmeter.models.tokens import Batch

Ints = NDArray[np.int64]
Orders = list[Ints]
"""For each text, its explained tokens, counted from 0, from the first to erase to the last."""
TRUTH, REVERSED = "truth", "loo-sign reversed"
METHODS = ("loo-sign", "loo-abs", "grad-l2", "inp-grad-sign", "int-grad-sign(steps=3)", BASELINE)
"""Methods that the truth competes with. They explain again at every step, as the package does."""
LEVELS = 10
"""Steps in which an order is degraded."""


def order_truth(batch: Batch, truth: Sequence[Sequence[int]], rng: np.random.Generator) -> Orders:
    """Return orders that begin with the tokens of the deciding words; all other tokens follow at random."""
    orders = []
    for layout, words in zip(batch.layouts, truth, strict=True):
        numbers = [layout.text[:start].count(" ") for start, _ in layout.spans]
        decides = np.isin(numbers, list(words))
        shuffled = rng.permutation(len(decides))
        orders.append(shuffled[np.argsort(~decides[shuffled], kind="stable")])
    return orders


def order_method(clf: Evaluator, batch: Batch, labels: torch.Tensor, name: str) -> Orders:
    """Return the orders in which a method erases; tokens of one step are in the order of their scores."""
    trace = trace_erasure(clf, batch, labels, parse(name), PERCENTS, {})
    return [
        np.lexsort((-scores, steps.astype(np.int64)))
        for scores, steps in zip(trace.scores, trace.steps, strict=True)
    ]


def degrade(order: Ints, rng: np.random.Generator) -> list[Ints]:
    """Return an order with 0, 1, …, 10 tenths of its places shuffled, each on top of the one before.

    A step takes a further tenth of the places, chosen at random, and swaps the word in each with that of a
    place taken so far. By Fisher and Yates, the words of all places taken are then in uniform random order:
    the chance that a word has left its place grows by the same amount at every step, and the last order is
    random. The first place has nothing to be swapped with and is taken before all steps.
    """
    places, current = rng.permutation(len(order)), order.copy()
    degraded = [order]
    for level in range(1, LEVELS + 1):
        start, stop = (1 + (len(order) - 1) * each // LEVELS for each in (level - 1, level))
        for taken in range(start, stop):
            pair = places[[taken, rng.integers(taken + 1)]]
            current[pair] = current[pair[::-1]]
        degraded.append(current.copy())
    return degraded


def ranks(batch: Batch, orders: Sequence[Orders]) -> Ints:
    """Return the rank of each token by each of K explanations, [K, N, T]; -1 for tokens not explained."""
    result = np.full((len(orders), *batch.explained.shape), -1)
    for row, explained in enumerate(batch.explained.numpy()):
        places = np.flatnonzero(explained)
        for number, own in enumerate(orders):
            result[number, row, places[own[row]]] = np.arange(len(places))
    return result
