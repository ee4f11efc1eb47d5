"""Text → Batch: token ids with a note on every token of what it is: special, explained or context."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..errors import InputError
from ..tasks.splits import digest

if TYPE_CHECKING:
    from datasets import Dataset

SPECIAL, EXPLAINED, CONTEXT = -1, 0, 1
"""What a token is. Explained tokens are scored and erased; context is the other text of a pair."""

Span = tuple[int, int]
"""Start and end in a text, in characters."""
Row = Mapping[str, Any]
"""One tokenized text: `input_ids`, `kinds` (of each token, see above), and what else its model reads."""


@dataclass(frozen=True)
class Batch:
    """Tokenized texts, padded on the right. All tensors are [B, T] but `index`, the row numbers, [B]."""

    input_ids: Tensor
    attention_mask: Tensor
    content: Tensor  # bool: may be masked in fine-tuning (explained and context)
    explained: Tensor  # bool: scored and erased
    index: Tensor  # row number in its split: what a text's random order is drawn from
    token_type_ids: Tensor | None = None

    def __len__(self) -> int:
        return len(self.input_ids)

    def masked(self, where: Tensor, mask_id: int) -> Batch:
        """The same texts with the mask token wherever `where` is true."""
        return replace(self, input_ids=self.input_ids.masked_fill(where, mask_id))

    def __getitem__(self, rows: slice | Tensor | Sequence[int]) -> Batch:
        """Some of the texts, still padded to the same width."""
        rows = torch.as_tensor(rows, dtype=torch.long) if not isinstance(rows, slice | Tensor) else rows
        return replace(self, **{name: tensor[rows] for name, tensor in self._tensors()})

    def to(self, device: torch.device) -> Batch:
        return replace(self, **{name: tensor.to(device) for name, tensor in self._tensors()})

    def _tensors(self) -> list[tuple[str, Tensor]]:
        return [(name, value) for name, value in vars(self).items() if value is not None]

    @property
    def inputs(self) -> dict[str, Tensor]:
        """The keyword arguments that a Hugging Face model takes."""
        names = ("input_ids", "attention_mask", "token_type_ids")
        return {name: tensor for name, tensor in self._tensors() if name in names}

    @classmethod
    def from_rows(cls, rows: Sequence[Row], *, pad_id: int, index: Sequence[int] | None = None) -> Batch:
        """Pad rows of `encode` to one width."""
        kinds = pad((row["kinds"] for row in rows), SPECIAL)
        types = pad((row["token_type_ids"] for row in rows), 0) if "token_type_ids" in rows[0] else None
        return cls(
            input_ids=pad((row["input_ids"] for row in rows), pad_id),
            attention_mask=pad(([1] * len(row["input_ids"]) for row in rows), 0),
            content=kinds != SPECIAL,
            explained=kinds == EXPLAINED,
            index=torch.as_tensor(range(len(rows)) if index is None else index),
            token_type_ids=types,
        )

    @classmethod
    def from_ids(cls, rows: Sequence[Sequence[int]], *, special_ids: Iterable[int], pad_id: int) -> Batch:
        """Rows that were tokenized elsewhere, such as `<s> a </s></s> b </s>`: the first text is explained.

        The ids alone tell the two texts apart, so a special id inside a text ends it; `Classifier.encode`,
        which asks the tokenizer, has no such limit. Padding at the end of a row is removed first.
        """
        special = {*special_ids, pad_id}
        stripped = [_without_padding(row, pad_id) for row in rows]
        described = [{"input_ids": row, "kinds": kinds_from_ids(row, special)} for row in stripped]
        require_explained(described)
        return cls.from_rows(described, pad_id=pad_id)


def encode(
    tokenizer: Any, texts: Sequence[str], pairs: Sequence[str] | None = None, *, max_length: int
) -> dict[str, list[Any]]:
    """Columns of tokenized rows: `input_ids`, `kinds`, `truncated`, and `token_type_ids` where used.

    Texts beyond `max_length` tokens lose tokens from the longer of the two until they fit.
    """
    columns = _encode_fast if tokenizer.is_fast else _encode_slow
    encoded = columns(tokenizer, list(texts), None if pairs is None else list(pairs), max_length)
    require_explained([{"kinds": kinds} for kinds in encoded["kinds"]], texts)
    return encoded


def tokenize(split: Dataset, tokenizer: Any, *, max_length: int) -> Dataset:
    """The rows of a split for fine-tuning: what `encode` gives, plus `labels` and `index`, the row number.

    Kept in the cache of `datasets`, so the same rows are tokenized once for each tokenizer and length.
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


def _cache_file(split: Dataset, tokenizer: Any, max_length: int) -> str | None:
    """Named after all that the tokens depend on; a tokenizer in Python cannot be told by its contents."""
    if not tokenizer.is_fast:
        return None
    import datasets

    key = json.dumps([digest(split), tokenizer_state(tokenizer), max_length], sort_keys=True)
    folder = Path(datasets.config.HF_DATASETS_CACHE) / "faithmeter"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder / f"tokens-{hashlib.sha256(key.encode()).hexdigest()[:32]}.arrow")


def tokenizer_state(tokenizer: Any) -> list[Any]:
    """Return all that decides a tokenizer's output, as JSON-ready values."""
    state: dict[str, Any] = {"class": type(tokenizer).__name__}
    if tokenizer.is_fast:
        state = json.loads(tokenizer.backend_tokenizer.to_str())
        state |= {"truncation": None, "padding": None}  # set by the last call
    special = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}
    sides = [tokenizer.padding_side, tokenizer.truncation_side]
    vocabulary = None if tokenizer.is_fast else sorted(tokenizer.get_vocab().items())
    limits = [tokenizer.model_input_names, min(tokenizer.model_max_length, 10**9)]
    return [state, special, sides, vocabulary, limits]


def _encode_fast(
    tokenizer: Any, texts: list[str], pairs: list[str] | None, max_length: int
) -> dict[str, list[Any]]:
    options = {"add_special_tokens": True, "return_attention_mask": False, "verbose": False}
    encoded = tokenizer(texts, pairs, truncation=True, max_length=max_length, **options)
    sequences = (encoded.sequence_ids(row) for row in range(len(texts)))
    columns = {name: column for name, column in encoded.items() if name in ("input_ids", "token_type_ids")}
    columns["kinds"] = [[SPECIAL if s is None else s for s in sequence] for sequence in sequences]
    columns["truncated"] = [False] * len(texts)
    full = [i for i, ids in enumerate(columns["input_ids"]) if len(ids) >= max_length]
    if full:  # only a row that fills the limit may have been cut; the tokenizer does not say, so ask again
        again = [texts[i] for i in full], None if pairs is None else [pairs[i] for i in full]
        for i, ids in zip(full, tokenizer(*again, truncation=False, **options)["input_ids"], strict=True):
            columns["truncated"][i] = len(ids) > max_length
    return columns


def _encode_slow(
    tokenizer: Any, texts: list[str], pairs: list[str] | None, max_length: int
) -> dict[str, list[Any]]:
    """For tokenizers in Python (ESM), which cannot tell which text a token came from."""
    columns: dict[str, list[Any]] = {"input_ids": [], "kinds": [], "truncated": []}
    for row, text in enumerate(texts):
        parts = [text] if pairs is None else [text, pairs[row]]
        ids = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(part)) for part in parts]
        room = max_length - tokenizer.num_special_tokens_to_add(pair=pairs is not None)
        columns["truncated"].append(sum(map(len, ids)) > room)
        while sum(map(len, ids)) > room:
            max(reversed(ids), key=len).pop()
        special = tokenizer.get_special_tokens_mask(*ids)
        kinds = iter([EXPLAINED] * len(ids[0]) + [CONTEXT] * sum(map(len, ids[1:])))
        columns["kinds"].append([SPECIAL if is_special else next(kinds) for is_special in special])
        columns["input_ids"].append(tokenizer.build_inputs_with_special_tokens(*ids))
    return columns


def kinds_from_ids(row: Sequence[int], special: set[int]) -> list[int]:
    """What each token is, told by special ids alone: the first run of others is explained, the rest context.

    More than one special token at the start means that the first text is empty.
    """
    kinds, text, leading = [], EXPLAINED, 0
    for position, token in enumerate(row):
        if token in special:
            ends_text = position > 0 and row[position - 1] not in special
            leading += 1
            text = CONTEXT if ends_text or leading > 1 else text
            kinds.append(SPECIAL)
        else:
            kinds.append(text)
    return kinds


def require_explained(rows: Sequence[Row], texts: Sequence[str] | None = None) -> None:
    """A text without a token cannot be explained: say which one it is."""
    for number, row in enumerate(rows):
        if EXPLAINED not in row["kinds"]:
            shown = f" ({texts[number]!r:.60})" if texts is not None else ""
            raise InputError(
                f"text {number}{shown} is empty after tokenizing; expected at least one token to explain: "
                "remove the row or fill in its text"
            )


def pad(rows: Iterable[Sequence[int]], value: int) -> Tensor:
    """[B, T] of ragged rows, `value` on the right."""
    tensors = [torch.as_tensor(row, dtype=torch.long) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=value)


def _without_padding(row: Sequence[int], pad_id: int) -> list[int]:
    ids = [int(token) for token in row]
    while ids and ids[-1] == pad_id:
        ids.pop()
    return ids


def token_spans(
    clf: Any, text: str, pair: str | None, positions: Sequence[int], ids: Sequence[int]
) -> tuple[str, list[Span], list[int]]:
    """The text, where in it each explained token stands, and the number of the word that it belongs to.

    A tokenizer that does not know (those in Python) leaves the tokens' own texts, in a row.
    """
    if not clf.tokenizer.is_fast:
        pieces = [clf.tokenizer.decode([ids[position]]).strip() for position in positions]
        ends = [sum(len(piece) + 1 for piece in pieces[: i + 1]) - 1 for i in range(len(pieces))]
        spans = [(end - len(piece), end) for piece, end in zip(pieces, ends, strict=True)]
        return " ".join(pieces), spans, list(range(len(pieces)))
    options = {"truncation": True, "max_length": clf.max_length, "return_offsets_mapping": True}
    encoded = clf.tokenizer(text, pair, **options)
    spans = [_trimmed(text, *encoded["offset_mapping"][position]) for position in positions]
    words = encoded.word_ids()
    return text, spans, [words[position] for position in positions]


def _trimmed(text: str, start: int, end: int) -> Span:
    """The span without the blanks that some tokenizers count to a token."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    return start, start + len(piece.strip())
