"""Tokenized splits: what their rows hold, and when they are made again."""

from __future__ import annotations

import errno
import os
import random
import time
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import Dataset

import faithmeter as fm
from faithmeter.errors import DamageWarning
from faithmeter.models import encoding
from faithmeter.models.encoding import DAY, MAX_UNUSED_DAYS, encode, tokenize
from toy import WITH_TYPES
from toy import letter_tokenizer as letters


def test_a_split_is_tokenized_with_labels_and_row_numbers() -> None:
    split = Dataset.from_dict({"text": ["a b", "c"], "context": ["d", "e"], "label": [1, 0]})
    rows = tokenize(split, letters(model_input_names=WITH_TYPES), max_length=64)
    assert rows["labels"][:] == [1, 0]
    assert rows["index"][:] == [0, 1]
    assert rows["token_type_ids"][0] == [0, 0, 0, 0, 0, 1, 1]
    assert set(rows.column_names) == {"input_ids", "kinds", "truncated", "token_type_ids", "labels", "index"}


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    return tmp_path / "faithmeter"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Arguments of the calls of `encode`."""
    calls: list[object] = []

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return encode(*arguments, **options)

    monkeypatch.setattr(encoding, "encode", counted)
    return calls


SPLIT = Dataset.from_dict({"text": ["a b", "c"], "label": [1, 0]})


def test_the_same_rows_are_tokenized_once_and_others_anew(cache: Path, calls: list[object]) -> None:
    tokenizer = letters()
    first = tokenize(SPLIT, tokenizer, max_length=64)
    again = tokenize(SPLIT, tokenizer, max_length=64)  # the tokenizer now carries a truncation setting
    assert again[:] == first[:]
    assert len(calls) == 1
    tokenize(SPLIT, tokenizer, max_length=3)
    tokenize(Dataset.from_dict({"text": ["a b", "d"], "label": [1, 0]}), tokenizer, max_length=64)
    assert len(calls) == 3


def test_a_flipped_bit_in_the_cache_is_noticed_and_the_rows_are_tokenized_again(
    cache: Path, calls: list[object]
) -> None:
    rows = tokenize(SPLIT, letters(), max_length=64)[:]
    [file] = cache.glob("*.arrow")
    content = file.read_bytes()
    for number, place in enumerate(random.Random(0).sample(range(len(content)), 12)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << number % 8
        file.unlink()  # another file, as the first one is still in use
        file.write_bytes(damaged)
        with pytest.warns(DamageWarning, match="is not as it was written; it is created again"):
            assert tokenize(SPLIT, letters(), max_length=64)[:] == rows
        assert len(calls) == number + 2


def test_a_file_that_was_not_finished_is_made_again(cache: Path, calls: list[object]) -> None:
    rows = tokenize(SPLIT, letters(), max_length=64)[:]
    [seal] = cache.glob(".*.sha256")
    seal.unlink()
    assert tokenize(SPLIT, letters(), max_length=64)[:] == rows
    assert len(calls) == 2
    assert seal.exists()


def test_files_that_nobody_uses_are_deleted(cache: Path, calls: list[object]) -> None:
    tokenize(SPLIT, letters(), max_length=64)
    tokenize(SPLIT, letters(), max_length=3)
    month_ago = time.time() - (MAX_UNUSED_DAYS + 1) * DAY
    for path in cache.iterdir():
        os.utime(path, (month_ago, month_ago))
    tokenize(SPLIT, letters(), max_length=64)  # used now, so it stays
    assert len(calls) == 2
    tokenize(SPLIT, letters(), max_length=5)
    assert len(list(cache.glob("*.arrow"))) == 2
    tokenize(SPLIT, letters(), max_length=64)
    assert len(calls) == 3


def test_a_cache_that_cannot_be_written_is_an_error_in_one_line(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(encoding, "seal", full)
    with pytest.raises(fm.InputError, match="faithmeter"):
        tokenize(SPLIT, letters(), max_length=64)
