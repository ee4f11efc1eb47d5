"""Published numbers: the tables of the paper, and the class counts of its tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..errors import unknown

if TYPE_CHECKING:
    from pandas import DataFrame

NAMES = (
    "datasets",
    "performance",
    "faithfulness",
    "walltime_fine_tune",
    "walltime_in_distribution",
    "walltime_faithfulness",
    "walltime_importance_measures",
)
LABELS = ("model", "dataset", "importance_measure")
"""Columns that name a row of a published table."""
SPELLINGS = {"Diabetese": "Diabetes"}  # the published table of datasets misspells it


def read_counts() -> dict[str, Any]:
    """Return the class counts and majority baselines of the paper's tasks, as released by the authors."""
    return dict(json.loads(files(__package__).joinpath("datasets.json").read_text(encoding="utf-8")))


def table(name: str) -> DataFrame:
    """Return a table of the paper as a data frame.

    Times are strings such as `00:54` (hours and minutes), and empty cells are NaN.

    Raises:
        InputError: There is no table of this name.
    """
    import pandas as pd

    if name not in NAMES:
        raise unknown("published table", name, NAMES)
    with files(__package__).joinpath(f"{name}.csv").open(encoding="utf-8") as file:
        # an empty cell is missing; "None" or "NA" would be a name
        return pd.read_csv(file, keep_default_na=False, na_values=[""])


@cache
def rows(name: str) -> Mapping[tuple[str, ...], Mapping[str, Any]]:
    """Return the rows of a published table by model, dataset and method, as far as it has these columns.

    Missing values are None.
    """
    frame = table(name)
    labels = list(filter(frame.columns.__contains__, LABELS))
    keys = frame[labels].replace(SPELLINGS).itertuples(index=False, name=None)
    records: Any = frame.astype(object).where(frame.notna(), None).to_dict("records")
    # read-only, as the rows are cached: who changed one would change it for all tables
    return MappingProxyType(dict(zip(keys, map(MappingProxyType, records), strict=True)))


@cache
def counts() -> Mapping[str, Mapping[str, int]]:
    """Return the number of test texts, training rows and epochs in the paper, by task."""
    by_task = {}
    for (task,), row in rows("datasets").items():
        epochs = rows("performance")[task,]["max_epochs"]
        by_task[task] = {"texts": row["test"], "train_rows": row["train"], "epochs": epochs}
    return by_task


def parse_minutes(text: str | None) -> int | None:
    """Return the seconds of a published time, hh:mm."""
    if text is None:
        return None
    hours, minutes = text.split(":")
    return 3600 * int(hours) + 60 * int(minutes)
