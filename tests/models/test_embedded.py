"""The model that ships with the package: it loads offline, is small, and knows the stories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer

import faithmeter
from faithmeter.data import stories

FOLDER = Path(faithmeter.__file__).parent / "models/embedded"


@pytest.fixture(scope="module", autouse=True)
def offline() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


def test_the_model_is_at_most_one_megabyte() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 1_000_000
    assert (FOLDER / "model.safetensors").exists()


def test_the_tokenizer_frames_a_pair_and_decodes_readably() -> None:
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    batch = tokenizer("Mary went back to the office.", "Where is Mary?")
    tokens = " ".join(tokenizer.convert_ids_to_tokens(batch.input_ids))
    assert tokens == "[CLS] mary went back to the office . [SEP] where is mary ? [SEP]"
    assert [batch.sequence_ids()[position] for position in (0, 1, 8, 9, 13)] == [None, 0, None, 1, None]
    assert (
        tokenizer.decode(batch.input_ids, skip_special_tokens=True)
        == "mary went back to the office. where is mary?"
    )
    assert tokenizer.model_max_length == 512
    assert tokenizer("Mary [MASK]").input_ids[2] == tokenizer.mask_token_id


@pytest.mark.parametrize("task", stories.TASKS)
def test_every_word_of_the_stories_is_known(task: int) -> None:
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    told = [q for story in stories.generate(task, 200, seed=0) for q in story]
    ids = tokenizer([f"{q.paragraph} {q.question} {q.answer}" for q in told]).input_ids
    assert tokenizer.unk_token_id not in {index for row in ids for index in row}


def test_a_classifier_starts_from_every_pretrained_weight_of_the_encoder() -> None:
    masked = AutoModelForMaskedLM.from_pretrained(FOLDER)
    classifier = AutoModelForSequenceClassification.from_pretrained(FOLDER, num_labels=6)
    assert classifier.classifier.out_features == 6
    pretrained = masked.base_model.state_dict()
    assert all(
        torch.equal(weight, pretrained[name]) for name, weight in classifier.base_model.state_dict().items()
    )


def test_masked_answers_of_task_1_are_filled_in() -> None:
    tokenizer, model = (
        AutoTokenizer.from_pretrained(FOLDER),
        AutoModelForMaskedLM.from_pretrained(FOLDER).eval(),
    )
    told = [q for story in stories.generate(1, 200, seed=12345) for q in story]
    batch = tokenizer(
        [q.paragraph for q in told], [f"{q.question} [MASK]" for q in told], padding=True, return_tensors="pt"
    )
    with torch.no_grad():
        guesses = model(**batch).logits[batch.input_ids == tokenizer.mask_token_id].argmax(dim=1)
    words = tokenizer.convert_ids_to_tokens(guesses)
    assert sum(word == q.answer for word, q in zip(words, told, strict=True)) >= 190
