"""The measured ruler: orders, erasures and metrics by hand, and the page as committed."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import faithmeter as fm
from validation.controls.cache import Control
from validation.lookup import LookupClassifier
from validation.ruler import erasures, orders, page, picture, recovery, rivals, soft, summary
from validation.ruler.cases import CASES, case, is_full
from validation.ruler.erasures import Answers
from validation.ruler.orders import METHODS
from validation.ruler.recovery import Case

COMMITTED = [control for control in CASES if erasures.file_of(control).exists()]


@given(st.integers(1, 30), st.integers(0, 10_000))
def test_each_step_shuffles_a_further_tenth_of_the_places(n: int, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(n)
    levels = orders.degrade(order, np.random.default_rng(seed))
    assert len(levels) == orders.LEVELS + 1
    assert levels[0].tolist() == order.tolist()
    for level, degraded in enumerate(levels):
        assert sorted(degraded) == list(range(n))
        assert (degraded != order).sum() <= 1 + (n - 1) * level // orders.LEVELS


def test_degraded_orders_are_worse_in_expectation_and_end_at_random() -> None:
    """The first of 11 words moves on by the same at every step, up to the mean place of a random order."""
    rng = np.random.default_rng(0)
    found = [[level.argmin() for level in orders.degrade(np.arange(11), rng)] for _ in range(4000)]
    assert np.diff(np.mean(found, axis=0)) == pytest.approx([0.5] * orders.LEVELS, abs=0.1)


def test_the_truth_comes_first_and_all_else_at_random() -> None:
    layout = SimpleNamespace(text="go to milk now", spans=((0, 2), (3, 5), (6, 10), (11, 14)))
    batch = SimpleNamespace(layouts=(layout,) * 200)
    found = orders.order_truth(batch, [(2,)] * 200, np.random.default_rng(0))  # type: ignore[arg-type]
    assert {order[0] for order in found} == {2}
    assert {order[1] for order in found} == {0, 1, 3}


def test_erasures_by_hand() -> None:
    """Two words: p is 0.9 whole, 0.5 without word 0, 0.8 without word 1 and 0.3 without both."""
    p = np.array([0.9, 0.5, 0.8, 0.3])
    lookup = LookupClassifier([np.log(np.stack([1 - p, p], axis=1))])
    batch = lookup.batch()
    ranks = orders.ranks(batch, [[np.array([0, 1])], [np.array([1, 0])]])
    assert ranks.tolist() == [[[-1, 0, 1]], [[-1, 1, 0]]]
    found = erasures.erase_all(lookup, batch, torch.ones(1, dtype=torch.long), ranks, "mask")  # type: ignore[arg-type]
    half = [0.9] * 5 + [0.5] * 5 + [0.3]
    assert found["erased"][0].tolist() == [pytest.approx(half), pytest.approx([0.9] * 5 + [0.8] * 5 + [0.3])]
    assert found["kept"][0].tolist() == [
        pytest.approx([0.3] * 5 + [0.8] * 5 + [0.9]), pytest.approx([0.3] * 5 + [0.5] * 5 + [0.9])
    ]  # fmt: skip
    assert found["right"][0].tolist() == [[True] * 5 + [False] * 6, [True] * 10 + [False]]


@pytest.fixture(scope="module")
def embedded() -> fm.Classifier:
    from transformers import AutoModelForSequenceClassification

    from faithmeter.models.loading import load_tokenizer, resolve

    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(resolve("embedded"), num_labels=2)
    return fm.Classifier(model, load_tokenizer("embedded"))


def test_removal_is_the_text_without_the_words(embedded: fm.Classifier) -> None:
    """Texts of unlike lengths: what is removed and what is padding leave together."""
    batch = embedded.encode(["Mary went to the kitchen", "milk is there"])
    where = torch.zeros_like(batch.explained)
    where[0, 2:4] = True
    expected = embedded.logits(embedded.encode(["Mary the kitchen", "milk is there"]))
    assert torch.allclose(erasures.remove(embedded, batch, where), expected, atol=1e-5)


def test_each_way_erases_what_it_says(embedded: fm.Classifier) -> None:
    batch = embedded.encode(["Mary went to the kitchen"])
    where = batch.explained & (torch.arange(batch.explained.shape[1]) == 2)
    tokenizer = embedded.tokenizer
    for way, token in (("mask", embedded.mask_id), ("pad", tokenizer.pad_token_id)):
        ids = batch.input_ids.clone()
        ids[0, 2] = token
        expected = embedded.model(input_ids=ids, attention_mask=batch.attention_mask).logits
        assert torch.allclose(erasures.ERASERS[way](embedded, batch, where), expected, atol=1e-5)
    vectors = embedded.embed(batch.input_ids)
    vectors[0, 2] = 0
    expected = embedded.logits_at(vectors, batch)
    assert torch.allclose(erasures.blank(embedded, batch, where), expected, atol=1e-5)
    nothing = torch.zeros_like(where)
    whole = embedded.logits(batch)
    assert all(
        torch.allclose(erase(embedded, batch, nothing), whole, atol=1e-5)
        for erase in erasures.ERASERS.values()
    )


def test_soft_scores_by_hand() -> None:
    """p falls by 0.5 with nothing left, by 0.3 without the important words and by 0.1 with only them."""
    fall = np.array([0.5, 0.005])
    scores = soft.normalize(np.array([[0.3, 0.3]]), np.array([[0.1, 0.1]]), fall)
    assert scores["NC"][0, 0] == pytest.approx(0.6)
    assert scores["NS"][0, 0] == pytest.approx(0.8)
    assert np.isnan([scores["NC"][0, 1], scores["NS"][0, 1]]).all()
    ranks = np.array([[0, 1, 2, 3], [3, 2, 1, 0]])
    assert soft.importance(ranks, np.array([4, 4])).tolist() == [
        [0.875, 0.625, 0.375, 0.125], [0.125, 0.375, 0.625, 0.875]
    ]  # fmt: skip


class Sum:
    """Classifier whose probability of class 1 is the mean embedding of its second token."""

    def embed(self, input_ids: torch.Tensor) -> torch.Tensor:
        return torch.ones(*input_ids.shape, 20_000)

    def logits_at(self, embeddings: torch.Tensor, batch: fm.Batch) -> torch.Tensor:
        p = embeddings[:, 1].mean(dim=1).clamp(1e-9, 1 - 1e-9)
        return torch.stack([(1 - p).log(), p.log()], dim=1)


def test_soft_scores_of_a_model_that_reads_one_word() -> None:
    """The deciding one of two words is kept with 0.75 if it ranks first, and with 0.25 if it ranks last."""
    batch = fm.Batch.from_ids([[0, 5, 6, 2]], special_ids=(0, 1, 2), pad_id=1)
    ranks = np.array([[[-1, 0, 1, -1]], [[-1, 1, 0, -1]]])
    found = soft.soft_scores(
        Sum(), batch, torch.ones(1, dtype=torch.long), ranks, 2, np.random.default_rng(0)
    )  # type: ignore[arg-type]
    assert found["NS"][:, 0] == pytest.approx([0.75, 0.25], abs=0.01)
    assert found["NC"][:, 0] == pytest.approx([0.75, 0.25], abs=0.01)


def synthetic(quality: dict[str, float], texts: int = 50, noise: float = 0.0) -> Case:
    """Answers whose curves fall from 1 to 0.5 at once for a quality of 1, and in a line for 0."""
    rng = np.random.default_rng(0)
    line, at_once = np.linspace(1, 0.5, 11), np.array([1.0] + [0.5] * 10)
    curves = np.stack([value * at_once + (1 - value) * line for value in quality.values()])
    erased = np.clip(curves[:, None] + noise * rng.standard_normal((len(quality), texts, 1)), 0, 1)
    kept = erased[:, :, ::-1].copy()
    agreement = np.tile(np.array([*quality.values()])[:, None], texts)
    answers = Answers(tuple(quality), erased, kept, erased > 0.6, {"agreement": agreement})
    return Case(Control("word"), "mask", answers)


WORSE = dict.fromkeys(METHODS[:-1], 0.4)


def test_a_truth_that_is_clearly_behind_is_not_tied() -> None:
    for truth, leader, expected in ((0.9, 0.4, True), (0.895, 0.9, True), (0.5, 0.9, False)):
        case = synthetic({"random": 0.0, recovery.TRUTH: truth, **WORSE, "loo-sign": leader})
        rows = recovery.find_truth(case).set_index("metric")
        for metric in ("faithfulness", "comprehensiveness", "deletion", "agreement"):
            assert rows.first_or_tied[metric] == expected
    assert rows.leader["faithfulness"] == "loo-sign"
    assert rows.behind_by["faithfulness"] == pytest.approx((0.9 - 0.5) / 0.9)
    assert rows.not_behind["faithfulness"] == len(WORSE) - 1


def test_a_lead_by_chance_is_a_tie() -> None:
    case = synthetic({"random": 0.0, recovery.TRUTH: 0.85, **WORSE, "loo-sign": 0.9}, texts=20, noise=0.3)
    assert recovery.find_truth(case).set_index("metric").first_or_tied["comprehensiveness"]


def test_a_perfect_ladder_has_a_tau_of_one_and_a_flat_one_of_zero() -> None:
    for qualities, expected in ((np.linspace(1, 0, 11), 1.0), (np.full(11, 0.5), 0.0)):
        ladder = dict(zip(erasures.TRUTHS, qualities, strict=True))
        ranked = recovery.rank_degraded(synthetic({"random": 0.0, **ladder}))
        own = ranked[ranked.metric == "deletion"]
        assert own.drawn.tolist() == list(recovery.SIZES)
        assert own.tau.tolist() == pytest.approx([expected] * len(own))


def test_praise_needs_something_that_can_be_removed() -> None:
    """The model's answers fall by 1 point: comprehensiveness praises, faithfulness does not tell."""
    case = synthetic({"random": 0.0, **WORSE})
    small = case.answers.erased * 0.02 + 0.5
    rows = recovery.praise_nothing(
        case._replace(answers=Answers(case.answers.names, small, small, small > 0.6, {}))
    )
    praised = rows.set_index("metric").praised
    assert praised["faithfulness"] == 0
    assert praised["comprehensiveness"] == praised["deletion"] == recovery.WINDOWS


def test_exact_intervals_of_shares() -> None:
    """All of 10: the lower bound is the p with p¹⁰ = 0.025."""
    found = summary.share(10, 10)
    assert (found["share"], found["high"]) == (1, 1)
    assert found["low"] == pytest.approx(math.exp(math.log(0.025) / 10))


def test_texts_needed_is_the_smallest_size_that_suffices() -> None:
    ranked = pd.DataFrame({"drawn": [5, 5, 10, 10], "tau": [0.95, 0.7, 0.95, 0.9]})
    assert summary.texts_needed(ranked) == 10
    assert math.isnan(summary.texts_needed(ranked[ranked.drawn == 5]))


def test_every_metric_calls_a_higher_value_better() -> None:
    """The better order takes the label away early when erased, and tells it early when kept."""
    names = ("random", "good", "bad")
    good, line, bad = np.array([1.0] + [0.5] * 10), np.linspace(1, 0.5, 11), np.array([1.0] * 10 + [0.5])
    erased = np.stack([line, good, bad])[:, None]
    kept = np.stack([line[::-1], np.array([0.5] + [1.0] * 10), np.array([0.5] * 10 + [1.0])])[:, None]
    others = {name: np.array([[0.0], [0.5], [-0.5]]) for name in ("agreement", "soft NC", "soft NS")}
    answers = Answers(names, erased, kept, erased > 0.6, others)
    metrics = rivals.metrics_of(answers)
    assert set(metrics) == set(rivals.TITLES)
    for weighted, known in metrics.values():
        random, best, worst = weighted(known[None].astype(float))[0]
        assert best > random > worst


@pytest.mark.parametrize("control", COMMITTED[:1], ids=lambda control: control.name)
def test_committed_tables_follow_from_committed_erasures(control: Control) -> None:
    for name, rows in (("ruler-first", recovery.find_truth), ("ruler-tau", recovery.rank_degraded)):
        found = pd.concat([rows(case) for case in recovery.cases(control)], ignore_index=True)
        table = pd.read_csv(page.RESULTS / f"{name}.csv")
        mine = table[(table.encoder == control.encoder) & (table.task == control.task)]
        mine = mine[(mine.training == control.training) & (mine.epochs == control.epochs)]
        mine = mine[mine.seed == control.seed].reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, found, atol=1e-6, check_dtype=False)


def test_the_summary_follows_from_the_committed_tables() -> None:
    tables = [page.read(f"ruler-{name}") for name in ("first", "tau", "praise")]
    pd.testing.assert_frame_equal(
        page.read("ruler"), summary.summarize(*tables), atol=2e-6, check_dtype=False
    )


def test_every_number_of_the_page_is_computed_from_the_committed_tables() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.build_page()


def test_all_tables_are_computed_from_the_committed_ones() -> None:
    assert page.DETAILS.read_text(encoding="utf-8") == page.build_details()


@pytest.mark.parametrize("sentence", [page.claim, page.concession])
def test_the_readme_quotes_the_claim_and_what_speaks_against_it(sentence: Callable[..., str]) -> None:
    words = (page.ROOT / "README.md").read_text(encoding="utf-8").split()
    assert sentence(page.read("ruler")) in " ".join(words)


def test_a_model_that_has_not_learned_a_pair_is_far_from_one_half() -> None:
    """Two texts: with one word masked the label has 0.5 and 0.9, and the divergence is a mean over both."""
    erased = np.array([[[1.0] + [0.5] * 10, [1.0, 0.9] + [0.5] * 9]])
    answers = Answers((recovery.TRUTH,), erased, None, erased > 0.6, {})
    rows = recovery.tell_learned(Case(Control("pair"), "mask", answers))
    assert rows.excess.tolist() == [pytest.approx((-np.log(0.9 * 0.1) / 2 - np.log(2)) / 2)]
    assert recovery.tell_learned(Case(Control("places"), "mask", answers)).empty


def test_a_second_training_is_not_degraded_and_goes_on_to_the_end() -> None:
    assert not is_full(case("pair", "masked", seed=1))
    assert not is_full(case("word", "masked", "minilm"))
    assert is_full(case("pair", "masked"))
    assert case("pair", "masked", seed=1).epochs > case("pair", "masked").epochs


def test_the_picture_shows_each_metric_once() -> None:
    chart = picture.draw_recovery(page.read("ruler"))
    shown = chart.hconcat[0].data
    assert sorted(shown.title) == sorted(rivals.TITLES.values())
    assert set(shown.kind) == {picture.OWN, picture.PAPER, picture.RIVAL}
