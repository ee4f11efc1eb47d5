"""Published numbers: the tables of the paper, and the class counts of its tasks."""

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
