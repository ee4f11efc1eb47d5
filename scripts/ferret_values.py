"""Comprehensiveness and sufficiency by ferret, with which tests/faithfulness/test_other_metrics.py compares.

ferret 0.4.2 needs older versions of numpy and transformers than faithmeter, hence an environment of its own:

    python -m venv ferret && ferret/bin/pip install ferret-xai==0.4.2 'pyarrow<20'
    ferret/bin/python scripts/ferret_values.py
"""

from __future__ import annotations

import math
import random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
)

SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
WORDS = (
    "the",
    "a",
    "film",
    "was",
    "not",
    "good",
    "bad",
    "fun",
    "dull",
    "and",
    "but",
    "very",
    "story",
    "plot",
)
SHARES = (0.1, 0.2, 0.5)
TEXTS = [" ".join(random.Random(number).choices(WORDS, k=10 * (1 + number % 2))) for number in range(6)]
"""Texts of 10 and 20 words, of which each share is a whole number; ferret leaves out shares of no word."""
SCORES = [
    [1.5 + math.sin(3 * row + 5 * place) for place in range(len(text.split()))]
    for row, text in enumerate(TEXTS)
]
"""All positive: ferret would leave out the others."""
LABELS = [row % 2 for row in range(len(TEXTS))]


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer with one token for each word."""
    vocabulary = {token: number for number, token in enumerate([*SPECIAL_TOKENS, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = ("bos_token", "pad_token", "eos_token", "unk_token", "mask_token")
    special = dict(zip(names, SPECIAL_TOKENS, strict=True))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, cls_token="<s>", sep_token="</s>", model_max_length=64, **special
    )


def build_model() -> PreTrainedModel:
    """Return a small RoBERTa whose weights are sines, the same with every version of the libraries."""
    config = RobertaConfig(
        vocab_size=len(SPECIAL_TOKENS) + len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=66,
        type_vocab_size=1,
        pad_token_id=1,
    )
    model = RobertaForSequenceClassification(config).double().eval()
    with torch.no_grad():
        for number, (_, weight) in enumerate(sorted(model.named_parameters())):
            if weight.ndim == 2:
                waves = torch.arange(weight.numel(), dtype=torch.float64) * (0.7 + 0.1 * number)
                weight.copy_(0.6 * waves.sin().view_as(weight))
    return model


def main() -> None:
    """Print both metrics of each text."""
    from ferret.evaluators.faithfulness_measures import (
        AOPC_Comprehensiveness_Evaluation,
        AOPC_Sufficiency_Evaluation,
    )
    from ferret.explainers.explanation import Explanation

    model, tokenizer = build_model(), build_tokenizer()
    options = {"remove_tokens": False, "based_on": "perc", "thresholds": SHARES}
    for metric in (AOPC_Comprehensiveness_Evaluation, AOPC_Sufficiency_Evaluation):
        evaluator = metric(model, tokenizer)
        values = []
        for text, scores, label in zip(TEXTS, SCORES, LABELS, strict=True):
            tokens = ["<s>", *text.split(), "</s>"]
            explanation = Explanation(text, tokens, torch.tensor([0, *scores, 0]).numpy(), "sines", label)
            evaluation = evaluator.compute_evaluation(explanation, target=label, removal_args=options)
            values.append(round(float(evaluation.score), 9))
        print(metric.NAME, values)


if __name__ == "__main__":
    main()
