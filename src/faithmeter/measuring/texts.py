"""Texts of a split as the model reads them, in slices of up to 64: batches and the places of their units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..config import UnitName
from ..models.evaluator import Evaluator
from ..models.tokens import Batch, in_units

if TYPE_CHECKING:
    from datasets import Dataset
    from pandas import DataFrame

SLICE = 64
"""Maximum number of texts in a slice; slices end at its multiples, and no batch spans two of them."""


def read_slices(
    clf: Evaluator, split: Dataset, count: int, unit: UnitName = "token"
) -> Iterator[tuple[Batch, Tensor]]:
    """Yield the first `count` texts of a split and their labels, one slice at a time."""
    # a batch never spans two slices, so the numbers of a slice do not depend on those before it
    for start in range(0, count, SLICE):
        yield read_rows(clf, split, range(start, min(start + SLICE, count)), unit)


def read_rows(clf: Evaluator, split: Dataset, rows: range, unit: UnitName = "token") -> tuple[Batch, Tensor]:
    """Return the tokenized texts of some rows of a split, numbered as in the split, and their labels."""
    part = split.select(rows)[:]
    # from here on, a word or a sentence is scored and masked as one piece
    batch = in_units(clf.encode(part["text"], part.get("context")), unit)
    return replace(batch, index=torch.tensor(rows)), torch.tensor(part["label"])


def locate_tokens(batch: Batch, labels: Tensor) -> DataFrame:
    """Return a frame of the texts of a batch with the positions of their explained units.

    Columns: row, text, context, label, lists with the starts, ends and word numbers (`words`) of units, and
    truncated: whether the model could not read the end.
    """
    import pandas as pd

    rows = []
    for row, label, layout in zip(batch.index.tolist(), labels.tolist(), batch.layouts, strict=True):
        units = layout.of_units
        # [2, n], also of a text without a unit
        starts, ends = np.array(units.spans, dtype=np.int64).reshape(-1, 2).T.tolist()
        rows.append((row, units.text, units.pair, label, starts, ends, [*units.words], layout.truncated))
    columns = ["row", "text", "context", "label", "starts", "ends", "words", "truncated"]
    return pd.DataFrame(rows, columns=columns)
