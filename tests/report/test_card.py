"""The card's numbers are the records', all that is not ours stays, and no name can break its Markdown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard, metadata_load, parse_eval_result_entries
from huggingface_hub.repocard_data import model_index_to_eval_results
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import faithmeter as fm
from faithmeter.config import MeasureConfig
from faithmeter.report.card import EVAL_RESULTS, write
from faithmeter.report.card.facts import NUMBERS, performance
from faithmeter.report.card.readme import BEGIN, END, fenced, plain
from faithmeter.store.records import MeasureRecord
from records import masked_scores, measure_result, method_result, train_result
from toy import tiny

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


def steps(p: float) -> dict[str, Any]:
    return {percent: {"p": p, "below": {0.05: percent / 1000}} for percent in PERCENTS}


def method(acu: float, racu: float | None, p: float) -> dict[str, Any]:
    values = {percent: 0.9 - percent / 200 for percent in PERCENTS}
    tests = {"p": {"published": p / 2, "crossfit": p}}
    tests |= {"pvalues": {"published": steps(p / 2), "crossfit": steps(p)}}
    return method_result(values, metric="micro_f1", texts=200, acu=acu, racu=racu) | tests


METHODS = {
    "random": method(0.0, 0.0, 0.6),
    "grad-l2": method(-0.0123, None, 0.04),
    "loo-sign": method(0.4421, 1.2108, 0.159),
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

    def measure(self, methods: dict[str, Any], texts: int = 200, **config: Any) -> MeasureRecord:
        task = self.config.data or self.config.task
        said = MeasureConfig(checkpoint=self.fingerprint, data="d", task=task, limit=texts)
        known: dict[str, Any] = {"labels": ["good", HOSTILE, "bad"], "threshold": 0.25, "majority": 0.2}
        known |= {"texts": texts, "floors": {"crossfit": 0.0005}, "truncated": 0.125}
        names = [name for name in methods if name != "random"]
        config = MeasureConfig.from_dict(said.to_dict() | {"methods": names} | config)
        return self.store.put(config, measure_result(self.config, methods, **known))


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


def test_the_tables_have_the_numbers_of_the_records(made: Made) -> None:
    made.measure(METHODS)
    made.measure({"random": METHODS["random"], "beam(width=20)": method(0.41, 1.05, 0.125)}, texts=50)
    body = ModelCard.load(write(made.folder, made.store)).text
    performance, methods, masked, digests = tables(body)
    assert performance[1:] == [["unmasked", "98.7"], ["fully masked", "18.7"], ["class majority", "16.9"]]
    assert methods[1:] == [
        ["loo-sign", "44.2", "–", "121.1", "0.159", "0.080", "200"],
        ["grad-l2", "-1.2", "–", "–", "0.040", "0.020", "200"],
        ["beam(width=20)", "41.0", "–", "105.0", "0.125", "0.062", "50"],  # on other texts: no rival
        ["random", "0.0", "–", "0.0", "0.600", "0.300", "200"],  # a baseline is not the most faithful
    ]
    expected = [[str(p), f"{90 - p / 2:.1f}", "0.600", f"{p / 10:.1f}"] for p in PERCENTS]
    assert masked[1:] == expected
    assert ["weights", made.fingerprint] in digests
    assert ["training", made.config.digest] in digests
    assert ["test split", ("test" * 5)[:16]] in digests


def test_the_model_index_has_them_exactly(made: Made) -> None:
    record = made.measure(METHODS)
    path = write(made.folder, made.store)
    name, found = model_index_to_eval_results(metadata_load(path)["model-index"])
    assert name == made.folder.name
    values = {result.metric_name: result.metric_value for result in found}
    assert values.pop("micro_f1 (fraction), unmasked") == 0.987
    assert values.pop("micro_f1 (fraction), fully masked") == pytest.approx(0.187)
    flat = {**dict(record.methods["loo-sign"]), "p_crossfit": 0.159}
    for column, (_, title) in NUMBERS.items():
        assert values.pop(f"{title} of loo-sign") == flat[column]
    assert values == {
        "ACU (fraction) of grad-l2": -0.0123,
        "in-distribution p-value (0 to 1) of grad-l2": 0.04,
    }
    assert {result.dataset_name for result in found} == {"bAbI-1"}
    runs = {result.metric_name: result.metric_args["faithmeter"] for result in found}
    assert runs["ACU (fraction) of loo-sign"] == f"measurement {record.digest}"
    assert runs["micro_f1 (fraction), unmasked"] == f"training {made.train.digest}"
    assert {result.source_url for result in found} == {None}, "generated stories have no address"


def test_results_of_an_earlier_version_are_replaced(made: Made) -> None:
    made.measure(METHODS)
    path = write(made.folder, made.store)
    text = path.read_text(encoding="utf-8")
    old = {"name": "faithmeter", "url": "https://arxiv.org/abs/2310.07819"}
    data = metadata_load(path)
    for result in data["model-index"][0]["results"]:
        for metric in result["metrics"]:
            del metric["args"]
        result["source"] = old
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
    for one in (on_hub, made):
        one.measure(METHODS)
        write(one.folder, one.store)
    entries = parse_eval_result_entries(yaml.safe_load((on_hub.folder / EVAL_RESULTS).read_text()))
    values = {entry.notes: entry.value for entry in entries}
    assert values["ACU (fraction) of loo-sign"] == 0.4421
    assert values["in-distribution p-value (0 to 1) of loo-sign"] == 0.159
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
    made.measure(METHODS | {"loo-abs": method(0.2, 0.5, 0.5)}, texts=50)
    text = write(made.folder, made.store).read_text(encoding="utf-8")
    strange = "- texts erased by grad-l2 are out of distribution (cross-fitted p = 0.040)"
    assert f"{strange}, so do not trust its areas." in text
    assert "- loo-sign, loo-abs and grad-l2: measured on 50 texts only, so small differences mean" in text
    assert "- 12.5% of the texts are too long for the model, which did not read their ends." in text
    assert "did not learn" not in text
    low = {name: one | {"curve": one["curve"] | {"values": [0.2] * 11}} for name, one in METHODS.items()}
    made.measure(low, texts=300)
    assert "the model did not learn the task (20.0% micro F1" in write(made.folder, made.store).read_text(
        encoding="utf-8"
    )


def test_writing_again_changes_nothing_and_a_new_measurement_only_ours(made: Made) -> None:
    made.measure(METHODS)
    path = write(made.folder, made.store)
    first = path.read_bytes()
    assert write(made.folder, made.store).read_bytes() == first
    made.measure(METHODS | {"loo-sign": method(0.333, 0.9, 0.5)}, texts=400)
    text = write(made.folder, made.store).read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    assert "| loo-sign | 33.3 | – | 90.0 |" in text
    assert "44.2" not in text
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
    assert len(ModelCard.load(path).data.eval_results) == 1 + 7


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
    assert tables(text)[0][1:] == [["unmasked", "90.0"], ["fully masked", "40.0"]]


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
    made.measure(METHODS | {"own|<b>": method(0.1, 0.2, 0.3)})
    path = write(made.folder, made.store)
    once = path.read_bytes()
    assert write(made.folder, made.store).read_bytes() == once
    body = ModelCard.load(path).text
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    raw = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert raw == [BEGIN, END]
    inline = [part for token in tokens for part in token.children or ()]
    assert not [part for part in inline if part.type in ("html_inline", "strong_open", "code_inline")]
    assert "own|<b>" in [row[0] for row in tables(body)[1]]
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
