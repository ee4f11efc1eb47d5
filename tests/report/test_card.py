"""The card's numbers are the records', all that is not ours stays, and no name can break its Markdown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from huggingface_hub import ModelCard, metadata_load
from huggingface_hub.repocard_data import model_index_to_eval_results
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import faithmeter as fm
from faithmeter.measuring.result import Result
from faithmeter.measuring.trace import Trace
from faithmeter.report.card import BEGIN, END, EVAL_RESULTS, fenced, plain, write
from faithmeter.report.card.facts import NUMBERS, performance
from faithmeter.verdict.formats import format_percent
from records import masked_scores, train_result
from toy import tiny
from traces import keep, made_up_texts, result, trace

PERCENTS = [*range(0, 101, 10)]
HOSTILE = "a|b\n<script>alert(1)</script> `x` **y** " + END
FOREIGN = """---
# kept by hand
language: en
license:
model-index:
- name: Prized
  results:
  - task:
      type: text-classification
    dataset:
      type: glue
      name: GLUE
    metrics:
    - type: accuracy
      value: 0.5
    extra: kept as well
widget:
- text: hello   # with a comment
---
# Prized

Text before.
"""


TEXTS = 200
RANDOM = [0.9 - percent / 200 for percent in PERCENTS]


def method(fall: float, p: float) -> tuple[list[float], float]:
    """Curve that is below random by `fall` at 10 … 90 %, and the p-value of every text at every step."""
    inner = [fall * (0 < percent < 100) for percent in PERCENTS]
    return [value - lower for value, lower in zip(RANDOM, inner, strict=True)], p


def traced(name: str, values: list[float], p: float, texts: int) -> Trace:
    """Texts are wrong in an order that is spread evenly, so that the first few are like all."""
    order = np.argsort(np.argsort(np.arange(texts) * 0.618034 % 1))
    labels, right = np.arange(texts) % 3, np.round(np.array(values) * texts).astype(int)
    wrong = order[:, None] >= right
    tests = {"crossfit": p, "published": p / 2}
    return trace(name, (labels[:, None] + wrong) % 3, labels, classes=3, p=tests)


METHODS = {
    "random": method(0.0, 0.6),
    "grad-l2": method(-0.02, 0.04),
    "loo-sign": method(0.4, 0.159),
}


class Made:
    """A store with a made-up training of a tiny model and measurements of it."""

    def __init__(self, root: Path, **trained: Any) -> None:
        self.store = fm.RunStore(root)
        self.config = fm.TrainConfig(**trained)
        self.folder = self.store.folder(self.config)
        clf = tiny(id2label={0: "good", 1: HOSTILE, 2: "bad"})
        clf.model.float().save_pretrained(self.folder)
        clf.tokenizer.save_pretrained(self.folder)
        self.fingerprint = fm.load(self.folder).fingerprint
        result = train_result(
            metric="micro_f1",
            threshold=0.25,
            test=[masked_scores(p, micro_f1=0.987 - p / 125, loss=0.1) for p in PERCENTS],
            majority={"test": {"micro_f1": 0.169}},
            rows={"train": 8000, "validation": 2000, "test": 1000},
            truncated={"test": 0.125},
            fingerprint=self.fingerprint,
        )
        self.train = self.store.put(self.config, result)

    def measure(self, methods: dict[str, Any], texts: int = TEXTS, **fields: Any) -> Result:
        size = max(texts, TEXTS)  # fewer texts are the first of these
        whole = {name: traced(name, values, p, size) for name, (values, p) in methods.items()}
        seed = {name: one.first(texts) for name, one in whole.items()}
        made_up = made_up_texts(seed["random"])
        made_up["truncated"] = made_up["row"] % 8 == 0
        known = {"checkpoint": self.fingerprint, "task": self.config.data or self.config.task}
        keep(
            self.store,
            self.config,
            seed,
            texts=made_up,
            labels=["good", HOSTILE, "bad"],
            metric="micro_f1",
            **{**known, "threshold": 0.25, **fields},
        )
        return result(seed, classes=3, metric="micro_f1", threshold=0.25)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "runs", epochs=2, learning_rate=1e-3)


def tables(text: str) -> list[list[list[str]]]:
    """All tables of a Markdown text, as a renderer sees them."""
    found: list[list[list[str]]] = []
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for token, before in zip(tokens[1:], tokens, strict=False):
        if before.type == "table_open":
            found.append([])
        if before.type == "tr_open":
            found[-1].append([])
        if token.type == "inline" and before.type in ("th_open", "td_open"):
            found[-1][-1].append("".join(part.content for part in token.children or ()))
    return found


def row_of(found: Result, name: str, texts: int = TEXTS) -> list[str]:
    """The cells of a method, from its result."""
    cells = [name]
    for kind in ("faithfulness", "acu"):
        low, high = (format_percent(bound) for bound in found.interval(name, kind)[1:3])
        area = format_percent(found.area(name, kind))
        cells.append(area if name == "random" or low == high else f"{area} [{low}, {high}]")
    p = found.p(name, "crossfit")
    tests = {"crossfit": f"{p:.3f}", "published": f"{p / 2:.3f}"}
    return [*cells, format_percent(found.racu(name)), *(tests[test] for test in found.tests), f"{texts}"]


def test_the_tables_have_the_numbers_of_the_traces(made: Made) -> None:
    found = made.measure(METHODS)
    few = made.measure({"random": METHODS["random"], "beam(width=20)": method(0.35, 0.126)}, texts=50)
    body = ModelCard.load(write(made.folder, made.store)).text
    methods, performance, masked, digests = tables(body)
    assert performance[1:] == [["unmasked", "98.7"], ["fully masked", "18.7"], ["class majority", "16.9"]]
    assert methods[0][:4] == ["method", "faithfulness", "ACU", "RACU"]
    assert sorted(methods[1:]) == sorted(
        [
            row_of(found, "loo-sign"),
            row_of(found, "grad-l2"),
            row_of(few, "beam(width=20)", 50),  # on other texts: no rival
            row_of(found, "random"),
        ]
    )
    assert methods[-1][0] == "random", "a baseline is not the most faithful"
    names = [row[0] for row in masked]
    assert masked[0] == ["test", *map(str, PERCENTS)]
    assert masked[names.index("crossfit")][1:] == ["0.60"] * len(PERCENTS)
    assert masked[names.index("crossfit") + 1][1:] == ["0"] * len(PERCENTS)
    assert ["weights", made.fingerprint] in digests
    assert ["training", made.config.digest] in digests
    assert ["test split", ("test" * 5)[:16]] in digests


def test_the_model_index_has_them_exactly(made: Made) -> None:
    found = made.measure(METHODS)
    path = write(made.folder, made.store)
    name, entries = model_index_to_eval_results(metadata_load(path)["model-index"])
    assert name == made.folder.name
    values = {entry.metric_name: entry.metric_value for entry in entries}
    assert values.pop("micro_f1 (fraction), unmasked") == 0.987
    assert values.pop("micro_f1 (fraction), fully masked") == pytest.approx(0.187)
    expected = {}
    for method in ("loo-sign", "grad-l2"):
        own = {
            "faithfulness": found.area(method, "faithfulness"),
            "acu": found.acu(method),
            "racu": found.racu(method),
            "p_crossfit": found.p(method, "crossfit"),
        }
        expected |= {f"{title} of {method}": own[column] for column, (_, title) in NUMBERS.items()}
    assert values == expected
    assert {entry.dataset_name for entry in entries} == {"bAbI-1"}
    [record] = [record for _, record in made.store.records() if record.kind == "measure"]
    runs = {entry.metric_name: entry.metric_args["faithmeter"] for entry in entries}
    assert runs["ACU (fraction) of loo-sign"] == f"measurement {record.digest}"
    assert runs["micro_f1 (fraction), unmasked"] == f"training {made.train.digest}"
    assert {entry.source_url for entry in entries} == {None}, "generated stories have no address"


def test_results_of_an_earlier_version_are_replaced(made: Made) -> None:
    made.measure(METHODS)
    path = write(made.folder, made.store)
    text = path.read_text(encoding="utf-8")
    old = {"name": "faithmeter", "url": "https://arxiv.org/abs/2310.07819"}
    data = metadata_load(path)
    for entry in data["model-index"][0]["results"]:
        for metric in entry["metrics"]:
            del metric["args"]
        entry["source"] = old
    path.write_text(f"---\n{yaml.safe_dump(data)}---{text.split('---', 2)[2]}", encoding="utf-8")
    again = metadata_load(write(made.folder, made.store))["model-index"][0]["results"]
    assert len(again) == len(data["model-index"][0]["results"])
    assert "source" not in again[0]


def test_hugging_face_reads_it_and_writes_the_same(made: Made) -> None:
    made.measure(METHODS)
    path = write(made.folder, made.store)
    card = ModelCard.load(path)
    assert card.data.library_name == "transformers"
    assert card.data.pipeline_tag == "text-classification"
    assert card.data.metrics == ["f1"]
    assert "faithfulness" in card.data.tags
    assert card.data.base_model is None  # the embedded one is not on the hub
    assert ModelCard(card.content).data.to_dict() == metadata_load(path)


def test_a_model_and_a_dataset_of_the_hub_are_named(tmp_path: Path) -> None:
    made = Made(tmp_path / "runs", task="SST2", model="FacebookAI/roberta-base")
    made.measure(METHODS)
    data = metadata_load(write(made.folder, made.store))
    assert data["base_model"] == "FacebookAI/roberta-base"
    repo, config = fm.task("SST2").hub.repo, fm.task("SST2").hub.config
    assert data["datasets"] == [repo]
    dataset = data["model-index"][0]["results"][0]["dataset"]
    assert (dataset["type"], dataset.get("config")) == (repo, config)


def test_results_on_datasets_of_the_hub_are_written_for_its_pages(tmp_path: Path, made: Made) -> None:
    on_hub = Made(tmp_path / "hub", task="SST2", model="FacebookAI/roberta-base")
    found = {}
    for one in (on_hub, made):
        found[one.config.task] = one.measure(METHODS)
        write(one.folder, one.store)
    read = pytest.importorskip("huggingface_hub._eval_results", reason="the lowest version has no reader")
    entries = read.parse_eval_result_entries(yaml.safe_load((on_hub.folder / EVAL_RESULTS).read_text()))
    values = {entry.notes: entry.value for entry in entries}
    assert values["ACU (fraction) of loo-sign"] == found["SST2"].acu("loo-sign")
    assert values["in-distribution p-value (0 to 1) of loo-sign"] == pytest.approx(0.159)
    [record] = [record for _, record in on_hub.store.records() if record.kind == "measure"]
    [source] = {entry.source_name for entry in entries if entry.notes == "ACU (fraction) of loo-sign"}
    assert source == f"faithmeter measurement {record.digest}"
    assert {entry.source_url for entry in entries} == {
        f"https://huggingface.co/datasets/{fm.task('SST2').hub.repo}"
    }
    hub = fm.task("SST2").hub
    assert {(entry.dataset_id, entry.task_id) for entry in entries} == {(hub.repo, hub.config)}
    assert not (made.folder / EVAL_RESULTS).exists(), "generated stories are no dataset of the hub"


def test_the_commands_say_what_was_run(made: Made) -> None:
    made.measure(METHODS, seed=3)
    text = write(made.folder, made.store).read_text(encoding="utf-8")
    found = [shlex.split(line) for line in re.findall(r"^faithmeter .*$", text, re.MULTILINE)]
    checkpoint, methods = f"runs/{made.folder.name}", ["-m", "grad-l2", "-m", "loo-sign"]
    train = ["train", "--task", "bAbI-1", "--epochs", "2", "--learning-rate", "0.001"]
    assert found == [
        ["faithmeter", *train, "-o", "runs"],
        ["faithmeter", "measure", checkpoint, *methods, "--seed", "3", "--limit", "200", "-o", "runs"],
        ["faithmeter", "report", "runs", "--model-card", checkpoint],
    ]


def test_what_must_not_be_trusted_is_said(made: Made) -> None:
    made.measure(METHODS | {"loo-abs": method(0.2, 0.5)}, texts=40)
    text = write(made.folder, made.store).read_text(encoding="utf-8")
    strange = "- texts erased by grad-l2 look unusual to the model (grad-l2: cross-fitted p = 0.040)"
    assert f"{strange}: see its predictions on them as less sure." in text
    assert "- loo-sign, loo-abs and grad-l2: measured on 40 texts only, so small differences mean" in text
    assert "- 12.5% of the texts are too long for the model, which did not read their ends." in text
    assert "did not learn" not in text
    low = {name: ([0.2] * 11, p) for name, (_, p) in METHODS.items()}
    made.measure(low, texts=300)
    assert "the model did not learn the task (20.0% micro F1" in write(made.folder, made.store).read_text(
        encoding="utf-8"
    )


def test_writing_again_changes_nothing_and_a_new_measurement_only_ours(made: Made) -> None:
    before = made.measure(METHODS)
    path = write(made.folder, made.store)
    first = path.read_bytes()
    assert write(made.folder, made.store).read_bytes() == first
    found = made.measure(METHODS | {"loo-sign": method(0.3, 0.5)}, texts=400)
    text = write(made.folder, made.store).read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    assert f"| loo-sign | {format_percent(found.area('loo-sign', 'faithfulness'))} [" in text
    assert f"| loo-sign | {format_percent(before.area('loo-sign', 'faithfulness'))} [" not in text
    assert [file.name for file in made.folder.glob(".README*")] == []
    assert made.store.get(made.config) is not None  # the card is no part of what the record vouches for


@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_all_that_is_not_ours_stays(made: Made, line_break: str) -> None:
    made.measure(METHODS)
    path = made.folder / "README.md"
    path.write_bytes(FOREIGN.replace("\n", line_break).encode())
    write(made.folder, made.store)
    path.write_bytes(path.read_bytes() + f"Text after.{line_break}".encode())
    once = path.read_bytes()
    assert write(made.folder, made.store).read_bytes() == once
    text = once.decode()
    assert text.count(line_break) == text.count("\n")
    text = text.replace("\r\n", "\n")
    for line in (
        "# kept by hand",
        "license:",
        "- text: hello   # with a comment",
        "# Prized",
        "Text before.",
    ):
        assert f"\n{line}\n" in text
    assert text.endswith(f"{END}\nText after.\n")
    foreign = yaml.safe_load(FOREIGN.split("---\n")[1])
    data = metadata_load(path)
    [model] = data["model-index"]
    assert model["name"] == "Prized"
    assert model["results"][:1] == foreign["model-index"][0]["results"]
    assert {**data, "model-index": None} == {**foreign, "model-index": None}
    assert len(ModelCard.load(path).data.eval_results) == 1 + 10


@pytest.mark.parametrize(
    ("card", "data"),
    [
        ("# No metadata\n", {}),
        ("", {}),
        ("---\n{language: en, tags: [a]}\n---\nbody\n", {"language": "en", "tags": ["a"]}),
        ("---\n'model-index': []\nlicense: mit\n---\nbody\n", {"license": "mit"}),
        ("---\nlicense: mit\n---", {"license": "mit"}),
    ],
)
def test_other_forms_of_cards(made: Made, card: str, data: dict[str, Any]) -> None:
    made.measure(METHODS)
    (made.folder / "README.md").write_text(card, encoding="utf-8")
    path = write(made.folder, made.store)
    once = path.read_bytes()
    found = metadata_load(path)
    assert len(found.pop("model-index")[0]["results"]) == 1
    assert found == data
    assert card.rpartition("---")[2].strip() in once.decode()
    assert write(made.folder, made.store).read_bytes() == once


def test_a_checkpoint_that_is_not_ours_is_known_by_its_weights(made: Made, tmp_path: Path) -> None:
    other = tmp_path / "other"
    made.folder.rename(other)
    (other / "record.json").unlink()
    made.measure(METHODS)
    text = write(other, made.store).read_text(encoding="utf-8")
    assert "not known to faithmeter. Classes" in text
    assert "faithmeter measure other --task bAbI-1" in text
    assert tables(text)[1][1:] == [["unmasked", "90.0"], ["fully masked", "40.0"]]


def test_a_checkpoint_must_have_been_measured(made: Made) -> None:
    made.measure(METHODS, checkpoint="of-another-model")
    with pytest.raises(fm.InputError, match=f"run `faithmeter measure {re.escape(str(made.folder))}` first"):
        write(made.folder, made.store)
    assert not (made.folder / "README.md").exists()
    with pytest.raises(fm.InputError, match="is not a folder"):
        write("FacebookAI/roberta-base", made.store)


@pytest.mark.parametrize(
    ("card", "message"),
    [
        (f"text\n{BEGIN}\n".encode(), "delete both"),
        (f"{END}\ntext\n{BEGIN}\n".encode(), "delete both"),
        (b"---\na: [\n---\n", "metadata of .* cannot be read"),
        (b"---\n- a\n---\n", "metadata of .* cannot be read"),
        (b"---\nmodel-index: none\n---\n", "metadata of .* cannot be read"),
        ("é".encode("latin-1"), "not UTF-8"),
    ],
)
def test_a_broken_card_is_left_alone(made: Made, card: bytes, message: str) -> None:
    made.measure(METHODS)
    (made.folder / "README.md").write_bytes(card)
    with pytest.raises(fm.InputError, match=message):
        write(made.folder, made.store)
    assert (made.folder / "README.md").read_bytes() == card


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    data = f"```\n{HOSTILE}.csv"
    made = Made(tmp_path / "runs", data=data, text="t", label="l")
    made.measure(METHODS | {"own|<b>": method(0.1, 0.3)})
    path = write(made.folder, made.store)
    once = path.read_bytes()
    assert write(made.folder, made.store).read_bytes() == once
    body = ModelCard.load(path).text
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    raw = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert raw == [BEGIN, END]
    inline = [part for token in tokens for part in token.children or ()]
    assert not [part for part in inline if part.type in ("html_inline", "strong_open", "code_inline")]
    assert "own|<b>" in [row[0] for row in tables(body)[0]]
    [command] = [token.content for token in tokens if token.type == "fence" and token.info == "bash"]
    assert shlex.split(command)[3] == data


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]) | st.sampled_from("\\`*_[]<>|&~$#! \n"))
)
def test_plain_text_is_shown_as_it_is(text: str) -> None:
    [[_, [first, second]]] = tables(f"| a | b |\n| --- | --- |\n| {plain(text)} | x |\n")
    assert (first, second) == (" ".join(text.split()), "x")


@given(st.text(st.sampled_from("`~\na ")))
def test_code_never_leaves_its_fence(code: str) -> None:
    [token] = MarkdownIt("commonmark").parse(fenced(code))
    assert token.type == "fence"
    assert token.content == code + "\n"


def test_fully_masked_means_all_columns_where_that_was_evaluated(tmp_path: Path) -> None:
    lines = [masked_scores(0, accuracy=0.9), masked_scores(100, accuracy=0.6)]
    store, config = fm.RunStore(tmp_path), fm.TrainConfig()
    old = store.put(config, train_result(test=lines))
    new = store.put(config.replace(seed=1), train_result(test=[*lines, masked_scores("all", accuracy=0.5)]))
    assert performance(old, config.task, [])["fully masked"] == 0.6
    assert performance(new, config.task, [])["fully masked"] == 0.5
