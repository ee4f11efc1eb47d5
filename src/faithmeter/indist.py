"""In-distribution p-values of texts from a model's hidden states (MaSF: max, Simes, Fisher).

As published, or cross-fitted so that fresh rows get nearly uniform p-values; docs/masf.md derives both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from .errors import InputError, unknown
from .pvalues import fisher, ranks, simes_counts
from .store import atomic

CALIBRATIONS = ("published", "crossfit")
MIN_ROWS = 20
BLOCK = 4096  # rows ranked at a time, which bounds the memory
CENTRAL = 0.05  # crossfit: the part of a layer's p-value spent on rows too central, not too far out
FORMAT = "faithmeter-masf-1"


class MaSF:
    """Tests whether hidden states, maximized over tokens, come from where the fitted ones came from.

    `published` scores the fitted rows against themselves: its p-values are not uniform, can be 0, and with
    few rows none is small (`smallest_p` tells). `crossfit` scores a fitted row against the others only, a new
    row against as many: nearly uniform on rows from the same distribution.

    After `fit`: `columns_` [L, H, n] sorted hidden states, `simes_` [L, n] sorted Simes values of the layers,
    `statistics_` [N] sorted Fisher statistics.
    """

    columns_: NDArray[Any]
    simes_: NDArray[np.float64]
    statistics_: NDArray[np.float64]

    def __init__(self, *, calibration: str = "published") -> None:
        self.calibration = calibration

    def fit(self, features: ArrayLike) -> Self:
        """Learn from features [N, L, H] of validation texts masked as in training; at least 20 of them."""
        if self.calibration not in CALIBRATIONS:
            raise unknown("calibration", self.calibration, CALIBRATIONS)
        rows = _features(features)
        if len(rows) < MIN_ROWS:
            raise InputError(
                f"{len(rows)} rows to fit; expected at least {MIN_ROWS}: use a larger validation set"
            )
        columns = _sorted(rows)
        simes = self._simes(columns, rows, new=0)
        self.statistics_ = np.sort(self._statistics(_sorted(simes), simes, new=0))
        if self.calibration == "crossfit":  # a new row meets N - 1 rows, as every fitted row did
            columns, simes = _sorted(rows[:-1]), simes[:-1]
        self.columns_, self.simes_ = columns, _sorted(simes)
        return self

    def pvalues(self, features: ArrayLike) -> NDArray[np.float64]:
        """The p-value [M] of each row of features [M, L, H] under "it is in distribution"."""
        self._require_fitted()
        rows = _features(features)
        if rows.shape[1:] != self.columns_.shape[:2]:
            raise InputError(
                f"features with layers × dimensions {rows.shape[1:]}; fitted on {self.columns_.shape[:2]}: "
                "fit and score with the same model"
            )
        new = int(self.calibration == "crossfit")
        simes = self._simes(self.columns_, rows.astype(self.columns_.dtype, copy=False), new=new)
        return self._final(self._statistics(self.simes_, simes, new=new))

    def smallest_p(self) -> float:
        """The p-value of a hopeless outlier, beyond every fitted row in every dimension.

        A level below it cannot be rejected at, whatever the data.
        """
        self._require_fitted()
        new = int(self.calibration == "crossfit")
        farthest = np.full((1, len(self.simes_)), float(new))  # Simes of counts that are all 0, or all 1
        return float(self._final(self._statistics(self.simes_, farthest, new=new))[0])

    def save(self, path: str | Path, *, fingerprint: str) -> None:
        """Write the fitted test; `fingerprint` names the checkpoint it belongs to."""
        self._require_fitted()
        path = Path(path)
        metadata = {"format": FORMAT, "calibration": self.calibration, "fingerprint": fingerprint}
        arrays = {"columns": self.columns_, "simes": self.simes_, "statistics": self.statistics_}
        with atomic(path) as temporary:
            save_file(arrays, temporary, metadata=metadata)

    @classmethod
    def load(cls, path: str | Path, *, fingerprint: str) -> Self:
        """Read a saved test; an error unless it was fitted on the checkpoint of this `fingerprint`."""
        again = "fit the test again"
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != FORMAT:
                    raise InputError(
                        f"{path} has format {metadata.get('format')}; expected {FORMAT}: {again}"
                    )
                if metadata["fingerprint"] != fingerprint:
                    found = metadata["fingerprint"]
                    raise InputError(f"{path} was fitted on checkpoint {found}, not {fingerprint}: {again}")
                test = cls(calibration=metadata["calibration"])
                test.columns_ = file.get_tensor("columns")
                test.simes_ = file.get_tensor("simes")
                test.statistics_ = file.get_tensor("statistics")
        except (SafetensorError, OSError) as error:
            raise InputError(f"{path} is no saved MaSF test ({error}): {again}") from error
        return test

    def _simes(self, columns: NDArray[Any], rows: NDArray[Any], *, new: int) -> NDArray[np.float64]:
        """Levels 1 and 2: ranks in every dimension, Simes over those of a layer; [M, L], in counts."""
        result = np.empty(rows.shape[:2])
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            for layer, sorted_states in enumerate(columns):
                smaller, upto = ranks(sorted_states, np.ascontiguousarray(block[:, layer].T))
                larger = sorted_states.shape[1] - smaller  # or equal
                extremity = np.minimum(smaller if self.calibration == "published" else upto, larger) + new
                result[start : start + BLOCK, layer] = simes_counts(np.ascontiguousarray(extremity.T))
        return result

    def _statistics(self, fitted: NDArray[Any], simes: NDArray[Any], *, new: int) -> NDArray[np.float64]:
        """Level 3: ranks of the Simes values [M, L] among those fitted [L, n], Fisher over layers; [M]."""
        n = fitted.shape[1]
        smaller, upto = ranks(fitted, simes.T)
        if self.calibration == "published":
            p = np.minimum(smaller, n - smaller) / n
        else:
            p = np.minimum((upto + new) / (1 - CENTRAL), (n - smaller + new) / CENTRAL) / (n + new)
        statistics: NDArray[np.float64] = fisher(p, axis=0)
        return statistics

    def _final(self, statistics: NDArray[np.float64]) -> NDArray[np.float64]:
        n, new = len(self.statistics_), int(self.calibration == "crossfit")
        as_large = n - self.statistics_.searchsorted(statistics, "left")
        p: NDArray[np.float64] = (as_large + new) / (n + new)
        return p

    def _require_fitted(self) -> None:
        if not hasattr(self, "statistics_"):
            raise InputError("this MaSF is not fitted; call fit(features) on validation texts first")


def _features(features: ArrayLike) -> NDArray[Any]:
    """Features [N, L, H] as finite float32 or float64."""
    try:
        rows = np.asarray(features)
    except (TypeError, RuntimeError, ValueError) as error:
        raise InputError(
            f"features are no array ({error}); for a tensor give .detach().float().cpu()"
        ) from error
    if rows.ndim != 3 or 0 in rows.shape[1:]:
        raise InputError(f"features of shape {rows.shape}; expected [rows, layers, dimensions]")
    if rows.dtype.kind not in "fiu":
        raise InputError(f"features of type {rows.dtype}; expected numbers")
    if rows.dtype != np.float64:
        rows = rows.astype(np.float32 if rows.dtype.kind == "f" else np.float64, copy=False)
    if not all(np.isfinite(rows[:, layer]).all() for layer in range(rows.shape[1])):
        raise InputError(
            "features contain nan or infinity; expected finite numbers: check the model's outputs"
        )
    return rows


def _sorted(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows [N, …] as sorted columns […, N], one piece of memory each."""
    columns = np.array(np.moveaxis(rows, 0, -1), order="C")  # a copy even where the layout is right
    columns.sort(axis=-1)
    return columns
