"""Ceiling: the best erasure of each text among those of all measured methods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .predictions import Predictions


def best_erasures(predictions: Predictions) -> NDArray[np.int64]:
    """Return the predicted classes [G, N, S] under the best measured erasure of each text.

    The best erasure is the one under which the label is predicted over the smallest part of the curve. For
    accuracy and micro F1 the curve of these predictions has the highest ACU that any choice among the
    erasures of each text can have; for other metrics it is an approximation.
    """
    every = np.stack(list(predictions.methods.values()))  # [M, G, N, S]
    right = (every == predictions.labels[:, None]).astype(float)
    best = np.trapezoid(right, predictions.ratios, axis=-1).argmin(axis=0)  # [G, N]
    chosen: NDArray[np.int64] = np.take_along_axis(every, best[None, :, :, None], axis=0)[0]
    return chosen
