"""Masks of tokens, drawn at random or chosen by score.

Each row has its own random generator, seeded with the run's seed and the row number, and draws one number for
each token that may be masked. Its mask therefore depends neither on the batch nor on the padding.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError

PERCENTS = tuple(range(0, 101, 10))
"""Percentages of masked tokens at which curves are measured by default."""
RATES = {"uniform": 0.0, "ends": 0.1}
"""Fraction of the masked rows that are completely masked, by the name of the rate distribution."""
STREAMS = ("train", "collator", "validation", "sweep", "method", "masf")
"""Names of the random streams. A name's position is part of the seed, so new names go to the end."""


def generator(seed: int, stream: str, *key: int) -> np.random.Generator:
    """Return a random generator for a stream and a key; equal arguments give equal numbers."""
    return np.random.default_rng([seed, STREAMS.index(stream), *key])


def row_generators(seed: int, stream: str, index: Tensor, *key: int) -> list[np.random.Generator]:
    """Return a random generator for each of the row numbers in `index`, Tensor [B]."""
    return [generator(seed, stream, *key, int(row)) for row in index]


def uniform_mask(
    allowed: Tensor, generators: Iterable[np.random.Generator], *, rates: str = "uniform"
) -> Tensor:
    """Draw a masking rate for each row, then mask each allowed token with that probability.

    Args:
        allowed: Tokens that may be masked, bool Tensor [B, T].
        generators: One random generator for each row.
        rates: `uniform` draws r ~ U(0, 1); `ends` masks a tenth of the rows completely, see `RATES`.

    Returns:
        The masked tokens, bool Tensor [B, T].
    """
    mask = torch.zeros_like(allowed)
    for row, rng in zip(range(len(allowed)), generators, strict=True):
        rate = rng.random() / (1 - RATES[rates])  # a rate above 1 masks everything
        # one number for each allowed token and none for padding: the mask is that of the row in any batch
        mask[row, allowed[row]] = torch.from_numpy(rng.random(int(allowed[row].sum())) < rate)
    return mask


def random_scores(allowed: Tensor, generators: Iterable[np.random.Generator]) -> Tensor:
    """Return random scores, float64 Tensor [B, T]: U(0, 1) for each allowed token, 0 elsewhere."""
    scores = torch.zeros(allowed.shape, dtype=torch.float64)  # in float32, two of many tokens would tie
    for row, rng in zip(range(len(allowed)), generators, strict=True):
        scores[row, allowed[row]] = torch.from_numpy(rng.random(int(allowed[row].sum())))
    return scores


def top_mask(scores: Tensor, allowed: Tensor, percent: int, *, already: Tensor | None = None) -> Tensor:
    """Mask the `n * percent // 100` tokens with the highest scores among the n allowed in each row.

    Args:
        scores: Scores of the tokens, Tensor [B, T].
        allowed: Tokens that may be masked, bool Tensor [B, T].
        percent: Percentage of the allowed tokens to mask, 0 to 100.
        already: Tokens that stay masked and count toward the percentage, bool Tensor [B, T].

    Returns:
        The masked tokens, bool Tensor [B, T]. Ties go to the leftmost token.

    Raises:
        InputError: The percentage is out of range, or the score of an allowed token is NaN.
    """
    if not 0 <= percent <= 100:
        raise InputError(f"percent is {percent}; expected 0 to 100")
    if torch.isnan(scores[allowed]).any():
        raise InputError("scores hold NaN, which has no rank; the model's output or the method is broken")
    if already is None:
        already = torch.zeros_like(allowed)
    # in integers: 100 * 0.29 is 28.999… in floats, and one token fewer would be masked
    counts = allowed.sum(dim=1, keepdim=True) * percent // 100  # [B, 1]
    # what is masked stays masked: it ranks before all else, and what may not be masked after all else
    ranked = scores.masked_fill(already & allowed, torch.inf).masked_fill(~allowed, -torch.inf)
    order = ranked.argsort(dim=1, descending=True, stable=True)  # stable: ties go to the leftmost token
    places = order.argsort(dim=1)  # [B, T], the inverse permutation: the rank of each token
    return ((places < counts) | already) & allowed
