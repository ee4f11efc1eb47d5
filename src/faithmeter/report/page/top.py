"""First screen of the page: one sentence, one chart and one table, or a table of all models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...verdict.formats import UNDEFINED, format_pvalue
from ..blocks import Block, Cell, Column, Sentence, Table, number_columns, plain_row
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
    texts = (Column((heading,)) for heading in ("Measurable", "Leads"))
    labels = (Column((heading,), "label") for heading in ("Task", "Model"))
    columns = (*labels, *texts, *number_columns(["Area"]), Column(("Check",)))
    rows = []
    for verdict in verdicts:
        answer, area = verdict.sentences[0], Cell()
        word = answer.text.partition(":")[0]  # an answer begins with yes, no, perhaps or not known
        if verdict.area is not None:
            mean, low, high, _ = verdict.area.or_mean()
            area = Cell(100 * mean, 100 * low, 100 * high)
        leaders = name_some(verdict.leaders) if verdict.leaders else UNDEFINED
        check = UNDEFINED if math.isnan(verdict.p) else format_pvalue(verdict.p)
        names = plain_row(verdict.task, verdict.model, f"{MARKS[answer.mood]} {word}", leaders)
        rows.append((*names, area, Cell(check)))
    title = "Area: of the leading method, in % [95 % interval]; Check: p-value of texts masked at random"
    return Table(title, columns, tuple(rows))
