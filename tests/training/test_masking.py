"""MaskingCollator against its definition, and alone in a plain Trainer script."""

from __future__ import annotations

import pytest
import torch
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from transformers import Trainer, TrainingArguments

import faithmeter as fm
from faithmeter.models.masks import generator
from toy import WITH_TYPES, encoder
from toy import letter_tokenizer as letters

MASK, PAD = 4, 1
ROWS = st.lists(
    st.tuples(st.lists(st.integers(5, 11), min_size=1, max_size=9), st.lists(st.integers(5, 11), max_size=5)),
    min_size=1,
    max_size=7,
)


def features(rows: list[tuple[list[int], list[int]]]) -> list[dict[str, object]]:
    ids = [[0, *text, 2, *((2, *context, 2) if context else ())] for text, context in rows]
    return [{"input_ids": row, "labels": i % 2, "index": i} for i, row in enumerate(ids)]


def test_a_hand_made_batch_equals_the_definition() -> None:
    """Row 1 of 0, 1, 2 is masked; its rate and its tokens' numbers come from (seed, epoch, row number)."""
    collator = fm.MaskingCollator(letters(), seed=3)
    collator.epoch = 2
    rows = features([([5, 6], []), ([7, 8, 9], [10, 11]), ([5], [])])
    rng = generator(3, "train", 2, 1)
    rate = rng.random()
    masked = [MASK if rng.random() < rate else token for token in (7, 8, 9)]
    batch = collator(rows)
    assert batch["input_ids"].tolist() == [
        [0, 5, 6, 2, PAD, PAD, PAD, PAD, PAD],
        [0, *masked, 2, 2, 10, 11, 2],
        [0, 5, 2, PAD, PAD, PAD, PAD, PAD, PAD],
    ]
    assert batch["attention_mask"].sum(dim=1).tolist() == [4, 9, 3]
    assert batch["labels"].tolist() == [0, 1, 0]


@given(
    ROWS, st.sampled_from(["half", "all", "none"]), st.sampled_from(["explained", "all"]), st.integers(0, 99)
)
def test_only_the_rows_and_tokens_that_may_be_masked_are(rows, strategy: str, scope: str, seed: int) -> None:
    given_rows = features(rows)
    collator = fm.MaskingCollator(letters(), strategy=strategy, scope=scope, seed=seed)
    after = collator(given_rows)["input_ids"]
    before = fm.MaskingCollator(letters(), strategy="none")(given_rows)["input_ids"]
    batch = fm.Batch.from_ids([row["input_ids"] for row in given_rows], special_ids=(0, 1, 2), pad_id=PAD)
    changed = after != before
    assert torch.equal(before, batch.input_ids)
    assert (after[changed] == MASK).all()
    assert not (changed & ~(batch.explained if scope == "explained" else batch.content)).any()
    untouched = {"half": slice(0, None, 2), "all": slice(0), "none": slice(None)}[strategy]
    assert not changed[untouched].any(), "the other rows stay as they are"


def test_half_masks_every_other_row_and_all_masks_every_row() -> None:
    rows = features([([5] * 60, [])] * 6)
    changed = {
        strategy: (fm.MaskingCollator(letters(), strategy=strategy)(rows)["input_ids"] == MASK).any(dim=1)
        for strategy in ("half", "all", "none")
    }
    assert changed["half"].tolist() == [False, True] * 3
    assert changed["all"].all()
    assert not changed["none"].any()


@given(ROWS, st.integers(0, 6))
def test_the_mask_of_a_row_does_not_depend_on_its_batch(rows, place: int) -> None:
    collator = fm.MaskingCollator(letters(), strategy="all")
    given_rows = features(rows)
    row = given_rows[place % len(given_rows)]
    together = collator(given_rows)["input_ids"][place % len(given_rows), : len(row["input_ids"])]
    assert torch.equal(together, collator([row])["input_ids"][0])


def test_masks_are_new_in_every_epoch_and_the_same_for_the_same_seed() -> None:
    rows = features([([5] * 60, [])] * 2)
    collator, twin = (fm.MaskingCollator(letters(), seed=1) for _ in range(2))
    first = collator(rows)["input_ids"]
    assert torch.equal(first, twin(rows)["input_ids"])
    collator.epoch = 1
    assert not torch.equal(first, collator(rows)["input_ids"])


def test_without_row_numbers_every_batch_gets_new_masks() -> None:
    rows = [{"input_ids": [0, *[5] * 60, 2], "label": 1}] * 2
    collator, twin = (fm.MaskingCollator(letters(), seed=1) for _ in range(2))
    first, second = collator(rows)["input_ids"], collator(rows)["input_ids"]
    assert not torch.equal(first, second)
    assert torch.equal(first, twin(rows)["input_ids"])
    assert collator(rows)["labels"].tolist() == [1, 1]


def test_token_types_are_padded_along() -> None:
    rows = [
        {"input_ids": [0, 5, 2, 6, 2], "token_type_ids": [0, 0, 0, 1, 1]},
        {"input_ids": [0, 5, 2], "token_type_ids": [0] * 3},
    ]
    batch = fm.MaskingCollator(letters(model_input_names=WITH_TYPES), strategy="none")(rows)
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]]


@pytest.mark.parametrize("wrong", [{"strategy": "halve"}, {"scope": "text"}])
def test_unknown_options_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(fm.InputError, match="unknown"):
        fm.MaskingCollator(letters(), **wrong)


def test_a_users_own_trainer_script_needs_one_line(tmp_path) -> None:
    tokenizer = letters()
    data = Dataset.from_dict(dict(tokenizer(["a b c", "d e f g", "b", "c d"])) | {"label": [0, 1, 2, 0]})
    trainer = Trainer(
        encoder("roberta").float(),
        TrainingArguments(
            str(tmp_path), max_steps=2, per_device_train_batch_size=2, report_to="none", disable_tqdm=True
        ),
        train_dataset=data,
        data_collator=fm.MaskingCollator(tokenizer, seed=0),
    )
    assert trainer.train().training_loss > 0
