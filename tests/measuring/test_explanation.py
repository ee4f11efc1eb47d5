"""Explanations of one text: words and tokens as text, labels, looks in JSON, HTML and the terminal."""

from __future__ import annotations

import io
import json
import re
from functools import partial
from html.parser import HTMLParser
from typing import Any

import pytest
import torch
from rich.console import Console
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from faithmeter.errors import InputError
from faithmeter.measuring.one_text import explain_texts
from faithmeter.methods import METHODS, explain
from faithmeter.models.classes import class_number
from faithmeter.models.classifier import Classifier
from faithmeter.models.evaluator import Evaluator
from faithmeter.report.surfaces import page
from faithmeter.runs import pipeline
from toy import SPECIAL_TOKENS, tiny, word_tokenizer

explain_text = partial(pipeline.explain_text, verify=False)


@pytest.fixture(scope="module", params=[True, False], ids=["trimmed", "blanks kept"])
def bytes_clf(request: pytest.FixtureRequest) -> Classifier:
    """A byte-level tokenizer, as of RoBERTa, with pieces such as 'Ġthe'; some count the blank to it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=[*SPECIAL_TOKENS], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(["the film was very good fun and the story was not"] * 3, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=request.param, add_prefix_space=False
    )
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names, unk_token="<unk>", sep_token="</s>")
    clf = tiny(vocab_size=len(fast))
    return Classifier(clf.model, fast)


def strip(html: str) -> str:
    """What is left to read of a page."""
    pieces: list[str] = []
    parser = HTMLParser()
    parser.handle_data = pieces.append  # type: ignore[method-assign]
    parser.feed(html)
    return "".join(pieces)


def rendered(explanation: Any, **options: Any) -> str:
    console = Console(width=200, record=True, file=io.StringIO(), **options)
    console.print(explanation)
    return console.export_text(styles=bool(options))


def test_words_are_merged_from_tokens_and_take_the_strongest_score(bytes_clf: Classifier) -> None:
    text = "the filmography was  unfunny"
    shown = explain_text(bytes_clf, text, method=["loo-sign", "beam(width=2)"])
    assert [word.text for word in shown.words if word.text != "␣"] == ["the", "filmography", "was", "unfunny"]
    assert len(shown.tokens) > len(shown.words)
    for unit in (*shown.words, *shown.tokens):
        assert unit.text in (text[unit.start : unit.end], "␣")
    inside = [t for t in shown.tokens if t.start >= 4 and t.end <= 15]
    assert "".join(token.text for token in inside) == "filmography"
    for method in shown.methods:
        strongest = max((token.scores[method] for token in inside), key=abs)
        assert shown.words[1].scores[method] == strongest


def test_scores_are_those_of_explain(bytes_clf: Classifier) -> None:
    batch = bytes_clf.encode(["the story"], ["was good"])
    shown = explain_text(
        bytes_clf, "the story", pair="was good", method=["int-grad-sign(steps=3)"], label=1, verify=False
    )
    scores = explain(bytes_clf, batch, [1], "int-grad-sign(steps=3)")[batch.explained]
    assert [token.scores["int-grad-sign(steps=3)"] for token in shown.tokens] == scores.tolist()


def test_no_piece_of_a_tokenizers_spelling_is_ever_shown(bytes_clf: Classifier) -> None:
    shown = explain_text(
        bytes_clf,
        "café 😀 was\nvery <mask> [bold]good[/bold] <b>",
        method=["loo-sign", "random"],
        verify=False,
    )
    views = [json.dumps(shown.to_dict(), ensure_ascii=False), shown._repr_html_(), rendered(shown)]
    for view in views:
        assert "Ġ" not in view
        assert "Ã" not in view
        assert "😀" in view
    assert "[bold]" in views[2].replace(" ", "")
    assert "<b>" not in views[1]


def test_a_text_without_label_is_explained_for_its_prediction() -> None:
    clf = tiny()
    shown = explain_text(clf, "the film was good")
    probabilities = torch.softmax(clf.logits(clf.encode(["the film was good"])), dim=1)[0].tolist()
    assert list(shown.probabilities.values()) == pytest.approx(probabilities)
    assert shown.label == shown.prediction == clf.labels[probabilities.index(max(probabilities))]


def test_labels_are_names_or_numbers() -> None:
    classes = ("negative", "positive", "0")
    assert [class_number(classes, label) for label in ("positive", 1, "1", "0", 0)] == [1, 1, 1, 2, 0]
    for wrong in ("positiv", 3, -1, "3"):
        with pytest.raises(InputError, match="unknown label"):
            class_number(classes, wrong)


def test_several_texts_are_explained_as_each_alone_and_share_evaluations() -> None:
    clf = Evaluator(tiny())
    texts = ["the film was good", "dull", "the film was good"]
    together = explain_texts(clf, clf.encode(texts), ["loo-sign"], [None, 1, None])
    evaluations = clf.evaluations
    assert evaluations == 5 + 2
    assert together[0] == together[2]
    assert [e.label for e in together] == [together[0].prediction, "LABEL_1", together[0].prediction]
    assert explain_text(clf, "dull", label=1) == together[1]
    assert clf.evaluations == evaluations
    with pytest.raises(InputError, match="one label for each text"):
        explain_texts(clf, clf.encode(texts), labels=[0])


def test_json_holds_all_that_is_shown() -> None:
    shown = explain_text(
        tiny(), "the film", pair="who wrote it", method=["loo-sign", "grad-l2"], label="LABEL_2", verify=False
    )
    plain = json.loads(json.dumps(shown.to_dict()))
    assert (plain["text"], plain["pair"], plain["label"]) == ("the film", "who wrote it", "LABEL_2")
    assert plain["methods"] == ["loo-sign", "grad-l2"]
    assert [(w["text"], w["start"], w["end"]) for w in plain["words"]] == [("the", 0, 3), ("film", 4, 8)]
    assert plain["tokens"][1]["scores"] == dict(shown.tokens[1].scores)
    assert sum(plain["probabilities"].values()) == pytest.approx(1)


def test_html_escapes_colors_by_sign_and_has_a_legend() -> None:
    shown = explain_text(
        tiny(),
        "the <script> was not & good",
        pair="<i>who</i> [bold]wrote[/bold]",
        method=["loo-sign"],
        verify=False,
    )
    html = shown._repr_html_()
    assert "<script>" not in html
    assert "<i>" not in html
    assert {unit.scores["loo-sign"] > 0 for unit in shown.words} == {True, False}
    assert "class='heat for'" in html
    assert "class='heat against'" in html
    text = strip(html.partition("</style>")[2])
    assert "the < script > was not & good".replace(" ", "") in text.replace(" ", "")
    assert f"for {shown.label}" in text
    assert f"against {shown.label}" in text
    assert "context: <i>who</i> [bold]wrote[/bold]" in rendered(shown), "brackets are no markup"
    whole = page([shown, shown], title="A & B")
    assert whole.startswith("<!doctype html>")
    assert whole.count("prediction") == 2
    assert "<title>A &amp; B</title>" in whole


def test_the_terminal_shows_words_prediction_and_legend_in_color() -> None:
    shown = explain_text(tiny(), "the film was not good", method=["loo-sign", "beam"])
    plain = rendered(shown)
    assert plain.count("the film was not good") == 2
    assert "prediction" in plain
    assert "tokens" not in plain, "words and tokens are the same here"
    strongest = max((word.scores["loo-sign"] for word in shown.words), key=abs)
    assert f"{strongest:+.3g}" in plain, "for those who see no colors"
    colored = rendered(shown, force_terminal=True, color_system="truecolor")
    assert "48;2;214;69;65m" in colored, "the strongest word is on full red"


@pytest.mark.parametrize("name", [name for name in METHODS if not METHODS[name].signed])
def test_scores_without_a_sign_speak_neither_for_nor_against(name: str) -> None:
    clf = tiny()
    shown = explain_text(clf, "the film was not good", method=[name])
    terminal = rendered(shown, force_terminal=True, color_system="truecolor")
    html = shown._repr_html_().partition("</style>")[2]
    for view in (strip(html), rendered(shown)):
        assert "important" in view
        assert not re.search(r"\bfor |against|\+", view)
    assert "48;2;240;173;0m" in terminal, "the strongest word is on full amber"
    assert "214;69;65" not in terminal
    assert "heat for" not in html
    both = explain_text(clf, "the film was not good", method=[name, "loo-sign"])
    for seen in (f"for {shown.label}", f"against {shown.label}", "important"):
        assert seen in rendered(both)
    assert "important" not in rendered(explain_text(clf, "the film was not good"))


def test_a_text_beyond_the_models_limit_says_so() -> None:
    clf = tiny()
    shown = explain_text(clf, "good " * 600, method=["random"])
    assert shown.truncated
    assert len(shown.tokens) == 510
    assert "left out" in rendered(shown)
    assert not explain_text(clf, "good", method=["random"]).truncated


def test_a_tokenizer_without_offsets_shows_its_tokens() -> None:
    class InPython:
        """A tokenizer in Python that cannot tell where a token stood, like that of ESM."""

        is_fast, mask_token_id, pad_token_id, model_max_length = False, 4, 1, 512
        fast = word_tokenizer()

        def tokenize(self, text: str) -> list[str]:
            return self.fast.tokenize(text)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.fast, name)

        def get_special_tokens_mask(self, ids: list[int], other: list[int] | None = None) -> list[int]:
            return [1, *[0] * len(ids), 1]

        def build_inputs_with_special_tokens(
            self, ids: list[int], other: list[int] | None = None
        ) -> list[int]:
            return [0, *ids, 2]

    shown = explain_text(
        Classifier(tiny().model, InPython()), "the  film was", method=["loo-sign"], verify=False
    )
    assert [token.text for token in shown.tokens] == ["the", "film", "was"]
    assert [shown.text[t.start : t.end] for t in shown.tokens] == ["the", "film", "was"]
    assert shown.words == shown.tokens
