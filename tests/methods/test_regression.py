"""Ridge regression and Shapley values on masks: games solved by hand, laws, and the formula of LIME."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from faithmeter.errors import InputError
from faithmeter.methods import explain, parse
from orders import lookup, pairwise_margins
from toy import MASK, LookupClassifier, rows_batch, tiny

WORTHS = {5: 3.0, 6: -2.0, 7: 0.5}


def additive() -> LookupClassifier:
    """The logit is the sum of the words' worths."""
    return LookupClassifier(lambda ids: (sum(WORTHS.get(token, 0.0) for token in ids), 0.0))


def glove_game() -> LookupClassifier:
    """A left glove (5) and two right ones (6, 7) are worth 1 as a pair; alone they are worth nothing."""
    return LookupClassifier(lambda ids: (float(5 in ids and (6 in ids or 7 in ids)), 0.0))


def test_ridge_without_a_penalty_returns_the_worths_of_an_additive_model() -> None:
    batch = rows_batch([5, 6, MASK, 7], [7], [MASK])
    scores = explain(additive(), batch, [0, 0, 0], "ridge(samples=50,alpha=0)")
    expected = torch.zeros(batch.input_ids.shape).double()
    expected[0, [1, 2, 4]] = torch.tensor([3.0, -2.0, 0.5]).double()
    expected[1, 1] = 0.5
    torch.testing.assert_close(scores, expected, atol=1e-9, rtol=0)
    large = explain(additive(), batch, [0, 0, 0], "ridge(samples=50,alpha=1e6)")
    assert large.abs().max() < 0.01, "a large penalty leaves nothing"


def test_ridge_solves_the_weighted_normal_equations() -> None:
    n, clf = 6, lookup(pairwise_margins(6, seed=1))
    scores = explain(clf, rows_batch(range(5, 5 + n)), [0], "ridge(samples=40,seed=3)")[0, 1 : n + 1]
    again = lookup(pairwise_margins(6, seed=1))
    present = np.array([[token != MASK for token in ids[1:-1]] for ids in clf.seen], float)
    values = again.logits(rows_batch(*[ids[1:-1] for ids in clf.seen]))[:, 0].numpy()
    # `seen` lacks repeated masks, so each is counted as often as it was drawn
    rng = np.random.default_rng([3, 4, 1, 0])
    sizes, places = rng.integers(1, n + 1, size=39), rng.random((39, n)).argsort(axis=1).argsort(axis=1)
    drawn = [tuple(row) for row in np.vstack([np.ones((1, n)), places >= sizes[:, None]]).astype(float)]
    counts = np.array([drawn.count(tuple(row)) for row in present])
    assert counts.sum() == 40
    weights = counts * np.exp(-((1 - np.sqrt(present.mean(axis=1))) ** 2) / (2 * 0.25**2))
    design = np.column_stack([present, np.ones(len(present))])
    penalty = np.diag([1.0] * n + [0.0])  # the intercept is not penalized
    solution = np.linalg.solve(design.T * weights @ design + penalty, design.T * weights @ values)
    assert scores.tolist() == pytest.approx(solution[:n].tolist())


@given(st.integers(1, 8), st.integers(0, 1000), st.integers(4, 60))
@settings(max_examples=20)
def test_the_stated_number_of_samples_is_kept_to(n: int, seed: int, samples: int) -> None:
    clf, method = lookup(pairwise_margins(n, seed)), parse(f"ridge(samples={samples},seed={seed})")
    explain(clf, rows_batch(range(5, 5 + n)), [0], method)
    assert len(clf.seen) <= method.evaluations(n) == samples


def test_ridge_explains_a_text_alone_as_among_others() -> None:
    clf = tiny()
    batch = clf.encode(["the film was not good", "a <mask> and fun music", "very dull"])
    labels = clf.logits(batch).argmax(dim=1)
    together = explain(clf, batch, labels, "ridge(samples=30)")
    for row in range(3):
        alone = explain(clf, batch[[row]], labels[[row]], "ridge(samples=30)")[0]
        torch.testing.assert_close(alone, together[row], atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    "method",
    [
        *["ridge(samples=1)", "ridge(alpha=-1)", "ridge(alpha=nan)", "ridge(seed=-1)"],
        *["shapley(samples=3)", "shapley(seed=-1)"],
    ],
)
def test_options_out_of_range_say_what_is_expected(method: str) -> None:
    with pytest.raises(InputError, match=r"\): expected at least [024], such as"):
        explain(additive(), rows_batch([5, 6]), [0], method)


def test_without_shapiq_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shapiq.approximator", None)
    with pytest.raises(InputError, match=r"pip install 'faithmeter\[shapley\]'"):
        explain(additive(), rows_batch([5, 6]), [0], "shapley")


@pytest.mark.slow
def test_shapley_values_by_hand() -> None:
    """An additive game, one of two players, and the glove game, whose values are 4/6, 1/6 and 1/6."""
    pytest.importorskip("shapiq")
    assert explain(additive(), rows_batch([5, 6, MASK, 7]), [0], "shapley")[0].tolist() == pytest.approx(
        [0, 3.0, -2.0, 0, 0.5, 0]
    )
    clf = LookupClassifier(lambda ids: (float(5 in ids) + 4.0 * (5 in ids and 6 in ids), 0.0))
    assert explain(clf, rows_batch([5, 6]), [0], "shapley")[0, 1:3].tolist() == pytest.approx([3.0, 2.0])
    gloves = explain(glove_game(), rows_batch([5, 6, 7], [5], [MASK]), [0, 0, 0], "shapley")
    assert gloves[0, 1:4].tolist() == pytest.approx([4 / 6, 1 / 6, 1 / 6])
    assert gloves[1:].eq(0).all()


@pytest.mark.slow
@given(st.integers(1, 8), st.integers(0, 1000), st.integers(4, 60))
@settings(max_examples=20, deadline=None)
def test_shapley_values_add_up_within_the_stated_samples(n: int, seed: int, samples: int) -> None:
    pytest.importorskip("shapiq")
    margins = pairwise_margins(n, seed)
    clf, method = lookup(margins), parse(f"shapley(samples={samples},seed={seed})")
    scores = explain(clf, rows_batch(range(5, 5 + n)), [0], method)
    assert len(clf.seen) <= method.evaluations(n) == min(samples, 2**n)
    whole, empty = margins[frozenset()], margins[frozenset(range(n))]
    assert float(scores.sum()) == pytest.approx(whole - empty, abs=1e-6)
