"""Performance on a split with 0, 10, …, 100 % random masking, and with masking as in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
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


class Sweep(torch.utils.data.Dataset[dict[str, Any]]):
    """Dataset of all rows masked under all conditions, without duplicates, the longest first.

    The tokens of a row are masked in one random order: a token masked at 10 % is also masked at 20 %. With a
    `limit`, only so many rows are masked. They are spread over the split, which may be sorted by class, and
    their masks are the same without a limit. Whole texts (0 %) are always those of all rows.
    """

    def __init__(
        self,
        rows: Sequence[dict[str, Any]],
        *,
        mask_id: int,
        scope: Scope,
        rates: Rates = "uniform",
        seed: int,
        stream: str,
        conditions: Sequence[Condition] = CONDITIONS,
        limit: int = 0,
    ) -> None:
        self.labels = np.array([row["labels"] for row in rows])
        every = np.arange(len(rows))
        masked_rows = np.arange(limit) * len(rows) // limit if 0 < limit < len(rows) else every
        self.rows = {condition: masked_rows if condition else every for condition in conditions}
        needed = {condition: {*own.tolist()} for condition, own in self.rows.items()}
        numbers: dict[bytes, int] = {}
        inputs: list[dict[str, Any]] = []
        self.place: dict[Condition, np.ndarray] = {c: np.empty(len(rows), dtype=np.int64) for c in conditions}
        for index, row in enumerate(rows):
            ids = torch.tensor([row["input_ids"]])
            batch = Batch.from_rows([row], pad_id=mask_id)
            here = [condition for condition in conditions if index in needed[condition]]
            masks = _masks(batch, scope, here, rates, seed, stream, index)
            for condition, mask in masks.items():
                masked = ids.masked_fill(mask, mask_id)[0].to(torch.int32).numpy()
                key = masked.tobytes() + bytes(row.get("token_type_ids", ()))
                if key not in numbers:
                    numbers[key] = len(inputs)
                    # no token counts as content, so that a collator masks nothing more
                    inputs.append({**row, "input_ids": masked, "kinds": [SPECIAL] * len(masked)})
                self.place[condition][index] = numbers[key]
        order = sorted(range(len(inputs)), key=lambda i: -len(inputs[i]["input_ids"]))
        self.inputs = [inputs[i] for i in order]
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        self.place = {condition: rank[place[self.rows[condition]]] for condition, place in self.place.items()}

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
        chosen = logits[places].astype(np.float64)
        labels = np.concatenate([self.labels[self.rows[condition]] for condition in conditions])
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


def _masks(
    batch: Batch,
    scope: Scope,
    conditions: Sequence[Condition],
    rates: str,
    seed: int,
    stream: str,
    index: int,
) -> dict[Condition, Tensor]:
    """Return the masked tokens of one row [1, T] under each condition."""
    allowed = batch.maskable(scope)
    order = random_scores(allowed, [generator(seed, stream, 0, index)])
    masks: dict[Condition, Tensor] = {}
    for condition in conditions:
        if isinstance(condition, int):
            masks[condition] = top_mask(order, allowed, condition)
        elif condition == ALL_COLUMNS:
            masks[condition] = batch.content
        else:
            masks[condition] = uniform_mask(allowed, [generator(seed, stream, 1, index)], rates=rates)
    return masks
