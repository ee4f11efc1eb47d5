"""Explanations by regression on random masks: a local linear model (LIME) and Shapley values (KernelSHAP).

Both explainers usually replace words by inputs that the model has never seen. Here they mask them, as
fine-tuning does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor

from ..errors import InputError
from ..models.evaluator import Evaluator
from ..models.masks import generator
from ..models.tokens import Batch
from .options import Bools, Floats, NotNegative, Range, Target, TokenSets

Values = Callable[[Bools], Floats]
"""Function from sets of unmasked tokens [K, n] to the explained value of each [K]."""
Fit = Callable[[Values, int, np.random.Generator], Floats]
"""Function that returns the scores of n tokens [n], from evaluations of sets of them."""
KERNEL_WIDTH = 0.25
"""Width of the kernel that weights masked texts by their cosine distance to the whole text, as in LIME."""


def ridge(
    clf: Evaluator,
    batch: Batch,
    labels: Tensor,
    *,
    samples: Annotated[int, Range(2)] = 500,
    alpha: Annotated[float, Range(0)] = 1.0,
    seed: NotNegative = 0,
    of: Target = "logit",
) -> Tensor:
    """Return the coefficients of a ridge regression on random masks, Tensor [B, T], as LIME does.

    Each sample masks a random number of tokens. Its weight is exp(−d² / 2w²) with the cosine distance d to
    the whole text, which is the first sample, and w = 0.25.

    Args:
        clf: The evaluator.
        batch: B texts.
        labels: Class number for which each text is explained, Tensor [B].
        samples: Number of evaluations for each text.
        alpha: Strength of the penalty on squared coefficients.
        seed: Seed of the random masks.
        of: Value to explain.
    """

    def fit(values: Values, n: int, rng: np.random.Generator) -> Floats:
        sizes = rng.integers(1, n + 1, size=samples - 1)  # number of masked tokens
        places = rng.random((samples - 1, n)).argsort(axis=1).argsort(axis=1)
        present = np.concatenate([np.ones((1, n), bool), places >= sizes[:, None]])
        distances = 1 - np.sqrt(present.mean(axis=1))
        weights = np.exp(-((distances / KERNEL_WIDTH) ** 2) / 2)
        return fit_ridge(present.astype(float), values(present), weights, alpha)

    return _explain_each(clf, batch, labels, fit, seed, of)


def fit_ridge(inputs: Floats, values: Floats, weights: Floats, alpha: float) -> Floats:
    """Return the coefficients of a weighted ridge regression with an intercept, which is not penalized.

    Centering by the weighted means takes the intercept out, and the penalty is a set of further rows.
    """
    centered = inputs - np.average(inputs, axis=0, weights=weights)
    targets = values - np.average(values, weights=weights)
    roots, n = np.sqrt(weights), inputs.shape[1]
    rows = np.concatenate([roots[:, None] * centered, np.sqrt(alpha) * np.eye(n)])
    coefficients: Floats = np.linalg.lstsq(rows, np.concatenate([roots * targets, np.zeros(n)]))[0]
    return coefficients


def count_sets(tokens: int, samples: int, **_: object) -> int:
    """Return the maximum number of evaluations for a text, which has 2ⁿ sets of n tokens."""
    return min(samples, int(2**tokens))


def shapley(
    clf: Evaluator,
    batch: Batch,
    labels: Tensor,
    *,
    samples: Annotated[int, Range(4)] = 500,
    seed: NotNegative = 0,
    of: Target = "logit",
) -> Tensor:
    """Return the Shapley value of each token, Tensor [B, T], estimated by KernelSHAP of shapiq.

    The players are the tokens, and the value of a set of tokens is the explained value of the text with all
    others masked. The values are exact if there are at least 2ⁿ samples for n tokens, and always add up to
    f(x) − f(x wholly masked).

    Args:
        clf: The evaluator.
        batch: B texts.
        labels: Class number for which each text is explained, Tensor [B].
        samples: Maximum number of evaluations for each text.
        seed: Seed of the random sets.
        of: Value to explain.

    Raises:
        InputError: shapiq is not installed.
    """
    try:
        from shapiq.approximator import KernelSHAP
    except ImportError as error:
        raise InputError(
            "shapley needs shapiq, which is missing: pip install 'faithmeter[shapley]'"
        ) from error

    def estimate(values: Values, n: int, rng: np.random.Generator) -> Floats:
        if n == 1:
            return -np.diff(values(np.array([[True], [False]])))
        kernel = KernelSHAP(n, random_state=int(rng.integers(2**31)))
        game = kernel.approximate(min(samples, 2**n), values)
        return np.asarray(game.get_n_order_values(1), np.float64)

    return _explain_each(clf, batch, labels, estimate, seed, of)


def _explain_each(clf: Evaluator, batch: Batch, labels: Tensor, fit: Fit, seed: int, of: Target) -> Tensor:
    """Return the scores that `fit` gives to the unmasked tokens of each text; other tokens score 0."""
    sets = TokenSets(clf, batch, labels)
    scores = torch.zeros(batch.input_ids.shape, dtype=torch.float64)
    with threadpool_limits(1, user_api="blas"):  # the bits of NumPy's fits depend on its threads
        for row, places in enumerate(sets.places):

            def values(present: Bools, row: int = row) -> Floats:
                return sets.values({row: ~np.asarray(present, bool)}, of)[row]

            if len(places):
                # 1: not the numbers of the method `random`; a text's numbers do not depend on its batch
                rng = generator(seed, "method", 1, int(batch.index[row]))
                scores[row, places] = torch.from_numpy(fit(values, len(places), rng))
    return scores
