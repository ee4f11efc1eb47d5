"""Tokenization of texts: token ids, kinds of tokens, truncation, positions, mask token and unknown words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from torch import Tensor

from ..errors import InputError
from .tokens import CONTEXT, EXPLAINED, SPECIAL, Layout, Span, require_explained, require_unicode

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase

Row = dict[str, Any]
MASK_TOKEN, PAD_TOKEN = "[MASK]", "[PAD]"
"""Names of the tokens that are added."""
WORD_MARKS = "▁Ġ#"
"""Characters by which tokenizers mark the beginning or the inside of a word."""
SHORTEST = 4
"""Letters of the shortest word that counts: shorter ones may well be read letter by letter."""


def encode(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    pairs: Sequence[str] | None = None,
    *,
    max_length: int,
    windows: bool = False,
) -> list[Row]:
    """Tokenize texts; a row has `input_ids`, `kinds`, `truncated`, `layout` and, if used, `token_type_ids`.

    An input of more than `max_length` tokens is truncated by removing tokens from the longer of its two
    texts. With `windows`, only the shorter one is truncated, and only if it takes more than half of a window.

    Raises:
        InputError: A text is not valid Unicode, or has no tokens.
    """
    require_unicode([*texts, *(pairs or ())])
    limit = None if windows else max_length
    encode_all = _encode_fast if tokenizer.is_fast else _encode_slow
    rows = [*encode_all(tokenizer, texts, pairs, limit)]
    require_explained([row["kinds"] for row in rows], texts)
    return [_shortened(row, max_length) for row in rows] if windows else rows


def _shortened(row: Row, max_length: int) -> Row:
    """Truncate the shorter text of a pair to half of the room in a window, if the pair needs windows.

    Windows move over the longer text; without this rule the shorter one could leave them no room to move.
    """
    kinds = row["kinds"]
    shorter = min((CONTEXT, EXPLAINED), key=kinds.count)
    room = (max_length - kinds.count(SPECIAL)) // 2
    if len(kinds) <= max_length or kinds.count(shorter) <= room:
        return row
    places = [place for place, kind in enumerate(kinds) if kind == shorter]
    layout = row["layout"]
    kept = room if shorter == EXPLAINED else len(layout.spans)
    layout = replace(layout, spans=layout.spans[:kept], words=layout.words[:kept], truncated=True)
    row = {**row, "truncated": True, "layout": layout}
    for name in {"input_ids", "token_type_ids", "kinds"} & {*row}:
        row[name] = [*row[name][: places[room]], *row[name][places[-1] + 1 :]]
    return row


def tokenizer_state(tokenizer: PreTrainedTokenizerBase) -> list[Any]:
    """Return everything that determines a tokenizer's output, as JSON-ready values."""
    state: dict[str, Any] = {"class": type(tokenizer).__name__}
    if tokenizer.is_fast:
        state = json.loads(tokenizer.backend_tokenizer.to_str())
        state |= {"truncation": None, "padding": None}  # left by the last call, not part of the tokenizer
    special = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}
    sides = [tokenizer.padding_side, tokenizer.truncation_side]
    vocabulary = None if tokenizer.is_fast else sorted(tokenizer.get_vocab().items())
    limits = [tokenizer.model_input_names, min(tokenizer.model_max_length, 10**9)]
    return [state, special, sides, vocabulary, limits]


def _encode_fast(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], pairs: Sequence[str] | None, limit: int | None
) -> Iterator[Row]:
    options: dict[str, Any] = {"add_special_tokens": True, "return_attention_mask": False, "verbose": False}
    options |= {"truncation": limit is not None, "max_length": limit}
    encoded = tokenizer([*texts], None if pairs is None else [*pairs], **options)
    for number, encoding in enumerate(encoded.encodings):
        text, pair = texts[number], None if pairs is None else pairs[number]
        kinds = [SPECIAL if part is None else part for part in encoding.sequence_ids]
        spans: list[Span] = []
        words: list[Any] = []
        for kind, span, word in zip(kinds, encoding.offsets, encoding.word_ids, strict=True):
            if kind == EXPLAINED:
                # some tokenizers include surrounding whitespace in a token
                piece = text[slice(*span)]
                start = span[0] + len(piece) - len(piece.lstrip())
                spans.append((start, start + len(piece.strip())))
                words.append(word)
        layout = Layout(text, pair, tuple(spans), tuple(words), bool(encoding.overflowing))
        row = {"input_ids": encoded["input_ids"][number]}
        if "token_type_ids" in encoded:
            row["token_type_ids"] = encoded["token_type_ids"][number]
        yield {**row, "kinds": kinds, "truncated": layout.truncated, "layout": layout}


def _encode_slow(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], pairs: Sequence[str] | None, limit: int | None
) -> Iterator[Row]:
    """Yield rows by a pure-Python tokenizer (such as ESM's), which reports no character offsets."""
    special_tokens = tokenizer.num_special_tokens_to_add(pair=pairs is not None)
    for text, pair in zip(texts, pairs or repeat(None), strict=False):
        parts = [text] if pair is None else [text, pair]
        ids = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(part)) for part in parts]
        tokens = sum(map(len, ids))
        room = tokens if limit is None else limit - special_tokens
        while sum(map(len, ids)) > room:
            max(reversed(ids), key=len).pop()  # of equally long texts the second
        kinds = iter([EXPLAINED] * len(ids[0]) + [CONTEXT] * sum(map(len, ids[1:])))
        special = tokenizer.get_special_tokens_mask(*ids)
        pieces = [tokenizer.decode([token]).strip() for token in ids[0]]
        yield {
            "input_ids": tokenizer.build_inputs_with_special_tokens(*ids),
            "kinds": [SPECIAL if is_special else next(kinds) for is_special in special],
            "truncated": tokens > room,
            "layout": _joined(pieces, pair, tokens > room),
        }


def _joined(pieces: list[str], pair: str | None, truncated: bool) -> Layout:
    """Return the layout of the text that joins the tokens with spaces; each token is a word."""
    spans: list[Span] = []
    start = 0
    for piece in pieces:
        spans.append((start, start + len(piece)))
        start += len(piece) + 1  # 1: the blank between
    return Layout(" ".join(pieces), pair, tuple(spans), tuple(range(len(pieces))), truncated)


def tokenize(split: Dataset, tokenizer: PreTrainedTokenizerBase, *, max_length: int) -> Dataset:
    """Tokenize a split in memory, into the columns of `encode`, `labels`, and the row number as `index`."""

    def tokenized(rows: dict[str, list[Any]], numbers: list[int]) -> dict[str, list[Any]]:
        columns = {"labels": rows["label"], "index": numbers}
        for row in encode(tokenizer, rows["text"], rows.get("context"), max_length=max_length):
            del row["layout"]
            for name, value in row.items():
                columns.setdefault(name, []).append(value)
        return columns

    # a cached file would have to be verified, and tokenizing takes seconds where training takes hours
    options = {"keep_in_memory": True, "load_from_cache_file": False, "remove_columns": split.column_names}
    return split.map(tokenized, batched=True, with_indices=True, **options)


def share_unread(layout: Layout, ids: Tensor, unknown: int | None) -> float:
    """Return the share of a text's words that its tokens do not contain, as a fraction.

    Such a word has an unknown token, or is read letter by letter. Scripts whose letters are words, such as
    Chinese, are left out.

    Args:
        layout: The text with the positions of its explained tokens.
        ids: Ids of these tokens, [n].
        unknown: Id of the tokenizer's unknown token; None if it has none.
    """
    unread = read = 0
    for match in re.finditer(r"[^\W\d_]+", layout.text):
        start, stop = match.span()
        wide = any(east_asian_width(letter) in "WF" for letter in match.group())
        inside = [at for at, (left, right) in enumerate(layout.spans) if left < stop and right > start]
        if stop - start < SHORTEST or wide or not inside:  # not inside: beyond the model's limit
            continue
        read += 1
        unread += len(inside) >= stop - start or unknown in ids[inside].tolist()
    return unread / read if read else 0.0


def add_tokens(tokenizer: PreTrainedTokenizerBase, path: str | Path) -> None:
    """Give a tokenizer a mask token and, if it has none, a padding token.

    Raises:
        InputError: It already has a mask token.
    """
    if tokenizer.mask_token is not None:
        raise InputError(
            f"the tokenizer of {str(path)!r} has the mask token {tokenizer.mask_token!r}; leave out "
            "--add-mask-token"
        )
    padding = {} if tokenizer.pad_token else {"pad_token": PAD_TOKEN}
    tokenizer.add_special_tokens({"mask_token": MASK_TOKEN, **padding})


def find_mask_id(tokenizer: PreTrainedTokenizerBase | None) -> int:
    """Return the id of a tokenizer's mask token; raise an InputError if it has none."""
    mask_id = getattr(tokenizer, "mask_token_id", None)
    if mask_id is None:
        name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
        raise InputError(
            f"the tokenizer of {name!r} has no mask token; expected a masked language model such as "
            "roberta-base, a training with --add-mask-token, or mask_id=… of a token that means nothing"
        )
    require_own_token(tokenizer)
    return int(mask_id)


def require_own_token(tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise an InputError if the mask token has another meaning: a masked word would not be hidden.

    Mask tokens are written with brackets or other signs; a plain word of the vocabulary occurs in texts.
    """
    name, number = str(tokenizer.mask_token), int(tokenizer.mask_token_id)
    special = {**tokenizer.special_tokens_map, "mask_token": None}
    others = [role for role, token in special.items() if token == name]
    is_word = number < tokenizer.vocab_size and name.strip(WORD_MARKS).isalnum()
    if others or is_word:
        meaning = f"also the {others[0].replace('_', ' ')}" if others else "a word of its vocabulary"
        raise InputError(
            f"the mask token of the tokenizer, {name!r}, is {meaning}; expected a token that means nothing "
            "else: correct mask_token in tokenizer_config.json"
        )
