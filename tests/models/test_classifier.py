"""Any Hugging Face encoder with a mask token, without a subclass for each architecture."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import transformers

import faithmeter as fm
from faithmeter.models.classes import match_classes
from faithmeter.models.classifier import find_max_length
from toy import ARCHITECTURES, WITH_TYPES, encoder, tiny, word_tokenizer
from toy import letter_tokenizer as letters

ROWS = [[0, 7, 8, 9, 2, 2, 10, 11, 2], [0, 12, 2, 2, 13, 2], [0, 5, 4, 6, 2]]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_gives_the_same_logits_from_ids_and_from_embeddings(architecture: str) -> None:
    clf = fm.Classifier(encoder(architecture), mask_id=4)
    batch = fm.Batch.from_ids(ROWS, special_ids=(0, 1, 2), pad_id=1)
    with torch.inference_mode():
        logits = clf.logits(batch)
        from_embeddings = clf.logits_at(clf.embed(batch.input_ids), batch)
    assert logits.shape == (3, 3)
    torch.testing.assert_close(from_embeddings, logits, rtol=0, atol=1e-12)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_ignores_padding(architecture: str) -> None:
    clf = fm.Classifier(encoder(architecture), mask_id=4)
    together = clf.logits(fm.Batch.from_ids(ROWS, special_ids=(0, 1, 2), pad_id=1))
    alone = [clf.logits(fm.Batch.from_ids([row], special_ids=(0, 1, 2), pad_id=1)) for row in ROWS]
    torch.testing.assert_close(together, torch.cat(alone), rtol=0, atol=1e-10)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logits_are_differentiable_with_respect_to_the_embeddings(architecture: str) -> None:
    clf = fm.Classifier(encoder(architecture), mask_id=4)
    batch = fm.Batch.from_ids(ROWS, special_ids=(0, 1, 2), pad_id=1)
    embeddings = clf.embed(batch.input_ids).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(clf.logits_at(embeddings, batch).sum(), embeddings)
    assert gradient.shape == embeddings.shape
    assert gradient[0].abs().sum(dim=-1).gt(0).all()


def test_token_types_reach_the_model() -> None:
    clf = fm.Classifier(encoder("bert"), letters(model_input_names=WITH_TYPES))
    batch = clf.encode(["a b"], ["c"])
    assert batch.token_type_ids is not None
    assert batch.token_type_ids.tolist() == [[0, 0, 0, 0, 0, 1, 1]]
    without = clf.model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
    assert not torch.equal(clf.logits(batch), without)


def test_a_tokenizer_without_a_mask_token_is_refused() -> None:
    with pytest.raises(fm.InputError, match="has no mask token; expected a masked language model"):
        fm.Classifier(encoder("roberta"), letters(mask=None))


@pytest.mark.parametrize(
    ("texts", "pairs", "message"),
    [
        (["a", ""], None, r"text 1 \(''\) is empty after tokenizing"),
        ([" "], ["a b"], "text 0 .* is empty"),
        ("a b", None, "lists of strings"),
        (["a"], ["b", "c"], "1 texts with 2 pairs"),
        ([], None, "no texts"),
    ],
)
def test_bad_texts_get_a_clear_error(texts: list[str], pairs: list[str] | None, message: str) -> None:
    with pytest.raises(fm.InputError, match=message):
        fm.Classifier(encoder("roberta"), letters()).encode(texts, pairs)


def test_without_tokenizer_texts_cannot_be_encoded() -> None:
    with pytest.raises(fm.InputError, match="has no tokenizer"):
        fm.Classifier(encoder("roberta"), mask_id=4).encode(["a"])


def test_the_longest_input_is_what_model_and_tokenizer_both_allow() -> None:
    assert find_max_length(encoder("roberta"), letters(model_max_length=10**30)) == 64  # positions begin at 2
    assert find_max_length(encoder("roberta"), letters(model_max_length=20)) == 20
    assert find_max_length(encoder("bert")) == 512


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"problem_type": "regression"}, "predicts 3 numbers at once"),
        ({"problem_type": "multi_label_classification"}, "gives several labels at once"),
        ({"id2label": {0: "a", 2: "b"}}, r"names the classes \[0, 2\]; expected 0 to 1"),
    ],
)
def test_a_head_that_can_be_explained_in_no_way_is_refused(settings: dict[str, Any], message: str) -> None:
    model = encoder("roberta")
    for name, value in settings.items():
        setattr(model.config, name, value)
    with pytest.raises(fm.InputError, match=message):
        fm.Classifier(model, letters())


def test_a_model_of_pairs_and_one_of_single_texts_refuse_the_other() -> None:
    pairs, single = (fm.Classifier(encoder("roberta"), letters(), takes_pair=kind) for kind in (True, False))
    assert len(pairs.encode(["a"], ["b"])) == len(single.encode(["a"])) == 1
    with pytest.raises(fm.InputError, match="trained on pairs of texts, and only one text was given"):
        pairs.encode(["a"])
    with pytest.raises(fm.InputError, match="trained on single texts, and a second text was given"):
        single.encode(["a"], ["b"])


def test_protein_sequences_are_tokenized_by_letters(tmp_path) -> None:
    letters = ["<cls>", "<pad>", "<eos>", "<unk>", "<mask>", *"LAGVSERT"]
    (tmp_path / "vocab.txt").write_text("\n".join(letters))
    tokenizer = transformers.EsmTokenizer(str(tmp_path / "vocab.txt"), model_max_length=8)
    clf = fm.Classifier(encoder("esm"), tokenizer)
    batch = clf.encode(["LAG", "VSERTLAG"])
    assert batch.input_ids.tolist() == [[0, 5, 6, 7, 2, 1, 1, 1], [0, 8, 9, 10, 11, 12, 5, 2]]
    assert batch.explained.sum(dim=1).tolist() == [3, 6]
    assert clf.encode(["LAG"], ["VS"]).content.tolist() == [
        [False, True, True, True, False, True, True, False]
    ]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_features_are_the_maximum_over_a_texts_own_tokens(architecture: str) -> None:
    """Padding has no say."""
    clf = fm.Classifier(encoder(architecture), mask_id=4)
    together = clf.features(fm.Batch.from_ids(ROWS, special_ids=(0, 1, 2), pad_id=1))
    alone = [clf.features(fm.Batch.from_ids([row], special_ids=(0, 1, 2), pad_id=1)) for row in ROWS]
    assert together.shape == (3, 3, 16)
    torch.testing.assert_close(together, torch.cat(alone), rtol=0, atol=1e-10)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_states_reduced_as_they_are_computed_are_those_of_a_whole_pass(architecture: str) -> None:
    """Bit by bit, beside the states of a pass that keeps them all.

    The first states of DeBERTa, masked, and of ELECTRA, projected, are not what a normalization gives.
    """
    batch = fm.Batch.from_ids(ROWS, special_ids=(0, 1, 2), pad_id=1)
    clf, model = fm.Classifier(encoder(architecture), mask_id=4), encoder(architecture)
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    for module in model.modules():
        if "norm" in type(module).__name__.lower():
            module.register_forward_hook(lambda own, inputs, output: seen.append((inputs[0], output)))
    with torch.inference_mode():
        logits, features = clf.states(batch)
        output = model(**batch.inputs, output_hidden_states=True)
    assert torch.equal(logits, output.logits)
    padding = batch.attention_mask[:, :, None] == 0
    given = {after.data_ptr() for _, after in seen}
    normalized = {before.data_ptr(): after for before, after in reversed(seen)}
    for layer, state in enumerate(output.hidden_states):
        whole = state if state.data_ptr() in given else normalized.get(state.data_ptr(), state)
        assert torch.equal(features[:, layer], whole.masked_fill(padding, -torch.inf).amax(dim=1))
    assert (None in clf._calls) == (architecture in ("deberta", "deberta-v2", "electra"))


def test_features_of_a_post_norm_encoder_are_its_hidden_states() -> None:
    clf = fm.Classifier(encoder("roberta"), mask_id=4)
    batch = fm.Batch.from_ids(ROWS[:1], special_ids=(0, 1, 2), pad_id=1)
    states = clf.model(**batch.inputs, output_hidden_states=True).hidden_states
    torch.testing.assert_close(
        clf.features(batch)[0], torch.stack([state[0].amax(dim=0) for state in states])
    )


def test_features_of_a_pre_norm_encoder_are_what_its_normalizations_put_out() -> None:
    clf = fm.Classifier(encoder("modernbert"), mask_id=4)
    batch = fm.Batch.from_ids(ROWS[:1], special_ids=(0, 1, 2), pad_id=1)
    layers = clf.model.model.layers
    states = clf.model(**batch.inputs, output_hidden_states=True).hidden_states
    last = clf.model.model(**batch.inputs).last_hidden_state
    # the embeddings come normalized, the first layer by the second, the last by the final norm
    normalized = [states[0], layers[1].attn_norm(states[1]), last]
    torch.testing.assert_close(clf.features(batch)[0], torch.stack([s[0].amax(dim=0) for s in normalized]))


def test_features_in_several_threads_are_the_same() -> None:
    clf = fm.Classifier(encoder("modernbert"), mask_id=4)
    batches = [fm.Batch.from_ids([row] * 3, special_ids=(0, 1, 2), pad_id=1) for row in ROWS] * 8
    expected = [clf.features(batch) for batch in batches]
    with ThreadPoolExecutor(4) as threads:
        assert all(
            torch.equal(a, b) for a, b in zip(threads.map(clf.features, batches), expected, strict=True)
        )


@pytest.mark.parametrize(
    ("model", "task", "numbers", "by_number"),
    [
        (["neg", "pos"], ["neg", "pos"], (0, 1), False),
        (["POSITIVE", "Negative"], ["negative", "positive"], (1, 0), False),
        (["not_entailment", "entailment"], ["entailment", "not entailment"], (1, 0), False),
        (["1", "0"], ["0", "1"], (1, 0), False),
        (["LABEL_0", "LABEL_1"], ["neg", "pos"], (0, 1), True),
        (["LABEL_1", "LABEL_0"], ["neg", "pos"], (1, 0), True),
        (["LABEL_1", "LABEL_0"], ["0", "1"], (1, 0), True),
        (["neg", "pos"], ["0", "1"], (0, 1), True),
    ],
)
def test_classes_are_matched_by_name_and_otherwise_by_number(
    model: list[str], task: list[str], numbers: tuple[int, ...], by_number: bool
) -> None:
    match = match_classes(model, task)
    assert match.numbers == numbers
    assert bool(match.note) == by_number
    assert match.to_model(torch.tensor([1, 0, 1])).tolist() == [numbers[1], numbers[0], numbers[1]]


def test_two_classes_of_one_name_are_refused() -> None:
    """Probabilities by name would collapse."""
    model = tiny(labels=3).model
    model.config.id2label = {0: "a", 1: "b", 2: "a"}
    with pytest.raises(fm.InputError, match=r"2 classes named 'a'.*give each a name of its own"):
        fm.Classifier(model, word_tokenizer())


def test_a_tokenizer_without_padding_is_refused() -> None:
    """As in a tokenizer_config.json that lost a key."""
    tokenizer = word_tokenizer()
    tokenizer.pad_token = None
    with pytest.raises(fm.InputError, match=r"no padding token.*set its pad_token"):
        fm.Classifier(tiny().model, tokenizer).encode(["the film"])


def test_a_note_says_which_classes_were_matched() -> None:
    expected = "classes of task and model were matched by number: neg = LABEL_0, pos = LABEL_1"
    assert match_classes(["LABEL_0", "LABEL_1"], ["neg", "pos"]).note == expected


@pytest.mark.parametrize(
    ("model", "task", "message"),
    [
        (
            ["neg", "pos"],
            ["neg", "good"],
            "neg, pos, the task's neg, good; expected the same names",
        ),
        (["neg", "pos"], ["neg", "neutral", "pos"], "2 and 3 classes; measure a model on the task"),
        (["a", "A"], ["a", "b"], "expected the same names"),
        (["bad", "good"], ["neg", "pos"], "say which is which, --classes neg=…,pos=…"),
        (["LABEL_1", "LABEL_3"], ["neg", "pos"], "expected the same names"),
    ],
)
def test_classes_that_do_not_match_are_refused(model: list[str], task: list[str], message: str) -> None:
    with pytest.raises(fm.InputError, match=message):
        match_classes(model, task)
