"""A mask token for models that have none, such as decoders, and padding that changes no output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ..errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MASK_TOKEN, PAD_TOKEN = "[MASK]", "[PAD]"
"""Names of the tokens that are added."""
WORD_MARKS = "▁Ġ#"
"""Characters by which tokenizers mark the beginning or the inside of a word."""


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


def add_embeddings(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Give a model an embedding for each token that `add_tokens` added: the mean of all others."""
    added = [tokenizer.mask_token_id]
    if tokenizer.pad_token == PAD_TOKEN and tokenizer.pad_token_id >= min(added) - 1:
        added.append(tokenizer.pad_token_id)
    matrix = model.get_input_embeddings().weight
    mean = matrix[: min(added)].detach().mean(dim=0)
    if max(added) >= len(matrix):
        model.resize_token_embeddings(max(added) + 1, mean_resizing=False)
    with torch.no_grad():
        model.get_input_embeddings().weight[added] = mean


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


def reads_last_token(model: PreTrainedModel) -> bool:
    """Return whether a classifier is a decoder, which reads its output at the last token before padding."""
    return hasattr(model, "score")


def set_padding(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Set the id of padding in a decoder, which must find its last token before padding."""
    if reads_last_token(model) and tokenizer.pad_token_id is not None:
        model.config.get_text_config().pad_token_id = tokenizer.pad_token_id
