"""Tokenized splits: what their rows hold."""

from __future__ import annotations

from datasets import Dataset

from faithmeter.models.encoding import tokenize
from toy import WITH_TYPES
from toy import letter_tokenizer as letters


def test_a_split_is_tokenized_with_labels_and_row_numbers() -> None:
    split = Dataset.from_dict({"text": ["a b", "c"], "context": ["d", "e"], "label": [1, 0]})
    rows = tokenize(split, letters(model_input_names=WITH_TYPES), max_length=64)
    assert rows["labels"][:] == [1, 0]
    assert rows["index"][:] == [0, 1]
    assert rows["token_type_ids"][0] == [0, 0, 0, 0, 0, 1, 1]
    assert set(rows.column_names) == {"input_ids", "kinds", "truncated", "token_type_ids", "labels", "index"}
