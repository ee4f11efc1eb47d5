"""`MaskingCollator`: padded and partly masked mini-batches for fine-tuning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import numpy as np
import torch
from torch import Tensor

from ..config import Rates, Scope, Strategy
from ..errors import unknown
from ..models.encoding import find_mask_id
from ..models.masks import RATES, generator, uniform_mask
from ..models.tokens import Batch, Row, kinds_from_ids

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

STRATEGIES = {"half": slice(1, None, 2), "all": slice(None), "none": slice(0)}
"""Rows of a mini-batch to mask, by strategy: every other row from the second on, all rows or none."""


def require_masking(strategy: str, scope: str, rates: str) -> None:
    """Raise an InputError unless strategy, scope and rates are known names."""
    options = (("strategy", strategy, STRATEGIES), ("scope", scope, get_args(Scope)), ("rates", rates, RATES))
    for kind, name, known in options:
        if name not in known:
            raise unknown(kind, name, known)


class MaskingCollator:
    """Drop-in `data_collator` for masked fine-tuning with a Hugging Face `Trainer`.

    It takes rows as returned by a tokenizer, with labels. For each row to mask, it draws a rate r ~ U(0, 1)
    and masks each maskable token with probability r. Masks depend on the seed, the epoch and the row number
    if rows have an `index`, otherwise on the seed and the number of batches so far. A Trainer also uses its
    collator for evaluation: set `strategy="none"` to evaluate unmasked texts.

    If rows have `targets`, the class probabilities of another model, labels are a Tensor [B, C]: the targets
    for unmasked rows, and the one-hot encoded class for masked rows, unless these are `soft`.

    Args:
        tokenizer: A tokenizer with a mask token.
        strategy: Rows to mask: `half` (every other one), `all` or `none`.
        scope: Columns to mask: the `explained` one, or `all`.
        rates: Distribution of the rates: `uniform`, or `ends`, which masks a tenth of the rows completely.
        seed: Seed of the masks.
        soft: Whether masked rows learn their targets, too.

    Raises:
        InputError: The tokenizer has no mask token, or an option is unknown.

    Example:
        >>> collator = fm.MaskingCollator(clf.tokenizer, strategy="all", seed=1)
        >>> sorted(collator([{**clf.tokenizer(text), "labels": 0}]))
        ['attention_mask', 'input_ids', 'labels']
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        strategy: Strategy = "half",
        scope: Scope = "explained",
        rates: Rates = "uniform",
        seed: int = 0,
        soft: bool = False,
    ) -> None:
        require_masking(strategy, scope, rates)
        self.mask_id = find_mask_id(tokenizer)
        self.pad_id: int = tokenizer.pad_token_id
        # mask and unknown tokens stand for words, so they count as content
        self.special = set(tokenizer.all_special_ids) - {self.mask_id, tokenizer.unk_token_id}
        self.strategy, self.scope, self.rates, self.seed = strategy, scope, rates, seed
        self.soft = soft
        self.epoch = 0
        self._batches = 0

    def __call__(self, features: Sequence[Row]) -> dict[str, Tensor]:
        """Return the padded, masked inputs of a mini-batch, with `labels` if the rows have them."""
        rows = [
            row if "kinds" in row else {**row, "kinds": kinds_from_ids(row["input_ids"], self.special)}
            for row in features
        ]
        batch = Batch.from_rows(rows, pad_id=self.pad_id)
        chosen = STRATEGIES[self.strategy]
        allowed = batch.maskable(self.scope)[chosen]
        where = torch.zeros_like(batch.content)
        where[chosen] = uniform_mask(allowed, self._generators(features)[chosen], rates=self.rates)
        inputs = batch.masked(where, self.mask_id).inputs
        for name in ("labels", "label"):
            if name in features[0]:
                labels = torch.as_tensor([row[name] for row in features])
                are_classes = labels.ndim == 1 and not labels.is_floating_point()
                inputs["labels"] = labels if are_classes else labels.float()
        if "targets" in features[0]:
            targets = torch.tensor([row["targets"] for row in features])
            if not self.soft:
                classes = torch.nn.functional.one_hot(inputs["labels"], targets.shape[1]).to(targets)
                targets[chosen] = classes[chosen]
            inputs["labels"] = targets
        self._batches += 1
        return inputs

    def _generators(self, features: Sequence[Row]) -> list[np.random.Generator]:
        if "index" in features[0]:
            return [generator(self.seed, "train", self.epoch, row["index"]) for row in features]
        info = torch.utils.data.get_worker_info()
        key = (self._batches, *(() if info is None else (info.id, info.seed % 2**32)))
        return [generator(self.seed, "collator", *key, place) for place in range(len(features))]
