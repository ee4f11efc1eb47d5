"""The paper's tables as data, digit by digit, and the class counts of its tasks (datasets.json)."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..errors import unknown

if TYPE_CHECKING:
    from pandas import DataFrame

NAMES = (
    "datasets",
    "performance",
    "faithfulness",
    *(f"walltime_{part}" for part in ("fine_tune", "in_distribution", "faithfulness", "importance_measures")),
)


def read_counts() -> dict[str, Any]:
    """Read the class counts and majority baselines of the sixteen tasks, as the authors released them."""
    return dict(json.loads(files(__name__).joinpath("datasets.json").read_text(encoding="utf-8")))


def table(name: str) -> DataFrame:
    """Read a published table; times stay texts (00:54, hours and minutes), only empty cells are missing."""
    import pandas as pd

    if name not in NAMES:
        raise unknown("published table", name, NAMES)
    with files(__name__).joinpath(f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, keep_default_na=False, na_values=[""])
