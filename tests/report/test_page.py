"""The report: its sentences by hand, its texts packed and unpacked, its page and its size."""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from faithmeter.cli.options import as_command
from faithmeter.cli.report import Pages
from faithmeter.cli.report import report as report_verb
from faithmeter.config import TrainConfig
from faithmeter.errors import InputError
from faithmeter.measuring.trace import frame_trace
from faithmeter.methods import METHODS
from faithmeter.paper.tables import TABLES
from faithmeter.report import figures
from faithmeter.report import page as report
from faithmeter.report.page.examples import NEVER, SCORE_LEVELS, choose_sources, compress_json, example_groups
from faithmeter.report.page.verdicts import performance_sentences
from faithmeter.report.provenance import commands, methods_table, settings
from faithmeter.report.values import task_names
from faithmeter.store.run_store import DamageWarning, RunStore
from fixtures_report import PERCENTS, PLACES, inputs, measure, train
from traces import keep, trace

TEXTS = [
    {"text": "Mary went to the garden.", "context": "Where is Mary?", "label": 2},
    {"text": "John moved to the office.", "context": "Where is John?", "label": 5},
]

Rows = list[dict[str, Any]]
ROOM = 10**6
METHODS_A = [
    {"name": "a", "signed": True, "unit": ""},  # the scores of an unknown method may have signs
    {"name": "random", "signed": False, "unit": ""},
]


def unpack(data: str) -> Any:
    """Decompress as the page's script does."""
    return json.loads(gzip.decompress(base64.b64decode(data)))


@given(st.dictionaries(st.text(), st.lists(st.integers() | st.text())))
def test_compressed_json_can_be_read_back(value: Any) -> None:
    assert unpack(compress_json(value)) == value


def test_packed_texts_say_what_was_measured(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    measure(store, train(store), TEXTS, {"a": 0.4, "random": 0.0})
    [group] = example_groups(choose_sources(store.results()), 500, ROOM)
    assert (group["methods"], group["percents"], group["total"]) == (METHODS_A, list(PERCENTS), 2)
    text = group["texts"][0]
    assert text["spans"] == [0, 4, 1, 4, 1, 2, 1, 3, 1, 6, 0, 1]  # gap and length of each word, and the dot
    frame = frame_trace(store.results()[0].runs[0].traces["a"])
    rows = frame[frame["row"] == 0].set_index("percent")
    packed = text["by"][0]
    first = packed["masked"]
    for place, percent in enumerate(PERCENTS):
        assert [token for token in range(6) if first[token] <= place] == list(rows["masked"][percent])
    assert packed["probability"] == pytest.approx(list(rows["probability"]), abs=0.00005)
    scores = [level / SCORE_LEVELS * packed["largest"] for level in packed["scores"]]
    assert scores == pytest.approx(rows["scores"][0], abs=packed["largest"] / 50)  # as exact as a color
    words = dict(zip(("Mary", "went", "to", "the", "garden", "."), rows["scores"][0], strict=True))
    first = sorted(words, key=lambda word: -abs(words[word]))[:3]
    assert [word for word, _ in packed["strongest"]] == first
    assert [score for _, score in packed["strongest"]] == pytest.approx([words[w] for w in first], rel=0.005)
    assert packed["predicted"] == list(rows["prediction"])


def test_a_word_scores_as_its_strongest_token(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    texts = inputs(TEXTS[:1]).assign(words=[[0, 0, 1, 2, 3, 3]])
    scores = (np.array([1.0, -3.0, 0.5, 2.0, -0.25, 0.25]),)
    seed = {
        name: trace(name, [[2] * 11], [2], classes=6, scores=scores, steps=(np.zeros(6, np.uint8),))
        for name in ("random", "loo-sign")
    }
    keep(store, train(store), seed, texts=texts, labels=PLACES)
    [group] = example_groups(choose_sources(store.results()), 500, ROOM)
    expected = [("Mary went", -3.0), ("the", 2.0), ("to", 0.5)]
    assert group["texts"][0]["by"][0]["strongest"] == expected


def test_measurements_of_one_checkpoint_are_put_together(tmp_path: Path) -> None:
    """Beam on fewer texts than the others; a plain model and other seeds do not show."""
    store = RunStore(tmp_path)
    trained = train(store)
    measure(store, trained, TEXTS, {"a": 0.4, "random": 0.0})
    measure(store, trained, TEXTS[:1], {"beam": 0.4, "random": 0.0})
    measure(store, train(store, seed=1), TEXTS, {"a": 0.4, "random": 0.0})
    measure(store, train(store, strategy="none"), TEXTS, {"random": 0.0})
    [group] = example_groups(choose_sources(store.results()), 500, ROOM)
    names = [method["name"] for method in group["methods"]]
    assert sorted(names) == ["a", "beam", "random"]
    assert (group["seed"], group["strategy"]) == (0, "half")
    beam = names.index("beam")
    assert group["methods"][beam] == {"name": "beam", "signed": False, "unit": "ranks, the highest first"}
    assert [text["by"][beam] is None for text in group["texts"]] == [False, True]
    assert example_groups(choose_sources(store.results()), 0, ROOM) == []
    assert len(example_groups(choose_sources(store.results()), 1, ROOM)[0]["texts"]) == 1


def test_a_text_beyond_the_models_limit_and_an_empty_one(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    texts = [{"text": "word " * 10_000, "label": 0, "read": 500}, {"text": "", "label": 1}]
    measure(store, train(store), texts, {"a": 0.4, "random": 0.0})
    long, empty = example_groups(choose_sources(store.results()), 500, ROOM)[0]["texts"]
    assert (len(long["spans"]), len(long["text"]), long["left"]) == (200, 499 + 200, 50_000 - 699)
    assert (empty["text"], empty["spans"], empty["by"][0]["scores"]) == ("", [], [])


def test_fine_steps_are_thinned(tmp_path: Path) -> None:
    store, percents = RunStore(tmp_path), tuple(range(101))
    last = (np.array([0, 1, 50, 255], np.uint8),)
    seed = {name: trace(name, [[0] * 101], [0], percents=percents, steps=last) for name in ("random", "a")}
    keep(store, train(store), seed, step=1)
    [group] = example_groups(choose_sources(store.results()), 500, ROOM)
    assert group["percents"][0] == 0
    assert group["percents"][-1] == 100
    assert len(group["percents"]) <= 22
    masked = group["texts"][0]["by"][0]["masked"]
    assert masked[0] == 0
    assert group["percents"][masked[1]] >= 1, "the first step shown at which it is masked"
    assert group["percents"][masked[2]] == 50
    assert masked[3] == NEVER


FIGURES = {name: figures.FIGURES[name] for name in ("performance-unmasked", "faithfulness")}
"""Two are enough here: the others have tests of their own."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[report.Report, str, RunStore]:
    """A page of hostile texts and names."""
    folder = tmp_path_factory.mktemp("report")
    store = RunStore(folder / "runs")
    texts = [{"text": "</script><script>alert(1)</script><!-- Mary", "context": "<b>?", "label": 2}, *TEXTS]
    trained = train(store, epochs=2, learning_rate=0.001)
    train(store, epochs=2, learning_rate=0.001, strategy="none", validation="unmasked", value=0.98)
    strengths = {"loo-sign": 0.4, "own<i>": 0.2, "random": 0.0}
    measure(store, trained, texts, strengths, labels=[*PLACES[:5], "<u>office"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("faithmeter.report.figures.FIGURES", FIGURES)
        done = report.write(store, folder / "report.html", files=folder / "report_files", tables=TABLES)
    return done, done.page.read_text(encoding="utf-8"), store


def test_a_page_runs_and_fetches_nothing_but_itself(written: tuple[report.Report, str, RunStore]) -> None:
    page = written[1]
    assert page.count("<script") == page.count("</script>") == 8
    # links that a reader may follow fetch nothing by themselves
    assert not re.search(r"""<(?!a )[^>]*\s(src|href)=["'](?!#)""", page.split("<script", 1)[0])
    assert not re.search(r"\son\w+=", page.split("<script", 1)[0])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "unsafe" not in policy[1]
    assert policy[1].startswith("default-src &#39;none&#39;; script-src &#39;sha256-")


def test_texts_and_names_are_escaped(written: tuple[report.Report, str, RunStore]) -> None:
    page = written[1]
    body, data = page.split('id="example-data">', 1)
    assert "own<i>" not in body
    assert "own&lt;i&gt;" in body
    packed = unpack(data.split("</script>", 1)[0])
    assert packed["groups"][0]["texts"][0]["text"] == "</script><script>alert(1)</script><!-- Mary"
    assert packed["groups"][0]["labels"][5] == "<u>office"


def test_files_beside_the_page(written: tuple[report.Report, str, RunStore]) -> None:
    done = written[0]
    names = {file.relative_to(done.page.parent).as_posix() for file in done.files}
    assert all(file.stat().st_size for file in done.files)
    for name in ("figures/faithfulness.pdf", "figures/performance-unmasked.svg", "figures/faithfulness.png"):
        assert f"report_files/{name}" in names
    for ending in ("md", "csv", "tex"):
        assert f"report_files/tables/faithfulness.{ending}" in names


def test_the_same_store_gives_the_same_page(
    written: tuple[report.Report, str, RunStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    done, page, store = written
    monkeypatch.setattr("faithmeter.report.figures.FIGURES", FIGURES)
    assert report.write(store, done.page, tables=TABLES).page.read_text(encoding="utf-8") == page


def test_commands_make_the_same_runs(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "my runs")
    trained = train(store, task="RTE", seed=3, learning_rate=0.001, released_schedule=True)
    measure(store, trained, TEXTS, {"beam(width=20)": 0.4, "random": 0.0})
    lines = commands(list(store.records()), store.root, Path("page.html")).splitlines()
    root = f"'{store.root}'"
    assert lines == [
        f"faithmeter train --task RTE --seed 3 --learning-rate 0.001 --released-schedule -o {root}",
        f"faithmeter measure '{store.folder(trained)}' -m 'beam(width=20)' --limit 2 -o {root}",
        f"faithmeter report {root} -o page.html",
    ]


def test_a_checkpoint_from_elsewhere_is_named_with_its_task(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    measure(store, TrainConfig(task="RTE", model="org/tiny-rte"), TEXTS, {"a": 0.4, "random": 0.0})
    first = commands(list(store.records()), store.root, Path("page.html")).splitlines()[0]
    assert first == f"faithmeter measure org/tiny-rte --task RTE -m a --limit 2 -o {tmp_path}"


def test_methods_are_described_for_those_who_do_not_know_them() -> None:
    rows = methods_table(["loo-sign", "beam(width=20)", "mine"]).rows
    [(_, about, notes), (_, _, options), (_, unknown, _)] = [[cell.value for cell in row] for row in rows]
    assert about == METHODS["loo-sign"].about != ""
    assert "scores in logit points" in str(notes)
    assert str(options).startswith("width=20 · ")
    assert unknown == "a method that is not part of faithmeter"


def test_an_empty_store_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no finished run.*faithmeter demo"):
        report.write(RunStore(tmp_path), tmp_path / "report.html")
    with pytest.raises(InputError, match="is a folder; expected a file"):
        report_verb(Pages(tmp_path), [tmp_path])


def test_the_verb_prints_paths_and_verdict_as_json(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    train(store)
    app = typer.Typer()
    app.command()(as_command(report_verb))
    page = tmp_path / "out" / "page.html"
    done = CliRunner().invoke(app, [str(store.root), "-o", str(page), "--page-only", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["page"], found["files"]) == (str(page), [])
    assert len(found["answers"]) == len(found["models"][0]["answers"]) == 3
    assert sorted(path.name for path in page.parent.iterdir()) == ["page.html"]


def test_a_store_that_was_only_trained_has_a_page(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    train(store)
    done = report.write(store, tmp_path / "report.html", tables=TABLES)
    assert done.answers[0].text == (
        "Not known yet: it was trained but not measured; whole texts: 99.0% with strategy half, "
        "20.0% by guessing."
    )
    assert 'id="examples"' not in done.page.read_text(encoding="utf-8")


def test_tables_on_the_page_call_methods_by_their_names(
    written: tuple[report.Report, str, RunStore],
) -> None:
    done, page, _ = written
    assert '<th scope="row"><code>loo-sign</code></th>' in page
    assert ">LOO (sign)<" not in page
    [paper] = [file for file in done.files if file.name == "faithfulness.md"]
    assert "LOO (sign)" in paper.read_text(encoding="utf-8")


def test_five_hundred_long_texts_fit_into_ten_megabytes(tmp_path: Path) -> None:
    """A page without texts has about one; twenty texts of 400 words tell what five hundred take."""
    generator = random.Random(0)
    words = ["".join(generator.choices("abcdefghij", k=length)) for length in range(2, 10) for _ in range(99)]
    texts = [{"text": ". ".join(generator.choices(words, k=255)), "label": n % 6} for n in range(20)]
    store = RunStore(tmp_path)
    measure(store, train(store), texts, {f"m{n}": 0.1 for n in range(9)} | {"random": 0.0})
    [group] = example_groups(choose_sources(store.results()), 500, ROOM)
    assert {len(text["spans"]) // 2 for text in group["texts"]} == {509}  # as many tokens as models read
    assert 25 * len(compress_json(group)) < report.MAX_PAGE_BYTES - 1_200_000


def test_texts_that_have_no_room_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("faithmeter.report.figures.FIGURES", {})
    store = RunStore(tmp_path)
    measure(store, train(store), TEXTS, {"a": 0.4, "random": 0.0})
    [whole] = example_groups(choose_sources(store.results()), 500, ROOM)
    size = len(compress_json(whole["texts"]))
    assert len(example_groups(choose_sources(store.results()), 500, 2 * size)[0]["texts"]) == 2
    first = len(compress_json(whole["texts"][:1]))
    [group] = example_groups(choose_sources(store.results()), 500, first)
    assert (len(group["texts"]), group["total"]) == (1, 2)
    monkeypatch.setattr("faithmeter.report.page.MAX_PAGE_BYTES", 0)
    page = report.write(store, tmp_path / "report.html", tables=TABLES).page
    assert 'id="examples"' not in page.read_text(encoding="utf-8")


def test_the_users_own_results_come_first(written: tuple[report.Report, str, RunStore]) -> None:
    anchors = re.findall(r'<section id="(\w+)"', written[1])
    assert anchors[:4] == ["verdict", "faithfulness", "examples", "areas"]
    assert anchors[-3:] == ["methods", "more", "reproduce"]


def test_the_paper_is_in_the_files_but_not_on_the_page_of_another_model(
    written: tuple[report.Report, str, RunStore],
) -> None:
    done, page, _ = written
    body = page.split("<script", 1)[0]
    assert "published (roberta-base)" not in body
    assert "Unmasked test performance after plain fine-tuning" not in body
    assert not re.search(r"x5 seeds|>excl\.<", body)
    [file] = [file for file in done.files if file.name == "faithfulness.md"]
    assert "published (roberta-base)" in file.read_text(encoding="utf-8")


def test_one_training_is_a_sentence_and_no_chart(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    train(store)
    expected = (
        "embedded, fine-tuned on bAbI-1 with half of every mini-batch masked: 99.0% micro F1 on whole test "
        "texts, 19.8% on wholly masked ones; always the most frequent class of the training texts: 20.0%."
    )
    assert [one.text for one in performance_sentences(store.frame("train"))] == [expected]
    train(store, seed=1)
    assert list(performance_sentences(store.frame("train"))) == []


def test_the_head_counts_texts_by_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check ran on more texts than the methods: its number is not theirs."""
    monkeypatch.setattr("faithmeter.report.figures.FIGURES", {})
    store = RunStore(tmp_path)
    trained = train(store)
    measure(store, trained, [*TEXTS, *TEXTS], {"random": 0.0})
    measure(store, trained, TEXTS, {"a": 0.4, "random": 0.0})
    page = report.write(store, tmp_path / "report.html").page.read_text(encoding="utf-8")
    assert " · 2 texts · " in page
    measure(store, trained, TEXTS[:1], {"beam": 0.4, "random": 0.0})
    page = report.write(store, tmp_path / "report.html").page.read_text(encoding="utf-8")
    assert " · 1 to 2 texts, by method · " in page


def test_damaged_and_foreign_folders_do_not_block_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("faithmeter.report.figures.FIGURES", {})
    store = RunStore(tmp_path / "runs")
    trained = train(store)
    measure(store, trained, TEXTS, {"a": 0.4, "random": 0.0})
    measure(store, trained, TEXTS[:1], {"beam": 0.4, "random": 0.0})
    [cut] = store.root.glob("traces/*/beam-*/0-1.parquet")
    cut.write_bytes(cut.read_bytes()[:-9])
    half_deleted = store.folder(train(store, seed=1))
    (half_deleted / "record.json").unlink()
    for name, text in {"holidays": "", "train-old": '{"format": 99}', "measure-x": "{", "y": "[]"}.items():
        (store.root / name).mkdir()
        (store.root / name / "record.json").write_text(text, encoding="utf-8")
    with pytest.warns(DamageWarning, match="is not as it was written"):
        page = report.write(store, tmp_path / "report.html").page.read_text(encoding="utf-8")
    assert "<code>a</code>" in page
    assert "<code>beam</code>" not in page


def test_own_data_is_called_by_the_name_of_its_task_and_doubts_are_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("faithmeter.report.figures.FIGURES", FIGURES)
    store = RunStore(tmp_path / "runs")
    trained = train(store, task="data/full.toml", task_name="film reviews", strategy="none")
    measure(store, trained, TEXTS, {"loo-sign": 0.4, "random": 0.0})
    done = report.write(store, tmp_path / "report.html", tables=TABLES)
    page = done.page.read_text(encoding="utf-8")
    assert "<h1>film reviews, embedded</h1>" in page
    points = done.answers[2].points
    assert len(points) == len(done.models[0].verdict.doubts)
    assert points[-2].startswith("loo-sign: measured on"), "the name of a method keeps its first letter"
    assert points[-1].startswith("The model was")
    assert "<ul>" + "".join(f"<li>{point}</li>" for point in points) + "</ul>" in page
    assert done.answers[2].text not in page


def test_a_name_that_would_confuse_tasks_is_not_used(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    names = {"a/x.toml": "same", "b/x.toml": "same", "c.toml": "RTE", "d.toml": "mine", "bAbI-1": "bAbI-1"}
    for task, name in names.items():
        train(store, task=task, task_name=name)
    assert task_names(record for _, record in store.records()) == {"d.toml": "mine"}


def test_settings_name_no_task_for_own_data(tmp_path: Path) -> None:
    """A config with a data file has the default task, which was not used."""
    store = RunStore(tmp_path / "runs")
    train(store, data="reviews.csv", text="review", label="stars")
    texts = settings([*store.records()])["Fine-tuning"]
    assert texts["data"] == "reviews.csv"
    assert "task" not in texts
    train(store, task="RTE")
    assert settings([*store.records()])["Fine-tuning"]["task"] == "RTE"
