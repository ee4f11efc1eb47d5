"""Models for the tests, built in memory: a word tokenizer, a lookup classifier, tiny random encoders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from faithmeter.models.classifier import Classifier
from faithmeter.models.tokens import Batch

BOS, PAD, EOS, UNK, MASK = range(5)
SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
SPECIAL_IDS = (BOS, PAD, EOS)
WITH_TYPES = ["input_ids", "token_type_ids", "attention_mask"]
"""The inputs of a model that tells two texts apart by token types."""
WORDS = ["the", "a", "film", "was", "not", "good", "bad", "fun", "dull", "and", "but", "very"]
WORDS += ["story", "plot", "actors", "music", "who", "wrote", "it", "down"]
VOCABULARY = {token: i for i, token in enumerate([*SPECIAL_TOKENS, *WORDS])}
SIZE = len(VOCABULARY)


def word_tokenizer(
    words: Sequence[str] = WORDS, *, mask: str | None = "<mask>", model_max_length: int = 512, **options: Any
) -> PreTrainedTokenizerFast:
    """`<s> a </s></s> b </s>`, one id for each word, from 5 on; without `mask` it knows no mask token."""
    vocabulary = {token: i for i, token in enumerate([*SPECIAL_TOKENS, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B:1 </s>:1",
        special_tokens=[("<s>", BOS), ("</s>", EOS)],
    )
    names = ("bos_token", "pad_token", "eos_token", "unk_token")
    options.setdefault("model_input_names", ["input_ids", "attention_mask"])
    special = dict(zip(names, SPECIAL_TOKENS, strict=False)) | ({"mask_token": mask} if mask else {})
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        cls_token="<s>",
        sep_token="</s>",
        model_max_length=model_max_length,
        **special,
        **options,
    )


def letter_tokenizer(**options: Any) -> PreTrainedTokenizerFast:
    """The same for the words a to g, ids 5 to 11."""
    return word_tokenizer("abcdefg", **options)


def rows_batch(*rows: Sequence[int]) -> Batch:
    """A batch of rows of ids without special tokens; `[[5, 6], [7]]` in place of a row is a pair."""
    return Batch.from_ids([special(row) for row in rows], special_ids=SPECIAL_IDS, pad_id=PAD)


def special(row: Sequence[Any]) -> list[int]:
    """The row with the special tokens around it, or around both rows of a pair."""
    pair = len(row) > 0 and not isinstance(row[0], int)
    return [BOS, *row[0], EOS, EOS, *row[1], EOS] if pair else [BOS, *row, EOS]


SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 40,
    "num_labels": 3,
}
ARCHITECTURES = {
    "bert": {},
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "deberta-v2": {
        "relative_attention": True,
        "pos_att_type": ["c2p", "p2c"],
        "position_biased_input": False,
    },
    "distilbert": {
        "dim": 16,
        "n_layers": 2,
        "n_heads": 2,
        "hidden_dim": 32,
        "vocab_size": 40,
        "num_labels": 3,
    },
    "electra": {"embedding_size": 8},
    "esm": {
        "position_embedding_type": "rotary",
        "mask_token_id": 4,
        "pad_token_id": 1,
        "token_dropout": False,
    },
    "modernbert": {"pad_token_id": 1, "global_attn_every_n_layers": 1, "reference_compile": False},
    "mpnet": {},
    "roberta": {"max_position_embeddings": 66, "pad_token_id": 1},
    "xlm-roberta": {"max_position_embeddings": 66, "pad_token_id": 1},
}


def encoder(architecture: str) -> torch.nn.Module:
    """A random tiny model of any architecture; its vocabulary is that of the word tokenizers."""
    torch.manual_seed(0)
    options = ARCHITECTURES[architecture]
    config = AutoConfig.for_model(architecture, **(options if "dim" in options else SIZES | options))
    return AutoModelForSequenceClassification.from_config(config).double().eval()


class LookupClassifier:
    """Logits by a function of a text's ids without padding. `seen` holds all that it was asked, in order."""

    mask_id = MASK
    device = torch.device("cpu")

    def __init__(self, function: Callable[[tuple[int, ...]], Sequence[float]]) -> None:
        self.function = function
        self.seen: list[tuple[int, ...]] = []

    def logits(self, batch: Batch) -> Tensor:
        lengths = batch.attention_mask.sum(dim=1).tolist()
        texts = [tuple(ids[:n].tolist()) for ids, n in zip(batch.input_ids, lengths, strict=True)]
        self.seen += texts
        return torch.tensor([list(self.function(text)) for text in texts], dtype=torch.float64)


def tiny(
    kind: str = "roberta", *, dtype: torch.dtype = torch.float64, labels: int = 3, **options: Any
) -> Classifier:
    """A random RoBERTa or BERT of two layers with the word tokenizer; large weights make tokens matter."""
    config_class, model_class = {
        "roberta": (RobertaConfig, RobertaForSequenceClassification),
        "bert": (BertConfig, BertForSequenceClassification),
    }[kind]
    settings = {
        "vocab_size": SIZE,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 514,
        "type_vocab_size": 2 if kind == "bert" else 1,
        "initializer_range": 0.4,
        "num_labels": labels,
        "bos_token_id": BOS,
        "pad_token_id": PAD,
        "eos_token_id": EOS,
    }
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = model_class(config_class(**{**settings, **options}))
        with torch.no_grad():
            model.get_input_embeddings().weight[PAD].normal_(
                std=0.4
            )  # of a new model 0, of a trained one not
    names = WITH_TYPES if kind == "bert" else ["input_ids", "attention_mask"]
    return Classifier(model.to(dtype), word_tokenizer(model_input_names=names))
