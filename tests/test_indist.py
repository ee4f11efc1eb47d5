from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from faithmeter import indist
from faithmeter.errors import InputError
from faithmeter.indist import MaSF

Array = NDArray[np.float64]
Number = float | Fraction
both = pytest.mark.parametrize("calibration", ["published", "crossfit"])


def normal(seed: int, n: int, layers: int = 2, dims: int = 5) -> Array:
    return np.random.default_rng(seed).standard_normal((n, layers, dims))


def simes(p: list[Fraction]) -> Fraction:
    return min(q * len(p) / i for i, q in enumerate(sorted(p), 1))


def fisher(p: list[Fraction]) -> float:
    return math.fsum(-2 * math.log(float(q) + 1e-8) for q in p)


def published_by_loops(fit: Array, test: Array) -> list[float]:
    """Algorithm 2 of the paper, word by word, in exact fractions."""
    n, layers, dims = fit.shape

    def two_sided(value: Number, sample: Sequence[Number]) -> Fraction:
        below = Fraction(sum(s < value for s in sample), n)
        return min(below, 1 - below)

    def level2(row: Array) -> list[Fraction]:
        return [
            simes([two_sided(row[h, d], [r[h, d] for r in fit]) for d in range(dims)]) for h in range(layers)
        ]

    fitted = [level2(row) for row in fit]

    def level3(z: list[Fraction]) -> float:
        return fisher([two_sided(z[h], [f[h] for f in fitted]) for h in range(layers)])

    statistics = [level3(z) for z in fitted]
    return [float(1 - Fraction(sum(s < level3(level2(row)) for s in statistics), n)) for row in test]


def crossfit_by_loops(fit: Array, test: Array) -> list[float]:
    """Every row against N - 1 others: a fitted one against all but itself, a new one all but the last."""
    n, layers, dims = fit.shape

    def tails(value: Number, others: Sequence[Number]) -> tuple[int, int]:
        return 1 + sum(o <= value for o in others), 1 + sum(o >= value for o in others)

    def level2(row: Array, others: Array) -> list[Fraction]:
        return [
            simes([Fraction(min(tails(row[h, d], [o[h, d] for o in others])), n) for d in range(dims)])
            for h in range(layers)
        ]

    def level3(z: list[Fraction], others: list[list[Fraction]]) -> float:
        p = []
        for h in range(layers):
            far, central = tails(z[h], [o[h] for o in others])
            p.append(min(Fraction(far, n) / Fraction(19, 20), Fraction(central, n) / Fraction(1, 20)))
        return fisher(p)

    fitted = [level2(fit[i], np.delete(fit, i, axis=0)) for i in range(n)]
    statistics = [level3(fitted[i], fitted[:i] + fitted[i + 1 :]) for i in range(n)]
    new = [level3(level2(row, fit[:-1]), fitted[:-1]) for row in test]
    # 1e-9: statistics of the same p-values in another order are equal, whatever the rounding
    return [(1 + sum(s >= t - 1e-9 for s in statistics)) / (n + 1) for t in new]


LOOPS = {"published": published_by_loops, "crossfit": crossfit_by_loops}


@both
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(20, 26),
    layers=st.integers(1, 3),
    values=st.sampled_from([3, 9, 999]),
)
def test_pvalues_equal_a_double_loop(calibration: str, seed: int, n: int, layers: int, values: int) -> None:
    rng = np.random.default_rng(seed)  # few distinct values: many ties
    fit = rng.integers(0, values, (n, layers, 4)).astype(np.float32)
    test = rng.integers(-1, values + 1, (6, layers, 4)).astype(np.float32)
    expected = LOOPS[calibration](fit.astype(float), test.astype(float))
    assert MaSF(calibration=calibration).fit(fit).pvalues(test).tolist() == expected


def test_one_dimension_on_paper() -> None:
    fit = np.arange(20.0).reshape(20, 1, 1)
    test = np.array([-1.0, 0.0, 9.5, 19.0, 30.0]).reshape(5, 1, 1)
    # Level 1: value v has v smaller ones, two-sided 0, 1, …, 9, 10, 9, …, 1: one 0, two each of 1 … 9, a 10.
    # Level 2: below a 0 are 0, below 1 … 9 are 1, 3, …, 17, below 10 are 19; two-sided 0; 1, 3, 5, 7, 9, 9,
    # 7, 5, 3; 1. The test rows have 0, 0, 10, 1, 0 at level 1, so 0, 0, 1, 1, 0 at level 2. As extreme among
    # the fitted are the one row with 0, or the four with 0 or 1.
    assert MaSF().fit(fit).pvalues(test).tolist() == [0.05, 0.05, 0.2, 0.2, 0.05]


@both
def test_features_in_blocks_equal_features_at_once(calibration: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fit, test = normal(0, 60), normal(1, 30)
    whole = MaSF(calibration=calibration).fit(fit).pvalues(test)
    monkeypatch.setattr(indist, "BLOCK", 7)
    assert (MaSF(calibration=calibration).fit(fit).pvalues(test) == whole).all()


@both
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_monotone_transforms_of_a_dimension_change_nothing(calibration: str, seed: int) -> None:
    fit, test = normal(seed, 40), normal(seed + 1, 20) * 1.5
    expected = MaSF(calibration=calibration).fit(fit).pvalues(test)
    for features in (fit, test):
        features[:, 0, 0] = np.exp(features[:, 0, 0])
        features[:, 1, 2] = features[:, 1, 2] ** 3
        features[:, 1, 3] *= 1000
    assert (MaSF(calibration=calibration).fit(fit).pvalues(test) == expected).all()


@both
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_order_of_rows_layers_and_dimensions_changes_nothing(calibration: str, seed: int) -> None:
    fit, test = normal(seed, 40, layers=4), normal(seed + 1, 20, layers=4) * 1.5
    rng = np.random.default_rng(seed)
    expected = MaSF(calibration=calibration).fit(fit).pvalues(test)
    rows = rng.permutation(39)  # crossfit: new rows do not meet the last one
    layers, dims, tests = rng.permutation(4), rng.permutation(5), rng.permutation(20)
    shuffled = fit[np.append(rows, 39)][:, layers][:, :, dims]
    p = MaSF(calibration=calibration).fit(shuffled).pvalues(test[tests][:, layers][:, :, dims])
    assert (p == expected[tests]).all()


def test_crossfit_is_symmetric_in_sign() -> None:
    fit, test = normal(0, 50), normal(1, 30) * 1.5
    test_of = MaSF(calibration="crossfit").fit
    assert (test_of(fit).pvalues(test) == test_of(-fit).pvalues(-test)).all()


@both
def test_fit_twice_is_fit_once(calibration: str) -> None:
    fit, test = normal(0, 40), normal(1, 20)
    once = MaSF(calibration=calibration).fit(fit)
    twice = MaSF(calibration=calibration).fit(normal(2, 60, dims=3)).fit(fit)
    assert (twice.pvalues(test) == once.pvalues(test)).all()
    assert twice.smallest_p() == once.smallest_p()


@both
def test_fitting_and_scoring_leave_the_features_alone(calibration: str) -> None:
    for dims in (1, 5):  # a single column could be sorted in place
        fit, test = normal(0, 30, 1, dims), normal(1, 5, 1, dims)
        MaSF(calibration=calibration).fit(fit).pvalues(test)
        assert (fit == normal(0, 30, 1, dims)).all()
        assert (test == normal(1, 5, 1, dims)).all()


@both
@pytest.mark.parametrize("n", [20, 50, 500])
def test_smallest_p_is_that_of_a_hopeless_outlier(calibration: str, n: int) -> None:
    test = MaSF(calibration=calibration).fit(normal(0, n, layers=3, dims=60))
    outliers = normal(1, 10, layers=3, dims=60) + 20
    assert (test.pvalues(outliers) == test.smallest_p()).all()
    assert (test.pvalues(outliers - 40) == test.smallest_p()).all()


def test_published_cannot_reject_with_few_rows_where_crossfit_can() -> None:
    fit = normal(0, 50, layers=4, dims=400)
    assert MaSF().fit(fit).smallest_p() == 1
    for n in (50, 500, 2000):
        assert MaSF(calibration="crossfit").fit(normal(0, n, dims=100)).smallest_p() <= 2 / (n + 1)


def test_a_constant_dimension_blinds_the_published_test_only() -> None:
    fit = normal(0, 100)
    fit[:, :, 0] = 1
    outlier = np.full((1, 2, 5), 20.0)
    outlier[:, :, 0] = 1
    assert MaSF().fit(fit).pvalues(outlier).tolist() == [1]
    assert MaSF(calibration="crossfit").fit(fit).pvalues(outlier) <= 2 / 101


@pytest.mark.parametrize(("n", "fits"), [(50, 150), (500, 25)])
def test_crossfit_rejects_five_percent_of_fresh_rows(n: int, fits: int) -> None:
    shares = [
        (
            MaSF(calibration="crossfit").fit(normal(s, n, 3, 24)).pvalues(normal(10**6 + s, 200, 3, 24))
            < 0.05
        ).mean()
        for s in range(fits)
    ]
    possible = (math.ceil(0.05 * (n + 1)) - 1) / (n + 1)  # the largest p-value below 0.05: 2/51 or 25/501
    error = np.std(shares) / math.sqrt(fits)
    assert 0.6 * possible < np.mean(shares) < possible + 3 * error


@pytest.mark.parametrize("shift", [np.array(0.8), np.array([0, 0, 0, 0, 3.0])])
def test_crossfit_finds_a_mean_shift(shift: Array) -> None:
    fit, test = normal(0, 300), normal(1, 300)
    masf = MaSF(calibration="crossfit").fit(fit)
    assert (masf.pvalues(test + shift) < 0.05).mean() > 2.5 * (masf.pvalues(test) < 0.05).mean()


@both
def test_a_saved_test_scores_alike(calibration: str, tmp_path: Path) -> None:
    fitted = MaSF(calibration=calibration).fit(normal(0, 30).astype(np.float32))
    path = tmp_path / "masf.safetensors"
    fitted.save(path, fingerprint="abc")
    fitted.save(path, fingerprint="abc")
    assert [p.name for p in tmp_path.iterdir()] == ["masf.safetensors"]
    loaded = MaSF.load(path, fingerprint="abc")
    assert loaded.calibration == calibration
    assert (loaded.pvalues(normal(1, 20)) == fitted.pvalues(normal(1, 20))).all()
    with pytest.raises(InputError, match="checkpoint abc, not def"):
        MaSF.load(path, fingerprint="def")


def test_a_file_that_is_no_test(tmp_path: Path) -> None:
    path = tmp_path / "masf.safetensors"
    with pytest.raises(InputError, match="no saved MaSF test"):
        MaSF.load(path, fingerprint="abc")
    MaSF().fit(normal(0, 30)).save(path, fingerprint="abc")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="no saved MaSF test"):
        MaSF.load(path, fingerprint="abc")
    path.write_bytes(whole.replace(indist.FORMAT.encode(), b"faithmeter-masf-0"))
    with pytest.raises(InputError, match="masf-0"):
        MaSF.load(path, fingerprint="abc")


def test_a_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "masf.safetensors"
    MaSF().fit(normal(0, 30)).save(path, fingerprint="abc")

    def full_disk(arrays: object, filename: Path, metadata: object) -> None:
        filename.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(indist, "save_file", full_disk)
    with pytest.raises(OSError, match="no space"):
        MaSF().fit(normal(1, 30)).save(path, fingerprint="def")
    assert list(tmp_path.iterdir()) == [path]
    assert MaSF.load(path, fingerprint="abc").pvalues(normal(1, 3)).shape == (3,)


def test_torch_tensors_and_half_precision() -> None:
    torch = pytest.importorskip("torch")
    fit, test = normal(0, 30).astype(np.float16), normal(1, 9).astype(np.float16)
    expected = MaSF().fit(fit).pvalues(test)
    assert (MaSF().fit(torch.from_numpy(fit)).pvalues(torch.from_numpy(test)) == expected).all()
    with pytest.raises(InputError, match=r"detach\(\)"):
        MaSF().fit(torch.zeros(30, 2, 5, requires_grad=True))


def test_no_rows_to_score_give_no_pvalues() -> None:
    assert MaSF().fit(normal(0, 30)).pvalues(np.empty((0, 2, 5))).shape == (0,)


def test_what_cannot_be_fitted_or_scored() -> None:
    fit = normal(0, 30)
    holed = fit.copy()
    holed[3, 1, 2] = np.nan
    for features, message in [
        (fit[:19], "19 rows"),
        (holed, "nan"),
        (fit[0], "shape"),
        (fit[:, :, :0], "shape"),
        (np.full((30, 2, 5), "a"), "numbers"),
    ]:
        with pytest.raises(InputError, match=message):
            MaSF().fit(features)
    with pytest.raises(InputError, match="crossfit"):
        MaSF(calibration="cross-fit").fit(fit)
    with pytest.raises(InputError, match="not fitted"):
        MaSF().pvalues(fit)
    with pytest.raises(InputError, match="nan"):
        MaSF().fit(fit).pvalues(holed)
    with pytest.raises(InputError, match="same model"):
        MaSF().fit(fit).pvalues(normal(0, 3, dims=6))
