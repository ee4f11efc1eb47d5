"""Table of faithfulness and plausibility side by side."""

from __future__ import annotations

from ...measuring.plausibility import PLAUSIBILITY
from ..aggregate import Frames
from ..blocks import Table
from .by_method import number_column, table_by_method

TITLE = "Faithful and plausible explanations"
DIFFERENCE = (
    "ACU: whether the model needs the words that a method calls important. All others: whether people call "
    "the same words the reason (human rationales). Neither says anything about the other."
)


def plausibility_table(frames: Frames) -> Table:
    """Return ACU and the agreement with human rationales of each task, model and method."""
    columns = {"acu": number_column("acu", ("faithful", "ACU"))}
    columns |= {name: number_column(name, ("plausible", title)) for name, title in PLAUSIBILITY.items()}
    return table_by_method(frames, TITLE, columns, (DIFFERENCE,), needs="auprc")
