"""A text with words masked: the model's answer by hand, and where words and tokens stand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

import faithmeter as fm
from faithmeter.measuring.explanation import BLANK
from faithmeter.measuring.one_text import explain_texts, probe_text
from toy import BOS, EOS, MASK, SPECIAL_TOKENS, WORDS, tiny

TEXT, PAIR = "the film was not good but very fun", "who wrote it"
CLASSIFIER = tiny()


def pieces_tokenizer() -> PreTrainedTokenizerFast:
    """`film` is `fi` `##lm`."""
    names = [*SPECIAL_TOKENS, "fi", "##lm", "good", "a"]
    tokenizer = Tokenizer(models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", BOS), ("</s>", EOS)]
    )
    special = {"unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **special)


def test_masked_tokens_reach_the_model_as_mask_tokens() -> None:
    batch = CLASSIFIER.encode([TEXT], [PAIR])
    ids = batch.input_ids.clone()
    ids[0, [2, 5]] = MASK  # explained tokens 1 and 4 stand behind <s>
    with torch.inference_mode():
        logits = CLASSIFIER.model(input_ids=ids, attention_mask=batch.attention_mask).logits[0]
    probe = probe_text(CLASSIFIER, TEXT, pair=PAIR, masked=[4, 1, 4])
    assert probe.masked == (1, 4)
    assert list(probe.probabilities.values()) == pytest.approx(logits.softmax(dim=0).tolist())
    assert probe.prediction == CLASSIFIER.labels[int(logits.argmax())]
    assert probe.pvalues == {}
    assert [doubt.kind for doubt in probe.doubts] == ["unchecked"]


def test_without_a_mask_it_says_what_an_explanation_says() -> None:
    probe = probe_text(CLASSIFIER, TEXT, pair=PAIR)
    [explanation] = explain_texts(CLASSIFIER, CLASSIFIER.encode([TEXT], [PAIR]))
    assert probe.prediction == explanation.prediction
    assert probe.probabilities == pytest.approx(explanation.probabilities)
    for mine, theirs in zip(probe.words, explanation.words, strict=True):
        assert (mine.text, mine.start, mine.end) == (theirs.text, theirs.start, theirs.end)


def test_a_word_has_all_its_tokens() -> None:
    clf = fm.Classifier(CLASSIFIER.model, pieces_tokenizer())
    probe = probe_text(clf, "a  film good")
    assert [(word.text, word.start, word.tokens) for word in probe.words] == [
        ("a", 0, (0,)),
        ("film", 3, (1, 2)),
        ("good", 8, (3,)),
    ]
    assert [token.text for token in probe.tokens] == ["a", "fi", "lm", "good"]


def test_pvalues_are_those_of_the_masked_text() -> None:
    batch = CLASSIFIER.encode([" ".join(WORDS[i : i + 5]) for i in range(15)] * 2)
    features = CLASSIFIER.features(batch).detach().numpy()
    features = features + torch.randn(features.shape, generator=torch.Generator().manual_seed(0)).numpy()
    tests = {"crossfit": fm.MaSF(calibration="crossfit", trained_with="half").fit(features)}
    probe = probe_text(CLASSIFIER, TEXT, masked=range(8), tests=tests)
    batch = CLASSIFIER.encode([TEXT])
    masked = batch.masked(batch.explained, MASK)
    expected = tests["crossfit"].pvalues(CLASSIFIER.features(masked).detach().float().numpy())
    assert probe.pvalues == {"crossfit": pytest.approx(float(expected[0]))}
    assert [doubt.kind for doubt in probe.doubts] == (["outside"] if expected[0] < 0.05 else [])


def test_a_low_pvalue_is_a_reason_not_to_trust() -> None:
    far_away = 100 + torch.randn(60, 3, 16, generator=torch.Generator().manual_seed(0)).numpy()
    test = fm.MaSF(calibration="crossfit").fit(far_away)
    doubt = probe_text(CLASSIFIER, TEXT, masked=[0], tests={"crossfit": test}).doubts[0]
    assert doubt.kind == "outside"
    assert f"masked as it is, is out of distribution (cross-fitted p = {test.smallest_p():.2g})" in doubt.text


@pytest.mark.parametrize("number", [-1, 8])
def test_numbers_of_no_token_are_refused(number: int) -> None:
    with pytest.raises(fm.InputError, match=f"masked holds {number}; .* 0 to 7"):
        probe_text(CLASSIFIER, TEXT, masked=[0, number])


def test_a_text_beyond_the_limit_is_said_to_be_cut() -> None:
    clf = fm.Classifier(CLASSIFIER.model, pieces_tokenizer())
    assert not probe_text(clf, "good " * 62).truncated
    cut = probe_text(clf, "good " * 63)
    assert cut.truncated
    assert len(cut.tokens) == 62


@given(st.text(st.sampled_from("ab goдם🙂\n<>&") | st.characters(codec="utf-8"), min_size=1, max_size=30))
def test_pieces_stand_where_they_say_and_words_share_out_the_tokens(text: str) -> None:
    try:
        probe = probe_text(CLASSIFIER, text)
    except fm.InputError:
        assert not CLASSIFIER.tokenizer(text, add_special_tokens=False)["input_ids"]
        return
    for piece in (*probe.words, *probe.tokens):
        assert piece.text == (text[piece.start : piece.end] or BLANK)
    shared = [number for word in probe.words for number in word.tokens]
    assert shared == list(range(len(probe.tokens)))
    assert sum(probe.probabilities.values()) == pytest.approx(1)
