"""In-distribution tests of texts based on a model's hidden states (MaSF: max, Simes, Fisher).

There are two calibrations: as published, and cross-fitted, which gives uniform p-values on fresh rows.
docs/masf.md derives both.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ..config import TrainedWith
from ..errors import InputError, unknown
from ..files import atomic
from .behavior import Recalibration
from .pvalues import fisher, ranks, simes_counts

Array = NDArray[np.float64]
MIN_ROWS = 20
"""Minimum number of rows to fit a test."""
MIN_LEARNED = 10
"""Minimum number of rows that the cross-fitted test learns from; the others calibrate it."""
BLOCK = 4096
"""Number of rows ranked at a time, which limits the memory used."""
FORMAT = "faithmeter-masf-7"


class MaSF:
    """Test of whether texts are in distribution for a model, based on its hidden states.

    `published` ranks the fitted rows among themselves. Its p-values are not uniform: they may be 0 or, if
    fitted on few rows, never be small (see `smallest_p`). `crossfit` learns from one part of the fitted rows
    and ranks a new row among the other part. Its p-values are uniform on rows from the same distribution.

    Args:
        calibration: `crossfit`, whose p-values are valid, or `published`, as in the paper. For an ablation of
            `published`, the ways to combine p-values over the dimensions of a layer and then over layers:
            `simes-simes`, `fisher-simes` or `fisher-fisher`.
        trained_with: Masking strategy of the training that the fitted rows imitate: half, all, none, or
            unknown. The last two mean whole texts.

    Attributes:
        columns_: Sorted hidden states of the n rows learned from, [L, H, n].
        layers_: Summaries of these rows, [n, K, L].
        statistics_: Sorted statistics of the rows that new ones are ranked among.
        recalibration: What the masked rows tell about the model's predictions, for the behavioral check,
            which is fitted on the same texts; None if it was not fitted.
        own_recalibration: The same with the model's predictions for whole texts as targets, for texts
            without labels.

    Example:
        >>> features = torch.rand(40, 3, 8)  # of 40 texts
        >>> test = fm.MaSF().fit(features)
        >>> bool((test.pvalues(features) <= 1).all())
        True
    """

    columns_: NDArray[Any]
    layers_: Array
    statistics_: Array

    def __init__(self, calibration: str = "crossfit", *, trained_with: TrainedWith = "unknown") -> None:
        self.calibration = calibration
        self.trained_with: TrainedWith = trained_with
        self.recalibration: Recalibration | None = None
        self.own_recalibration: Recalibration | None = None

    def __repr__(self) -> str:
        if not hasattr(self, "columns_"):
            return f"<MaSF, {self.calibration}, not fitted>"
        layers, dimensions, rows = self.columns_.shape
        size = f"{layers} layers × {dimensions} dimensions, {rows} rows learned from"
        return f"<MaSF, {self.calibration}: {size}, smallest p {self.smallest_p():.3g}>"

    def fit(self, features: ArrayLike) -> Self:
        """Fit the test on the hidden states of in-distribution texts.

        Args:
            features: Array [N, L, H] of validation texts masked as in training, at least 20 of them.

        Returns:
            The test itself.

        Raises:
            InputError: There are too few rows, or they are not finite numbers of this shape.
        """
        known = {**CALIBRATIONS, **ABLATIONS}
        if self.calibration not in known:
            raise unknown("calibration", self.calibration, known)
        rows = _features(features)
        if len(rows) < MIN_ROWS:
            raise InputError(
                f"{len(rows)} rows to fit; expected at least {MIN_ROWS}: use a larger validation set"
            )
        learned, held_out = self._rule.split(rows)
        self.columns_ = _sorted(learned)
        self.layers_ = self._layers(learned, new=0)
        calibration = self.layers_ if held_out is rows else self._layers(held_out, new=1)
        self.statistics_ = np.sort(self._rule.statistic(self.layers_, calibration))
        return self

    def pvalues(self, features: ArrayLike) -> Array:
        """Return the p-value [M] of each row of features [M, L, H]; small means out of distribution."""
        self._require_fitted()
        rows = _features(features)
        if rows.shape[1:] != self.columns_.shape[:2]:
            raise InputError(
                f"features with layers × dimensions {rows.shape[1:]}; fitted on {self.columns_.shape[:2]}: "
                "fit and score with the same model"
            )
        rows = rows.astype(self.columns_.dtype, copy=False)
        return self._ranked(self._layers(rows, new=self._rule.plus))

    def smallest_p(self) -> float:
        """Return the smallest possible p-value, that of a row beyond all fitted rows in every dimension.

        The test never rejects at a lower significance level.
        """
        self._require_fitted()
        layers, dimensions, n = self.columns_.shape
        plus = self._rule.plus
        beyond = self._rule.layer(np.full((1, dimensions), plus, np.int32), n + plus)  # [1, K]
        return float(self._ranked(np.repeat(beyond[:, :, None], layers, axis=2))[0])

    def save(self, path: str | Path, *, fingerprint: str) -> None:
        """Write the fitted test to a file, with the fingerprint of the checkpoint that it belongs to."""
        self._require_fitted()
        path = Path(path)
        arrays = {"columns": self.columns_, "layers": self.layers_, "statistics": self.statistics_}
        metadata = {
            "format": FORMAT,
            "calibration": self.calibration,
            "trained_with": self.trained_with,
            "fingerprint": fingerprint,
            "recalibration": json.dumps([self.recalibration, self.own_recalibration]),
        }
        metadata["checksum"] = _checksum(arrays, metadata)
        with atomic(path) as temporary:
            save_file(arrays, temporary, metadata=metadata)

    @classmethod
    def load(cls, path: str | Path, *, fingerprint: str, calibration: str | None = None) -> Self:
        """Read a saved test.

        Raises:
            InputError: The file is damaged or of another format, or the test belongs to another checkpoint or
                has another calibration than expected.
        """
        again = "delete it, and the test is fitted again"
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != FORMAT:
                    raise InputError(
                        f"{path} has format {metadata.get('format')}; expected {FORMAT}: {again}"
                    )
                if metadata["fingerprint"] != fingerprint:
                    other = metadata["fingerprint"]
                    raise InputError(f"{path} was fitted on checkpoint {other}, not {fingerprint}: {again}")
                names = ("columns", "layers", "statistics")
                arrays = dict(zip(names, map(file.get_tensor, names), strict=True))
        except (SafetensorError, OSError, KeyError) as error:
            raise InputError(f"{path} is not a saved MaSF test ({error}): {again}") from error
        if metadata.pop("checksum", "") != _checksum(arrays, metadata):
            raise InputError(f"{path} is not as it was written: {again}")
        if calibration not in (None, metadata["calibration"]):
            raise InputError(
                f"{path} is of the calibration {metadata['calibration']}, not {calibration}: {again}"
            )
        trained_with: Any = metadata["trained_with"]
        test = cls(calibration=metadata["calibration"], trained_with=trained_with)
        test.columns_, test.layers_, test.statistics_ = arrays.values()
        test.recalibration, test.own_recalibration = (
            None if known is None else Recalibration.of(*known)
            for known in json.loads(metadata["recalibration"])
        )
        return test

    def _layers(self, rows: NDArray[Any], *, new: int) -> Array:
        """Return K summaries of the ranks of each row among the columns, for each layer, [M, K, L].

        `new` is 0 for rows that the columns contain, and 1 for other rows, which are counted in addition.
        """
        n, rule = self.columns_.shape[2], self._rule

        def summarize(block: NDArray[Any], layer: int) -> Array:
            smaller, upto = ranks(self.columns_[layer], np.ascontiguousarray(block[:, layer].T))
            extremity = np.minimum(upto if rule.plus else smaller, n - smaller) + new
            return rule.layer(np.ascontiguousarray(extremity.T), n + new)

        blocks = []
        with ThreadPoolExecutor(count_cores()) as pool:  # numpy sorts and searches without Python's lock
            for start in range(0, max(len(rows), 1), BLOCK):
                part = partial(summarize, rows[start : start + BLOCK])
                blocks.append(np.stack(list(pool.map(part, range(len(self.columns_)))), axis=2))
        return np.concatenate(blocks)

    def _ranked(self, layers: Array) -> Array:
        n, plus = len(self.statistics_), self._rule.plus
        statistics = self._rule.statistic(self.layers_, layers)
        as_large = n - self.statistics_.searchsorted(statistics, "left")
        p: Array = (as_large + plus) / (n + plus)
        return p

    @property
    def _rule(self) -> _Rule:
        return {**CALIBRATIONS, **ABLATIONS}[self.calibration]

    def _require_fitted(self) -> None:
        if not hasattr(self, "statistics_"):
            raise InputError("this MaSF is not fitted; call fit(features) on validation texts first")


class _Rule(NamedTuple):
    """Parts in which the calibrations differ."""

    plus: int  # 1: a new row is counted among those it is ranked in, so that no p is 0
    split: Callable[[NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]  # to learn from, to rank among
    layer: Callable[[NDArray[np.int32], int], Array]  # ranks [M, H] of n → [M, K]
    statistic: Callable[[Array, Array], Array]  # learned [n, K, L], rows [M, K, L] → [M]


def rows_held_out(rows: int) -> NDArray[np.int64]:
    """Return the numbers of the fitted rows from which the cross-fitted test learns nothing."""
    return _halves(np.arange(rows))[1]


def _halves(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Split rows into those to learn from and, at least half, those to rank new rows among.

    Rows are shuffled by a fixed permutation, as every other row may be masked. If new rows are ranked among
    20 × k rows, a share of k / (20 × k + 1) of the p-values is below 0.05, just under the level.
    """
    n = len(rows)
    held_out = min(20 * -(-n // 40), n - MIN_LEARNED)
    order = np.random.default_rng(0).permutation(n)
    return rows[np.sort(order[held_out:])], rows[np.sort(order[:held_out])]


def _simes_and_mean(counts: NDArray[np.int32], n: int) -> Array:
    """Return the log of Simes' p-value and the mean log p-value of each row, [M, 2].

    The first is small if a few dimensions are extreme; the second changes only if many are.
    """
    return np.stack([np.log(simes_counts(counts) / n), np.log(counts / n).mean(axis=1)], axis=1)


def _layer_counts(learned: Array, rows: Array) -> NDArray[np.int32]:
    """Return the two-sided rank of each layer of each row among the n learned rows, [L, M], out of n."""
    smaller, _ = ranks(np.sort(learned[:, 0].T), np.ascontiguousarray(rows[:, 0].T))
    return np.minimum(smaller, len(learned) - smaller)


def _fisher(learned: Array, rows: Array) -> Array:
    """Return Fisher's statistic of each row over its layers' p-values; large means unusual."""
    statistics: Array = fisher(_layer_counts(learned, rows) / len(learned), axis=0)
    return statistics


def _simes(learned: Array, rows: Array) -> Array:
    """Return the negative Simes p-value of each row over its layers; large means unusual."""
    return -simes_counts(_layer_counts(learned, rows), axis=0)


def _simes_dimensions(counts: NDArray[np.int32], n: int) -> Array:
    """Return Simes' p-value of each row of ranks [M, H], as a count out of n, [M, 1]."""
    return simes_counts(counts)[:, None]


def _fisher_dimensions(counts: NDArray[np.int32], n: int) -> Array:
    """Return Fisher's statistic of each row of ranks [M, H] out of n, [M, 1]."""
    statistics: Array = fisher(counts / n, axis=1)
    return statistics[:, None]


def _all(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Learn from all rows, and rank among the same rows, as the paper does."""
    return rows, rows


def _farthest(learned: Array, rows: Array) -> Array:
    """Return the soft maximum of three standardized scores of each row.

    They are large for a row that is far out, far out given its mean, or unusual across all layers.
    """
    n, _, layers = learned.shape
    center, scale = learned.mean(axis=0), _spread(learned)
    known, new = (learned - center) / scale, (rows - center) / scale
    flat = known.reshape(n, -1)
    correlation = flat.T @ flat / n
    ridge = 2 * layers / n  # with fewer rows the correlations count less
    precision = np.linalg.inv(correlation + ridge * np.eye(2 * layers))
    shared = (known[:, 0] * known[:, 1]).mean(axis=0)  # [L]: correlation of Simes and mean
    own = np.sqrt(np.maximum(1 - shared**2, 0.01))

    def scores(z: Array, *, inside: bool) -> Array:
        flat = z.reshape(len(z), 2 * layers)
        square = (flat @ precision * flat).sum(axis=1)
        if inside:  # distance with this row left out of the correlations
            square = square / (1 - square / n)
        given_mean = (z[:, 0] - shared * z[:, 1]) / own
        return np.stack([-z[:, 0].sum(axis=1), -given_mean.sum(axis=1), np.sqrt(square)])

    usual = scores(known, inside=True).T
    standardized = (scores(new, inside=False).T - usual.mean(axis=0)) / _spread(usual)
    statistics: Array = np.logaddexp.reduce(standardized, axis=1).round(9)  # equal rows tie in any batch
    return statistics


def _spread(rows: Array) -> Array:
    """Return standard deviations over rows; 1 for columns that are constant except for rounding."""
    spread = rows.std(axis=0)
    return np.where(spread > 1e-9, spread, 1.0)


CROSSFIT = "crossfit"
"""Name of the calibration that decides which texts are unusual."""
CALIBRATIONS = {
    "published": _Rule(0, _all, _simes_dimensions, _fisher),
    CROSSFIT: _Rule(1, _halves, _simes_and_mean, _farthest),
}
ABLATIONS = {
    "simes-simes": _Rule(0, _all, _simes_dimensions, _simes),
    "fisher-simes": _Rule(0, _all, _fisher_dimensions, _simes),
    "fisher-fisher": _Rule(0, _all, _fisher_dimensions, _fisher),
}
"""Other ways to combine p-values over dimensions and over layers, for an ablation that the paper mentions."""


def _checksum(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> str:
    """Return the SHA-256 digest of arrays, their types and shapes, and their metadata."""
    about = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    digest = hashlib.sha256(repr([about, sorted(metadata.items())]).encode())
    for array in arrays.values():
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _features(features: ArrayLike) -> NDArray[Any]:
    """Return features [N, L, H] as float32 or float64; raise an InputError unless all are finite numbers."""
    try:
        rows = np.asarray(features)
    except (TypeError, RuntimeError, ValueError) as error:
        raise InputError(
            f"features are not an array ({error}); for a tensor give .detach().float().cpu()"
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


def count_cores() -> int:
    """Return how many cores may be used: the number of threads that OpenMP would start."""
    threads = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return int(threads) if threads.isdecimal() and int(threads) else os.cpu_count() or 1


def _sorted(rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows [N, …] as sorted columns […, N], each contiguous in memory."""
    columns = np.array(np.moveaxis(rows, 0, -1), order="C")  # a copy even where the layout is right
    columns.sort(axis=-1)
    return columns
