"""Masks: functions of the maskable tokens and of scores or random generators.

Every row has its own generator, made from the run's seed and the row number, and draws one number for each
token that may be masked. So its mask depends neither on its batch nor on its padding.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError

PERCENTS = tuple(range(0, 101, 10))
"""Percents of the tokens that curves are measured at by default."""
RATES = {"uniform": 0.0, "ends": 0.1}
"""Share of the masked rows that are wholly masked, by the name of the rate distribution."""
STREAMS = ("train", "collator", "validation", "sweep", "method", "masf")
"""Purposes of random numbers; the position of a name decides its numbers, so new names go to the end."""


def generator(seed: int, stream: str, *key: int) -> np.random.Generator:
    """Return the random generator of one purpose and key; equal arguments give equal numbers everywhere."""
    return np.random.default_rng([seed, STREAMS.index(stream), *key])


def row_generators(seed: int, stream: str, index: Tensor, *key: int) -> list[np.random.Generator]:
    """Return one generator for each row of a batch, by its row number."""
    return [generator(seed, stream, *key, int(row)) for row in index]


def uniform_mask(
    allowed: Tensor, generators: Iterable[np.random.Generator], *, rates: str = "uniform"
) -> Tensor:
    """Draw a masking rate for each row, then mask each allowed token with that probability.

    Args:
        allowed: Tokens that may be masked, bool Tensor [B, T].
        generators: One random generator for each row.
        rates: `uniform` draws r ~ U(0, 1); `ends` masks a tenth of the rows wholly, see `RATES`.

    Returns:
        The masked tokens, bool Tensor [B, T].
    """
    mask = torch.zeros_like(allowed)
    for row, rng in zip(range(len(allowed)), generators, strict=True):
        rate = rng.random() / (1 - RATES[rates])  # a rate above 1 masks everything
        mask[row, allowed[row]] = torch.from_numpy(rng.random(int(allowed[row].sum())) < rate)
    return mask


def random_scores(allowed: Tensor, generators: Iterable[np.random.Generator]) -> Tensor:
    """Return a random order of the tokens: U(0, 1) for each allowed token, 0 elsewhere."""
    scores = torch.zeros(allowed.shape, dtype=torch.float64)
    for row, rng in zip(range(len(allowed)), generators, strict=True):
        scores[row, allowed[row]] = torch.from_numpy(rng.random(int(allowed[row].sum())))
    return scores


def top_mask(scores: Tensor, allowed: Tensor, percent: int, *, already: Tensor | None = None) -> Tensor:
    """Return the `n * percent // 100` highest scored of the n allowed tokens in each row, bool [B, T].

    Tokens `already` masked stay masked and count; ties go to the leftmost token.
    """
    if not 0 <= percent <= 100:
        raise InputError(f"percent is {percent}; expected 0 to 100")
    if torch.isnan(scores[allowed]).any():
        raise InputError("scores hold NaN, which has no rank; the model's output or the method is broken")
    if already is None:
        already = torch.zeros_like(allowed)
    counts = allowed.sum(dim=1, keepdim=True) * percent // 100  # [B, 1]
    ranked = scores.masked_fill(already & allowed, torch.inf).masked_fill(~allowed, -torch.inf)
    order = ranked.argsort(dim=1, descending=True, stable=True)
    places = torch.empty_like(order).scatter_(
        1, order, torch.arange(order.shape[1], device=order.device).expand_as(order)
    )
    return ((places < counts) | already) & allowed
