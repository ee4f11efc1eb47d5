"""Best of all erasure orders of a short text, found by evaluating every set of its tokens once."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from .beam import beam_search
from .options import Range
from .search import evaluations_allowed, search, step_costs, step_sizes
from .token_sets import Floats, Ints, TokenSets

MAX_TOKENS = 16
"""Largest value of `longest`: each further token doubles the evaluations, 65,536 for 16 tokens."""


def count_evaluations(tokens: int, longest: int, worst: bool) -> int:
    """Return the maximum number of evaluations for a text."""
    if tokens <= longest:
        return int(2**tokens)
    return 10 * tokens * (tokens + 1) // 2 if worst else evaluations_allowed(tokens, budget=5, gradients=4)


def exhaustive(
    clf: Evaluator,
    batch: Batch,
    labels: Tensor,
    *,
    longest: Annotated[int, Range(0, MAX_TOKENS)] = 12,
    worst: bool = False,
) -> Tensor:
    """Return the rank of each token in the best of all erasure orders, for texts of few tokens.

    The best order has the lowest objective of `search`. Texts of more than `longest` tokens are given to
    `search`, and to `beam(worst=true)` for the worst order.

    Args:
        clf: The evaluator.
        batch: B texts.
        labels: Class number for which each text is explained, Tensor [B].
        longest: Number of tokens up to which all orders are compared; n tokens cost at most 2ⁿ evaluations.
        worst: Whether to return the worst of all orders, at whose steps the label is predicted most often.

    Returns:
        Ranks, Tensor [B, T]: n for the first of n tokens to erase, 1 for the last, 0 for tokens not erased.

    Raises:
        InputError: The model has a single class.
    """
    sets, orders = TokenSets(clf, batch, labels), {}
    sizes = [*map(len, sets.places)]
    for row, n in enumerate(sizes):
        if 0 < n <= longest:
            repeats = np.bincount(step_sizes(int(batch.explained[row].sum()), n), minlength=n + 1)
            numbers = np.arange(2**n)  # of a set: bit i is token i
            counted = np.flatnonzero(repeats[np.bitwise_count(numbers)])  # sets of a size that a step masks
            masks = (counted[:, None] >> np.arange(n) & 1).astype(bool)  # [K, n]
            costs = np.zeros(2**n)
            if len(counted):
                margins = sets.values({row: masks}, "margin")[row]
                costs[counted] = step_costs(margins, repeats[masks.sum(axis=1)])
            orders[row] = cheapest_order(-costs if worst else costs)
    ranks = sets.ranks(orders)
    long = torch.tensor(sizes) > longest
    if long.any():
        rest = batch[long.nonzero()[:, 0]], labels[long]
        ranks[long] = beam_search(clf, *rest, worst=True) if worst else search(clf, *rest)
    return ranks


def cheapest_order(costs: Floats) -> Ints:
    """Return the order of n tokens whose sets of masked tokens have the lowest total cost.

    `costs` [2ⁿ] holds the cost of each set, whose number has bit i if token i is masked. The cheapest way to
    a set ends with the token without which the rest is cheapest, so sets are solved from small to large.
    """
    n = len(costs).bit_length() - 1
    bits = 1 << np.arange(n)
    totals, last = costs.copy(), np.zeros(len(costs), np.int64)
    sizes = np.bitwise_count(np.arange(len(costs)))
    for size in range(1, n + 1):  # total[S] = cost[S] + min over i in S of total[S without i]
        sets = np.flatnonzero(sizes == size)
        before = np.where(sets[:, None] & bits, totals[sets[:, None] & ~bits], np.inf)  # [sets, n]
        last[sets] = before.argmin(axis=1)
        totals[sets] += before.min(axis=1)
    order, remaining = [], len(costs) - 1  # back from the set of all tokens
    while remaining:
        order.append(last[remaining])
        remaining &= ~int(bits[last[remaining]])
    return np.array(order[::-1], np.int64)
