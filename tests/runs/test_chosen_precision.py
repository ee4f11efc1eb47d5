"""`--precision auto`: bf16 only where every method ranks words as in fp32, and the verdict says so."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from scipy.stats import spearmanr

import faithmeter as fm
from faithmeter.config import MeasureConfig
from faithmeter.methods import explain
from faithmeter.models import devices
from faithmeter.models.evaluator import Evaluator
from faithmeter.runs import chosen_precision
from faithmeter.runs.chosen_precision import Chosen, choose_precision, compare_ranks
from toy import rows_batch, tiny
from traces import falling, result, traces

ROWS = ([5, 9, 12, 7, 20], [6, 11, 8], [14])


def test_ranks_are_compared_by_spearman_and_a_text_of_one_word_says_nothing() -> None:
    exact, lower = (tiny(dtype=torch.float32) for _ in range(2))
    lower.place(torch.device("cpu"), "bf16")
    batch, labels = rows_batch(*ROWS), torch.tensor([0, 1, 2])
    methods = ["loo-sign", "inp-grad-sign"]
    found = compare_ranks(Evaluator(exact), Evaluator(lower), batch, labels, methods)
    for name in methods:
        one, other = (explain(clf, batch, labels, name) for clf in (exact, lower))
        each = [spearmanr(one[i][w], other[i][w]).statistic for i, w in enumerate(batch.explained[:2])]
        assert found[name] == pytest.approx(sum(each) / 2, abs=1e-12)
    assert compare_ranks(Evaluator(exact), Evaluator(lower), batch[[2]], labels[[2]], methods) == {
        "loo-sign": 0.0,
        "inp-grad-sign": 0.0,
    }, "unknown is not alike"


@pytest.mark.parametrize(
    ("ranks", "chosen"),
    [
        ({"loo-sign": 0.999, "grad-l2": 0.98}, "bf16"),
        ({"loo-sign": 0.999, "grad-l2": 0.979}, "fp32"),
        ({}, "fp32"),
    ],
)
def test_every_method_must_rank_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: dict[str, float], chosen: str
) -> None:
    (tmp_path / "own.csv").write_text("\n".join(["text,label", *["good film,a", "bad film,b"] * 2]))
    task = fm.own_task(tmp_path / "own.csv", text="text", label="label", all_test=True)
    monkeypatch.setattr(devices, "cpu_features", lambda: {"avx512_bf16"})
    monkeypatch.setattr(chosen_precision, "load_measured", lambda *_: tiny(dtype=torch.float32, labels=2))
    monkeypatch.setattr(chosen_precision, "measured_task", lambda *_: (task, None, None))
    asked: list[int] = []

    def compare(_: object, __: object, batch: fm.Batch, *more: object) -> dict[str, float]:
        asked.append(len(batch))
        return ranks

    monkeypatch.setattr(chosen_precision, "compare_ranks", compare)
    choice = choose_precision("checkpoint", MeasureConfig(methods=tuple(ranks) or ("random",)))
    assert (choice.precision, asked) == (chosen, [4])
    assert choice.reason.startswith(f"auto is {chosen}: rank correlation of bf16 with fp32 on 4 texts")
    least = {"ranks_alike": 0.98} if chosen == "bf16" else {}
    assert choice.config == {"precision": chosen, **least}


def test_a_device_without_bf16_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cpu_features", set)
    choice = choose_precision("no-checkpoint", MeasureConfig(), device="cpu")
    assert choice == Chosen("fp32", {}, "auto is fp32: this CPU does not compute in bf16")


def test_the_verdict_says_by_what_the_precision_was_chosen() -> None:
    labels = [0, 1] * 40
    seed = traces(falling({"random": 0.9, "loo-sign": 0.3}, labels), labels)
    said = {}
    for ranks_alike in (0.0, 0.987):
        doubts = result(seed, precision="bf16", ranks_alike=ranks_alike).verdict.doubts
        [said[ranks_alike]] = [doubt.text for doubt in doubts if doubt.kind == "precision"]
    assert said[0.0].endswith("in fp32, close scores may rank otherwise")
    assert said[0.987].endswith("a few texts' scores in fp32 rank alike (correlation 0.987 or more)")
