"""Random masks of training and evaluation: `MaskingCollator` for mini-batches, `Sweep` for a whole split."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..config import Rates, Scope, Strategy
from ..errors import unknown
from ..models.encoding import find_mask_id
from ..models.masks import PERCENTS, RATES, generator, random_scores, top_mask, uniform_mask
from ..models.tokens import SPECIAL, Batch, Row, kinds_from_ids
from ..stats.metrics import kind_of, mean_loss, predict, score

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

STRATEGIES = {"half": slice(1, None, 2), "all": slice(None), "none": slice(0)}
"""Rows of a mini-batch to mask, by strategy: every other row from the second on, all rows or none."""
UNIFORM = "uniform"
"""Condition in which every row is masked as in training, with masks drawn once per run."""
ALL_COLUMNS = "all"
"""Condition in which every token of every column is masked, whatever the scope: only the lengths are left.

The paper compares this performance with the class majority. 100 % keeps to the scope, as erasure does.
"""
Condition = int | str
"""Percentage of masked tokens, `UNIFORM` or `ALL_COLUMNS`."""
CONDITIONS: tuple[Condition, ...] = (*PERCENTS, UNIFORM, ALL_COLUMNS)
SAMPLE = 400
"""Texts of a split that are evaluated with masks, unless more are asked for: ± 5 points at 95 %."""


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
        rows = []
        for row in features:
            if "kinds" not in row:  # a tokenizer does not tell which tokens are content
                row = {**row, "kinds": kinds_from_ids(row["input_ids"], self.special)}
            rows.append(row)
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


@dataclass(frozen=True, kw_only=True)
class Masks:
    """Random masks for the evaluation of a split.

    Attributes:
        mask_id: The mask token.
        scope: Columns that are masked.
        seed: Seed of the run.
        stream: Name of the split's own random numbers.
        rates: Distribution of the rates under the condition `uniform`.
        conditions: Conditions under which rows are evaluated.
        limit: Number of rows that are masked; 0 masks all. Whole texts (0 %) are always those of all rows.
    """

    mask_id: int
    scope: Scope
    seed: int
    stream: str
    rates: Rates = "uniform"
    conditions: Sequence[Condition] = CONDITIONS
    limit: int = 0

    def choose(self, total: int) -> dict[Condition, NDArray[np.int64]]:
        """Return the rows, of so many in a split, that are evaluated under each condition."""
        every = np.arange(total)
        # spread over the split, which may be sorted by class
        some = np.arange(self.limit) * total // self.limit if 0 < self.limit < total else every
        return {condition: some if condition else every for condition in self.conditions}

    def draw(self, batch: Batch, index: int, conditions: Sequence[Condition]) -> dict[Condition, Tensor]:
        """Return the masked tokens [1, T] of the row with this number, for each condition.

        One random order serves all percentages: a token masked at 10 % is also masked at 20 %. The numbers
        are those of the row, so a limit changes no mask.
        """
        allowed = batch.maskable(self.scope)
        order = random_scores(allowed, [generator(self.seed, self.stream, 0, index)])
        masks: dict[Condition, Tensor] = {}
        for condition in conditions:
            if isinstance(condition, int):
                masks[condition] = top_mask(order, allowed, condition)
            elif condition == ALL_COLUMNS:
                masks[condition] = batch.content
            else:
                own = [generator(self.seed, self.stream, 1, index)]
                masks[condition] = uniform_mask(allowed, own, rates=self.rates)
        return masks


class Sweep(torch.utils.data.Dataset[dict[str, Any]]):
    """Dataset of the rows of a split masked under all conditions, without duplicates, the longest first."""

    def __init__(self, rows: Sequence[dict[str, Any]], masks: Masks) -> None:
        self.labels = np.array([row["labels"] for row in rows])
        self.rows = masks.choose(len(rows))
        # short texts have equal masks at several percentages, which are evaluated once
        inputs: dict[bytes, dict[str, Any]] = {}
        keys: dict[Condition, list[bytes]] = defaultdict(list)
        chosen = {condition: set(own.tolist()) for condition, own in self.rows.items()}
        for index, row in enumerate(rows):
            ids = torch.tensor([row["input_ids"]])
            batch = Batch.from_rows([row], pad_id=masks.mask_id)
            conditions = [condition for condition, own in chosen.items() if index in own]
            for condition, mask in masks.draw(batch, index, conditions).items():
                masked = ids.masked_fill(mask, masks.mask_id)[0].to(torch.int32).numpy()
                key = masked.tobytes() + bytes(row.get("token_type_ids", ()))
                # no token counts as content, so that a collator masks nothing more
                inputs.setdefault(key, {**row, "input_ids": masked, "kinds": [SPECIAL] * len(masked)})
                keys[condition].append(key)
        # the longest first: batches waste little padding, and a lack of memory shows at once
        order = sorted(inputs, key=lambda key: -len(inputs[key]["input_ids"]))
        self.inputs = [*map(inputs.__getitem__, order)]
        rank = dict(zip(order, range(len(order)), strict=True))
        self.place = {condition: np.array([*map(rank.get, own)]) for condition, own in keys.items()}

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, number: int) -> dict[str, Any]:
        return self.inputs[number]

    def scores(
        self, logits: np.ndarray, conditions: Sequence[Condition], metrics: Sequence[str]
    ) -> dict[str, float]:
        """Return the metrics and the mean loss over the rows of the given conditions.

        `logits` [len(self), C] are the model's logits for the items of this dataset.
        """
        places = np.concatenate([*map(self.place.__getitem__, conditions)])
        rows = np.concatenate([*map(self.rows.__getitem__, conditions)])
        chosen, labels = logits[places].astype(np.float64), self.labels[rows]
        predictions = predict(chosen, kind_of(labels))
        result = score(metrics, labels, predictions, logits.shape[1])
        return {**result, "loss": mean_loss(chosen, labels)}

    def table(self, logits: np.ndarray, metrics: Sequence[str]) -> list[dict[str, Any]]:
        """Return a row for each condition: `masking`, metrics, mean loss, and `texts` if not all."""
        table = []
        for condition, own in self.rows.items():
            row = {"masking": condition, **self.scores(logits, [condition], metrics)}
            if len(own) < len(self.labels):
                row["texts"] = len(own)
            table.append(row)
        return table
