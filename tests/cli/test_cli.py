"""The command line through its entry point: what is printed where, and with which exit code."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

import faithmeter as fm
from faithmeter.cli import VERBS, demo
from faithmeter.data import stories
from faithmeter.methods import METHODS, PAPER, default_methods
from faithmeter.models import devices
from faithmeter.store.run_store import RunStore
from fixtures_tasks import write_stories
from toy import WORDS, tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """An encoder and some reviews."""
    folder, rng = tmp_path_factory.mktemp("cli"), random.Random(0)
    clf = tiny(dtype=torch.float32, labels=2)
    clf.model.save_pretrained(folder / "encoder")
    clf.tokenizer.save_pretrained(folder / "encoder")
    rows = [(" ".join(rng.choices(WORDS, k=rng.randint(2, 8))), "ab"[i % 2]) for i in range(220)]
    (folder / "reviews.csv").write_text(
        "review,stars\n" + "\n".join(f"{text},{label}" for text, label in rows)
    )
    return folder


@pytest.fixture
def train(faithmeter, folder: Path):
    own = ("--data", folder / "reviews.csv", "--text", "review", "--label", "stars")

    def call(*more: object) -> Any:
        small = (
            "--model",
            folder / "encoder",
            "--epochs",
            1,
            "--learning-rate",
            "1e-3",
            "-o",
            folder / "runs",
        )
        return faithmeter("train", *own, *small, *more)

    return call


@pytest.fixture
def checkpoint(train, folder: Path) -> Path:
    train()
    return next((folder / "runs").glob("train-*"))


def test_quiet_leaves_standard_error_empty(faithmeter, checkpoint, tmp_path: Path) -> None:
    outcome = faithmeter("measure", checkpoint, "-m", "grad-l2", "--limit", 4, "-o", tmp_path, "-q")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Is the model measurable?" in outcome.out


def test_quiet_names_no_files_and_previews_no_rows(train, faithmeter, checkpoint: Path, tmp_path) -> None:
    files = ("--csv", tmp_path / "scores.csv", "--html", tmp_path / "page.html")
    outcome = faithmeter("explain", checkpoint, "the film was good", "--no-verify", *files, "-q")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert all(path.exists() for path in files[1::2])
    finished = train("-q")
    assert (finished.code, finished.err) == (0, "")
    assert "rows by label" not in finished.out
    assert "test accuracy in %" in finished.out


def test_train_previews_own_data_trains_and_prints_a_summary(train) -> None:
    outcome = train("--restart")
    assert outcome.code == 0
    for seen in (
        "rows by label",
        "text = review (explained)",
        "class majority",
        "test accuracy in %, by percent",
    ):
        assert seen in outcome.out
    assert "checkpoint: " in outcome.err
    finished = [line.partition(":")[0] for line in outcome.err.splitlines() if "(100 %)" in line]
    assert finished[-3:] == ["validate", "test", "check"], "what follows the last epoch is not silent"


def test_what_was_finished_before_is_said_to_be_reused(train, faithmeter, checkpoint: Path, tmp_path) -> None:
    assert "reused: " in train().err
    measured = [faithmeter("measure", checkpoint, "-m", "grad-l2", "-o", tmp_path).err for _ in range(2)]
    assert ["reused: this measurement" in err for err in measured] == [False, True]


def test_train_as_json_prints_the_record_and_nothing_else(train, checkpoint: Path) -> None:
    outcome = train("--json")
    record = json.loads(outcome.out)
    assert record["config"]["strategy"] == "half"
    assert record == json.loads((checkpoint / "record.json").read_text())


def test_explain_shows_words_prediction_and_legend(faithmeter, checkpoint: Path) -> None:
    outcome = faithmeter("explain", checkpoint, "the film was good", "-m", "loo-sign", "-m", "grad-l2")
    assert outcome.code == 0
    for seen in ("prediction", "loo-sign", "grad-l2", "film", "against"):
        assert seen in outcome.out


def test_explain_reads_files_and_writes_json_and_pages(faithmeter, checkpoint: Path, tmp_path) -> None:
    (tmp_path / "texts.txt").write_text("the film was good\n\nbad plot\n")
    found = json.loads(faithmeter("explain", checkpoint, "--file", tmp_path / "texts.txt", "--json").out)
    assert [row["text"] for row in found] == ["the film was good", "bad plot"]
    (tmp_path / "texts.jsonl").write_text('{"text": "dull <b>story</b>", "label": "b"}\n')
    page = tmp_path / "page.html"
    assert faithmeter("explain", checkpoint, "--file", tmp_path / "texts.jsonl", "--html", page).code == 0
    assert "&lt;" in page.read_text()
    assert "<b>story" not in page.read_text()


def test_measure_prints_a_table_and_keeps_every_text(faithmeter, checkpoint: Path, folder: Path) -> None:
    outcome = faithmeter("measure", checkpoint, "-m", "loo-sign", "--limit", 20, "-o", folder / "runs")
    assert outcome.code == 0
    for seen in ("areas by accuracy", "loo-sign", "random", "ACU", "p crossfit"):
        assert seen in outcome.out
    assert list((folder / "runs").glob("traces/*/texts/0-*.parquet"))
    assert list(checkpoint.glob("masf-crossfit-*.safetensors"))


def test_requirements_decide_the_exit_code(faithmeter, checkpoint: Path, folder: Path) -> None:
    common = ("measure", checkpoint, "-m", "loo-sign", "--limit", 20, "-o", folder / "runs")
    untrusted = faithmeter(*common, "--require", "loo-sign:acu>=-100")
    assert untrusted.code == 1, "there are too few validation texts for a check, so no area may be trusted"
    [line] = [line for line in untrusted.err.splitlines() if line.startswith("not met")]
    assert "so there is nothing to explain" in line or "so no area proves anything" in line
    common = (*common, "--even-if-untrusted", "--require")
    assert faithmeter(*common, "loo-sign:acu>=-100").code == 0
    failed = faithmeter(*common, "loo-sign:acu>=100")
    assert failed.code == 1
    assert "not met: loo-sign:acu >= 100" in failed.err
    assert faithmeter(*common, "loo-sign:area>1").code == 2
    assert faithmeter(*common, "beam:acu>1").code == 2


def test_check_prints_pvalues_by_share_masked(faithmeter, checkpoint: Path, folder: Path) -> None:
    outcome = faithmeter("check", checkpoint, "-o", folder / "runs")
    assert outcome.code == 0
    assert "crossfit" in outcome.out
    assert "published" in outcome.out
    assert "Is the model measurable? " in outcome.out
    assert "Which method" not in outcome.out + outcome.err


def test_a_check_that_cannot_reject_says_so_and_meets_nothing(faithmeter, checkpoint, folder: Path) -> None:
    """There are 22 validation and 22 test texts, of which no check can tell anything."""
    for form in ((), ("--json",)):
        outcome = faithmeter("check", checkpoint, "-o", folder / "runs", "--require", "check:p>=0.05", *form)
        assert outcome.code == 1
        assert "too few texts tell whether the model handles masked texts well" in outcome.out
        assert "not met: check:p >= 0.05, is undefined" in outcome.err


def test_a_lower_precision_is_another_measurement_and_says_so(
    faithmeter, checkpoint: Path, folder: Path, monkeypatch
) -> None:
    monkeypatch.setattr(devices, "cpu_features", lambda: {"avx512_bf16"})
    common = ("-m", "loo-sign", "--limit", 40, "-o", folder / "runs", "--device", "cpu", "--json")
    full = faithmeter("measure", checkpoint, *common)
    low = faithmeter("measure", checkpoint, *common, "--precision", "bf16")
    again = faithmeter("measure", checkpoint, *common, "--precision", "auto")
    results = [json.loads(outcome.out) for outcome in (full, low, again)]
    assert [(result["device"], result["precision"]) for result in results] == [
        ("cpu", "fp32"),
        ("cpu", "bf16"),
        ("cpu", "bf16"),
    ]
    assert results[2]["methods"] == results[1]["methods"]
    assert "auto is bf16: rank correlation of bf16 with fp32 on 22 texts (required: 0.98): " in again.err
    close, tested = ({each["kind"]: each["text"] for each in one["doubts"]} for one in results[1:])
    assert close["precision"].endswith("in fp32, close scores may rank otherwise")
    assert "a few texts' scores in fp32 rank alike (correlation 0.99" in tested["precision"]
    assert "evaluated in bf16" in low.err
    assert "evaluated in" not in full.err
    stored = RunStore(folder / "runs").frame("areas", method="loo-sign")
    assert set(stored["precision"]) == {"fp32"}, "of two on the same texts, the one in fp32 counts"
    one = json.loads(faithmeter("explain", checkpoint, "good film", "--precision", "bf16", "--json").out)
    assert one[0]["precision"] == "bf16"


def test_requirements_hold_for_one_text(faithmeter, checkpoint: Path) -> None:
    common = ("explain", checkpoint, "good film", "-m", "loo-sign", "--require")
    assert faithmeter(*common, "loo-sign:acu>=-100").code == 1
    common = (*common[:-1], "--even-if-untrusted", "--require")
    assert faithmeter(*common, "loo-sign:acu>=-100").code == 0
    assert faithmeter(*common, "loo-sign:acu>=1e2").code == 1
    assert faithmeter(*common, "grad-l2:acu>=0").code == 2


def test_what_is_shown_is_no_markup(faithmeter, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ("report", "[/x]"),
        ("explain", "[/bold]", "a"),
        ("measure", "m", "--require", "x[/y]"),
    ):
        outcome = faithmeter(*arguments)
        assert outcome.code == 2
        assert arguments[-1] in outcome.err or "[/bold]" in outcome.err


def test_a_test_fitted_on_another_checkpoint_is_fitted_again(
    faithmeter, checkpoint: Path, folder: Path
) -> None:
    faithmeter("check", checkpoint, "--limit", 20, "-o", folder / "runs")
    fingerprint = fm.load(checkpoint).fingerprint
    files = list(checkpoint.glob("masf-crossfit-*.safetensors"))  # one for each precision
    tests = {file: fm.MaSF.load(file, fingerprint=fingerprint) for file in files}
    for file, good in tests.items():
        good.save(file, fingerprint="another")
    outcome = faithmeter("check", checkpoint, "--limit", 21, "-o", folder / "runs")
    assert outcome.code == 0
    assert "was fitted on checkpoint another" in outcome.err
    [file] = (file for file in files if f"{file} was fitted" in outcome.err)
    again = fm.MaSF.load(file, fingerprint=fingerprint)
    assert (again.statistics_ == tests[file].statistics_).all()
    for other in files:
        tests[other].save(other, fingerprint=fingerprint)


OWN = """
import torch, faithmeter as fm
@fm.method("leftmost", recursive=False)
def leftmost(clf, batch, labels):
    return -torch.arange(batch.input_ids.shape[1]).expand(batch.input_ids.shape).double()
"""


def test_a_method_of_ones_own_is_known_to_every_verb(faithmeter, checkpoint: Path, folder: Path) -> None:
    (folder / "own.py").write_text(OWN)
    own = ("--import", folder / "own.py")
    try:
        assert "leftmost" in faithmeter(*own, "list", "methods").out
        measured = ("measure", checkpoint, "-m", "leftmost", "--limit", 20, "-o", folder / "runs", "--json")
        assert "leftmost" in json.loads(faithmeter(*own, *measured).out)["methods"]
    finally:
        METHODS.pop("leftmost", None)  # the tests share one process
    outcome = faithmeter("--import", "no_such_module", "list", "methods")
    assert outcome.code == 2
    assert "--import no_such_module: ModuleNotFoundError" in outcome.err


@pytest.mark.parametrize("group", [(), ("--methods", "paper")])
def test_measure_announces_its_cost_and_takes_few_methods_or_those_of_the_paper(
    faithmeter, checkpoint: Path, group: tuple[str, ...], tmp_path: Path
) -> None:
    long = tmp_path / "long.csv"
    rows = [f"{' '.join(WORDS[:9])},{'ab'[number % 2]}" for number in range(4)]
    long.write_text("\n".join(["review,stars", *rows]))
    own = ("--test", long, "--text", "review", "--label", "stars", "-o", tmp_path / "runs")
    outcome = faithmeter("measure", checkpoint, *own, *group, "--json")
    assert outcome.code == 0, outcome.err
    measured = json.loads(outcome.out)["methods"]
    assert set(measured) == {*(PAPER if group else default_methods())}
    assert "4 texts, evaluations at most, judged by the first: " in outcome.err
    [record] = (fm.RunStore(tmp_path / "runs").open(path) for path in (tmp_path / "runs").glob("measure-*"))
    assert set(record.config.methods) == set(measured), "the record names what was measured"


def test_measure_one_text(faithmeter, checkpoint: Path) -> None:
    outcome = faithmeter("explain", checkpoint, "the film was good", "-m", "loo-abs")
    assert outcome.out.startswith("prediction"), "colors first"
    assert "random (mean of 100)" in outcome.out
    colors = faithmeter("explain", checkpoint, "the film was good", "-m", "loo-abs", "--no-verify").out
    assert "random (mean" not in colors
    assert outcome.out.startswith(colors)
    [both] = json.loads(faithmeter("explain", checkpoint, "the film was good", "--json").out)
    assert [word["text"] for word in both["words"]] == ["the", "film", "was", "good"]
    assert len(both["erasures"]["loo-sign"]["probability"]) == 11
    assert set(both["erasures"]["loo-sign"]["pvalues"]) == {"published", "crossfit"}
    [plain] = json.loads(faithmeter("explain", checkpoint, "good", "--json", "--no-verify").out)
    assert "erasures" not in plain


def test_lists(faithmeter, checkpoint: Path, folder: Path) -> None:
    assert "bAbI-1" in faithmeter("list", "tasks").out
    assert "beam" in faithmeter("list", "methods").out
    assert checkpoint.name in faithmeter("list", "runs", "-o", folder / "runs").out
    tasks: list[dict[str, Any]] = json.loads(faithmeter("list", "tasks", "--json").out)
    assert [task["task"] for task in tasks][:2] == ["RTE", "SNLI"]
    detail = faithmeter("list", "tasks", "bAbI-1")
    assert "Where is" in detail.out
    assert (
        sum(json.loads(faithmeter("list", "tasks", "bAbI-1", "--json").out)["class_counts"]["test"].values())
        == 1000
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "--task", "RTEE"), "unknown task 'RTEE'; did you mean 'RTE'?"),
        (("train", "--strategy", "hlaf"), "unknown strategy 'hlaf'; did you mean 'half'?"),
        (("train", "--batch-size", "0"), "batch_size is 0; expected at least 1"),
        (("train", "--data", "x.csv"), "--data x.csv requires --text"),
        (("train", "--data", "x.csv", "--text", "a", "--label", "b"), "x.csv"),
        (("explain", "./nowhere", "a text"), "there is no folder './nowhere'; expected a folder with"),
        (("explain", "embedded"), "expected either a text, --data"),
        (("explain", "embedded", "a", "-m", "lo-sign"), "unknown method 'lo-sign'; did you mean 'loo-sign'?"),
        (("measure", "embedded", "--require", "racu>3"), "requirement 'racu>3' cannot be read"),
        (("measure", "embedded", "--require", "beam:acu>1.2.3"), "requirement 'beam:acu>1.2.3' cannot be"),
        (("measure", "embedded", "--require", "beam:acu>inf"), "requirement 'beam:acu>inf' cannot be"),
        (
            ("measure", "embedded", "-m", "beam", "--require", "bean:acu>1"),
            "in a requirement 'bean'; did you mean 'beam'?",
        ),
        (("measure", "embedded", "--pair", "a"), "--pair a goes with --data or --test, the file"),
        (("explain", "embedded", ""), "the text is empty"),
        (("explain", "embedded", "a", "--require", "beam:acu>1"), "unknown method in a requirement 'beam'"),
        (("explain", "embedded", "a", "--require", "x:acu>1", "-m", "auto"), "auto has yet to choose"),
        (("explain", "embedded", "--text", "a"), "expected either a text, --data with a table"),
        (("explain", "embedded", "a", "--text", "b"), "--text b is a column of --data, which is missing"),
        (("explain", "embedded", "a", "--device", "gpu"), "unknown device 'gpu'; expected one of auto"),
        (("explain", "embedded", "a", "--device", "cuda:7"), "device 'cuda:7' is not available here; expect"),
        (("measure", "embedded", "--device", "cuda:7"), "device 'cuda:7' is not available here; expected au"),
        (("measure", "embedded", "-m", "beam", "--device", "cuda:7"), "device 'cuda:7' is not available h"),
        (("check", "embedded", "--device", "cuda:7"), "device 'cuda:7' is not available here; expected auto"),
        (("serve", "embedded", "--port", "0", "--device", "cuda:7"), "device 'cuda:7' is not available here"),
        (
            ("explain", "embedded", "a", "--precision", "fp23"),
            "unknown --precision 'fp23'; did you mean",
        ),
        (
            ("measure", "embedded", "--precision", "half"),
            "unknown --precision 'half'; expected one of",
        ),
        (
            ("check", "embedded", "--device", "cpu", "--precision", "fp16"),
            "precision is fp16, which",
        ),
        (("list", "taks"), "unknown list 'taks'; did you mean 'tasks'?"),
        (("list", "runs", "x"), "'list runs' takes no name"),
        (("train", "--learning-rat", "1"), "No such option"),
        (("trian",), "No such command 'trian'. Did you mean 'train'?"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(
    faithmeter, monkeypatch, tmp_path, arguments, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = faithmeter(*arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out == ""
    assert not list(tmp_path.iterdir()), "nothing half-written"


def test_ctrl_c_says_that_finished_work_is_kept(faithmeter, monkeypatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("faithmeter.paper.published.read_counts", interrupted)
    outcome = faithmeter("list", "tasks")
    assert outcome.code == 130
    assert "what was finished is kept" in outcome.err


def test_every_verb_has_help_with_an_example(faithmeter) -> None:
    for verb in VERBS:
        outcome = faithmeter(verb, "--help")
        assert outcome.code == 0
        assert "Example: faithmeter" in outcome.out


def test_the_demo_runs_the_whole_workflow(faithmeter, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(demo, "RECIPE", demo.RECIPE.replace(epochs=1, limit=32, validation_limit=40))
    monkeypatch.setattr(demo, "FAST", ("grad-l2", "loo-sign", "search"))
    monkeypatch.setattr(demo, "SLOW", ("grad-l1",))
    monkeypatch.setattr(demo, "TEXTS", 8)
    monkeypatch.setattr(demo, "BEAM", "beam(width=2)")
    monkeypatch.setattr(demo, "BEAM_TEXTS", 2)
    monkeypatch.setattr("faithmeter.report.figures.FIGURES", {})  # they have tests of their own
    monkeypatch.setattr("faithmeter.paper.tables.TABLES", {})
    found = json.loads(faithmeter("demo", "-o", tmp_path, "--json").out)
    assert set(found["train"]) == set(found["check"]) == {"half"}
    assert [run["texts"] for run in found["measure"]] == [8]
    assert "grad-l1" not in found["measure"][0]["methods"]
    assert set(found["hits"]) == {"loo-sign", "random", "search"}
    assert all(0 <= share <= 1 for share in found["hits"].values())
    assert "loo-sign" in Path(found["report"]).read_text(encoding="utf-8")
    outcome = faithmeter("demo", "-o", tmp_path, "--full")
    assert outcome.code == 0, outcome.err
    for seen in (
        "test micro F1",
        "majority: always the most frequent label in training",
        "the length and the column question",
        "half crossfit",
        "none published",
        "grad-l1",
        "loo-sign",
        "search",
        "beam(width=2)",
        "the report: ",
        "faithmeter serve ",
    ):
        assert seen in outcome.out


def test_other_texts_under_the_same_name_are_not_taken_for_measured_ones(
    faithmeter, tmp_path, folder
) -> None:
    """A chunk is found again by what was measured, not by what it is called."""
    data = [tmp_path / "one", tmp_path / "other"]
    for seed, place in enumerate(data):
        (place / "bAbI").mkdir(parents=True)
        for name, questions in (("train", 250), ("test", 50)):
            path = place / "bAbI" / f"qa1_single-supporting-fact_{name}.txt"
            write_stories(stories.generate(1, questions, seed=seed), path)
    train = ("train", "--task", "bAbI-1", "--data-dir", data[0], "--epochs", 1, "-o", tmp_path)
    assert faithmeter(*train).code == 0
    checkpoint = next(tmp_path.glob("train-*"))
    measure = ("measure", checkpoint, "-m", "grad-l2", "--limit", 20, "-o", tmp_path, "--json")
    first = json.loads(faithmeter(*measure, "--data-dir", data[0]).out)
    from_files = json.loads(faithmeter(*measure, "--data-dir", data[1]).out)
    assert from_files["methods"]["grad-l2"]["evaluations"] > 0
    assert from_files["methods"]["grad-l2"]["curve"] != first["methods"]["grad-l2"]["curve"]
    again = json.loads(faithmeter(*measure, "--data-dir", data[0]).out)
    assert again == first, "read, not measured again: even the seconds are the same"


def test_options_with_blanks_reach_the_method(faithmeter, checkpoint: Path, folder: Path) -> None:
    method = "int-grad-sign(steps=2, baseline=mask)"
    outcome = faithmeter("measure", checkpoint, "-m", method, "--limit", 20, "-o", folder / "runs", "--json")
    assert set(json.loads(outcome.out)["methods"]) == {"random", "int-grad-sign(baseline=mask,steps=2)"}
