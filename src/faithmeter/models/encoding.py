"""Tokenization of texts: token ids, kinds of tokens, truncation, positions, mask token and unknown words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from torch import Tensor

from ..errors import InputError
from .tokens import CONTEXT, EXPLAINED, SPECIAL, Layout, Span, require_explained, require_unicode

if TYPE_CHECKING:
    from datasets import Dataset
    from tokenizers import Encoding
    from transformers import PreTrainedTokenizerBase


Row = dict[str, Any]
MASK_TOKEN, PAD_TOKEN = "[MASK]", "[PAD]"
"""Names of the tokens that are added."""
WORD_MARKS = "▁Ġ#"
"""Characters by which tokenizers mark the beginning or the inside of a word."""


def encode(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    pairs: Sequence[str] | None = None,
    *,
    max_length: int,
    layouts: bool = False,
    windows: bool = False,
) -> list[Row]:
    """Tokenize texts; each row has `input_ids`, `kinds`, `truncated` and, if used, `token_type_ids`.

    With `layouts`, it also has its `layout`. An input of more than `max_length` tokens is truncated by
    removing tokens from the longer of its two texts. With `windows`, only the shorter one is truncated, and
    only if it takes more than half of a window.

    Raises:
        InputError: A text is not valid Unicode, or has no tokens.
    """
    require_unicode([*texts, *(pairs or ())])
    limit = None if windows else max_length
    encode_all = _encode_fast if tokenizer.is_fast else _encode_slow
    rows = [*encode_all(tokenizer, texts, pairs, limit, layouts)]
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
    row = {**row, "truncated": True}
    for name in {"input_ids", "token_type_ids", "kinds"} & {*row}:
        row[name] = [*row[name][: places[room]], *row[name][places[-1] + 1 :]]
    if "layout" in row:
        kept = room if shorter == EXPLAINED else len(row["layout"].spans)
        spans, words = row["layout"].spans[:kept], row["layout"].words[:kept]
        row["layout"] = replace(row["layout"], spans=spans, words=words, truncated=True)
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
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    pairs: Sequence[str] | None,
    max_length: int | None,
    layouts: bool,
) -> Iterator[Row]:
    options: dict[str, Any] = {"add_special_tokens": True, "return_attention_mask": False, "verbose": False}
    second: Sequence[Any] = pairs or [None] * len(texts)
    options |= {"truncation": max_length is not None, "max_length": max_length}
    encoded = tokenizer([*texts], None if pairs is None else [*pairs], **options)
    used = [name for name in ("input_ids", "token_type_ids") if name in encoded]
    for number, encoding in enumerate(encoded.encodings):
        row = {name: encoded[name][number] for name in used}
        row["kinds"] = [SPECIAL if text is None else text for text in encoding.sequence_ids]
        row["truncated"] = bool(encoding.overflowing)
        if layouts:
            row["layout"] = _layout(texts[number], second[number], encoding)
        yield row


def _layout(text: str, pair: str | None, encoding: Encoding) -> Layout:
    spans: list[Span] = []
    words: list[Any] = []
    for kind, span, word in zip(encoding.sequence_ids, encoding.offsets, encoding.word_ids, strict=True):
        if kind == EXPLAINED:
            spans.append(_trimmed(text, *span))
            words.append(word)
    return Layout(text, pair, tuple(spans), tuple(words), bool(encoding.overflowing))


def _encode_slow(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    pairs: Sequence[str] | None,
    max_length: int | None,
    layouts: bool,
) -> Iterator[Row]:
    """Yield rows by a pure-Python tokenizer (such as ESM's), which reports no character offsets."""
    special_tokens = tokenizer.num_special_tokens_to_add(pair=pairs is not None)
    for text, pair in zip(texts, pairs or repeat(None), strict=False):
        parts = [text] if pair is None else [text, pair]
        ids = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(part)) for part in parts]
        tokens = sum(map(len, ids))
        room = tokens if max_length is None else max_length - special_tokens
        while sum(map(len, ids)) > room:
            max(reversed(ids), key=len).pop()  # of equally long texts the second
        kinds = iter([EXPLAINED] * len(ids[0]) + [CONTEXT] * sum(map(len, ids[1:])))
        special = tokenizer.get_special_tokens_mask(*ids)
        row = {
            "input_ids": tokenizer.build_inputs_with_special_tokens(*ids),
            "kinds": [SPECIAL if is_special else next(kinds) for is_special in special],
            "truncated": tokens > room,
        }
        if layouts:
            pieces = [tokenizer.decode([token]).strip() for token in ids[0]]
            row["layout"] = _joined(pieces, pair, tokens > room)
        yield row


def _joined(pieces: list[str], pair: str | None, truncated: bool) -> Layout:
    """Return the layout of the text that joins the tokens with spaces; each token is a word."""
    ends = [end - 1 for end in accumulate(len(piece) + 1 for piece in pieces)]  # 1: the blank between
    spans = tuple((end - len(piece), end) for piece, end in zip(pieces, ends, strict=True))
    return Layout(" ".join(pieces), pair, spans, tuple(range(len(pieces))), truncated)


def _trimmed(text: str, start: int, end: int) -> Span:
    """Return a span without surrounding whitespace, which some tokenizers include in a token."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    return start, start + len(piece.strip())


def tokenize(split: Dataset, tokenizer: PreTrainedTokenizerBase, *, max_length: int) -> Dataset:
    """Tokenize a split in memory, into the columns of `encode`, `labels`, and the row number as `index`."""

    def columns(rows: dict[str, list[Any]], numbers: list[int]) -> dict[str, list[Any]]:
        encoded = encode(tokenizer, rows["text"], rows.get("context"), max_length=max_length)
        named = {name: [row[name] for row in encoded] for name in encoded[0]}
        return {**named, "labels": rows["label"], "index": numbers}

    # a cached file would have to be verified, and tokenizing takes seconds where training takes hours
    options = {"keep_in_memory": True, "load_from_cache_file": False, "remove_columns": split.column_names}
    return split.map(columns, batched=True, with_indices=True, **options)


SHORTEST = 4
"""Letters of the shortest word that counts: shorter ones may well be read letter by letter."""


def share_unread(layout: Layout, ids: Tensor, unknown: int | None) -> float:
    """Return the share of a text's words that its tokens do not contain, as a fraction.

    Such a word has an unknown token, or is read letter by letter. Scripts whose letters are words, such as
    Chinese, are left out.

    Args:
        layout: The text with the positions of its explained tokens.
        ids: Ids of these tokens, [n].
        unknown: Id of the tokenizer's unknown token; None if it has none.
    """
    words = []
    for match in re.finditer(r"[^\W\d_]+", layout.text):
        wide = any(east_asian_width(letter) in "WF" for letter in match.group())
        if len(match.group()) >= SHORTEST and not wide:
            words.append(match.span())
    unread = read = 0
    for start, stop in words:
        inside = [at for at, (left, right) in enumerate(layout.spans) if left < stop and right > start]
        if not inside:  # beyond the model's limit
            continue
        read += 1
        letter_by_letter = len(inside) >= stop - start
        unread += letter_by_letter or any(int(ids[at]) == unknown for at in inside)
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
    others = {
        role: token
        for role, token in tokenizer.special_tokens_map.items()
        if role != "mask_token" and token == name
    }
    is_word = number < tokenizer.vocab_size and name.strip(WORD_MARKS).isalnum()
    if others or is_word:
        meaning = f"also the {next(iter(others)).replace('_', ' ')}" if others else "a word of its vocabulary"
        raise InputError(
            f"the mask token of the tokenizer, {name!r}, is {meaning}; expected a token that means nothing "
            "else: correct mask_token in tokenizer_config.json"
        )
