"""Tokenized splits: what their rows hold, and when they are made again."""

from __future__ import annotations

import datasets
from datasets import Dataset

from faithmeter.models import token_cache
from faithmeter.models.token_cache import tokenize
from faithmeter.models.tokens import encode
from toy import WITH_TYPES
from toy import letter_tokenizer as letters


def test_a_split_is_tokenized_with_labels_and_row_numbers() -> None:
    split = Dataset.from_dict({"text": ["a b", "c"], "context": ["d", "e"], "label": [1, 0]})
    rows = tokenize(split, letters(model_input_names=WITH_TYPES), max_length=64)
    assert rows["labels"][:] == [1, 0]
    assert rows["index"][:] == [0, 1]
    assert rows["token_type_ids"][0] == [0, 0, 0, 0, 0, 1, 1]
    assert set(rows.column_names) == {"input_ids", "kinds", "truncated", "token_type_ids", "labels", "index"}


def test_tokens_are_kept_for_the_same_rows_and_calls_again_for_others(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    calls = []

    def counted(*arguments: object, **options: object) -> object:
        calls.append(arguments)
        return encode(*arguments, **options)

    monkeypatch.setattr(token_cache, "encode", counted)
    split = Dataset.from_dict({"text": ["a b", "c"], "label": [1, 0]})
    tokenizer = letters()
    first = tokenize(split, tokenizer, max_length=64)
    again = tokenize(split, tokenizer, max_length=64)  # the tokenizer now carries a truncation setting
    assert again[:] == first[:]
    assert len(calls) == 1
    tokenize(split, tokenizer, max_length=3)
    tokenize(Dataset.from_dict({"text": ["a b", "d"], "label": [1, 0]}), tokenizer, max_length=64)
    assert len(calls) == 3
