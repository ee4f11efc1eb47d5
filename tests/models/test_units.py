"""Words and sentences as units: they are scored and fall together, in every method."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

import faithmeter as fm
from faithmeter.measuring.erase import trace_erasure
from faithmeter.measuring.trace import frame_trace
from faithmeter.methods import METHODS, parse
from faithmeter.models.evaluator import Evaluator
from faithmeter.models.tokens import in_units
from toy import SPECIAL_TOKENS, tiny

SHARED = Path(os.environ.get("FAITHMETER_SHARED", Path(__file__).parents[3] / "shared"))
TEXT = "abc ab c abca"
BUILT_IN = [name for name in METHODS if name not in ("random", "shapley")]  # which needs shapiq


@pytest.fixture(scope="module")
def clf() -> fm.Classifier:
    """A classifier whose words are spelled in letters: `abc ab c abca` has 10 tokens and 4 words."""
    vocabulary = {token: i for i, token in enumerate([*SPECIAL_TOKENS, *"abc", "##a", "##b", "##c"])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "mask_token": "<mask>"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, cls_token="<s>", sep_token="</s>", **names)
    return fm.Classifier(tiny().model, fast)


@pytest.fixture(scope="module")
def words(clf: fm.Classifier) -> fm.Batch:
    return in_units(clf.encode([TEXT, "c abc"]), "word")


def test_the_first_token_stands_for_its_word(words: fm.Batch) -> None:
    assert words.explained.sum(dim=1).tolist() == [4, 2]
    assert words.units is not None
    assert words.units[0].tolist() == [-1, 1, 1, 1, 4, 4, 6, 7, 7, 7, 7, -1]
    assert words.layouts[0].of_units.spans == ((0, 3), (4, 6), (7, 8), (9, 13))


@pytest.mark.parametrize("name", ["random", *BUILT_IN])
def test_every_method_erases_whole_words_and_counts_words(clf, words: fm.Batch, name: str) -> None:
    for percent, masked in fm.erase(clf, words, [0, 1], name):
        is_masked = masked.input_ids == clf.mask_id
        for row, count in ((0, 4), (1, 2)):
            units = words.units[row]
            of_words = [is_masked[row, units == first] for first in sorted({*units.tolist()} - {-1})]
            assert all(word.all() or not word.any() for word in of_words)
            assert sum(bool(word.all()) for word in of_words) == count * percent // 100


def test_leave_one_out_masks_the_whole_word(clf, words: fm.Batch) -> None:
    scores = fm.explain(clf, words, [0, 1], "loo-sign")
    whole = clf.logits(words)[0, 0]
    for first in (1, 4, 6, 7):
        ids = words.input_ids[:1].masked_fill(words.units[:1] == first, clf.mask_id)
        fall = whole - clf.logits(replace(words[:1], input_ids=ids, units=None))[0, 0]
        assert scores[0, first].item() == pytest.approx(fall.item(), abs=1e-12)
    assert scores[0].count_nonzero() == 4


@pytest.mark.parametrize("of", ["logprob", "margin"])
def test_words_are_scored_by_the_value_that_is_explained(clf, words: fm.Batch, of: str) -> None:
    def value(logits: torch.Tensor) -> float:
        logits = logits.detach()
        others = [logit for label, logit in enumerate(logits.tolist()) if label != 0]
        return float(logits.log_softmax(dim=0)[0] if of == "logprob" else logits[0] - max(others))

    scores = fm.explain(clf, words, [0, 1], f"loo-sign(of={of})")
    for first in (1, 4, 6, 7):
        ids = words.input_ids[:1].masked_fill(words.units[:1] == first, clf.mask_id)
        [masked] = clf.logits(replace(words[:1], input_ids=ids, units=None))
        fall = value(clf.logits(words)[0]) - value(masked)
        assert scores[0, first].item() == pytest.approx(fall, abs=1e-12)
    tokens = fm.explain(clf, clf.encode([TEXT, "c abc"]), [0, 1], f"int-grad-sign(of={of})")
    of_words = fm.explain(clf, words, [0, 1], f"int-grad-sign(of={of})")
    assert of_words[0, 7].item() == pytest.approx(tokens[0, 7:11].sum().item(), abs=1e-12)


@pytest.mark.parametrize("name", ["inp-grad-sign", "int-grad-sign", "grad-l1"])
def test_a_word_has_the_sum_of_its_tokens(clf, words: fm.Batch, name: str) -> None:
    tokens = fm.explain(clf, clf.encode([TEXT, "c abc"]), [0, 1], name)
    scores = fm.explain(clf, words, [0, 1], name)
    assert scores[0, 7].item() == pytest.approx(tokens[0, 7:11].sum().item(), abs=1e-12)
    assert scores[0, 8:].count_nonzero() == 0
    if name != "grad-l1":
        absolute = fm.explain(clf, words, [0, 1], name.replace("sign", "abs"))
        torch.testing.assert_close(absolute, scores.abs())


def test_one_token_words_are_measured_like_tokens() -> None:
    clf = tiny()
    batch = clf.encode(["the film was not good and very dull", "a bad plot"])
    for name in ["random", *BUILT_IN]:
        frames = [
            frame_trace(
                trace_erasure(Evaluator(clf), each, torch.tensor([0, 2]), parse(name), (0, 30, 60, 100), {})
            )
            for each in (batch, in_units(batch, "word"))
        ]
        assert frames[0].equals(frames[1]), name


def test_words_are_measured_shown_and_part_of_the_result(clf, tmp_path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{TEXT} {'ab'[n % 2]},{n % 2}\n" for n in range(12)))
    task = fm.own_task(tmp_path / "t.csv", text="x", label="y", all_test=True, labels=["0", "1", "2"])
    result = fm.measure(clf, task, ["loo-sign"], unit="word", percents=(0, 40, 100))
    assert result.context.unit == result.to_dict()["unit"] == "word"
    row = result.frame[(result.frame["method"] == "loo-sign") & (result.frame["row"] == 0)]
    assert [len(masked) for masked in row["masked"]] == [0, 2, 5]
    assert len(row["scores"].iloc[0]) == 5
    assert result.context.inputs["starts"][0] == [0, 4, 7, 9, 14]
    tokens = fm.measure(clf, task, ["loo-sign"], percents=(0, 40, 100))
    assert len(tokens.frame["scores"].iloc[0]) == 11
    single = fm.explain_text(clf, TEXT, unit="word", percents=(0, 100), orders=19)
    assert single.erasures["loo-sign"].acu <= 1
    shown = fm.explain_text(clf, TEXT, unit="word", verify=False)
    assert [unit.text for unit in shown.tokens] == TEXT.split()


def real_encoder(name: str) -> fm.Classifier:
    folder = SHARED / "models" / name
    if not folder.exists():
        pytest.skip(f"needs the encoder in {folder}; set FAITHMETER_SHARED")
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2)
    return fm.Classifier(model, AutoTokenizer.from_pretrained(folder))


REVIEWS = [
    "An unputdownable, heartwarming masterpiece of storytelling. Unmissable! I'd rewatch it.",
    "Overlong and underwhelming. Nobody laughed.",
]


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["word", "sentence"])
@pytest.mark.parametrize("name", ["granite-embedding-30m-english-roberta", "paraphrase-MiniLM-L3-v2"])
def test_units_of_a_real_encoder_fall_together(name: str, unit: str) -> None:
    """At every step of methods of each kind; counts are whole numbers of units."""
    clf = real_encoder(name)
    batch = in_units(clf.encode(REVIEWS), unit)
    pieces = [layout.text[start:end] for layout in batch.layouts for start, end in layout.of_units.spans]
    if unit == "word":
        assert "".join(pieces) == "".join("".join(REVIEWS).split())
        assert not any(" " in piece for piece in pieces)
    else:
        expected = ["Unmissable!", "I'd rewatch it.", "Overlong and underwhelming.", "Nobody laughed."]
        assert pieces[1:] == expected
    assert (batch.covered.sum(dim=1) > batch.explained.sum(dim=1)).all(), "some units have several tokens"
    for method in ("loo-sign", "int-grad-sign(of=margin)", "grad-l2", "beam(width=2)", "random"):
        for percent, masked in fm.erase(clf, batch, [1, 0], method):
            is_masked = masked.input_ids == clf.mask_id
            for row in range(2):
                firsts = batch.explained[row].nonzero()[:, 0].tolist()
                of_units = [is_masked[row, batch.units[row] == first] for first in firsts]
                assert all(one.all() or not one.any() for one in of_units)
                assert sum(bool(one.all()) for one in of_units) == len(firsts) * percent // 100
