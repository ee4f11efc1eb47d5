"""`auto`: its choice of a method, kept beside the checkpoint, that of a precision, and why."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from scipy.stats import spearmanr

import faithmeter as fm
from faithmeter.config import MeasureConfig
from faithmeter.measuring import erase
from faithmeter.methods import explain
from faithmeter.models import devices
from faithmeter.models.evaluator import Evaluator
from faithmeter.runs import choices
from faithmeter.runs.choices import (
    Candidate,
    Choice,
    Chosen,
    choose_method,
    choose_precision,
    compare_ranks,
    read_budget,
)
from toy import rows_batch, tiny
from traces import falling, result, traces

ROWS = [f"the {'apple' if i % 2 else 'milk'} number {i},{'fruit' if i % 2 else 'drink'}" for i in range(240)]
TEXT = "the milk number 3"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("auto")
    (folder / "reviews.csv").write_text("\n".join(["review,kind", *ROWS]))
    config = fm.TrainConfig(data=str(folder / "reviews.csv"), text="review", label="kind", epochs=1)
    fm.train(config, fm.RunStore(folder / "runs"))
    [run] = folder.glob("runs/train-*")
    return run


@pytest.fixture(autouse=True)
def few_texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(choices, "TEXTS", 12)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_names_and_budgets() -> None:
    assert read_budget("auto") == 500
    assert read_budget(" auto( budget = 20 )") == 20
    assert read_budget("loo-sign") is read_budget("automatic") is None
    for wrong in ("auto(budget=0)", "auto(width=3)", "auto(budget=x)"):
        with pytest.raises(fm.InputError, match="expected auto, or auto"):
            read_budget(wrong)


def test_the_reason_names_the_best_the_next_and_the_budget() -> None:
    candidates = {"search": Candidate(0.449, 0.41, 0.48, 200), "loo-sign": Candidate(0.441, 0.4, 0.47, 40)}
    choice = Choice(500, 100, candidates)
    assert choice.method == "search"
    assert choice.reason == (
        "auto chose search: the highest ACU on 100 validation texts, 44.9 % [41.0, 48.0], of 2 methods with "
        "up to 500 evaluations per text; next: loo-sign, 44.1 % [40.0, 47.0]"
    )


def test_the_choice_has_the_highest_acu_on_validation_texts_and_is_made_once(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clf = fm.load(checkpoint)
    choice = choose_method(clf, checkpoint, 30)
    assert set(choice.candidates) == {"inp-grad-sign", "int-grad-sign", "int-grad-sign(baseline=mask)"} | {
        *("loo-sign", "loo-sign(of=margin)", "search(exchanges=0)", "search")
    }, "ridge and beam need more than 30 evaluations"
    assert all(candidate.evaluations <= 30 for candidate in choice.candidates.values())
    task = fm.own_task(checkpoint.parents[1] / "reviews.csv", text="review", label="kind")
    result = fm.measure(clf, task, list(choice.candidates), split="validation", limit=12)
    assert {name: each.acu for name, each in choice.candidates.items()} == pytest.approx(
        {name: result.acu(name) for name in choice.candidates}
    )
    assert result.acu(choice.method) == max(map(result.acu, choice.candidates))
    monkeypatch.setattr("faithmeter.runs.measurements.measure", lambda *_, **__: pytest.fail("chosen again"))
    assert choose_method(clf, checkpoint, 30) == choice
    pipe = fm.pipeline(checkpoint, method="auto(budget=30)", orders=19)
    assert (pipe.method, pipe.choice) == (choice.method, choice)
    assert pipe(TEXT)["explanation"]


def test_a_choice_is_that_of_its_own_settings(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the numbers depend on is changed; the choice is then made anew, once."""
    monkeypatch.setattr(devices, "cpu_features", lambda: {"avx512_bf16"})
    asked: list[str] = []
    choice = Choice(30, 12, {"loo-sign": Candidate(0.1, 0.0, 0.2, 9)})
    monkeypatch.setattr(choices, "_measure_candidates", lambda *_: asked.append("") or choice)
    monkeypatch.setattr(choices, "CANDIDATES", ("loo-sign", "grad-l2"))
    clf = fm.load(checkpoint)
    measured = choices.measured_task(clf, checkpoint, choices.MeasureConfig())
    monkeypatch.setattr(choices, "measured_task", lambda *_: measured)  # its classes do not matter
    record = choices.training_record(checkpoint)
    monkeypatch.setattr("faithmeter.stats.metrics.OWN_METRICS", {})
    fm.metric("hits")(lambda labels, p: float((labels == p).sum()))
    several = tiny(dtype=torch.float32)
    several.model.config.problem_type = "multi_label_classification"
    labels = [fm.Classifier(several.model, several.tokenizer, label=label) for label in (0, 1)]
    hits = record.model_copy(update={"metric": "hits"})
    table: list[tuple[str, fm.Classifier, object, dict[str, object]]] = [
        ("nothing", clf, record, {}),
        ("label 0", labels[0], record, {}),
        ("label 1", labels[1], record, {}),
        ("precision", fm.load(checkpoint, precision="bf16"), record, {}),
        ("overlap", fm.load(checkpoint, overlap=4), record, {}),
        ("data", clf, record.model_copy(update={"data": "others"}), {}),
        ("task", clf, record.model_copy(update={"config": record.config.replace(task="RTE", data="")}), {}),
        ("metric", clf, hits, {}),
        ("unit", clf, record, {"unit": "word"}),
        ("seed", clf, record, {"seed": 1}),
    ]

    def ask(name: str, clf: fm.Classifier, record: object, options: dict[str, object]) -> None:
        monkeypatch.setattr(choices, "training_record", lambda _: record)
        asked.clear()
        choose_method(clf, checkpoint, 30, **options)

    for row in table:
        ask(*row)
        assert len(asked) == 1, f"another {row[0]}"
        ask(*row)
        assert not asked, "it is kept"
    fm.metric("hits")(lambda labels, p: float((labels != p).sum()))
    ask("", clf, hits, {})
    assert len(asked) == 1, "the metric was edited"


def test_the_choice_goes_by_the_unit(checkpoint: Path) -> None:
    clf = fm.load(checkpoint)
    task = fm.own_task(checkpoint.parents[1] / "reviews.csv", text="review", label="kind")
    choice = choose_method(clf, checkpoint, 3, unit="word", seed=2)
    result = fm.measure(
        clf, task, ["random(seed=2)", choice.method], split="validation", limit=12, unit="word"
    )
    assert choice.candidates[choice.method].acu == pytest.approx(result.acu(choice.method))


def test_the_command_line_prints_the_reason(faithmeter, checkpoint: Path) -> None:
    outcome = faithmeter("explain", checkpoint, TEXT, "-m", "auto(budget=1)", "--json")
    assert outcome.code == 0, outcome.err
    assert "auto chose inp-grad-sign: the highest ACU on 12 validation texts" in outcome.err
    assert '"inp-grad-sign"' in outcome.out


def test_another_budget_measures_only_other_candidates(checkpoint: Path, tmp_path, monkeypatch) -> None:
    """Their traces lie in the store of the checkpoint, like those of any measurement."""
    checkpoint = Path(shutil.copytree(checkpoint, tmp_path / "runs" / checkpoint.name))
    monkeypatch.setattr(choices, "CANDIDATES", ("inp-grad-sign", "loo-sign"))
    clf, explained = fm.load(checkpoint), set[str]()
    explain = erase.explain

    def counted(clf, batch, labels, method):
        explained.add(str(method))
        return explain(clf, batch, labels, method)

    monkeypatch.setattr(erase, "explain", counted)
    assert choose_method(clf, checkpoint, 1, unit="sentence").method == "inp-grad-sign"
    assert explained == {"random(seed=0)", "inp-grad-sign"}
    explained.clear()
    assert len(choose_method(clf, checkpoint, 30, unit="sentence").candidates) == 2
    assert explained == {"loo-sign"}
    assert [*checkpoint.parent.glob("traces/*/loo-sign-*/0-12.parquet")]


def test_a_damaged_choice_is_made_again(checkpoint: Path) -> None:
    clf = fm.load(checkpoint)
    choice = choose_method(clf, checkpoint, 1)
    [file] = checkpoint.glob("auto-1-*.json")
    file.write_text(file.read_text().replace("inp-grad-sign", "loo-sign"))
    assert choose_method(clf, checkpoint, 1) == choice


def test_a_checkpoint_without_validation_texts_gets_one_clear_line(tmp_path: Path, faithmeter) -> None:
    clf = tiny(dtype=torch.float32)
    clf.model.save_pretrained(tmp_path / "model")
    clf.tokenizer.save_pretrained(tmp_path / "model")
    outcome = faithmeter("explain", tmp_path / "model", "the film", "-m", "auto")
    assert outcome.code == 2
    assert "has none: it was not trained by faithmeter; name a method, such as loo-sign" in outcome.err
    with pytest.raises(fm.InputError, match="expected the folder of a checkpoint"):
        fm.pipeline(clf, method="auto")


ID_ROWS = ([5, 9, 12, 7, 20], [6, 11, 8], [14])


def test_ranks_are_compared_by_spearman_and_a_text_of_one_word_says_nothing() -> None:
    exact, lower = (tiny(dtype=torch.float32) for _ in range(2))
    lower.place(torch.device("cpu"), "bf16")
    batch, labels = rows_batch(*ID_ROWS), torch.tensor([0, 1, 2])
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
    monkeypatch.setattr(choices, "load_measured", lambda *_: tiny(dtype=torch.float32, labels=2))
    monkeypatch.setattr(choices, "measured_task", lambda *_: (task, None, None))
    asked: list[int] = []

    def compare(_: object, __: object, batch: fm.Batch, *more: object) -> dict[str, float]:
        asked.append(len(batch))
        return ranks

    monkeypatch.setattr(choices, "compare_ranks", compare)
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
