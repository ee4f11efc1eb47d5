"""Tokenization of texts: token ids, kinds of tokens, truncation, and positions in the text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any

from .tokens import CONTEXT, EXPLAINED, SPECIAL, Layout, Span, require_explained, require_unicode

if TYPE_CHECKING:
    from tokenizers import Encoding
    from transformers import PreTrainedTokenizerBase


def encode(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    pairs: Sequence[str] | None = None,
    *,
    max_length: int,
    layouts: bool = False,
    windows: bool = False,
) -> dict[str, list[Any]]:
    """Tokenize texts; return the columns `input_ids`, `kinds`, `truncated` and, if used, `token_type_ids`.

    With `layouts`, there is also a column `layout`. An input of more than `max_length` tokens is truncated by
    removing tokens from the longer of its two texts. With `windows`, only the shorter one is truncated, and
    only if it takes more than half of a window.

    Raises:
        InputError: A text is not valid Unicode, or has no tokens.
    """
    require_unicode([*texts, *(pairs or ())])
    limit = None if windows else max_length
    if tokenizer.is_fast:
        columns = _encode_fast(tokenizer, texts, pairs, limit, layouts)
    else:
        contexts = repeat(None) if pairs is None else pairs
        rows = [_encode_slow(tokenizer, *row, limit, layouts) for row in zip(texts, contexts, strict=False)]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
    require_explained(columns["kinds"], texts)
    for row in range(len(texts) if windows else 0):
        _shorten(columns, row, max_length)
    return columns


def _shorten(columns: dict[str, list[Any]], row: int, max_length: int) -> None:
    """Truncate the shorter text of a pair to half of the room in a window, if the pair needs windows."""
    kinds = columns["kinds"][row]
    if len(kinds) <= max_length:
        return
    shorter = min((CONTEXT, EXPLAINED), key=kinds.count)
    room = (max_length - kinds.count(SPECIAL)) // 2
    places = [place for place, kind in enumerate(kinds) if kind == shorter]
    removed = {*places[room:]}
    if not removed:
        return
    for name in {"input_ids", "token_type_ids", "kinds"} & {*columns}:
        column = columns[name]
        column[row] = [value for place, value in enumerate(column[row]) if place not in removed]
    columns["truncated"][row] = True
    if "layout" in columns:
        layout = columns["layout"][row]
        kept = room if shorter == EXPLAINED else len(layout.spans)
        columns["layout"][row] = replace(
            layout, spans=layout.spans[:kept], words=layout.words[:kept], truncated=True
        )


def tokenizer_state(tokenizer: PreTrainedTokenizerBase) -> list[Any]:
    """Return everything that determines a tokenizer's output, as JSON-ready values."""
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
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    pairs: Sequence[str] | None,
    max_length: int | None,
    layouts: bool,
) -> dict[str, list[Any]]:
    options = {"add_special_tokens": True, "return_attention_mask": False, "verbose": False}
    second = None if pairs is None else list(pairs)
    encoded = tokenizer(
        list(texts), second, truncation=max_length is not None, max_length=max_length, **options
    )
    columns = {name: column for name, column in encoded.items() if name in ("input_ids", "token_type_ids")}
    sequences = [encoding.sequence_ids for encoding in encoded.encodings]
    columns["kinds"] = [[SPECIAL if s is None else s for s in sequence] for sequence in sequences]
    columns["truncated"] = [bool(encoding.overflowing) for encoding in encoded.encodings]
    if layouts:
        rows = zip(texts, pairs or repeat(None), encoded.encodings, strict=False)
        columns["layout"] = [_layout(*row) for row in rows]
    return columns


def _layout(text: str, pair: str | None, encoding: Encoding) -> Layout:
    rows = zip(encoding.sequence_ids, encoding.offsets, encoding.word_ids, strict=True)
    explained = [(_trimmed(text, *span), word) for kind, span, word in rows if kind == EXPLAINED]
    spans, words = zip(*explained, strict=True) if explained else ((), ())
    return Layout(text, pair, spans, words, bool(encoding.overflowing))


def _encode_slow(
    tokenizer: PreTrainedTokenizerBase, text: str, pair: str | None, max_length: int | None, layout: bool
) -> dict[str, Any]:
    """Tokenize a row with a pure-Python tokenizer (such as ESM's), which reports no character offsets."""
    parts = [text] if pair is None else [text, pair]
    ids = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(part)) for part in parts]
    tokens = sum(map(len, ids))
    special_tokens = tokenizer.num_special_tokens_to_add(pair=pair is not None)
    room = tokens if max_length is None else max_length - special_tokens
    truncated = tokens > room
    while sum(map(len, ids)) > room:
        max(reversed(ids), key=len).pop()
    special = tokenizer.get_special_tokens_mask(*ids)
    kinds = iter([EXPLAINED] * len(ids[0]) + [CONTEXT] * sum(map(len, ids[1:])))
    row = {
        "input_ids": tokenizer.build_inputs_with_special_tokens(*ids),
        "kinds": [SPECIAL if is_special else next(kinds) for is_special in special],
        "truncated": truncated,
    }
    if layout:
        pieces = [tokenizer.decode([token]).strip() for token in ids[0]]
        row["layout"] = _joined(pieces, pair, truncated)
    return row


def _joined(pieces: list[str], pair: str | None, truncated: bool) -> Layout:
    """Return the layout of the text that joins the tokens with spaces; each token is a word."""
    ends = [end - 1 for end in accumulate(len(piece) + 1 for piece in pieces)]
    spans = tuple((end - len(piece), end) for piece, end in zip(pieces, ends, strict=True))
    return Layout(" ".join(pieces), pair, spans, tuple(range(len(pieces))), truncated)


def _trimmed(text: str, start: int, end: int) -> Span:
    """Return a span without surrounding whitespace, which some tokenizers include in a token."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    return start, start + len(piece.strip())
