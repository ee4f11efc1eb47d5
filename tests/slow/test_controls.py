"""Controls trained anew and judged in many windows: what must never be praised, and what must pass."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from faithmeter.measuring import groups
from faithmeter.stats.intervals import resample_texts
from validation.controls import cache
from validation.controls.cache import CONTROLS, TRUTH, Control, run
from validation.controls.judged import judge

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "resample_texts", partial(resample_texts, resamples=499))


BY_NAME = {control.name: control for control in CONTROLS}


@pytest.mark.parametrize("name", ["embedded-shuffled-masked-0", "embedded-word-random-0"])
def test_no_window_of_an_empty_model_is_praised(name: str) -> None:
    for seed in range(100):
        rows = np.random.default_rng(seed).permutation(200)[:64]
        judged = judge(BY_NAME[name], rows=rows).verdict
        assert judged.faithful == judged.leaders == (), f"window {seed}"
        assert judged.answers[0].mood != "good", f"window {seed}"


@pytest.mark.parametrize(
    ("training", "answer"),
    [
        ("masked", "Yes: it passes the check"),
        ("plain", "No: it handles masked texts badly"),
        ("random", "No:"),
    ],
)
def test_a_control_that_is_trained_now_has_its_verdict(
    training: str, answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "FOLDER", tmp_path)
    control = Control("word", training, pool=600, explained=60, seed=1)
    run(control)
    result = judge(control)
    assert result.verdict.answers[0].text.startswith(answer)
    if training == "masked":
        assert result.area(TRUTH) > max(result.area(name) for name in result.methods) - 0.01
    else:
        assert result.verdict.leaders == ()


def test_every_trained_control_has_the_expected_outcome() -> None:
    """All committed controls, with all of their texts; the ladder tells how often each outcome occurs."""
    for control in CONTROLS:
        assert control.file.exists(), control.name
        behavior = judge(control).behavior
        assert behavior is not None
        if control.training in ("plain", "random"):
            assert behavior.outcome == "rejected", control.name
        if control.training == "masked" and control.task not in ("distractor", "shuffled"):
            assert behavior.outcome != "rejected", control.name
        if control.training == "few-masks" and control.task in ("stories", "pair"):
            assert behavior.outcome != "accepted", control.name
        if control.task == "distractor":
            assert behavior.outcome != "accepted", control.name
