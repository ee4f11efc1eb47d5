from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from faithmeter.errors import InputError
from faithmeter.stats import masf as indist
from faithmeter.stats.masf import MaSF

Array = NDArray[np.float64]
Number = float | Fraction
Combine = Callable[[list[Fraction]], Number]
both = pytest.mark.parametrize("calibration", ["published", "crossfit"])


def normal(seed: int, n: int, layers: int = 2, dims: int = 5) -> Array:
    return np.random.default_rng(seed).standard_normal((n, layers, dims))


def simes(p: list[Fraction]) -> Fraction:
    return min(q * len(p) / i for i, q in enumerate(sorted(p), 1))


def fisher(p: list[Fraction]) -> float:
    return math.fsum(-2 * math.log(float(q) + 1e-8) for q in p)


def published_by_loops(
    fit: Array, test: Array, of_dimensions: Combine = simes, of_layers: Combine = fisher
) -> list[float]:
    """Algorithm 2 of the paper, word by word, in exact fractions; or with other combinations."""
    n, layers, dims = fit.shape

    def two_sided(value: Number, sample: Sequence[Number]) -> Fraction:
        below = Fraction(sum(s < value for s in sample), n)
        return min(below, 1 - below)

    def level2(row: Array) -> list[Number]:
        return [
            of_dimensions([two_sided(row[h, d], [r[h, d] for r in fit]) for d in range(dims)])
            for h in range(layers)
        ]

    fitted = [level2(row) for row in fit]

    def level3(z: list[Number]) -> Number:
        combined = of_layers([two_sided(z[h], [f[h] for f in fitted]) for h in range(layers)])
        return -combined if of_layers is simes else combined  # a small p is unusual, a large statistic, too

    statistics = [level3(z) for z in fitted]
    return [float(1 - Fraction(sum(s < level3(level2(row)) for s in statistics), n)) for row in test]


def crossfit_by_loops(fit: Array, test: Array) -> list[float]:
    """docs/masf.md, row by row: learn from one part, rank among the other."""
    n, layers, dims = fit.shape
    held_out = min(20 * math.ceil(n / 40), n - 10)
    lot = np.random.default_rng(0).permutation(n)
    learned = fit[lot[held_out:]]

    def summaries(row: Array, others: Array) -> list[float]:
        simes_values, means = [], []
        for h in range(layers):
            p = []
            for d in range(dims):
                low = 1 + sum(o <= row[h, d] for o in others[:, h, d])
                high = 1 + sum(o >= row[h, d] for o in others[:, h, d])
                p.append(Fraction(min(low, high), len(others) + 1))
            simes_values.append(math.log(simes(p)))
            means.append(math.fsum(math.log(q) for q in p) / dims)
        return simes_values + means

    def spread(x: Array) -> float:
        return float(x.std()) if x.std() > 1e-9 else 1.0

    known = np.array([summaries(row, np.delete(learned, i, axis=0)) for i, row in enumerate(learned)])
    center, scale = known.mean(axis=0), np.array([spread(column) for column in known.T])
    known = (known - center) / scale
    correlation = np.array([[(a * b).mean() for a in known.T] for b in known.T])
    correlation += np.eye(2 * layers) * 2 * layers / len(learned)

    def scores(y: Array, inside: bool) -> list[float]:
        far, given_mean = 0.0, 0.0
        for h in range(layers):
            shared = float((known[:, h] * known[:, layers + h]).mean())
            far -= y[h]
            given_mean -= (y[h] - shared * y[layers + h]) / math.sqrt(max(1 - shared**2, 0.01))
        square = float(y @ np.linalg.solve(correlation, y))
        return [far, given_mean, math.sqrt(square / (1 - square / len(known)) if inside else square)]

    usual = np.array([scores(y, True) for y in known])

    def statistic(row: Array) -> float:
        new = scores((np.array(summaries(row, learned)) - center) / scale, False)
        z = [(s - column.mean()) / spread(column) for s, column in zip(new, usual.T, strict=True)]
        return max(z) + math.log(sum(math.exp(t - max(z)) for t in z))

    calibration = [statistic(row) for row in fit[lot[:held_out]]]
    # 1e-7: equal but for rounding
    return [(1 + sum(c >= statistic(row) - 1e-7 for c in calibration)) / (held_out + 1) for row in test]


LOOPS = {"published": published_by_loops, "crossfit": crossfit_by_loops}


@both
@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([20, 23, 26, 50]),
    layers=st.integers(1, 3),
    values=st.sampled_from([3, 9, 999]),
)
def test_pvalues_equal_a_double_loop(calibration: str, seed: int, n: int, layers: int, values: int) -> None:
    rng = np.random.default_rng(seed)  # few distinct values: many ties
    fit = rng.integers(0, values, (n, layers, 4)).astype(np.float32)
    test = rng.integers(-1, values + 1, (6, layers, 4)).astype(np.float32)
    expected = LOOPS[calibration](fit.astype(float), test.astype(float))
    assert MaSF(calibration=calibration).fit(fit).pvalues(test).tolist() == expected


@pytest.mark.parametrize("name", indist.ABLATIONS)
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), values=st.sampled_from([3, 999]))
def test_other_aggregations_equal_a_double_loop(name: str, seed: int, values: int) -> None:
    rng = np.random.default_rng(seed)
    fit = rng.integers(0, values, (23, 3, 4)).astype(np.float32)
    test = rng.integers(-1, values + 1, (6, 3, 4)).astype(np.float32)
    named = {"simes": simes, "fisher": fisher}
    of_dimensions, of_layers = (named[part] for part in name.split("-"))
    expected = published_by_loops(fit.astype(float), test.astype(float), of_dimensions, of_layers)
    assert MaSF(calibration=name).fit(fit).pvalues(test).tolist() == expected


def test_one_dimension_on_paper() -> None:
    fit = np.arange(20.0).reshape(20, 1, 1)
    test = np.array([-1.0, 0.0, 9.5, 19.0, 30.0]).reshape(5, 1, 1)
    # Level 1: value v has v smaller ones, two-sided 0, 1, …, 9, 10, 9, …, 1: one 0, two each of 1 … 9, a 10.
    # Level 2: below a 0 are 0, below 1 … 9 are 1, 3, …, 17, below 10 are 19; two-sided 0; 1, 3, 5, 7, 9, 9,
    # 7, 5, 3; 1. The test rows have 0, 0, 10, 1, 0 at level 1, so 0, 0, 1, 1, 0 at level 2. As extreme among
    # the fitted are the one row with 0, or the four with 0 or 1.
    assert MaSF("published").fit(fit).pvalues(test).tolist() == [0.05, 0.05, 0.2, 0.2, 0.05]


@both
def test_features_in_blocks_equal_features_at_once(calibration: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fit, test = normal(0, 60), normal(1, 30)
    whole = MaSF(calibration=calibration).fit(fit).pvalues(test)
    monkeypatch.setattr(indist, "BLOCK", 7)
    assert (MaSF(calibration=calibration).fit(fit).pvalues(test) == whole).all()


@both
@settings(max_examples=20)
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
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_order_of_rows_layers_and_dimensions_changes_nothing(calibration: str, seed: int) -> None:
    fit, test = normal(seed, 40, layers=4), normal(seed + 1, 20, layers=4) * 1.5
    rng = np.random.default_rng(seed)
    expected = MaSF(calibration=calibration).fit(fit).pvalues(test)
    rows = np.arange(40)
    for part in indist.CALIBRATIONS[calibration].split(np.arange(40)):  # which part a row is in does matter
        rows[part] = rng.permutation(part)
    layers, dims, tests = rng.permutation(4), rng.permutation(5), rng.permutation(20)
    p = MaSF(calibration=calibration).fit(fit[rows][:, layers][:, :, dims])
    assert (p.pvalues(test[tests][:, layers][:, :, dims]) == expected[tests]).all()


@both
def test_a_row_scores_alike_in_any_batch(calibration: str) -> None:
    fit = normal(0, 60, 4, 30)
    masf = MaSF(calibration=calibration).fit(fit)
    test = np.concatenate([normal(1, 40, 4, 30) * 1.2, fit])  # fitted rows tie with themselves
    together = masf.pvalues(test)
    assert (np.concatenate([masf.pvalues(row[None]) for row in test]) == together).all()
    assert (masf.pvalues(test[::-1]) == together[::-1]).all()
    assert (MaSF(calibration=calibration).fit(fit).pvalues(test) == together).all()


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


def factors(rng: np.random.Generator, n: int, layers: int = 3, dims: int = 24) -> Array:
    """Rows whose values share half of their variance through two factors."""
    loadings = np.random.default_rng(99).standard_normal((2, layers, dims)) / 2
    rows: Array = np.tensordot(rng.standard_normal((n, 2)), loadings, axes=1)
    return rows + rng.standard_normal((n, layers, dims)) * 0.5**0.5


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("n", [20, 29, 50, 500])
def test_a_hopeless_outlier_is_as_good_as_alone(n: int, correlated: bool) -> None:
    for seed in range(20 if n < 100 else 3):
        fit = factors(np.random.default_rng(seed), n, 4, 100) if correlated else normal(seed, n, 4, 100)
        masf = MaSF(calibration="crossfit").fit(fit)
        assert masf.pvalues(np.full((1, 4, 100), 30.0)).max() <= 2 / (n + 1)
        assert masf.pvalues(fit[:1] - 30).max() <= 2 / (n + 1)
        assert masf.smallest_p() <= 2 / (n + 1)


def test_published_cannot_reject_with_few_rows() -> None:
    assert MaSF("published").fit(normal(0, 50, layers=4, dims=400)).smallest_p() == 1


def test_a_constant_dimension_blinds_the_published_test_only() -> None:
    fit = normal(0, 100)
    fit[:, :, 0] = 1
    outlier = np.full((1, 2, 5), 20.0)
    outlier[:, :, 0] = 1
    assert MaSF("published").fit(fit).pvalues(outlier).tolist() == [1]
    assert MaSF(calibration="crossfit").fit(fit).pvalues(outlier) <= 2 / 101


@pytest.mark.parametrize("shape", [(3, 1), (1, 4)])
def test_degenerate_layers_do_no_harm_to_crossfit(shape: tuple[int, int]) -> None:
    fit = normal(0, 60, *shape)  # one dimension: Simes and mean say the same
    assert MaSF(calibration="crossfit").fit(fit).pvalues(fit[:3] + 20) == pytest.approx([1 / 41] * 3)
    fit[:] = 1
    masf = MaSF(calibration="crossfit").fit(fit)
    assert masf.pvalues(fit[:3]).tolist() == [1, 1, 1]
    assert masf.pvalues(fit[:3] + 1) == pytest.approx([1 / 41] * 3)


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize(("n", "fits", "held_out"), [(50, 300, 40), (500, 60, 260), (2000, 16, 1000)])
def test_crossfit_rejects_five_percent_of_fresh_rows(
    n: int, fits: int, held_out: int, correlated: bool
) -> None:
    shares, fresh = [], 300
    for seed in range(fits):
        rng = np.random.default_rng(seed)
        rows = factors(rng, n + fresh) if correlated else rng.standard_normal((n + fresh, 3, 24))
        shares.append((MaSF(calibration="crossfit").fit(rows[:n]).pvalues(rows[n:]) < 0.05).mean())
    below = held_out // 20  # p-values k / (held out + 1) below 0.05; of a fit their share is Beta distributed
    expected = below / (held_out + 1)
    assert 0.0485 < expected < 0.05
    beta = expected * (1 - expected) / (held_out + 2)
    lot = (expected * (1 - expected) - beta) / fresh
    assert abs(np.mean(shares) - expected) < 3.5 * math.sqrt((beta + lot) / fits)


def test_crossfit_takes_rows_that_alternate() -> None:
    rng = np.random.default_rng(0)  # every other text of a batch is masked
    scale = np.array([1, 3] * 500)[:, None, None]
    fit, fresh = rng.standard_normal((2, 1000, 3, 24)) * scale
    assert (MaSF(calibration="crossfit").fit(fit).pvalues(fresh) < 0.05).mean() == pytest.approx(
        0.05, abs=0.02
    )


def test_crossfit_finds_collapsed_states_and_one_shifted_layer() -> None:
    rng = np.random.default_rng(0)
    fit, test = factors(rng, 500), factors(rng, 200)
    masf = MaSF(calibration="crossfit").fit(fit)
    assert (masf.pvalues(test * 0.3) < 0.05).mean() > 0.5
    last = test + np.array([0, 0, 2])[:, None]
    assert (masf.pvalues(last) < 0.05).mean() > 0.5 > (MaSF("published").fit(fit).pvalues(last) < 0.05).mean()


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
    with pytest.raises(InputError, match="not a saved MaSF test"):
        MaSF.load(path, fingerprint="abc")
    MaSF("published").fit(normal(0, 30)).save(path, fingerprint="abc")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="not a saved MaSF test"):
        MaSF.load(path, fingerprint="abc")
    path.write_bytes(whole.replace(indist.FORMAT.encode(), b"faithmeter-masf-0"))
    with pytest.raises(InputError, match="masf-0"):
        MaSF.load(path, fingerprint="abc")
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InputError, match="is not as it was written: delete it"):
        MaSF.load(path, fingerprint="abc")


def test_a_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "masf.safetensors"
    MaSF("published").fit(normal(0, 30)).save(path, fingerprint="abc")

    def full_disk(arrays: object, filename: Path, metadata: object) -> None:
        filename.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(indist, "save_file", full_disk)
    with pytest.raises(OSError, match="no space"):
        MaSF("published").fit(normal(1, 30)).save(path, fingerprint="def")
    assert list(tmp_path.iterdir()) == [path]
    assert MaSF.load(path, fingerprint="abc").pvalues(normal(1, 3)).shape == (3,)


def test_torch_tensors_and_half_precision() -> None:
    torch = pytest.importorskip("torch")
    fit, test = normal(0, 30).astype(np.float16), normal(1, 9).astype(np.float16)
    expected = MaSF("published").fit(fit).pvalues(test)
    assert (MaSF("published").fit(torch.from_numpy(fit)).pvalues(torch.from_numpy(test)) == expected).all()
    with pytest.raises(InputError, match=r"detach\(\)"):
        MaSF("published").fit(torch.zeros(30, 2, 5, requires_grad=True))


def test_no_rows_to_score_give_no_pvalues() -> None:
    assert MaSF("published").fit(normal(0, 30)).pvalues(np.empty((0, 2, 5))).shape == (0,)


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
            MaSF("published").fit(features)
    with pytest.raises(InputError, match="crossfit"):
        MaSF(calibration="cross-fit").fit(fit)
    with pytest.raises(InputError, match="not fitted"):
        MaSF("published").pvalues(fit)
    with pytest.raises(InputError, match="nan"):
        MaSF("published").fit(fit).pvalues(holed)
    with pytest.raises(InputError, match="same model"):
        MaSF("published").fit(fit).pvalues(normal(0, 3, dims=6))
