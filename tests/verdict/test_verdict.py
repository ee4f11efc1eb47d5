"""Doubts and verdicts: each case of a table is the same on every surface, and no surface has its own rule."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import faithmeter as fm
from faithmeter.cli import explain as explaining
from faithmeter.cli import measure as verb
from faithmeter.config import TrainConfig
from faithmeter.measuring import groups
from faithmeter.measuring.explanation import Erasure, Explanation, Piece
from faithmeter.measuring.result import Result
from faithmeter.measuring.trace import Trace
from faithmeter.report import card as modelcard
from faithmeter.report.page.verdicts import judge
from faithmeter.runs import pipeline as pipelines
from faithmeter.serve import app as serving
from faithmeter.serve.admission import ServedModel
from faithmeter.serve.app import create_app
from faithmeter.stats.comparisons import rank_methods
from faithmeter.stats.intervals import Interval, resample_texts
from faithmeter.stats.predictions import Predictions
from faithmeter.store.run_store import RunStore
from faithmeter.verdict import sentences as trust
from faithmeter.verdict.doubts import doubts
from faithmeter.verdict.evidence import MethodEvidence, ProbeEvidence, TaskEvidence
from faithmeter.verdict.sentences import verdict
from toy import tiny
from traces import keep, made_up_texts, perfect, result, trace

ROOT = Path(fm.__file__).parent
PERCENTS = tuple(range(0, 101, 10))
METHODS = ("random", "loo-sign")
FLOORS = {"published": 0.001, "crossfit": 0.002}
POWERLESS = {"published": 0.3, "crossfit": 0.08}
RECALIBRATION = perfect(2)


@dataclass(frozen=True)
class Case:
    """Facts of a measurement, and what must be said of it."""

    kinds: tuple[str, ...]
    trained_with: str = "half"
    whole: float = 0.9
    texts: int = 300
    floors: Any = None  # FLOORS by default
    p: tuple[float, float] = (0.4, 0.4)  # cross-fitted: of random, of loo-sign
    published: float | None = None  # as cross-fitted by default
    last: float = 0.4  # cross-fitted, at 100 %
    below: float = 0.0  # share of the texts with a small p at 90 %
    fall: float = 0.5  # how much loo-sign lowers the performance at once
    truncated: float = 0.0
    precision: str = "fp32"
    by_number: bool = False
    behaves: bool = True  # whether masked predictions were checked, and are as good as they can be
    trusted: tuple[str, ...] = METHODS


NONE: tuple[str, ...] = ()
TASK_CASES = {
    "masked, good": Case(NONE),
    "masked, few texts": Case(("undecided", "few-texts"), texts=24, trusted=NONE),
    "masked, guessing": Case(("unlearned", "unfaithful"), whole=0.5, fall=0.0, trusted=NONE),
    "masked, guessing, few texts": Case(
        ("unlearned", "unfaithful", "few-texts"), whole=0.5, fall=0.0, texts=60, trusted=NONE
    ),
    "masked, not checked": Case(("unchecked",), behaves=False, trusted=NONE),
    "masked, not checked, rejected": Case(
        ("unchecked", "outside"), behaves=False, p=(0.01, 0.01), trusted=NONE
    ),
    "masked, rejected": Case(("outside",), p=(0.01, 0.01)),
    "masked, one method rejected": Case(("outside",), p=(0.4, 0.01)),
    "masked, baseline rejected": Case(("outside",), p=(0.01, 0.4)),
    "masked, many rejected one by one": Case(("outside",), below=0.6),
    "masked, many rejected one by one, few validation texts": Case(
        NONE, below=0.6, floors={"published": 0.01, "crossfit": 0.02}
    ),
    "masked, powerless": Case(NONE, floors=POWERLESS),
    "masked, powerless, few texts": Case(
        ("undecided", "few-texts"), floors=POWERLESS, texts=24, trusted=NONE
    ),
    "masked, no test": Case(NONE, floors={}),
    "masked, last step rejected": Case(("wholly-masked",), last=0.001),
    "masked, random erasure costs little": Case(("small-divisor",), whole=0.58),  # (0.58 - 0.5) / 2
    "masked, published powerless": Case(("powerless",), floors={"published": 0.3, "crossfit": 0.002}),
    "masked, tests disagree": Case(("disagreement",), published=0.002),
    "masked, no better than random": Case(("unfaithful",), fall=0.0),
    "masked, long texts": Case(("truncated",), truncated=0.25),
    "masked, low precision": Case(("precision",), precision="bf16"),
    "masked, classes by number": Case(("classes",), by_number=True),
    "all masked, good": Case(NONE, trained_with="all"),
    "plain, good": Case(("training",), trained_with="none"),
    "plain, few texts": Case(
        ("undecided", "few-texts", "training"), trained_with="none", texts=24, trusted=NONE
    ),
    "plain, rejected": Case(("outside", "training"), trained_with="none", p=(0.001, 0.001)),
    "plain, guessing": Case(
        ("unlearned", "unfaithful", "training"), trained_with="none", whole=0.5, fall=0.0, trusted=NONE
    ),
    "unknown, good": Case(("training",), trained_with="unknown"),
    "unknown, few texts": Case(
        ("undecided", "few-texts", "training"), trained_with="unknown", texts=24, trusted=NONE
    ),
    "unknown, rejected": Case(("outside", "training"), trained_with="unknown", p=(0.02, 0.02)),
    "unknown, guessing, rejected": Case(
        ("unlearned", "outside", "training"),
        trained_with="unknown",
        whole=0.5,
        fall=0.0,
        p=(0.02, 0.02),
        trusted=NONE,
    ),
    "unknown, powerless": Case(("training",), trained_with="unknown", floors=POWERLESS),
    "unknown, not checked": Case(
        ("unchecked", "training"), trained_with="unknown", behaves=False, trusted=NONE
    ),
    "unknown, no test": Case(NONE, trained_with="unknown", floors={}),
}


@dataclass(frozen=True)
class TextCase:
    """Facts of one measured text, and what must be said of it."""

    kinds: tuple[str, ...]
    answer: str
    trained_with: str = "half"
    chance: float = 0.01
    acu: float = 0.3
    floors: Any = None
    p: float = 0.4
    published: float | None = None
    truncated: bool = False
    precision: str = "fp32"
    trusted: bool = True  # the area
    faithful: bool = True


TEXT_CASES = {
    "masked, good": TextCase(NONE, "faithful for this text"),
    "masked, chance": TextCase(("unfaithful",), "could be chance", chance=0.3, faithful=False),
    "masked, harmless": TextCase(("unfaithful",), "not faithful", chance=0.9, acu=-0.1, faithful=False),
    "masked, rejected": TextCase(("outside",), "out of distribution", p=0.01, trusted=False, faithful=False),
    "masked, powerless": TextCase(
        ("unchecked",), "beats chance, but was not checked", floors=POWERLESS, trusted=False, faithful=False
    ),
    "masked, no test": TextCase(
        ("unchecked",), "beats chance, but was not checked", floors={}, trusted=False, faithful=False
    ),
    "masked, published powerless": TextCase(
        ("powerless",), "faithful", floors={"published": 0.3, "crossfit": 0.002}
    ),
    "masked, tests disagree": TextCase(("disagreement",), "faithful", published=0.001),
    "masked, long text": TextCase(("truncated",), "faithful", truncated=True),
    "masked, low precision": TextCase(("precision",), "faithful", precision="fp16"),
    "plain, good": TextCase(("training",), "faithful", trained_with="none"),
    "plain, rejected": TextCase(
        ("outside", "training"),
        "out of distribution",
        trained_with="none",
        p=0.01,
        trusted=False,
        faithful=False,
    ),
    "unknown, good": TextCase(("training",), "faithful", trained_with="unknown"),
    "unknown, chance": TextCase(
        ("unfaithful", "training"), "could be chance", trained_with="unknown", chance=0.2, faithful=False
    ),
    "unknown, rejected, chance": TextCase(
        ("outside", "unfaithful", "training"),
        "out of distribution",
        trained_with="unknown",
        p=0.01,
        chance=0.2,
        trusted=False,
        faithful=False,
    ),
}


def seed_of(case: Case) -> dict[str, Trace]:
    """Two classes, half of the texts each; guessing predicts the first."""
    floors = FLOORS if case.floors is None else case.floors
    row, labels = np.arange(case.texts), np.arange(case.texts) % 2
    seed = {}
    for method, p in zip(METHODS, case.p, strict=True):
        predictions = np.empty((case.texts, len(PERCENTS)), int)
        crossfit = np.full(predictions.shape, p)
        for step, percent in enumerate(PERCENTS):
            lost = 0.0 if percent in (0, 100) or method == "random" else case.fall
            right = case.whole - (case.whole - 0.5) * percent / 100 - lost
            known = labels == 0
            if case.whole > 0.5:
                known = (row * 7) % case.texts < round(right * case.texts)
            predictions[:, step] = np.where(known, labels, 1 - labels)
        crossfit[:, -1] = case.last
        crossfit[row < case.below * case.texts, PERCENTS.index(90)] = 0.04
        values = {"crossfit": crossfit, "published": p if case.published is None else case.published}
        tests = {test: np.maximum(values[test], floors[test]) for test in floors}
        seed[method] = trace(method, predictions, labels, p=tests)
    return seed


def facts_of(case: Case) -> dict[str, Any]:
    return {
        "floors": FLOORS if case.floors is None else case.floors,
        "trained_with": case.trained_with,
        "classes_by_number": case.by_number,
        "precision": case.precision,
        "threshold": 0.0,
    }


def measurement(case: Case) -> Result:
    known = (RECALIBRATION,) if case.behaves else ()
    return result(seed_of(case), truncated=case.truncated, recalibrations=known, **facts_of(case))


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "resample_texts", partial(resample_texts, resamples=199))
    monkeypatch.setattr(groups, "rank_methods", partial(rank_methods, swaps=199))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "model"
    clf = tiny(labels=2)
    clf.model.float().save_pretrained(folder)
    clf.tokenizer.save_pretrained(folder)
    return folder


def stored(case: Case, store: RunStore, fingerprint: str, number: int = 0) -> None:
    trained, seed = TrainConfig(task="RTE", model="tiny", seed=number), seed_of(case)
    texts = made_up_texts(seed["random"])
    texts["truncated"] = texts["row"] < case.truncated * case.texts
    keep(
        store,
        trained,
        seed,
        texts=texts,
        checkpoint=fingerprint,
        strategy=case.trained_with,
        recalibration=RECALIBRATION if case.behaves else None,
        **facts_of(case),
    )


def bullets(card: str) -> list[str]:
    section = card.split("### What must not be trusted")[1].split("###")[0]
    lines = [re.sub(r"\\(.)", r"\1", line[2:]) for line in section.splitlines() if line.startswith("- ")]
    return [line.removesuffix(".") for line in lines[: -len(trust.LIMITS)]]


@pytest.mark.parametrize("case", TASK_CASES.values(), ids=TASK_CASES)
def test_a_measured_task_has_the_same_doubts_everywhere(
    case: Case, checkpoint: Path, tmp_path: Path, faithmeter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = measurement(case)
    texts = [doubt.text for doubt in result.doubts]
    assert tuple(doubt.kind for doubt in result.doubts) == case.kinds
    assert result.verdict.trusted == case.trusted

    fingerprint = fm.load(checkpoint).fingerprint
    store = RunStore(tmp_path / "runs")
    stored(case, store, fingerprint)
    [pooled] = store.results()
    assert pooled.result.evidence == result.evidence, "traces that are read again"

    [report] = judge([pooled], store.frame("train"))
    assert [doubt.text for doubt in report.verdict.doubts] == texts, "the report"
    assert report.verdict.leaders == result.verdict.leaders
    assert [answer.text for answer in report.verdict.answers] == [
        answer.text for answer in result.verdict.answers
    ]

    copy = tmp_path / "model"
    copy.mkdir()
    for file in checkpoint.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    card = modelcard.write(copy, store).read_text(encoding="utf-8")
    assert bullets(card) == texts, "the model card"

    monkeypatch.setattr(verb, "run", lambda *_: result)
    outcome = faithmeter("measure", "model", "-m", "loo-sign")
    lines = outcome.out.splitlines()
    assert all(any(line.endswith(f"{text}.") for line in lines) for text in texts), "the command line"
    first, second, third = result.verdict.answers
    for answer in (first, second) if texts else (first, second, third):
        assert any(line.endswith(f" {answer.question} {answer.text}") for line in lines)
    assert any(third.question in line for line in lines)
    as_json = json.loads(faithmeter("measure", "model", "-m", "loo-sign", "--json").out)
    assert [doubt["text"] for doubt in as_json["doubts"]] == texts
    assert tuple(as_json["verdict"]["trusted"]) == case.trusted

    gate = ("measure", "model", "-m", "loo-sign", "--require", "loo-sign:acu>=-100")
    outcome = faithmeter(*gate)
    assert (outcome.code == 0) == ("loo-sign" in case.trusted), "the gate"
    if outcome.code:
        assert f", but {result.verdict.reason('loo-sign')}" in outcome.err
    assert faithmeter(*gate, "--even-if-untrusted").code == 0


SEVERAL_SEEDS = ("masked, good", "masked, few texts", "masked, rejected", "plain, guessing", "unknown, good")


@pytest.mark.parametrize("name", SEVERAL_SEEDS)
def test_several_seeds_are_pooled_and_have_the_same_doubts(name: str, tmp_path: Path) -> None:
    case, store = TASK_CASES[name], RunStore(tmp_path / "runs")
    alone = measurement(case)
    for number in (1, 2):
        stored(case, store, f"weights-{number}", number)
    [pooled] = store.results()
    [report] = judge([pooled], store.frame("train"))
    assert [doubt.text for doubt in report.verdict.doubts] == [doubt.text for doubt in alone.doubts]
    assert report.verdict.leaders == alone.verdict.leaders
    both = {method: np.stack([each.predictions] * 2) for method, each in seed_of(case).items()}
    predictions = Predictions(np.arange(case.texts) % 2, both, 2, "accuracy", PERCENTS)
    facts = pooled.result.evidence
    assert (facts.seeds, facts.group) == (2, pooled.result.leaders)
    expected = resample_texts(predictions, resamples=199).acu("loo-sign")
    assert pooled.result.interval("loo-sign", "acu") == expected
    assert report.verdict.answers[1].text == verdict(facts).answers[1].text


def text_measurement(case: TextCase) -> Explanation:
    floors = FLOORS if case.floors is None else case.floors
    values = {"published": case.p if case.published is None else case.published, "crossfit": case.p}
    p = {test: max(values[test], floors[test]) for test in floors}
    flat = [0.5] * len(PERCENTS)
    erasure = Erasure(flat, {test: [p[test]] * len(PERCENTS) for test in p}, p, case.acu, 0.5, case.chance)
    word = Piece("good", 13, 17, (3,), {"loo-sign": 1.0})
    return Explanation(
        text="the film was good",
        pair=None,
        truncated=case.truncated,
        label="LABEL_0",
        probabilities={"LABEL_0": 1.0},
        value=None,
        **dict.fromkeys(("tokens", "words"), (word,)),
        methods=("loo-sign",),
        percents=PERCENTS,
        orders=100,
        **dict.fromkeys(("mean", "lower", "upper"), flat),
        erasures={"loo-sign": erasure},
        floors=floors,
        trained_with=case.trained_with,  # type: ignore[arg-type]
        precision=case.precision,
    )


@pytest.fixture(scope="module")
def client() -> Any:
    app = create_app(ServedModel(tiny(labels=2), "tiny"), hosts=["testserver"])
    yield TestClient(app)
    app.state.admission.close()


@pytest.mark.parametrize("case", TEXT_CASES.values(), ids=TEXT_CASES)
def test_a_measured_text_has_the_same_doubts_everywhere(
    case: TextCase, faithmeter: Any, client: Any, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = text_measurement(case)
    texts = [doubt.text for doubt in result.doubts]
    assert tuple(doubt.kind for doubt in result.doubts) == case.kinds
    assert result.verdict.trusted == (("loo-sign",) if case.trusted else ())
    assert result.verdict.faithful == (("loo-sign",) if case.faithful else ())
    [answer] = result.verdict.answers
    assert answer.text.startswith(case.answer)
    assert len(str(result.verdict).split(".")[0].split()) <= 12, "the answer first"

    for module in (pipelines, serving):
        monkeypatch.setattr(module, "verify_text", lambda *_, **__: result)
    prediction = fm.pipeline(tiny(labels=2))("the film was good")
    assert prediction["doubts"] == texts, "the pipeline"
    assert prediction["trusted"] == case.faithful

    response = client.post("/api/measure", json={"text": "the film was good"}).json()
    assert [doubt["text"] for doubt in response["doubts"]] == texts, "the live page"
    assert response["verdicts"] == {"loo-sign": {"mood": answer.mood, "text": answer.text}}

    monkeypatch.setattr(explaining, "_verify", lambda *_: result)
    common = ("explain", checkpoint, "the film was good", "-m", "loo-sign")
    lines = {line[2:] for line in faithmeter(*common).out.splitlines()}  # each after its mark
    assert {f"{text}." for text in texts} | {f"loo-sign: {answer.text}"} <= lines, "the command line"
    outcome = faithmeter(*common, "--require", "loo-sign:acu>=-100")
    assert (outcome.code == 0) == case.trusted, "the gate"


def test_there_are_enough_cases() -> None:
    assert len(TASK_CASES) + len(TEXT_CASES) >= 40
    kinds = {kind for case in (*TASK_CASES.values(), *TEXT_CASES.values()) for kind in case.kinds}
    assert kinds >= {"unlearned", "unchecked", "outside", "wholly-masked", "unfaithful", "few-texts"}


SURFACES = ("cli", "report", "serve", "runs", "grid")
LEVEL_IS_SHOWN = {
    "report/view.py",  # the heading of a column
    "report/figures/__init__.py",  # a line in a chart
    "report/page/sections.py",  # the text above a chart
    "report/page/__init__.py",  # the level that a script marks steps by
    "report/card/__init__.py",  # the text above a table
    "store/frames.py",  # the share of significant texts
}
WORDING = re.compile(
    r"out of distribution|do not trust|did not learn|nothing tells|not clearly better|"
    r"could not have rejected|\bat random are\b|could be chance|beats? chance|"
    r"fine-tuned with(out)? masks",
    re.IGNORECASE,
)


def sources() -> list[Path]:
    files = [file for surface in SURFACES for file in sorted((ROOT / surface).rglob("*"))]
    return [file for file in files if file.suffix in (".py", ".js", ".html", ".jinja")]


def test_no_surface_has_a_rule_or_words_of_its_own() -> None:
    for file in sources():
        name, text = file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")
        assert not re.search(r"\bMIN_TEXTS\b|< ?0\.05|>= ?0\.05\b(?!')", text), name
        assert "SIGNIFICANCE_LEVEL" not in text or name in LEVEL_IS_SHOWN, name
        lines = [line for line in text.splitlines() if WORDING.search(line) and not _is_comment(line)]
        assert not lines, f"{name} words a rule: {lines}"


def _is_comment(line: str) -> bool:
    return line.strip().startswith(("#", '"""', "//", "- `", "model, so that"))


def evidence(**facts: Any) -> TaskEvidence:
    methods = {
        "random": MethodEvidence(Interval(0, 0, 0), {"crossfit": 0.5}, 200),
        "a": MethodEvidence(Interval(0.3, 0.28, 0.32), {"crossfit": 0.5}, 200),
        "b": MethodEvidence(Interval(0.29, 0.27, 0.31), {"crossfit": 0.5}, 200),
        "c": MethodEvidence(Interval(0.1, 0.08, 0.12), {"crossfit": 0.5}, 200),
    }
    known = {"methods": methods, "whole": 0.9, "majority": 0.5, "floors": {"crossfit": 0.01}}
    return TaskEvidence(**{**known, "trained_with": "half", **facts})


def test_a_printed_verdict_is_its_sentences() -> None:
    decided = verdict(evidence(group=("a",), truncated=0.5))
    lines = str(decided).splitlines()
    assert lines[0] == decided.headline
    assert lines[1:4] == [f"{answer.question} {answer.text}" for answer in decided.answers]
    assert lines[4:] == [f"{doubt.text}." for doubt in decided.doubts]
    assert lines[4:]


NUMBERS: dict[str, dict[str, Any]] = {
    "good": {"group": ("a",)},
    "tied": {},
    "rejected": {"outside_share": 0.95},
    "not checked": {"floors": {}},
    "undecided": {"outside_share": 0.95, "floors": {"crossfit": 0.02}},
    "unknown training": {"trained_with": "unknown"},
    "plain": {"trained_with": "none"},
    "not learned": {"whole": 0.4},
}


@pytest.mark.parametrize("name", NUMBERS)
def test_of_numbers_too_an_answer_comes_first_in_at_most_twelve_words(name: str) -> None:
    judged = verdict(evidence(**NUMBERS[name]))
    for text in (judged.headline, *(answer.text for answer in judged.answers[:2])):
        assert len(text.split(". ")[0].split()) <= 12, text
    praised = name in ("good", "tied", "unknown training")
    assert judged.headline.startswith("Use ") == praised == bool(judged.leaders)
    assert str(judged).startswith(judged.headline)


def test_the_first_sentence_stays_short_however_many_lead() -> None:
    area = MethodEvidence(Interval(0.3, 0.28, 0.32), {"crossfit": 0.5}, 200)
    many = {"random": evidence().methods["random"], **{f"int-grad-sign(steps={n})": area for n in range(12)}}
    headline = verdict(evidence(methods=many)).headline
    assert headline.startswith("Use one of 12 methods, which cannot be told apart. They are int-grad-sign")


def test_methods_that_cannot_be_told_apart_share_the_lead() -> None:
    decided = verdict(evidence(group=("a",)))
    assert decided.leaders == ("a",)
    assert decided.answers[1].text.startswith("It is a, 1.0 points ahead of b. Its area below random erasure")
    assert "(ACU) is 30.0% [28.0, 32.0]" in decided.answers[1].text
    tied = verdict(evidence(group=("a", "b"), texts_needed=1234))
    assert tied.leaders == ("a", "b")
    assert tied.answers[1].text.startswith("Not decided: a and b cannot be told apart.")
    assert "About 1,234 texts would decide." in tied.answers[1].text
    assert verdict(evidence()).leaders == ("a", "b"), "without a comparison, overlapping intervals are a tie"
    methods = dict(evidence().methods)
    methods["a"] = MethodEvidence(Interval(0.3, 0.28, 0.32), {"crossfit": 0.001}, 200)
    strange = verdict(evidence(methods=methods, group=("a", "b")))
    assert strange.leaders == ("b",), "the first is out of distribution"


def test_most_texts_out_of_distribution_one_by_one_are_not_overlooked() -> None:
    """With few validation texts 95 % of the texts were rejected at a step, but all steps together not."""
    judged = verdict(evidence(outside_share=0.95, trained_with="unknown"))
    assert [doubt.kind for doubt in judged.doubts] == ["outside", "training"]
    assert "(95% of them one by one, at some step)" in judged.doubts[0].text
    assert judged.trusted == ()
    assert judged.answers[0].text.startswith(
        "No: masked texts are strange to it. For the model, whose training"
    )
    assert verdict(evidence(outside_share=0.3)).doubts == ()


def test_areas_on_other_texts_are_no_rivals() -> None:
    methods = dict(evidence().methods)
    methods["beam"] = MethodEvidence(Interval(0.5, 0.4, 0.6), {"crossfit": 0.5}, 50)
    assert verdict(evidence(methods=methods)).leaders == ("a", "b")


def test_seeds_that_did_not_learn_and_the_plain_model_are_named() -> None:
    kinds = [doubt.kind for doubt in doubts(evidence(seeds=2, unlearned_seeds=1, p_plain=0.001))]
    assert kinds == ["unlearned-seeds", "plain-model"]


def test_a_masked_text_is_judged_alone() -> None:
    facts = {"floors": {"crossfit": 0.01}, "trained_with": "half", "masked": True}
    normal, strange = (ProbeEvidence(p={"crossfit": p}, **facts) for p in (0.4, 0.01))
    assert doubts(normal) == []
    assert verdict(normal).answers[0].text == "Yes, as far as the test can tell."
    [doubt] = doubts(strange)
    assert (doubt.kind, doubt.severity) == ("outside", "bad")
    assert verdict(strange).answers[0].text.startswith("No: this text, masked as it is, is out of")
    untested = verdict(ProbeEvidence(p={}, masked=False))
    assert untested.answers[0].mood == "caution"


def test_undefined_numbers_raise_no_doubt() -> None:
    assert doubts(evidence(p_wholly_masked=math.nan, p_plain=math.nan)) == []
