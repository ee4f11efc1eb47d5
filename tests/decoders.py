"""Tiny random decoders with a word tokenizer that has neither a mask nor a padding token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from toy import WORDS

SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64},
    "llama": {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "intermediate_size": 32,
        "max_position_embeddings": 64,
    },
}


def decoder_tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {token: number for number, token in enumerate(["<eos>", "<unk>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    names = {"bos_token": "<eos>", "eos_token": "<eos>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, padding_side="left", **names)


def decoder(kind: str, *, labels: int = 2) -> PreTrainedModel:
    """A random classifier whose output is read at the last token; large weights make tokens matter."""
    vocabulary = len(decoder_tokenizer())
    torch.manual_seed(0)
    names = {"vocab_size": vocabulary, "num_labels": labels, "initializer_range": 0.4}
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    config = AutoConfig.for_model(kind, **SIZES[kind], **names, **ids)
    return AutoModelForSequenceClassification.from_config(config).eval()


def save_decoder(kind: str, folder: Path) -> Path:
    decoder(kind).save_pretrained(folder)
    decoder_tokenizer().save_pretrained(folder)
    return folder
