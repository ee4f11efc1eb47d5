"""Audits: a decision on any classifier, whose parts are kept, and mistakes that are told before any work."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import faithmeter as fm
from faithmeter.cli.screen import print_costs
from faithmeter.runs import auditing
from faithmeter.runs.auditing import parse_budget
from faithmeter.verdict.adapted import AdaptEvidence, explain_audit, judge_audit
from faithmeter.verdict.sentences import Answer, Verdict
from toy import WORDS, tiny

METHODS = ("grad-l2", "loo-sign")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random classifier, which no check can accept as one that learned, and texts."""
    folder, rng = tmp_path_factory.mktemp("audit"), random.Random(0)
    clf = tiny(dtype=torch.float32, labels=2)
    clf.model.save_pretrained(folder / "original")
    clf.tokenizer.save_pretrained(folder / "original")
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(3, 9))) for _ in range(260)]
    (folder / "texts.csv").write_text("\n".join(["review", *texts]))
    return folder


def run(place: Path, store: Path, **options: object) -> auditing.Audit:
    settings = {"methods": METHODS, "epochs": 1, "learning_rate": 1e-3, "batch_size": 32, "store": store}
    return fm.audit(place / "original", place / "texts.csv", "review", **{**settings, **options})


@pytest.fixture(scope="module")
def audited(place: Path) -> auditing.Audit:
    return run(place, place / "runs")


def test_it_answers_three_questions_and_names_the_next_command(audited, place: Path) -> None:
    assert [answer.question for answer in audited.answers] == [
        "May you trust explanations of this model?",
        "Which method to use?",
        "What did it cost?",
    ]
    assert {*audited.result.methods} == {"random", *METHODS}
    assert audited.next_command.startswith(f"faithmeter explain {audited.folder} ")
    page = place / "audit.html"
    audited.to_html(page)
    assert audited.answers[2].text.split(".")[0] in page.read_text(encoding="utf-8")
    assert json.loads(json.dumps(audited.to_dict()))["adapted"] == (audited.record is not None)


def test_a_model_that_is_not_accepted_is_adapted_and_the_price_is_named(audited) -> None:
    assert not audited.checked.evidence.measurable
    assert audited.record is not None
    share = f"{100 * audited.record.agreement:.1f}% of {audited.record.rows['test']} held-out texts"
    assert share in audited.answers[2].text


def test_the_measurement_of_the_adapted_model_is_in_the_store(audited, place: Path) -> None:
    [manifest] = [one for _, one in fm.RunStore(place / "runs").records() if one.kind == "measure"]
    [pooled] = fm.RunStore(place / "runs").results()
    assert {*manifest.traces} == {"random", *METHODS}
    for method in METHODS:
        assert pooled.result.area(method, "acu") == audited.result.area(method, "acu")


def test_a_second_audit_computes_nothing_and_gives_the_same_digits(
    audited, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("a finished part is computed again")

    monkeypatch.setattr("faithmeter.training.finetuning.finetune", refuse)
    monkeypatch.setattr("faithmeter.runs.join.trace_slice", refuse)
    again = run(place, place / "runs")
    assert json.dumps(again.to_dict()) == json.dumps(audited.to_dict())


def test_a_spent_budget_leaves_out_the_dearest_methods_and_says_so(
    audited, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock stands still until the first method is done."""
    looks = iter([False, True])
    monkeypatch.setattr(auditing.Deadline, "passed", property(lambda self: next(looks, True)))
    decision = run(place, place / "runs", budget="1m")
    assert decision.left_out == ("loo-sign",)
    assert "The budget was spent before loo-sign" in decision.answers[1].text


def test_an_adaptation_is_stopped_by_the_budget_and_continued_with_equal_digits(
    audited, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"epochs": 2, "methods": ["grad-l2"]}
    whole = run(place, place / "whole", **options)
    steps: list[str] = []

    def passed(_: object) -> bool:
        return steps.count("adaptation") > 10  # in the second of two epochs of seven steps

    monkeypatch.setattr(auditing.Deadline, "passed", property(passed))
    stopped = run(
        place, place / "stopped", budget="1m", progress=lambda *step: steps.append(step[0]), **options
    )
    assert stopped.left_out == ("adaptation", "grad-l2")
    assert stopped.record is None
    assert "The budget was spent before adaptation and grad-l2" in stopped.answers[1].text
    assert stopped.answers[2].text.startswith("Not known: the budget was spent before")
    steps.clear()
    again = run(place, place / "stopped", **options)
    assert again.record is not None
    assert again.record.fingerprint == whole.record.fingerprint
    assert again.result.to_dict()["methods"]["grad-l2"]["acu"] == whole.result.acu("grad-l2")


def test_what_a_budget_may_leave_out_is_told_with_the_costs(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = {"check": 10.0, "adaptation": 100.0, "grad-l2": 5.0}
    print_costs(seconds, 60.0)
    assert "the budget of 60 s may leave out: adaptation, grad-l2" in capsys.readouterr().err
    print_costs(seconds, 200.0)
    assert "may leave out" not in capsys.readouterr().err


def test_costs_are_told_before_the_work_and_a_log_gets_one_percentage(faithmeter, place, audited) -> None:
    options = ("--epochs", 1, "--learning-rate", 1e-3, "-m", "grad-l2", "-m", "loo-sign")
    outcome = faithmeter(
        "audit", place / "original", "--data", place / "texts.csv", "--text", "review", *options,
        "-o", place / "told",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    costs, kept, *lines = outcome.err.splitlines()
    assert costs.startswith("at most ")
    parts = ("check", "adaptation", "grad-l2", "loo-sign")
    assert [costs.index(f" {part} ") for part in parts] == sorted(costs.index(f" {part} ") for part in parts)
    assert kept == "what is finished is kept: the same command continues after a stop"
    percents = [int(line.removeprefix("audit: ").partition(" %")[0]) for line in lines]
    assert percents == sorted(percents), "no phase turns the percentage back"
    assert percents[-1] == 100
    assert (place / "told" / "audit.html").exists()


def test_no_part_of_an_audit_makes_more_evaluations_than_its_bound(audited) -> None:
    sizes = {"train": 208, "validation": 26, "test": 26}
    rows = {role: list(range(size)) for role, size in sizes.items()}
    evaluations = audited.result.evaluations
    config = fm.AdaptConfig(model="m", data="d", text="t", epochs=1)
    task = auditing._adapted_task(audited.folder, audited.record)
    splits = {**rows, "test": task.load()["test"]}
    bounds = auditing.bound_parts(config, fm.load(audited.folder), splits, METHODS, 0)
    assert all(evaluations[name] <= bounds[name] for name in METHODS)
    assert bounds["adaptation"] >= 3 * 208 + 26 * 11
    assert auditing.bound_parts(config, fm.load(audited.folder), splits, METHODS, 13)["loo-sign"] in (
        bounds["loo-sign"] // 2,
        bounds["loo-sign"] // 2 + 1,
    )


@pytest.mark.parametrize(("budget", "seconds"), [("90s", 90), ("10m", 600), ("1.5h", 5400)])
def test_budgets_are_read(budget: str, seconds: float) -> None:
    assert parse_budget(budget) == seconds


@pytest.mark.parametrize("budget", ["10", "m", "-3m", "0s", "nanm", "10 minutes", "infh"])
def test_a_budget_that_cannot_be_read_is_refused(budget: str) -> None:
    with pytest.raises(fm.InputError, match="expected a time such as 90s, 10m"):
        parse_budget(budget)


def verdict(text: str, mood: str) -> Verdict:
    answers = (Answer("", mood, text), Answer("", mood, "It is loo-sign."), Answer("", mood, ""))
    return Verdict((), (), (), answers, (), "Use loo-sign.")


def test_a_model_that_passes_as_it_is_costs_nothing() -> None:
    passes = verdict("Yes: it passes the check.", "good")
    first, second, third = judge_audit(passes, passes, None)
    assert (first.mood, first.text) == ("good", "Yes: it passes the check.")
    assert second.text == "Use loo-sign."
    assert third.text == "Nothing: the model is used as it is, and no prediction changes."


ADAPTED = AdaptEvidence(
    agreement=0.99,
    required=0.98,
    texts=200,
    method="loo-sign",
    rank_agreement=(0.46, 0.38, 0.53),
)


def test_an_adapted_model_is_named_in_the_first_answer_and_its_price_in_the_third() -> None:
    fails = verdict("No: it handles masked texts badly. With 50% masked, it errs.", "bad")
    passes = verdict("Yes: it passes the check. At each rate it is close.", "good")
    first, _, third = judge_audit(fails, passes, ADAPTED)
    assert first.text == "Yes, of the adapted model: it passes the check."
    assert third.text.startswith(
        "The adapted model decides like the original on 99.0% of 200 held-out texts."
    )
    assert explain_audit(fails, passes, ADAPTED) == {
        "The check.": "At each rate it is close.",
        "As it is, the model was not accepted.": "It handles masked texts badly. With 50% masked, it errs.",
        "The methods.": "It is loo-sign.",
    }


def test_an_adapted_model_that_strayed_is_no_yes() -> None:
    passes = verdict("Yes: it passes the check.", "good")
    first, _, third = judge_audit(passes, passes, replace(ADAPTED, agreement=0.9))
    assert (first.mood, third.mood) == ("caution", "bad")
    assert "(98.0% were wanted)" in third.text
