"""Performance on a split with 0, 10, …, 100 % random masking, and with masking as in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..config import Rates, Scope
from ..models.masks import PERCENTS, generator, random_scores, top_mask, uniform_mask
from ..models.tokens import SPECIAL, Batch
from ..stats.metrics import kind_of, mean_loss, predict, score

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
        chosen = {condition: set(own.tolist()) for condition, own in self.rows.items()}
        # short texts have equal masks at several percentages, which are evaluated once
        inputs: dict[bytes, dict[str, Any]] = {}
        keys: dict[Condition, list[bytes]] = {condition: [] for condition in self.rows}
        for index, row in enumerate(rows):
            ids = torch.tensor([row["input_ids"]])
            batch = Batch.from_rows([row], pad_id=masks.mask_id)
            conditions = [condition for condition in chosen if index in chosen[condition]]
            for condition, mask in masks.draw(batch, index, conditions).items():
                masked = ids.masked_fill(mask, masks.mask_id)[0].to(torch.int32).numpy()
                key = masked.tobytes() + bytes(row.get("token_type_ids", ()))
                # no token counts as content, so that a collator masks nothing more
                inputs.setdefault(key, {**row, "input_ids": masked, "kinds": [SPECIAL] * len(masked)})
                keys[condition].append(key)
        # the longest first: batches waste little padding, and a lack of memory shows at once
        order = sorted(inputs, key=lambda key: -len(inputs[key]["input_ids"]))
        self.inputs = [inputs[key] for key in order]
        rank = {key: number for number, key in enumerate(order)}
        self.place = {condition: np.array([rank[key] for key in own]) for condition, own in keys.items()}

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
        places = np.concatenate([self.place[condition] for condition in conditions])
        rows = np.concatenate([self.rows[condition] for condition in conditions])
        chosen, labels = logits[places].astype(np.float64), self.labels[rows]
        predictions = predict(chosen, kind_of(labels))
        result = score(metrics, labels, predictions, logits.shape[1])
        return {**result, "loss": mean_loss(chosen, labels)}

    def table(self, logits: np.ndarray, metrics: Sequence[str]) -> list[dict[str, Any]]:
        """Return a row for each condition: `masking`, metrics, mean loss, and `texts` if not all."""
        table = []
        for condition, own in self.rows.items():
            sampled = {"texts": len(own)} if len(own) < len(self.labels) else {}
            table.append({"masking": condition, **self.scores(logits, [condition], metrics), **sampled})
        return table
