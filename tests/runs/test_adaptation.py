"""Adaptation: the adapted model learns the original's predictions, and everything said of both is true."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import torch
from huggingface_hub.errors import EntryNotFoundError
from sklearn.linear_model import LogisticRegression

import faithmeter as fm
from faithmeter.config import MeasureConfig
from faithmeter.data.task import LABELED, read_labeled
from faithmeter.measuring.fitting import fit_tests
from faithmeter.methods import registry
from faithmeter.models import loading
from faithmeter.report.provenance import reproduce
from faithmeter.runs import adaptation
from faithmeter.runs.fitted_tests import saved_tests
from faithmeter.runs.measurements import measure_checkpoint
from faithmeter.stats.behavior import Behavior
from faithmeter.stats.intervals import Interval
from faithmeter.training.trainer import _cross_entropy
from faithmeter.verdict.adapted import AdaptEvidence, judge_adaptation
from toy import WORDS, letter_tokenizer, tiny
from trainings import Interrupt, equal, weights

TEXTS = 260


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a classifier that nobody can call measurable, and texts without labels."""
    folder, rng = tmp_path_factory.mktemp("adapt"), random.Random(0)
    clf = tiny(dtype=torch.float32, labels=2)
    clf.model.save_pretrained(folder / "original")
    clf.tokenizer.save_pretrained(folder / "original")
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(3, 9))) for _ in range(TEXTS)]
    rows = [f"{text},{'ab'[i % 2]},{'xyz'[i % 3]}" for i, text in enumerate(texts)]
    (folder / "texts.csv").write_text("\n".join(["review,two,three", *rows]))
    return folder


def config(place: Path, **changes: object) -> fm.AdaptConfig:
    own = {"model": str(place / "original"), "data": str(place / "texts.csv"), "text": "review"}
    return fm.AdaptConfig(**{**own, "epochs": 1, "batch_size": 32, "learning_rate": 1e-3, **changes})


@pytest.fixture(scope="module")
def reports() -> list[tuple[str, int, int]]:
    """What the adaptation of `adapted` reported of its phases."""
    return []


@pytest.fixture(scope="module")
def adapted(place: Path, reports: list[tuple[str, int, int]]) -> tuple[fm.AdaptConfig, fm.RunStore]:
    settings, store = config(place, label="two"), fm.RunStore(place / "runs")
    fm.adapt(settings, store, progress=lambda *report: reports.append(report))
    return settings, store


def test_every_phase_reports_its_start_and_all_of_its_work(adapted, reports) -> None:
    phases = list(dict.fromkeys(phase for phase, _, _ in reports))
    assert phases == ["predict", "validate", "test", "fit tests", "check", "agreement", "explain"]
    for name in phases:
        own = [(done, total) for phase, done, total in reports if phase == name]
        assert own[0][0] == 0, "a bar is shown before the first result"
        assert own[-1][0] == own[-1][1]
        amounts = [done for done, _ in own]
        assert amounts == sorted(amounts), "what is done is counted from the start of the phase"
    totals = {phase: total for phase, _, total in reports}
    assert (totals["predict"], totals["fit tests"], totals["agreement"]) == (TEXTS, 2 * 26, 26)
    assert len([done for phase, done, _ in reports if phase == "explain" and done]) > 2, "it moves"


def test_a_log_file_gets_lines_of_every_phase(faithmeter, place: Path, tmp_path: Path) -> None:
    texts = ("--data", place / "texts.csv", "--text", "review", "--limit", 48, "--epochs", 1)
    result = faithmeter("adapt", place / "original", *texts, "-o", tmp_path)
    assert result.code == 0, result.err
    finished = [line.partition(":")[0] for line in result.err.splitlines() if "100 %" in line]
    phases = ["predict", "validate", "test", "fit tests", "check", "agreement", "explain"]
    assert [name for name in finished if name in phases] == phases


def test_whole_rows_learn_the_probabilities_and_masked_rows_the_class() -> None:
    """Rows 0 and 2 are whole, row 1 is masked."""
    targets = [[0.7, 0.3], [0.4, 0.6], [0.1, 0.9]]
    rows = [
        {"input_ids": [0, 5, 2], "labels": int(p[1] > 0.5), "index": i, "targets": p}
        for i, p in enumerate(targets)
    ]
    batch = fm.MaskingCollator(letter_tokenizer())(rows)
    assert torch.allclose(batch["labels"], torch.tensor([[0.7, 0.3], [0.0, 1.0], [0.1, 0.9]]))
    soft = fm.MaskingCollator(letter_tokenizer(), soft=True)(rows)
    assert torch.allclose(soft["labels"], torch.tensor(targets))
    logits = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    log_p = [[x - math.log(sum(map(math.exp, row))) for x in row] for row in logits.tolist()]
    by_hand = -(0.7 * log_p[0][0] + 0.3 * log_p[0][1] + log_p[1][1] + 0.1 * log_p[2][0] + 0.9 * log_p[2][1])
    outputs = type("Outputs", (), {"logits": logits})
    assert float(_cross_entropy(outputs, batch["labels"])) == pytest.approx(by_hand / 3)


def test_the_labels_are_the_predictions_of_the_original(adapted, place: Path) -> None:
    settings, store = adapted
    rows = pd.read_parquet(store.folder(settings) / LABELED)
    original = fm.load(place / "original")
    predicted = original.logits(original.encode(rows["text"].tolist())).argmax(dim=1)
    assert rows["label"].tolist() == predicted.tolist()
    assert rows["split"].value_counts().to_dict() == {"train": 208, "validation": 26, "test": 26}


def test_the_agreement_is_that_of_the_two_models_on_held_out_texts(adapted, place: Path) -> None:
    settings, store = adapted
    record = store.get(settings)
    rows = pd.read_parquet(store.folder(settings) / LABELED)
    texts = rows[rows["split"] == "test"]["text"].tolist()
    both = [fm.load(path) for path in (place / "original", store.folder(settings))]
    one, two = (clf.logits(clf.encode(texts)).argmax(dim=1) for clf in both)
    assert record.agreement == float((one == two).double().mean())
    assert both[1].agreement == record.agreement
    assert math.isnan(both[0].agreement)
    assert record.original == both[0].fingerprint
    assert record.truth.keys() == {"original", "adapted"}, "there was a column of true labels"
    truth = pd.read_csv(place / "texts.csv").set_index("review")["two"].loc[texts].map({"a": 0, "b": 1})
    assert record.truth["original"] == pytest.approx((truth.to_numpy() == one.numpy()).mean())


def test_the_original_is_checked_by_whole_texts_and_the_adapted_model_by_masked_ones(adapted) -> None:
    settings, store = adapted
    record = store.get(settings)
    assert {*record.p_original["crossfit"]} == {*range(0, 101, 10)}
    adapted_model = fm.load(store.folder(settings))
    task = read_labeled(store.folder(settings) / LABELED, name="texts", classes=record.labels)
    tests = fit_tests(adapted_model, task, trained_with="half")
    result = fm.measure(adapted_model, task, ["random"], tests=tests)
    again = {percent: step.p for percent, step in result.pvalues("random", "crossfit").items()}
    assert record.p_adapted["crossfit"] == pytest.approx(again)


def test_a_measurement_says_for_which_model_it_holds(adapted) -> None:
    settings, store = adapted
    folder = store.folder(settings)
    result = measure_checkpoint(folder, MeasureConfig(methods=("grad-l2",)), store)
    kinds = {doubt.kind: doubt for doubt in result.verdict.doubts}
    assert "this holds for the adapted model" in kinds["adapted"].text
    assert result.curve("random").values[0] == store.get(settings).agreement
    assert result.metric == store.get(settings).metric == "agreement", "the labels are not the truth"
    assert "agreement with the original on whole texts" in result.verdict.answers[0].text
    again = measure_checkpoint(folder, MeasureConfig(methods=("grad-l2",)), store)
    assert again.context.agreement == result.context.agreement, "the record keeps it"
    text = fm.explain_text(fm.load(folder), "the film was fun", method=["loo-sign"], orders=19)
    doubts = {doubt.kind: doubt.text for doubt in text.verdict.doubts}
    assert "adapted" in doubts
    # the check that lies beside the checkpoint is used; of so few validation texts it cannot reject
    assert "no check was made" not in doubts["unchecked"]
    assert "too few validation texts" in doubts["unchecked"]
    [adapt, measured] = reproduce([record for _, record in store.records()], Path("runs"))
    assert adapt.startswith(f"faithmeter adapt {settings.model} ")
    assert f"--data {settings.data} " in adapt
    assert "--task" not in measured


def test_an_adaptation_is_a_run_with_an_identity(adapted, place: Path) -> None:
    settings, store = adapted
    record = store.get(settings)
    assert fm.adapt(settings, store) == record, "nothing is done twice"
    before = (place / "texts.csv").read_text()
    (place / "texts.csv").write_text(before.replace("film", "story"))
    try:
        with pytest.raises(fm.InputError, match="trained with other inputs; changed: rows"):
            fm.adapt(settings, store)
    finally:
        (place / "texts.csv").write_text(before)


@pytest.mark.slow
def test_a_killed_adaptation_continues_and_ends_with_the_same_weights(place: Path, tmp_path: Path) -> None:
    settings = config(place, epochs=2, limit=60)
    whole, killed = fm.RunStore(tmp_path / "whole"), fm.RunStore(tmp_path / "killed")
    fm.adapt(settings, whole)
    with pytest.raises(KeyboardInterrupt):
        fm.adapt(settings, killed, callbacks=[Interrupt(3)])
    with pytest.raises(fm.InputError, match="add --resume to continue"):
        fm.adapt(settings, killed)
    fm.adapt(settings, killed, resume=True)
    assert equal(weights(whole.folder(settings)), weights(killed.folder(settings)))


def test_training_stops_when_agreement_and_check_are_good(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptation, "stop_rule", lambda *_: lambda model, agreement: agreement > 0)
    record = fm.adapt(config(place, epochs=3, limit=48), fm.RunStore(tmp_path))
    assert [epoch.epoch for epoch in record.epochs] == [1]
    assert record.epochs[0].selection >= 1


def test_a_stopped_adaptation_that_is_killed_before_its_record_trains_no_further_epoch(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptation, "stop_rule", lambda *_: lambda model, agreement: agreement > 0)
    settings = config(place, epochs=3, limit=48)
    whole, killed = fm.RunStore(tmp_path / "whole"), fm.RunStore(tmp_path / "killed")
    expected = fm.adapt(settings, whole)

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fm.adapt(settings, killed, progress=lambda phase, *_: phase == "validate" and kill())
    with monkeypatch.context() as patch:
        patch.setattr(adaptation, "compare_models", kill)
        with pytest.raises(KeyboardInterrupt):
            fm.adapt(settings, killed, resume=True)
    record = fm.adapt(settings, killed, resume=True)
    assert [epoch.epoch for epoch in record.epochs] == [1]
    assert (record.epochs, record.fingerprint) == (expected.epochs, expected.fingerprint)
    assert equal(weights(whole.folder(settings)), weights(killed.folder(settings)))


def test_an_edited_method_of_ones_own_is_compared_again(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "METHODS", dict(registry.METHODS))
    settings, store = config(place, limit=48, compare="order"), fm.RunStore(tmp_path)
    agreements = []
    for body in ("loo(clf, batch, labels)", "loo(clf, batch, labels)", "0.0 + batch.input_ids"):
        space: dict[str, object] = {"loo": registry.METHODS["loo-sign"].function}
        exec(f"def order(clf, batch, labels):\n    return {body}", space)
        fm.method("order")(space["order"])
        agreements.append(fm.adapt(settings, store).rank_agreement)
    assert agreements[0] == agreements[1] != 1
    assert agreements[2] == 1, "the ids are the same for both models"


def test_the_stop_rule_asks_for_agreement_and_then_for_the_check(
    adapted, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, store = adapted
    clf = fm.load(store.folder(settings))
    rows = read_labeled(store.folder(settings) / LABELED, name="", classes=clf.labels).load()["train"]
    rule = adaptation.stop_rule(settings, clf, rows.select(range(80)))
    assert not rule(clf.model, settings.agreement - 0.01), "too few predictions are those of the original"
    checks: list[bool] = []
    monkeypatch.setattr(adaptation, "is_measurable", lambda p: checks.append({*p} >= {10, 90}) or True)
    assert rule(clf.model, settings.agreement)
    assert checks == [True]
    for texts in (30, 50):  # a test of 25 texts exists, but has no p-value below 0.05
        too_few = adaptation.stop_rule(settings, clf, rows.select(range(texts)))
        assert not too_few(clf.model, 1.0), "no test of so few texts can reject"


EVIDENCE = {
    "agreement": 0.99,
    "required": 0.98,
    "texts": 500,
    "method": "loo-sign",
    "rank_agreement": (0.4, 0.3, 0.5),
}


SMALL, LARGE, OPEN = (
    Interval(0.01, 0.0, 0.02, 200),
    Interval(0.3, 0.2, 0.4, 200),
    Interval(0.0, -0.1, 0.1, 20),
)


def checked(excess: Interval) -> Behavior:
    return Behavior((10, 50), (SMALL, excess), (SMALL, SMALL), 200, 100)


@pytest.mark.parametrize(
    ("changes", "moods"),
    [
        ({"behavior": checked(SMALL)}, ("good", "good", "caution")),
        ({"behavior": checked(SMALL), "agreement": 0.97}, ("bad", "good", "caution")),
        ({"behavior": checked(LARGE)}, ("good", "bad", "caution")),
        ({"behavior": checked(OPEN)}, ("good", "caution", "caution")),
        ({"behavior": None}, ("good", "caution", "caution")),
    ],
)
def test_the_verdict_can_say_no(changes: dict[str, object], moods: tuple[str, ...]) -> None:
    answers = judge_adaptation(AdaptEvidence(**{**EVIDENCE, **changes}))
    assert tuple(answer.mood for answer in answers) == moods
    assert [answer.text.startswith("Yes") for answer in answers[:2]] == [mood == "good" for mood in moods[:2]]
    assert answers[2].text.startswith("For the adapted model only")


@pytest.mark.parametrize(("excess", "mood", "start"), [(SMALL, "good", "Yes"), (LARGE, "bad", "No")])
def test_the_behavioral_check_decides_where_it_was_made(excess: Interval, mood: str, start: str) -> None:
    made = checked(excess)
    assert Behavior.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    answer = judge_adaptation(AdaptEvidence(**EVIDENCE, behavior=made))[1]
    assert answer.mood == mood
    assert answer.text.startswith(start)


def test_agreement_beside_a_constant_and_beyond_chance() -> None:
    original, other = torch.tensor([0, 0, 0, 1]), torch.tensor([0, 0, 1, 1])
    measured = adaptation.measure_agreement(original, other, 2)
    # by chance they agree on 0.75 × 0.5 + 0.25 × 0.5 = 0.5
    assert measured == {"agreement": 0.75, "constant": 0.75, "kappa": pytest.approx(0.5)}
    first, _, third = judge_adaptation(AdaptEvidence(**EVIDENCE, constant=0.77, kappa=0.72))
    assert first.text.endswith("A constant would on 77.0%; kappa, which allows for chance, is 0.72.")
    assert "a mean correlation of 0.40 [0.30, 0.50]" in third.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "does not say what it was trained on; give your texts with --data"),
        (("--data", "{texts}"), "requires --text, the name of that column"),
        (("--data", "{texts}", "--text", "revue"), "no column 'revue'"),
        (("--data", "{texts}", "--text", "review", "--label", "three"), "2 and 3 classes"),
        (("--data", "{texts}", "--text", "review", "--compare", "looo"), "unknown method 'looo'"),
        (("--data", "{texts}", "--text", "review", "--strategy", "none"), "unknown strategy 'none'"),
        (("--data", "nowhere.csv", "--text", "review"), "nowhere.csv does not exist"),
        (("--data", "{same}", "--text", "review"), "expected texts of at least two of its classes"),
    ],
)
def test_bad_inputs_are_refused_in_one_line(
    faithmeter, place: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "same.csv").write_text("\n".join(["review", *["the film"] * 240]))
    names = {"{texts}": str(place / "texts.csv"), "{same}": str(tmp_path / "same.csv")}
    arguments = tuple(names.get(argument, argument) for argument in arguments)
    result = faithmeter("adapt", place / "original", *arguments, "-o", tmp_path / "runs")
    assert result.code == 2
    *lines, refusal = result.err.strip().splitlines()
    assert message in refusal
    assert all(line.startswith("predict: ") for line in lines), "progress"


def test_the_verb_prints_both_checks_and_the_verdict(faithmeter, adapted, place: Path) -> None:
    settings, store = adapted
    options = [f"--{name.replace('_', '-')}={value}" for name, value in settings.changes().items()]
    given = [option for option in options if not option.startswith("--model")]
    result = faithmeter("adapt", settings.model, *given, "-o", store.root)
    assert result.code == 0
    for words in ("original crossfit", "adapted crossfit", "agreement in %", "For the adapted model only"):
        assert words in result.out
    answers = json.loads(faithmeter("adapt", settings.model, *given, "-o", store.root, "--json").out)
    assert len(answers["verdict"]) == 3


@pytest.fixture
def hub(adapted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The adapted model as `someone/adapted` on a hub, without its texts, which are private."""
    settings, store = adapted
    folder = tmp_path / "snapshot"
    shutil.copytree(store.folder(settings), folder, ignore=shutil.ignore_patterns(LABELED))

    def download(name: str, file: str, *, revision: str | None = None) -> str:
        if name != "someone/adapted":
            raise EntryNotFoundError("404 Client Error: no such file")
        return str(folder / file)

    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr("huggingface_hub.model_info", lambda *_, timeout: None)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, *, revision: str(folder))
    for function in (loading._require_on_hub, loading._download):
        function.cache_clear()
    yield folder
    for function in (loading._require_on_hub, loading._download):
        function.cache_clear()


def test_a_model_of_the_hub_brings_its_record_and_its_fitted_check(adapted, hub: Path) -> None:
    settings, store = adapted
    clf, local = fm.load("someone/adapted"), fm.load(store.folder(settings))
    assert clf.agreement == local.agreement == store.get(settings).agreement
    features = clf.features(clf.encode(["the film was fun", "a dull story"])).detach()
    expected = saved_tests(local)
    assert saved_tests(clf).keys() == expected.keys() == {"published", "crossfit"}
    for name, test in saved_tests(clf).items():
        assert test.pvalues(features).tolist() == expected[name].pvalues(features).tolist()
    result = fm.pipeline("someone/adapted", orders=19)("the film was fun")
    assert result["p_value"] is not None
    assert any("this holds for the adapted model" in doubt for doubt in result["doubts"])
    assert loading.local_copy("someone/else") == "someone/else", "no checkpoint of faithmeter"
    with pytest.raises(fm.InputError, match="no tests were saved with this classifier; fit them"):
        saved_tests(fm.Classifier(clf.model, clf.tokenizer))
    (hub / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(fm.InputError, match=r"model\.safetensors is not as it was written"):
        fm.load("someone/adapted")


def test_a_sentence_encoder_with_a_head_adapts_to_one_that_loads_again(place: Path, tmp_path: Path) -> None:
    head = LogisticRegression().fit(torch.randn(40, 16, generator=torch.manual_seed(0)), [0, 1] * 20)
    transformer, pooling = torch.nn.Module(), type("Pooling", (torch.nn.Module,), {"pooling_mode": "mean"})()
    small = tiny("bert", dtype=torch.float32)
    transformer.auto_model, transformer.tokenizer = small.model.bert, small.tokenizer
    body = torch.nn.Sequential(transformer, pooling)
    original = fm.Classifier(body, head=head, labels=["bad", "good"])
    original.model.save_pretrained(tmp_path / "original")
    original.tokenizer.save_pretrained(tmp_path / "original")
    settings, store = config(place, model=str(tmp_path / "original"), limit=120), fm.RunStore(tmp_path)
    record = fm.adapt(settings, store)
    folder = store.folder(settings)
    clf = fm.load(folder)
    assert clf.fingerprint == record.fingerprint != original.fingerprint
    assert clf.labels == ("bad", "good")
    assert clf.agreement == record.agreement > 0.5, "the head was kept"
    assert {"modules.json", "1_Pooling/config.json", "2_Dense/model.safetensors"} <= {*record.files}
    assert saved_tests(clf).keys() == {"published", "crossfit"}
    (folder / "2_Dense" / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(fm.InputError, match=r"2_Dense/model\.safetensors is not as it was written"):
        fm.load(folder)
