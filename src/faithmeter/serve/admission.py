"""What is served, and the desk where a request is looked at before anything is computed for it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from ..explanations.pipeline import explaining
from ..faithfulness.trajectory import Tests
from ..methods.registry import Method
from ..models.classifier import Classifier, class_number
from ..models.tokens import EXPLAINED, encode
from ..tasks import Task
from .limits import Limits, require_cheap, require_short
from .schemas import Asked, Example, ExplainRequest
from .worker import Lane

EXAMPLES, EXAMPLE_ROWS, EXAMPLE_WORDS = 4, 200, 25


@dataclass(frozen=True)
class Served:
    """A classifier, what it is called, and what is known of how it was trained."""

    clf: Classifier
    name: str
    task: Task | None = None
    tests: Tests | None = None
    examples: Sequence[Example] = ()


def examples_of(task: Task) -> list[Example]:
    """A few texts of the test split, each with another label, and of a comfortable length if there is one."""
    split = task.load()["test"]
    rows = list(split.select(range(min(EXAMPLE_ROWS, len(split)))))
    rows.sort(key=lambda row: abs(len(row["text"].split()) - EXAMPLE_WORDS))
    chosen = {row["label"]: row for row in reversed(rows)}  # the nearest of each label stays
    return [
        Example(text=row["text"], pair=row.get("context"), label=task.labels[label])
        for label, row in sorted(chosen.items())[:EXAMPLES]
    ]


class Desk:
    """Refuses what is too much, and sends the rest to one of two lanes.

    Long work has a lane of its own, so that masking a word is answered while somebody's beam search runs.
    """

    def __init__(self, served: Served, limits: Limits) -> None:
        self.served, self.limits = served, limits
        self.tokenizer = copy.deepcopy(served.clf.tokenizer)  # the event loop is one more thread
        self.quick = Lane(served.clf, waiting=limits.waiting)
        self.long = Lane(served.clf, waiting=limits.waiting)

    def close(self) -> None:
        self.quick.close()
        self.long.close()

    def tokens(self, asked: Asked) -> int:
        """How many explained tokens the text has, if it may be read at all."""
        require_short("text", asked.text, self.limits)
        require_short("pair", asked.pair or "", self.limits)
        pairs = None if asked.pair is None else [asked.pair]
        rows = encode(self.tokenizer, [asked.text], pairs, max_length=self.served.clf.max_length)
        return list(rows["kinds"][0]).count(EXPLAINED)

    def methods(self, asked: ExplainRequest) -> list[Method]:
        if asked.label is not None:
            class_number(self.served.clf.labels, asked.label)
        return [explaining(name) for name in asked.methods]

    def lane(self, evaluations: int) -> Lane:
        require_cheap(evaluations, self.limits)
        return self.quick if evaluations <= self.limits.quick else self.long
