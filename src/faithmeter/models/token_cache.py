"""Tokenized splits for fine-tuning, kept in the cache folder of `datasets`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..tasks.splits import digest
from .tokens import encode, tokenizer_state

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase


def tokenize(split: Dataset, tokenizer: PreTrainedTokenizerBase, *, max_length: int) -> Dataset:
    """Return the rows of a split for fine-tuning: columns of `encode`, `labels` and `index`, the row number.

    The same rows are tokenized once for each tokenizer and length.
    """

    def columns(rows: dict[str, list[Any]], numbers: list[int]) -> dict[str, list[Any]]:
        encoded = encode(tokenizer, rows["text"], rows.get("context"), max_length=max_length)
        return {**encoded, "labels": rows["label"], "index": numbers}

    tokenized: Dataset = split.map(
        columns,
        batched=True,
        with_indices=True,
        remove_columns=split.column_names,
        cache_file_name=_cache_file(split, tokenizer, max_length),
    )
    return tokenized


def _cache_file(split: Dataset, tokenizer: PreTrainedTokenizerBase, max_length: int) -> str | None:
    """Return the file named after all that the tokens depend on; None for a tokenizer in Python.

    The output of a tokenizer in Python depends on code, which no digest covers.
    """
    if not tokenizer.is_fast:
        return None
    import datasets

    key = json.dumps([digest(split), tokenizer_state(tokenizer), max_length], sort_keys=True)
    folder = Path(datasets.config.HF_DATASETS_CACHE) / "faithmeter"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder / f"tokens-{hashlib.sha256(key.encode()).hexdigest()[:32]}.arrow")
