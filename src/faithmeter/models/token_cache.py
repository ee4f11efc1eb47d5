"""Cache of tokenized splits for fine-tuning, in the cache folder of `datasets`.

A cached file is verified before it is used, and created again if it is damaged. Files that have not been used
for `MAX_UNUSED_DAYS` are deleted when a new one is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from ..data.splits import digest
from ..files import intact, seal, writing
from .encoding import encode, tokenizer_state

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase

FORMAT = 1
"""Version of the columns that `encode` returns; if it changes, all splits are tokenized again."""
MAX_UNUSED_DAYS = 30
DAY = 86_400.0
"""Seconds in a day."""


def tokenize(split: Dataset, tokenizer: PreTrainedTokenizerBase, *, max_length: int) -> Dataset:
    """Tokenize a split; its columns are those of `encode`, `labels`, and the row number as `index`.

    The result is cached for each tokenizer and length. A pure-Python tokenizer depends on code that no digest
    covers, so its rows are only kept in memory.
    """

    def columns(rows: dict[str, list[Any]], numbers: list[int]) -> dict[str, list[Any]]:
        encoded = encode(tokenizer, rows["text"], rows.get("context"), max_length=max_length)
        return {**encoded, "labels": rows["label"], "index": numbers}

    options = {"batched": True, "with_indices": True, "remove_columns": split.column_names}
    if not tokenizer.is_fast:
        return split.map(columns, keep_in_memory=True, load_from_cache_file=False, **options)
    file = _cache_file(split, tokenizer, max_length)
    with writing(file.parent), _verified(file):
        return split.map(columns, cache_file_name=str(file), load_from_cache_file=True, **options)


def _cache_file(split: Dataset, tokenizer: PreTrainedTokenizerBase, max_length: int) -> Path:
    """Return the path of the cache file, which contains a digest of all that determines the tokens."""
    import datasets

    key = json.dumps([FORMAT, digest(split), tokenizer_state(tokenizer), max_length], sort_keys=True)
    folder = Path(datasets.config.HF_DATASETS_CACHE) / "faithmeter"
    return folder / f"tokens-{hashlib.sha256(key.encode()).hexdigest()[:32]}.arrow"


@contextmanager
def _verified(file: Path) -> Iterator[None]:
    """Lock a cache file while the block reads it or, if it is missing or damaged, writes it.

    A damaged file is deleted before the block; a new one is sealed after it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    related = [file, *(file.with_name(f".{file.name}.{suffix}") for suffix in ("sha256", "lock"))]
    with FileLock(related[-1]):
        for path in related:
            if path.exists() and time.time() - path.stat().st_mtime > DAY:  # a new time costs a new hash
                os.utime(path)
        if intact(file):
            yield
            return
        file.unlink(missing_ok=True)
        yield
        seal(file)
    remove_unused(file.parent)


def remove_unused(folder: Path) -> None:
    """Delete the files in a folder that have not been used for `MAX_UNUSED_DAYS`."""
    for path in folder.iterdir():
        if path.is_file() and time.time() - path.stat().st_mtime > MAX_UNUSED_DAYS * DAY:
            path.unlink(missing_ok=True)
