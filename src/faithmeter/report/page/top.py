"""First screen of the page: one sentence, one chart and one table, or a table of all models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...verdict.formats import UNDEFINED, format_pvalue
from ..blocks import Block, Cell, Column, Sentence, Table
from ..view import lead
from .verdict import name_some

if TYPE_CHECKING:
    from ...measuring.result import Result
    from .verdict import Verdict

MARKS = {"good": "✓", "caution": "!", "bad": "✕"}


def view_top(results: Sequence[Result], verdicts: Sequence[Verdict], together: Verdict) -> list[Block]:
    """Return the blocks that a reader with ten seconds sees.

    Args:
        results: Results that the verdicts are on; empty if nothing was measured.
        verdicts: Verdict on each task and model.
        together: Verdict on all of them.
    """
    if len(results) == 1:
        return lead(results[0])
    answer = together.sentences[1] if results else together.sentences[0]
    top = Sentence(answer.text, answer.mood, "top")
    return [top, models_table(verdicts)] if results else [top]


def models_table(verdicts: Sequence[Verdict]) -> Table:
    """Return a row for each task and model: whether it can be measured, and which method leads."""
    columns = (
        Column(("Task",), "label"),
        Column(("Model",), "label"),
        Column(("Measurable",)),
        Column(("Leads",)),
        Column(("Area",), form="number"),
        Column(("Check",)),
    )
    rows = []
    for verdict in verdicts:
        answer = verdict.sentences[0]
        word = answer.text.partition(":")[0]
        area = None if verdict.area is None else verdict.area.or_mean()
        rows.append(
            (
                Cell(verdict.task),
                Cell(verdict.model),
                Cell(f"{MARKS[answer.mood]} {word}"),
                Cell(name_some(verdict.leaders) if verdict.leaders else UNDEFINED),
                Cell() if area is None else Cell(100 * area.mean, 100 * area.lower, 100 * area.upper),
                Cell(UNDEFINED if math.isnan(verdict.p) else format_pvalue(verdict.p)),
            )
        )
    title = "Area: of the leading method, in % [95 % interval]; Check: p-value of texts masked at random"
    return Table(title, columns, tuple(rows))
